//! When a job sends and which part of that is measured.

use serde::{Deserialize, Serialize};

use crate::error::TrafficError;

/// The longest that a job may last, waiting for its start included.
pub const LONGEST_JOB: u64 = 3_600_000_000_000;

/// How far the start may have passed when a sender is ready, ns.
pub(crate) const START_TOLERANCE: i64 = 5_000_000;

/// How far behind a sender may be and still send what was due, ns: an older backlog is dropped instead of bursting out.
pub(crate) const LONGEST_BACKLOG: u64 = 10_000_000;

/// The time plan of one trial. Both ends get the same one, each in its own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// When sending starts: ns of this node's CLOCK_REALTIME.
    pub start_at: i64,
    /// Sending before the measured window, ns.
    pub warm_up: u64,
    /// The measured window, ns; at least 1.
    pub measure: u64,
    /// Sending after the measured window, ns.
    pub cool_down: u64,
}

impl Schedule {
    /// Says what is wrong when nothing is measured or the job with its `linger` would take longer than [`LONGEST_JOB`].
    pub(crate) fn validate(&self, now: i64, linger: u64) -> Result<(), TrafficError> {
        if self.measure == 0 {
            return Err(TrafficError::Invalid(
                "the measured window has no length".into(),
            ));
        }
        let parts = [self.warm_up, self.measure, self.cool_down, linger];
        let lasting = parts
            .iter()
            .try_fold(0_u64, |sum, part| sum.checked_add(*part));
        let waiting = u64::try_from(self.start_at.saturating_sub(now)).unwrap_or(0);
        match lasting.and_then(|lasting| lasting.checked_add(waiting)) {
            Some(total) if total <= LONGEST_JOB => Ok(()),
            _ => Err(TrafficError::Invalid(
                "the schedule with the time until its start would take longer than an hour".into(),
            )),
        }
    }

    /// Refuses a schedule whose start has passed by more than `tolerance` ns.
    pub(crate) fn check_start(&self, now: i64, tolerance: i64) -> Result<(), TrafficError> {
        let by = now.saturating_sub(self.start_at);
        if by > tolerance {
            Err(TrafficError::StartPassed { by })
        } else {
            Ok(())
        }
    }

    /// Start of the measured window, ns since `start_at`; a valid schedule is far from overflowing.
    pub(crate) fn measured_from(&self) -> i64 {
        self.warm_up as i64
    }

    /// End of the measured window, ns since `start_at`.
    pub(crate) fn measured_to(&self) -> i64 {
        (self.warm_up + self.measure) as i64
    }

    /// End of sending, ns since `start_at`.
    pub(crate) fn end(&self) -> i64 {
        (self.warm_up + self.measure + self.cool_down) as i64
    }

    /// Whether a moment, ns since `start_at`, lies in the measured window.
    #[must_use]
    pub fn measures(&self, offset: i64) -> bool {
        self.measured_from() <= offset && offset < self.measured_to()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEDULE: Schedule = Schedule {
        start_at: 1_000,
        warm_up: 10,
        measure: 20,
        cool_down: 5,
    };

    #[test]
    fn the_measured_window_holds_its_first_and_not_its_last_moment() {
        let inside: Vec<i64> = (-5..40)
            .filter(|offset| SCHEDULE.measures(*offset))
            .collect();
        assert_eq!(inside, (10..30).collect::<Vec<i64>>());
        assert_eq!(SCHEDULE.end(), 35);
    }

    #[test]
    fn a_schedule_may_take_an_hour_and_no_more() {
        let hour = Schedule {
            measure: LONGEST_JOB - 15,
            ..SCHEDULE
        };
        assert!(hour.validate(1_000, 0).is_ok());
        assert!(hour.validate(1_000, 1).is_err());
        assert!(hour.validate(999, 0).is_err());
        assert!(
            Schedule {
                measure: u64::MAX,
                ..SCHEDULE
            }
            .validate(0, 0)
            .is_err()
        );
        assert!(
            Schedule {
                start_at: i64::MAX,
                ..SCHEDULE
            }
            .validate(-5, 0)
            .is_err()
        );
        assert!(
            Schedule {
                measure: 0,
                ..SCHEDULE
            }
            .validate(0, 0)
            .is_err()
        );
    }
}
