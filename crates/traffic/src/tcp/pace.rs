//! When the writes of a paced stream are due.

/// Writes of one size at a steady rate. What TCP holds up is made up for, so that the rate holds on average.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// The exact time between two writes is `numerator / denominator` ns.
    numerator: u128,
    denominator: u128,
    written: u128,
}

impl Pace {
    /// `rate` bits per second, not 0, shared by `streams`.
    pub fn new(rate: u64, streams: u16, write_bytes: u32) -> Self {
        Self {
            numerator: u128::from(write_bytes) * 8 * u128::from(streams) * 1_000_000_000,
            denominator: rate.into(),
            written: 0,
        }
    }

    /// When the next write is due, ns since the start.
    pub fn due(&self) -> i64 {
        let due = (self.written * self.numerator).div_ceil(self.denominator);
        due.try_into().unwrap_or(i64::MAX)
    }

    pub fn advance(&mut self) {
        self.written += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_bits_of_all_streams_are_those_of_the_rate(
            rate in 1_000_u64..100_000_000_000, streams in 1_u16..=128, write_bytes in 1_u32..=16_777_216, writes in 0_u32..1_000,
        ) {
            let mut pace = Pace::new(rate, streams, write_bytes);
            (0..writes).for_each(|_| pace.advance());
            let bits = f64::from(writes) * f64::from(write_bytes) * 8.0 * f64::from(streams);
            let due = bits / rate as f64 * 1e9;
            prop_assert!((pace.due() as f64 - due).abs() <= 1.0 + due * 1e-9, "{} instead of {}", pace.due(), due);
        }
    }

    #[test]
    fn the_first_write_is_due_at_once() {
        assert_eq!(Pace::new(1, 1, 1).due(), 0);
    }
}
