//! The distributions that times and sizes can follow.

use serde::{Deserialize, Serialize};

use crate::error::TrafficError;

/// The most values that a `listed`, `choice` or `mixture` may have.
const LONGEST_LIST: usize = 100_000;

/// The largest mean of a `poisson`: beyond it the whole numbers lie closer than its values can be told apart.
const LARGEST_POISSON_MEAN: f64 = 1e9;

/// A distribution of numbers; what they count (ns, bytes) is said where it is used.
///
/// Samples are not cut: `normal`, `cauchy` and `student` give negative values, and these and `pareto` huge ones.
/// What uses them limits them to what makes sense there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Distribution {
    /// Always the same.
    Constant {
        /// That value.
        value: f64,
    },
    /// All numbers from `low` to `high` alike.
    Uniform {
        /// The least value.
        low: f64,
        /// No value reaches it, unless it is `low`.
        high: f64,
    },
    /// The time between events that happen independently of each other.
    Exponential {
        /// Above 0.
        mean: f64,
    },
    /// Also called Gaussian.
    Normal {
        /// Any.
        mean: f64,
        /// The standard deviation, 0 or more.
        deviation: f64,
    },
    /// Whole numbers: how many independent events happen in a time.
    Poisson {
        /// Above 0, at most 10^9.
        mean: f64,
    },
    /// `scale` or more, P(X > x) = (scale / x)^shape; the mean is infinite for a shape of 1 or less.
    Pareto {
        /// Above 0; the smaller, the heavier the tail.
        shape: f64,
        /// Above 0: the least value.
        scale: f64,
    },
    /// So heavy in both tails that it has no mean.
    Cauchy {
        /// The median.
        location: f64,
        /// Above 0: half the distance between the quartiles.
        scale: f64,
    },
    /// Student's t, moved by `location` and stretched by `scale`.
    Student {
        /// The median.
        location: f64,
        /// Above 0.
        scale: f64,
        /// Degrees of freedom, above 0; with 1 it is `cauchy`.
        degrees: f64,
    },
    /// Mean `shape * scale`.
    Gamma {
        /// Above 0.
        shape: f64,
        /// Above 0.
        scale: f64,
    },
    /// P(X > x) = exp(-(x / scale)^shape).
    Weibull {
        /// Above 0.
        shape: f64,
        /// Above 0.
        scale: f64,
    },
    /// These values in this order, over and over.
    Listed {
        /// 1 to 100 000.
        values: Vec<f64>,
    },
    /// One of these values, each as often as its weight says.
    Choice {
        /// 1 to 100 000.
        values: Vec<f64>,
        /// One for each value, 0 or more; they need not add up to anything.
        weights: Vec<f64>,
    },
    /// A draw from one of these distributions, each as often as its weight says.
    Mixture {
        /// 1 to 100 000; neither `listed` nor another `mixture`.
        parts: Vec<Distribution>,
        /// One for each part, 0 or more; they need not add up to anything.
        weights: Vec<f64>,
    },
}

impl Distribution {
    /// Checks that the distribution exists.
    ///
    /// # Errors
    /// [`TrafficError::Invalid`] that names the distribution, the parameter and what it must be.
    pub fn validate(&self) -> Result<(), TrafficError> {
        match self {
            Self::Constant { value } => any("constant", "value", *value),
            Self::Uniform { low, high } => {
                any("uniform", "low", *low)?;
                any("uniform", "high", *high)?;
                check(low <= high, || {
                    format!("the low of the uniform distribution, {low}, is above its high, {high}")
                })?;
                any("uniform", "width", high - low)
            }
            Self::Exponential { mean } => positive("exponential", "mean", *mean),
            Self::Normal { mean, deviation } => {
                any("normal", "mean", *mean)?;
                any("normal", "deviation", *deviation)?;
                check(*deviation >= 0.0, || {
                    format!(
                        "the deviation of the normal distribution must be 0 or more, not {deviation}"
                    )
                })
            }
            Self::Poisson { mean } => {
                positive("poisson", "mean", *mean)?;
                check(*mean <= LARGEST_POISSON_MEAN, || {
                    format!(
                        "the mean of the poisson distribution must be {LARGEST_POISSON_MEAN} or less, not {mean}"
                    )
                })
            }
            Self::Pareto { shape, scale } => shape_and_scale("pareto", *shape, *scale),
            Self::Gamma { shape, scale } => shape_and_scale("gamma", *shape, *scale),
            Self::Weibull { shape, scale } => shape_and_scale("weibull", *shape, *scale),
            Self::Cauchy { location, scale } => {
                any("cauchy", "location", *location)?;
                positive("cauchy", "scale", *scale)
            }
            Self::Student {
                location,
                scale,
                degrees,
            } => {
                any("student", "location", *location)?;
                positive("student", "scale", *scale)?;
                positive("student", "degrees", *degrees)
            }
            Self::Listed { values } => list("listed", "values", values),
            Self::Choice {
                values,
                weights: given,
            } => {
                list("choice", "values", values)?;
                weights("choice", given, values.len())
            }
            Self::Mixture {
                parts,
                weights: given,
            } => {
                length("mixture", "parts", parts.len())?;
                weights("mixture", given, parts.len())?;
                parts.iter().try_for_each(Self::validate_as_part)
            }
        }
    }

