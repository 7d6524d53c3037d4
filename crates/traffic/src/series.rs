//! Bytes of streams over time, whole and in the measured window.

use crate::outcome::{Series, Tally};
use crate::schedule::Schedule;

/// Counts arrivals by their time since the start of the schedule.
pub(crate) struct ArrivalCounter {
    schedule: Schedule,
    step: u64,
    steps: Vec<Tally>,
    measured: Tally,
    last: i64,
    longest_gap: i64,
}

impl ArrivalCounter {
    /// Counts in steps of `step` ns.
    pub fn new(schedule: Schedule, step: u64) -> Self {
        let steps = (schedule.end() as u64).div_ceil(step) as usize;
        let last = schedule.measured_from();
        Self {
            schedule,
            step,
            steps: vec![Tally::default(); steps],
            measured: Tally::default(),
            last,
            longest_gap: 0,
        }
    }

    /// `at` is ns since the start of the schedule; arrivals before it or after its end are in no step.
    pub fn add(&mut self, at: i64, bytes: u64) {
        let Ok(since_start) = u64::try_from(at) else {
            return;
        };
        if let Some(step) = self.steps.get_mut((since_start / self.step) as usize) {
            step.add(bytes);
        }
        if self.schedule.measures(at) {
            self.measured.add(bytes);
            self.longest_gap = self.longest_gap.max(at - self.last);
            self.last = at;
        }
    }

    /// Adds what another counter of the same schedule counted; gaps stay apart.
    pub fn merge(&mut self, other: &Self) {
        for (sum, step) in self.steps.iter_mut().zip(&other.steps) {
            sum.merge(*step);
        }
        self.measured.merge(other.measured);
    }

    /// Arrivals in the measured window.
    pub fn measured(&self) -> Tally {
        self.measured
    }

    /// The longest time in the measured window without an arrival, ns.
    pub fn longest_gap(&self) -> u64 {
        self.longest_gap
            .max(self.schedule.measured_to() - self.last) as u64
    }

    pub fn stream(&self) -> Series {
        Series {
            step: self.step,
            bytes: self.steps.iter().map(|step| step.bytes).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEDULE: Schedule = Schedule {
        start_at: 0,
        warm_up: 100_000_000,
        measure: 200_000_000,
        cool_down: 50_000_000,
    };

    #[test]
    fn arrivals_fall_into_steps_and_the_window() {
        let mut arrivals = ArrivalCounter::new(SCHEDULE, 100_000_000);
        for at in [
            -1,
            0,
            99_999_999,
            100_000_000,
            299_999_999,
            300_000_000,
            349_999_999,
            400_000_000,
        ] {
            arrivals.add(at, 10);
        }
        assert_eq!(arrivals.stream().bytes, [20, 10, 10, 20]);
        assert_eq!(
            arrivals.measured(),
            Tally {
                packets: 2,
                bytes: 20
            }
        );
    }

    #[test]
    fn the_longest_gap_reaches_to_the_ends_of_the_window() {
        let mut arrivals = ArrivalCounter::new(SCHEDULE, 100_000_000);
        assert_eq!(arrivals.longest_gap(), 200_000_000);
        arrivals.add(130_000_000, 1);
        assert_eq!(arrivals.longest_gap(), 170_000_000);
        arrivals.add(290_000_000, 1);
        assert_eq!(arrivals.longest_gap(), 160_000_000);
    }
}
