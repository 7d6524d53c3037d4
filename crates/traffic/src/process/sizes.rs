//! How long datagrams are.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::error::TrafficError;
use crate::process::distribution::Distribution;
use crate::process::generator::Purpose;
use crate::process::sampler::Sampler;

/// Payload bytes of each datagram or message: samples are rounded, and limited to what the transport carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sizes(pub Distribution);

impl Sizes {
    /// Datagrams of one length.
    pub fn constant(bytes: u32) -> Self {
        Self(Distribution::Constant {
            value: bytes.into(),
        })
    }

    /// Checks the distribution, and that a constant or listed size is one that the transport carries: `range`.
    ///
    /// # Errors
    /// [`TrafficError::Invalid`] that says what is wrong.
    pub fn validate(&self, range: &RangeInclusive<u32>) -> Result<(), TrafficError> {
        self.0.validate()?;
        let named: &[f64] = match &self.0 {
            Distribution::Constant { value } => std::slice::from_ref(value),
            Distribution::Listed { values } | Distribution::Choice { values, .. } => values,
            _ => return Ok(()),
        };
        let carried = f64::from(*range.start())..=f64::from(*range.end());
        match named.iter().find(|size| !carried.contains(size)) {
            None => Ok(()),
            Some(size) => Err(TrafficError::Invalid(format!(
                "the payload has {} to {} bytes, not {size}",
                range.start(),
                range.end()
            ))),
        }
    }
}

impl Sizes {
    /// The sizes of the datagrams that a seed stands for; these sizes are valid for `range`.
    pub fn sampler(&self, seed: u64, range: RangeInclusive<u32>) -> SizeSampler {
        SizeSampler {
            sampler: self.0.sampler_for(seed, Purpose::Sizes),
            range,
        }
    }
}

/// The sizes of one datagram after the other.
#[derive(Clone, Debug)]
pub struct SizeSampler {
    sampler: Sampler,
    range: RangeInclusive<u32>,
}

impl SizeSampler {
    /// Payload bytes of the next datagram.
    #[expect(
        clippy::should_implement_trait,
        reason = "an endless sequence has no use for `None`"
    )]
    pub fn next(&mut self) -> u32 {
        (self.sampler.next().round() as u32).clamp(*self.range.start(), *self.range.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_that_are_named_must_fit_the_transport() {
        let range = 12..=65_507;
        assert!(Sizes::constant(12).validate(&range).is_ok());
        let problem = Sizes::constant(11).validate(&range).unwrap_err();
        assert_eq!(
            problem.to_string(),
            "the job is not valid: the payload has 12 to 65507 bytes, not 11"
        );
        let listed = Sizes(Distribution::Listed {
            values: vec![100.0, 70_000.0],
        });
        assert!(listed.validate(&range).is_err());
        let drawn = Sizes(Distribution::Normal {
            mean: 0.0,
            deviation: 1e6,
        });
        assert!(drawn.validate(&range).is_ok());
    }
}
