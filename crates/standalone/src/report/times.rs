//! Quantiles of times, and of one-way delays with what the clocks make of them.

use serde::Serialize;
use tunnelbench_traffic::histogram::Histogram;

use crate::clock::Clocks;
use crate::clock::Offset;

/// Times in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Times {
    pub count: u64,
    pub min: i64,
    pub mean: f64,
    pub p50: i64,
    pub p90: i64,
    pub p99: i64,
    pub p999: i64,
    pub max: i64,
}

/// One-way delay, corrected by what the clocks were apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Delay {
    #[serde(flatten)]
    pub times: Times,
    /// How far the clocks were apart, receiver minus client, ns.
    pub clock_offset: i64,
    /// Every figure of this delay may be off by as much, ns.
    pub uncertainty: u64,
    /// What was added to the delays as the receiving end recorded them, ns.
    pub correction: i64,
    /// Of `count`, those that the receiving end recorded as negative and therefore as 0.
    pub negative: u64,
}

impl Times {
    pub fn of(recorded: &Histogram) -> Self {
        Self::corrected(recorded, 0)
    }

    fn corrected(recorded: &Histogram, correction: i64) -> Self {
        let moved = |value: u64| {
            i64::try_from(value)
                .unwrap_or(i64::MAX)
                .saturating_add(correction)
        };
        Self {
            count: recorded.count,
            min: moved(recorded.min),
            mean: recorded.mean + correction as f64,
            p50: moved(recorded.p50),
            p90: moved(recorded.p90),
            p99: moved(recorded.p99),
            p999: moved(recorded.p999),
            max: moved(recorded.max),
        }
    }
}

/// How far the clocks are apart in the measured window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Apart {
    /// The offset that both ends' schedules were timed with.
    applied: i64,
    /// The offset in the middle of the window, with an uncertainty that holds all through it.
    pub truly: Offset,
}

impl Apart {
    /// The window is from `from` to `to`, ns of this end's clock.
    pub fn between(clocks: &Clocks, applied: i64, from: i64, to: i64) -> Self {
        let (first, last) = (clocks.at(from), clocks.at(to));
        let middle = clocks.at(from.midpoint(to));
        // Within the window the offset moves from one value to the other.
        let moved = first.offset.abs_diff(last.offset).div_ceil(2);
        let uncertainty = first
            .uncertainty
            .max(last.uncertainty)
            .saturating_add(moved);
        Self {
            applied,
            truly: Offset {
                uncertainty,
                ..middle
            },
        }
    }

    /// The delays as they truly were. The receiving end compared its clock with a departure by the sender's that was
    /// moved by the applied offset.
    pub fn correct(&self, recorded: &Histogram, forward: bool) -> Delay {
        let ahead = self.truly.offset.saturating_sub(self.applied);
        let correction = if forward {
            ahead.saturating_neg()
        } else {
            ahead
        };
        Delay {
            times: Times::corrected(recorded, correction),
            clock_offset: self.truly.offset,
            uncertainty: self.truly.uncertainty,
            correction,
            negative: recorded.negative,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_bytes::ByteBuf;
    use tunnelbench_traffic::histogram::Unit;

    use super::*;
    use crate::clock::Reading;

    fn histogram(value: u64) -> Histogram {
        Histogram {
            unit: Unit::Nanoseconds,
            count: 1,
            negative: 0,
            min: value,
            max: value,
            mean: value as f64,
            deviation: 0.0,
            p50: value,
            p90: value,
            p99: value,
            p999: value,
            encoded: ByteBuf::new(),
        }
    }

    /// The receiver's clock gains 100 µs in 10 s; a datagram takes 1 ms either way.
    #[test]
    fn drift_is_taken_out_of_delays() {
        const SECOND: i64 = 1_000_000_000;
        let reading = |at, offset| Reading {
            at,
            offset,
            uncertainty: 10,
            round_trip: 20,
        };
        let clocks = Clocks::new(
            false,
            vec![reading(0, 5_000), reading(10 * SECOND, 105_000)],
        );
        let apart = Apart::between(&clocks, 5_000, 4 * SECOND, 6 * SECOND);
        assert_eq!(apart.truly.offset, 55_000);
        // At the middle the receiver's clock is 50 µs further ahead than the schedule was told.
        let forward = apart.correct(&histogram(1_050_000), true);
        let reverse = apart.correct(&histogram(950_000), false);
        assert_eq!(
            (forward.times.p50, reverse.times.p50),
            (1_000_000, 1_000_000)
        );
        assert!(
            (10_000..10_100).contains(&forward.uncertainty),
            "{}",
            forward.uncertainty
        );
    }
}