    /// After how many samples a list begins again; 1 for what is not a list.
    pub(super) fn period(&self) -> usize {
        match self {
            Self::Listed { values } => values.len(),
            _ => 1,
        }
    }

    fn validate_as_part(&self) -> Result<(), TrafficError> {
        check(
            !matches!(self, Self::Listed { .. } | Self::Mixture { .. }),
            || "a mixture is made of simple distributions, not of listed ones or mixtures".into(),
        )?;
        self.validate()
    }
}

fn check(holds: bool, message: impl FnOnce() -> String) -> Result<(), TrafficError> {
    if holds {
        Ok(())
    } else {
        Err(TrafficError::Invalid(message()))
    }
}

fn any(kind: &str, parameter: &str, value: f64) -> Result<(), TrafficError> {
    check(value.is_finite(), || {
        format!("the {parameter} of the {kind} distribution must be a number, not {value}")
    })
}

fn positive(kind: &str, parameter: &str, value: f64) -> Result<(), TrafficError> {
    check(value.is_finite() && value > 0.0, || {
        format!("the {parameter} of the {kind} distribution must be above 0, not {value}")
    })
}

fn shape_and_scale(kind: &str, shape: f64, scale: f64) -> Result<(), TrafficError> {
    positive(kind, "shape", shape)?;
    positive(kind, "scale", scale)
}

fn length(kind: &str, parameter: &str, length: usize) -> Result<(), TrafficError> {
    check((1..=LONGEST_LIST).contains(&length), || {
        format!(
            "the {parameter} of the {kind} distribution must be 1 to {LONGEST_LIST}, not {length}"
        )
    })
}

fn list(kind: &str, parameter: &str, values: &[f64]) -> Result<(), TrafficError> {
    length(kind, parameter, values.len())?;
    values
        .iter()
        .try_for_each(|value| any(kind, parameter, *value))
}

fn weights(kind: &str, weights: &[f64], count: usize) -> Result<(), TrafficError> {
    check(weights.len() == count, || {
        format!(
            "the {kind} distribution needs a weight for each of its {count} members, not {}",
            weights.len()
        )
    })?;
    check(
        weights
            .iter()
            .all(|weight| weight.is_finite() && *weight >= 0.0),
        || format!("the weights of the {kind} distribution must be numbers of 0 or more"),
    )?;
    let total: f64 = weights.iter().sum();
    check(total.is_finite() && total > 0.0, || {
        format!("the weights of the {kind} distribution must add up to more than 0, not {total}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(distribution: &Distribution) -> String {
        distribution.validate().unwrap_err().to_string()
    }

    #[test]
    fn each_message_says_which_parameter_is_wrong_and_what_it_must_be() {
        let exponential = Distribution::Exponential { mean: 0.0 };
        assert_eq!(
            problem(&exponential),
            "the job is not valid: the mean of the exponential distribution must be above 0, not 0"
        );
        let uniform = Distribution::Uniform {
            low: 2.0,
            high: 1.0,
        };
        assert!(
            problem(&uniform).contains("low of the uniform distribution, 2, is above its high, 1")
        );
        let normal = Distribution::Normal {
            mean: f64::NAN,
            deviation: 1.0,
        };
        assert!(problem(&normal).contains("the mean of the normal distribution must be a number"));
        let choice = Distribution::Choice {
            values: vec![1.0, 2.0],
            weights: vec![1.0],
        };
        assert!(problem(&choice).contains("a weight for each of its 2 members, not 1"));
    }

    #[test]
    fn what_does_not_exist_is_refused() {
        let nothing = Distribution::Listed { values: vec![] };
        let weightless = Distribution::Choice {
            values: vec![1.0],
            weights: vec![0.0],
        };
        let nested = Distribution::Mixture {
            parts: vec![Distribution::Listed { values: vec![1.0] }],
            weights: vec![1.0],
        };
        let part = Distribution::Mixture {
            parts: vec![Distribution::Exponential { mean: -1.0 }],
            weights: vec![1.0],
        };
        let infinite = Distribution::Pareto {
            shape: f64::INFINITY,
            scale: 1.0,
        };
        for distribution in [nothing, weightless, nested, part, infinite] {
            assert!(distribution.validate().is_err(), "{distribution:?}");
        }
    }

    #[test]
    fn the_edges_of_what_exists_are_taken() {
        let point = Distribution::Uniform {
            low: 3.0,
            high: 3.0,
        };
        let sharp = Distribution::Normal {
            mean: -3.0,
            deviation: 0.0,
        };
        let sparse = Distribution::Choice {
            values: vec![1.0, 2.0],
            weights: vec![0.0, 0.1],
        };
        for distribution in [point, sharp, sparse] {
            assert!(distribution.validate().is_ok(), "{distribution:?}");
        }
    }
}
