//! What is sent when: departures and sizes together.

use std::ops::RangeInclusive;

use crate::error::TrafficError;
use crate::process::departures::{Departures, HIGHEST_RATE};
use crate::process::sizes::{SizeSampler, Sizes};
use crate::process::timetable::Timetable;

/// How many samples tell the mean of a distribution well enough to refuse an absurd rate.
const TRIED: usize = 1_000;

/// All datagrams of a flow in order; the same for the same seed.
///
/// The n-th datagram is always the same, whether those before it were sent or skipped.
#[derive(Clone, Debug)]
pub struct Plan {
    timetable: Option<Timetable>,
    sizes: SizeSampler,
}

/// One datagram of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its intended departure, ns since the start; none where the departures are `max`.
    pub due: Option<u64>,
    /// Its payload.
    pub bytes: u32,
}

impl Plan {
    /// The plan of a seed, for a transport that carries `range` bytes of payload.
    ///
    /// # Errors
    /// [`TrafficError::Invalid`] where departures or sizes are not valid, or together make more than
    /// [`HIGHEST_RATE`] datagrams a second.
    pub fn new(
        departures: &Departures,
        sizes: &Sizes,
        range: RangeInclusive<u32>,
        seed: u64,
    ) -> Result<Self, TrafficError> {
        departures.validate()?;
        sizes.validate(&range)?;
        let plan = Self {
            timetable: departures.timetable(seed),
            sizes: sizes.sampler(seed, range),
        };
        let repeats_after = match departures {
            Departures::BitsPerSecond { .. } => sizes.0.period(),
            Departures::Process { interval } => interval.period(),
            _ => return Ok(plan),
        };
        plan.check_rate(repeats_after.max(TRIED))?;
        Ok(plan)
    }

    /// When the next datagram is due; none where the departures are `max`.
    pub fn due(&self) -> Option<u64> {
        self.timetable.as_ref().map(Timetable::due)
    }

    /// Takes the next datagram, sent or skipped.
    #[expect(
        clippy::should_implement_trait,
        reason = "an endless sequence has no use for `None`"
    )]
    pub fn next(&mut self) -> Planned {
        let bytes = self.sizes.next();
        Planned {
            due: self
                .timetable
                .as_mut()
                .map(|timetable| timetable.take(bytes)),
            bytes,
        }
    }

    /// Takes the next datagram if it is due before `time`; never, where the departures are `max`.
    pub fn next_before(&mut self, time: u64) -> Option<Planned> {
        if self.due()? < time {
            Some(self.next())
        } else {
            None
        }
    }

    /// A sender that is behind skips datagrams, and must be faster at that than they fall due.
    fn check_rate(&self, intervals: usize) -> Result<(), TrafficError> {
        let mut tried = self.clone();
        let length = (0..=intervals).fold(0, |_, _| tried.next().due.unwrap_or(u64::MAX));
        if length >= intervals as u64 * 1_000_000_000 / HIGHEST_RATE {
            return Ok(());
        }
        Err(TrafficError::Invalid(format!(
            "these departures come to more than {HIGHEST_RATE} datagrams a second; ask for rate `max`"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Distribution;

    const RANGE: RangeInclusive<u32> = 12..=65_507;

    fn plan(departures: &Departures, sizes: &Sizes) -> Result<Plan, TrafficError> {
        Plan::new(departures, sizes, RANGE, 1)
    }

    #[test]
    fn the_same_seed_plans_the_same_packets() {
        let departures = Departures::Process {
            interval: Distribution::Gamma {
                shape: 2.0,
                scale: 1e5,
            },
        };
        let sizes = Sizes(Distribution::Normal {
            mean: 500.0,
            deviation: 200.0,
        });
        let first = |seed| {
            let mut plan = Plan::new(&departures, &sizes, RANGE, seed).unwrap();
            (0..100).map(|_| plan.next()).collect::<Vec<Planned>>()
        };
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    #[test]
    fn sizes_are_whole_numbers_that_the_transport_carries() {
        let sizes = Sizes(Distribution::Listed {
            values: vec![12.0, 100.4, 100.6, 65_507.0],
        });
        let mut plan = plan(&Departures::Max, &sizes).unwrap();
        let drawn: Vec<u32> = (0..5).map(|_| plan.next().bytes).collect();
        assert_eq!(drawn, [12, 100, 101, 65_507, 12]);

        let wild = Sizes(Distribution::Cauchy {
            location: 0.0,
            scale: 1e6,
        });
        let mut plan = super::Plan::new(&Departures::Max, &wild, RANGE, 1).unwrap();
        let drawn: Vec<u32> = (0..1_000).map(|_| plan.next().bytes).collect();
        assert!(drawn.iter().all(|bytes| RANGE.contains(bytes)));
        assert!(drawn.contains(&12) && drawn.contains(&65_507));
    }

    #[test]
    fn only_what_is_due_is_taken() {
        let departures = Departures::PacketsPerSecond { value: 1_000_000 };
        let mut plan = plan(&departures, &Sizes::constant(100)).unwrap();
        let due = |due| Planned {
            due: Some(due),
            bytes: 100,
        };
        assert_eq!(plan.next_before(0), None);
        assert_eq!(plan.next_before(1), Some(due(0)));
        assert_eq!(plan.next_before(1_000), None);
        assert_eq!(plan.next(), due(1_000));
        assert_eq!(plan.due(), Some(2_000));
    }

    #[test]
    fn rates_that_nobody_could_catch_up_with_are_refused() {
        let small = Sizes::constant(12);
        let fast = Departures::BitsPerSecond {
            value: HIGHEST_RATE * 96,
        };
        assert!(plan(&fast, &small).is_ok());
        let too_fast = Departures::BitsPerSecond {
            value: HIGHEST_RATE * 96 + 1_000_000,
        };
        assert!(plan(&too_fast, &small).is_err());
        assert!(plan(&too_fast, &Sizes::constant(1_400)).is_ok());
        let never_later = Departures::Process {
            interval: Distribution::Normal {
                mean: -1e9,
                deviation: 1.0,
            },
        };
        let problem = plan(&never_later, &small).unwrap_err().to_string();
        assert!(
            problem.contains("more than 10000000 datagrams a second"),
            "{problem}"
        );
        let packets = Departures::PacketsPerSecond {
            value: HIGHEST_RATE + 1,
        };
        assert!(plan(&packets, &small).is_err());
    }

    #[test]
    fn a_list_may_begin_with_a_long_train() {
        let mut values = vec![0.0; 5_000];
        values.push(1e9);
        let departures = Departures::Process {
            interval: Distribution::Listed { values },
        };
        assert!(plan(&departures, &Sizes::constant(100)).is_ok());
    }
}
