//! Samples of distributions.
//!
//! All transcendental functions are those of the `libm` crate, because those of the system give different last digits
//! on different machines.

use std::f64::consts::PI;

use crate::process::distribution::Distribution;
use crate::process::generator::{Generator, Purpose};

/// From this mean on a Poisson sample is cheaper to find by rejection than by counting events.
const LARGE_POISSON_MEAN: f64 = 10.0;

/// An endless sequence of samples: the same for the same distribution and seed, on every machine and in every version.
#[derive(Clone, Debug)]
pub struct Sampler {
    source: Source,
    generator: Generator,
}

impl Distribution {
    /// Samples of this distribution, which is valid.
    pub fn sampler(&self, seed: u64) -> Sampler {
        self.sampler_for(seed, Purpose::Values)
    }

    pub(super) fn sampler_for(&self, seed: u64, purpose: Purpose) -> Sampler {
        Sampler {
            source: Source::of(self),
            generator: Generator::new(seed, purpose),
        }
    }
}

impl Sampler {
    /// The next sample; always a finite number.
    #[expect(
        clippy::should_implement_trait,
        reason = "an endless sequence has no use for `None`"
    )]
    pub fn next(&mut self) -> f64 {
        self.source.draw(&mut self.generator)
    }
}

/// A distribution made ready to be drawn from.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Constant(f64),
    Uniform {
        low: f64,
        width: f64,
    },
    Exponential {
        mean: f64,
    },
    Normal {
        mean: f64,
        deviation: f64,
    },
    FewEvents {
        none: f64,
    },
    ManyEvents(Rejection),
    Pareto {
        exponent: f64,
        scale: f64,
    },
    Cauchy {
        location: f64,
        scale: f64,
    },
    Student {
        location: f64,
        scale: f64,
        degrees: f64,
    },
    Gamma {
        shape: f64,
        scale: f64,
    },
    Weibull {
        exponent: f64,
        scale: f64,
    },
    Listed {
        values: Vec<f64>,
        next: usize,
    },
    Choice {
        values: Vec<f64>,
        weights: Weights,
    },
    Mixture {
        parts: Vec<Source>,
        weights: Weights,
    },
}

impl Source {
    /// The distribution is valid.
    pub fn of(distribution: &Distribution) -> Self {
        match *distribution {
            Distribution::Constant { value } => Self::Constant(value),
            Distribution::Uniform { low, high } => Self::Uniform {
                low,
                width: high - low,
            },
            Distribution::Exponential { mean } => Self::Exponential { mean },
            Distribution::Normal { mean, deviation } => Self::Normal { mean, deviation },
            Distribution::Poisson { mean } if mean < LARGE_POISSON_MEAN => Self::FewEvents {
                none: libm::exp(-mean),
            },
            Distribution::Poisson { mean } => Self::ManyEvents(Rejection::new(mean)),
            Distribution::Pareto { shape, scale } => Self::Pareto {
                exponent: -1.0 / shape,
                scale,
            },
            Distribution::Cauchy { location, scale } => Self::Cauchy { location, scale },
            Distribution::Student {
                location,
                scale,
                degrees,
            } => Self::Student {
                location,
                scale,
                degrees,
            },
            Distribution::Gamma { shape, scale } => Self::Gamma { shape, scale },
            Distribution::Weibull { shape, scale } => Self::Weibull {
                exponent: 1.0 / shape,
                scale,
            },
            Distribution::Listed { ref values } => Self::Listed {
                values: values.clone(),
                next: 0,
            },
            Distribution::Choice {
                ref values,
                ref weights,
            } => Self::Choice {
                values: values.clone(),
                weights: Weights::new(weights),
            },
            Distribution::Mixture {
                ref parts,
                ref weights,
            } => Self::Mixture {
                parts: parts.iter().map(Self::of).collect(),
                weights: Weights::new(weights),
            },
        }
    }

    /// A finite number.
    pub fn draw(&mut self, generator: &mut Generator) -> f64 {
        self.unlimited(generator).clamp(f64::MIN, f64::MAX)
    }

