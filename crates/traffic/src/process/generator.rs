//! Random numbers that are the same on every machine and in every version, for one seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// What random numbers are for. Those of one purpose don't depend on how many were drawn for another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    Values = 0,
    Departures = 1,
    Sizes = 2,
}

/// ChaCha with 8 rounds, whose output is laid down, one stream for each purpose.
#[derive(Clone, Debug)]
pub(super) struct Generator(ChaCha8Rng);

impl Generator {
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut generator = ChaCha8Rng::from_seed(key);
        generator.set_stream(purpose as u64);
        Self(generator)
    }

    /// From 0 to below 1, in steps of 2^-53.
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Above 0 and below 1, so that it has a logarithm.
    pub fn open_unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 12) as f64 + 0.5) * (1.0 / (1_u64 << 52) as f64)
    }

    /// The standard normal distribution (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * libm::log(self.open_unit())).sqrt();
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_and_seeds_have_streams_of_their_own() {
        let first = |seed, purpose| Generator::new(seed, purpose).unit().to_bits();
        let mut all = [
            first(0, Purpose::Values),
            first(0, Purpose::Departures),
            first(0, Purpose::Sizes),
            first(1, Purpose::Values),
            first(u64::MAX, Purpose::Values),
        ];
        assert_eq!(first(1, Purpose::Values), all[3]);
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
