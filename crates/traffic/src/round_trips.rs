//! Counts round trips in steps of time.

use crate::outcome::RoundTripSeries;
use crate::schedule::LONGEST_JOB;

const STEP: u64 = 100_000_000;
const MOST_STEPS: usize = (LONGEST_JOB / STEP) as usize;

/// Counts round trips by times since the start; a time before it or too late to be of a job is in no step.
#[derive(Default)]
pub(crate) struct RoundTripCounter {
    steps: Vec<Step>,
}

#[derive(Clone, Copy, Default)]
struct Step {
    begun: u64,
    completed: u64,
    sum: u64,
    shortest: u64,
    longest: u64,
}

impl Step {
    fn merge(&mut self, other: Self) {
        self.shortest = match (self.completed, other.completed) {
            (_, 0) => self.shortest,
            (0, _) => other.shortest,
            _ => self.shortest.min(other.shortest),
        };
        self.begun += other.begun;
        self.completed += other.completed;
        self.sum += other.sum;
        self.longest = self.longest.max(other.longest);
    }

    fn of_completed<T>(&self, value: T) -> Option<T> {
        (self.completed > 0).then_some(value)
    }
}

impl RoundTripCounter {
    /// Counts one that began, `at` ns since the start.
    pub fn begun(&mut self, at: i64) {
        self.add(
            at,
            Step {
                begun: 1,
                ..Step::default()
            },
        );
    }

    /// Counts one that was completed after `lasted` ns, in the step of `at`.
    pub fn completed(&mut self, at: i64, lasted: i64) {
        let lasted = lasted.max(0) as u64;
        self.add(
            at,
            Step {
                begun: 0,
                completed: 1,
                sum: lasted,
                shortest: lasted,
                longest: lasted,
            },
        );
    }

    /// Adds what another counter counted.
    pub fn merge(&mut self, other: &Self) {
        self.grow(other.steps.len());
        for (sum, step) in self.steps.iter_mut().zip(&other.steps) {
            sum.merge(*step);
        }
    }

    pub fn finish(&self) -> RoundTripSeries {
        let each = |value: fn(&Step) -> u64| self.steps.iter().map(value).collect();
        RoundTripSeries {
            step: STEP,
            begun: each(|step| step.begun),
            completed: each(|step| step.completed),
            shortest: self
                .steps
                .iter()
                .map(|step| step.of_completed(step.shortest))
                .collect(),
            mean: self
                .steps
                .iter()
                .map(|step| step.of_completed(step.sum as f64 / step.completed as f64))
                .collect(),
            longest: self
                .steps
                .iter()
                .map(|step| step.of_completed(step.longest))
                .collect(),
        }
    }

    fn add(&mut self, at: i64, counted: Step) {
        let Ok(since_start) = u64::try_from(at) else {
            return;
        };
        let index = (since_start / STEP) as usize;
        if index < MOST_STEPS {
            self.grow(index + 1);
            self.steps[index].merge(counted);
        }
    }

    fn grow(&mut self, steps: usize) {
        if self.steps.len() < steps {
            self.steps.resize(steps, Step::default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_fall_into_steps() {
        let mut counter = RoundTripCounter::default();
        counter.begun(-1);
        counter.begun(i64::MAX);
        counter.begun(0);
        counter.begun(99_999_999);
        counter.completed(0, 10);
        counter.completed(99_999_999, 30);
        counter.begun(250_000_000);
        let series = counter.finish();
        assert_eq!(series.begun, [2, 0, 1]);
        assert_eq!(series.completed, [2, 0, 0]);
        assert_eq!(series.shortest, [Some(10), None, None]);
        assert_eq!(series.mean, [Some(20.0), None, None]);
        assert_eq!(series.longest, [Some(30), None, None]);
    }

    #[test]
    fn counters_add_up() {
        let (mut first, mut second) = (RoundTripCounter::default(), RoundTripCounter::default());
        first.completed(0, 10);
        second.completed(0, 4);
        second.completed(150_000_000, 7);
        first.merge(&second);
        let series = first.finish();
        assert_eq!(series.completed, [2, 1]);
        assert_eq!(series.shortest, [Some(4), Some(7)]);
        assert_eq!(series.longest, [Some(10), Some(7)]);
    }
}
