//! When datagrams depart.

use serde::{Deserialize, Serialize};

use crate::error::TrafficError;
use crate::process::Distribution;

/// The most datagrams a second that a timetable may ask for: a sender that is behind must be able to catch up.
pub const HIGHEST_RATE: u64 = 10_000_000;

/// When datagrams depart; the first one at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Departures {
    /// So that this many payload bits per second leave, whatever the sizes: each datagram follows its predecessor
    /// when that one's bits have been given their time.
    BitsPerSecond {
        /// 1 or more.
        value: u64,
    },
    /// Evenly spaced.
    PacketsPerSecond {
        /// 1 or more.
        value: u64,
    },
    /// As fast as the sender can: every departure is intended for the moment it happens.
    Max,
    /// Back-to-back trains (RFC 9004).
    Bursts {
        /// Datagrams of one train, 1 or more.
        datagrams: u32,
        /// From the start of a train to the start of the next, ns.
        interval: u64,
    },
    /// Random intervals.
    Process {
        /// ns from a departure to the next; samples are limited to 0 ns to one hour.
        interval: Distribution,
    },
    /// Voice with activity detection: evenly spaced while somebody talks, none in silence.
    Talk {
        /// Between the datagrams of a talk spurt, ns.
        interval: u64,
        /// How long a talk spurt lasts, ns: `interval` to one hour.
        talk: Distribution,
        /// How long the silence after it lasts, ns: 0 to one hour.
        silence: Distribution,
    },
}

impl Departures {
    /// Checks that every departure has a time, for datagrams of these valid sizes.
    ///
    /// # Errors
    /// [`TrafficError::Invalid`] for rates of 0 or above [`HIGHEST_RATE`], and for distributions that don't exist.
    pub fn validate(&self) -> Result<(), TrafficError> {
        let invalid = |text: String| Err(TrafficError::Invalid(text));
        match self {
            Self::BitsPerSecond { value: 0 } | Self::PacketsPerSecond { value: 0 } => {
                invalid("the rate is 0".into())
            }
            Self::BitsPerSecond { .. } | Self::Max => Ok(()),
            Self::PacketsPerSecond { value } => check_rate(*value as f64),
            Self::Bursts {
                datagrams,
                interval,
            } => {
                if *datagrams == 0 || *interval == 0 {
                    return invalid(
                        "a burst has at least one datagram, and an interval above 0".into(),
                    );
                }
                check_rate(f64::from(*datagrams) * 1e9 / *interval as f64)
            }
            Self::Process { interval } => interval.validate(),
            Self::Talk {
                interval,
                talk,
                silence,
            } => {
                check_rate(1e9 / *interval as f64)?;
                talk.validate()?;
                silence.validate()
            }
        }
    }
}

/// Refuses a rate, datagrams per second, that is too high to catch up with.
fn check_rate(rate: f64) -> Result<(), TrafficError> {
    if rate <= HIGHEST_RATE as f64 {
        return Ok(());
    }
    Err(TrafficError::Invalid(format!(
        "a timetable has at most {HIGHEST_RATE} datagrams a second, not {rate:.0}; ask for rate `max`"
    )))
}