    fn unlimited(&mut self, generator: &mut Generator) -> f64 {
        match self {
            Self::Constant(value) => *value,
            Self::Uniform { low, width } => *low + *width * generator.unit(),
            Self::Exponential { mean } => -*mean * libm::log(generator.open_unit()),
            Self::Normal { mean, deviation } => *mean + *deviation * generator.normal(),
            Self::FewEvents { none } => count_events(*none, generator),
            Self::ManyEvents(rejection) => rejection.draw(generator),
            Self::Pareto { exponent, scale } => {
                *scale * libm::pow(generator.open_unit(), *exponent)
            }
            Self::Cauchy { location, scale } => {
                *location + *scale * libm::tan(PI * (generator.open_unit() - 0.5))
            }
            Self::Student {
                location,
                scale,
                degrees,
            } => {
                let half_chi_squared = gamma(*degrees / 2.0, generator).max(f64::MIN_POSITIVE);
                let spread = (*degrees / 2.0 / half_chi_squared).sqrt();
                *location + *scale * spread * generator.normal()
            }
            Self::Gamma { shape, scale } => *scale * gamma(*shape, generator),
            Self::Weibull { exponent, scale } => {
                *scale * libm::pow(-libm::log(generator.open_unit()), *exponent)
            }
            Self::Listed { values, next } => {
                let value = values[*next];
                *next = (*next + 1) % values.len();
                value
            }
            Self::Choice { values, weights } => values[weights.pick(generator)],
            Self::Mixture { parts, weights } => parts[weights.pick(generator)].unlimited(generator),
        }
    }
}

/// How many exponential times fit into a unit of time, where `none` is the probability that not even one does.
fn count_events(none: f64, generator: &mut Generator) -> f64 {
    let mut count = 0.0;
    let mut product = generator.open_unit();
    while product > none {
        product *= generator.open_unit();
        count += 1.0;
    }
    count
}

/// A gamma sample of scale 1 (Marsaglia and Tsang 2000).
fn gamma(shape: f64, generator: &mut Generator) -> f64 {
    if shape < 1.0 {
        let boost = libm::pow(generator.open_unit(), 1.0 / shape);
        return boost * gamma(shape + 1.0, generator);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let normal = generator.normal();
        let root = 1.0 + c * normal;
        let cube = root * root * root;
        if cube <= 0.0 {
            continue;
        }
        let limit = 0.5 * normal * normal + d - d * cube + d * libm::log(cube);
        if libm::log(generator.open_unit()) < limit {
            return d * cube;
        }
    }
}

/// Poisson samples by transformed rejection (Hörmann 1993, algorithm PTRS), whose constants these are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rejection {
    mean: f64,
    log_mean: f64,
    a: f64,
    b: f64,
    log_inverse_alpha: f64,
    v_r: f64,
}

impl Rejection {
    fn new(mean: f64) -> Self {
        let b = 0.931 + 2.53 * mean.sqrt();
        Self {
            mean,
            log_mean: libm::log(mean),
            a: -0.059 + 0.02483 * b,
            b,
            log_inverse_alpha: libm::log(1.1239 + 1.1328 / (b - 3.4)),
            v_r: 0.9277 - 3.6224 / (b - 2.0),
        }
    }

    fn draw(&self, generator: &mut Generator) -> f64 {
        let Self { mean, a, b, .. } = *self;
        loop {
            let u = generator.unit() - 0.5;
            let v = generator.open_unit();
            let us = 0.5 - u.abs();
            let k = ((2.0 * a / us + b) * u + mean + 0.43).floor();
            if us >= 0.07 && v <= self.v_r {
                return k;
            }
            if k < 0.0 || (us < 0.013 && v > us) {
                continue;
            }
            let tried = libm::log(v) + self.log_inverse_alpha - libm::log(a / (us * us) + b);
            if tried <= k * self.log_mean - mean - libm::lgamma(k + 1.0) {
                return k;
            }
        }
    }
}

/// Picks members of a list as often as their weights say.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    cumulated: Vec<f64>,
}

impl Weights {
    fn new(weights: &[f64]) -> Self {
        let cumulated = weights
            .iter()
            .scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        Self { cumulated }
    }

    fn pick(&self, generator: &mut Generator) -> usize {
        let total = self.cumulated.last().copied().unwrap_or(0.0);
        let drawn = total * generator.unit();
        // A product can be rounded up to the total, which belongs to no member.
        let last = self.cumulated.partition_point(|sum| *sum < total);
        self.cumulated
            .partition_point(|sum| *sum <= drawn)
            .min(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first<const N: usize>(distribution: &Distribution, seed: u64) -> [f64; N] {
        distribution.validate().unwrap();
        let mut sampler = distribution.sampler(seed);
        std::array::from_fn(|_| sampler.next())
    }

    /// Exact, because a seed must mean the same packets in every version and on every machine.
    #[test]
    fn a_seed_gives_the_values_that_it_always_gave() {
        let weights = vec![1.0, 1.0];
        let parts = vec![
            Distribution::Exponential { mean: 1.0 },
            Distribution::Constant { value: 0.5 },
        ];
        let (shape, scale) = (2.5, 2.0);
        let cases = [
            (
                Distribution::Uniform {
                    low: 0.0,
                    high: 1.0,
                },
                [0.381489413238261, 0.2949273257816749, 0.7982542473815959],
            ),
            (
                Distribution::Exponential { mean: 1.0 },
                [0.9636721790010983, 1.2210263062747293, 0.22532812653501116],
            ),
            (
                Distribution::Normal {
                    mean: 0.0,
                    deviation: 1.0,
                },
                [-0.38671128634494856, 0.5802850840980233, 0.3578665505567297],
            ),
            (Distribution::Poisson { mean: 3.0 }, [5.0, 5.0, 2.0]),
            (
                Distribution::Poisson { mean: 1_000.0 },
                [989.0, 1038.0, 1022.0],
            ),
            (
                Distribution::Pareto { shape, scale },
                [2.9406070868514957, 3.259447501896792, 2.188635808353412],
            ),
            (
                Distribution::Cauchy {
                    location: 0.0,
                    scale,
                },
                [-0.7810507059958789, -1.5023566387885965, 2.7212527470755994],
            ),
            (
                Distribution::Student {
                    location: 0.0,
                    scale,
                    degrees: 3.0,
                },
                [0.708644232815249, -3.2502741902499546, 0.6842142450984746],
            ),
            (
                Distribution::Gamma { shape, scale },
                [3.291672958042492, 5.13892335579021, 4.854285505984613],
            ),
            (
                Distribution::Weibull { shape, scale },
                [1.9706147272562393, 2.1663070043516774, 1.1019354580170952],
            ),
            (
                Distribution::Choice {
                    values: vec![1.0, 2.0],
                    weights: weights.clone(),
                },
                [1.0, 1.0, 2.0],
            ),
            (
                Distribution::Mixture { parts, weights },
                [1.2210263062747293, 0.5, 0.5],
            ),
        ];
        for (distribution, expected) in cases {
            assert_eq!(first(&distribution, 1), expected, "{distribution:?}");
        }
    }

    #[test]
    fn a_list_goes_round_in_its_order() {
        let listed = Distribution::Listed {
            values: vec![3.0, 1.0, 2.0],
        };
        assert_eq!(first(&listed, 9), [3.0, 1.0, 2.0, 3.0, 1.0]);
    }

    #[test]
    fn what_has_no_weight_is_never_chosen() {
        let choice = Distribution::Choice {
            values: vec![1.0, 2.0, 3.0, 4.0],
            weights: vec![0.0, 1e-3, 1e3, 0.0],
        };
        let drawn: [f64; 10_000] = first(&choice, 5);
        assert!(drawn.iter().all(|value| [2.0, 3.0].contains(value)));
    }

    #[test]
    fn the_heaviest_tails_give_finite_numbers() {
        let heavy = [
            Distribution::Pareto {
                shape: 1e-3,
                scale: 1e300,
            },
            Distribution::Student {
                location: 0.0,
                scale: 1e300,
                degrees: 1e-3,
            },
            Distribution::Weibull {
                shape: 1e-3,
                scale: 1.0,
            },
            Distribution::Uniform {
                low: -8e307,
                high: 8e307,
            },
        ];
        for distribution in heavy {
            let drawn: [f64; 10_000] = first(&distribution, 5);
            assert!(
                drawn.iter().all(|value| value.is_finite()),
                "{distribution:?}"
            );
        }
    }
}
