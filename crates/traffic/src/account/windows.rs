//! What arrived over time, in windows of equal length, and over the measured window as a whole.

use std::ops::Range;

use crate::outcome::{FlowSeries, Tally};
use crate::schedule::Schedule;

/// Sums up arrivals by their time since the start of the schedule.
pub(super) struct Windows {
    schedule: Schedule,
    step: u64,
    most: usize,
    /// As many as have been reached.
    windows: Vec<Window>,
    current: usize,
    /// When the current window is, so that it need not be computed for each arrival.
    bounds: Range<i64>,
    measured: Tally,
    last: i64,
    longest_gap: i64,
}

#[derive(Clone)]
struct Window {
    bytes: u64,
    packets: u64,
    /// By how much the next expected number rose.
    expected: u64,
    delay_min: i64,
    delay_max: i64,
    delay_sum: f64,
    jitter: Option<f64>,
}

const EMPTY: Window = Window {
    bytes: 0,
    packets: 0,
    expected: 0,
    delay_min: i64::MAX,
    delay_max: i64::MIN,
    delay_sum: 0.0,
    jitter: None,
};

/// One arrival that is no duplicate.
pub(super) struct Arrived {
    /// ns since the start of the schedule.
    pub at: i64,
    pub bytes: u64,
    pub delay: i64,
    /// By how much it raised the next expected number.
    pub expected: u64,
    /// The jitter after it, where it is measured and not the first.
    pub jitter: Option<f64>,
}

impl Windows {
    /// For windows of `step` ns, at least 1.
    pub fn new(schedule: Schedule, step: u64) -> Self {
        Self {
            schedule,
            step,
            most: (schedule.end() as u64).div_ceil(step) as usize,
            windows: Vec::new(),
            current: 0,
            bounds: 0..0,
            measured: Tally::default(),
            last: schedule.measured_from(),
            longest_gap: 0,
        }
    }

    /// Arrivals before the start of the schedule or after its end are in no window.
    pub fn add(&mut self, arrived: &Arrived) {
        if self.schedule.measures(arrived.at) {
            self.measured.add(arrived.bytes);
            self.longest_gap = self.longest_gap.max(arrived.at - self.last);
            self.last = arrived.at;
        }
        if !self.bounds.contains(&arrived.at) && !self.turn_to(arrived.at) {
            return;
        }
        let window = &mut self.windows[self.current];
        window.bytes += arrived.bytes;
        window.packets += 1;
        window.expected += arrived.expected;
        window.delay_min = window.delay_min.min(arrived.delay);
        window.delay_max = window.delay_max.max(arrived.delay);
        window.delay_sum += arrived.delay as f64;
        if arrived.jitter.is_some() {
            window.jitter = arrived.jitter;
        }
    }

    /// Makes the window that holds `at` the current one; false where there is none.
    fn turn_to(&mut self, at: i64) -> bool {
        let Ok(since_start) = u64::try_from(at) else {
            return false;
        };
        let index = (since_start / self.step) as usize;
        if index >= self.most {
            return false;
        }
        if index >= self.windows.len() {
            self.windows.resize(index + 1, EMPTY);
        }
        let start = (index as u64 * self.step) as i64;
        self.current = index;
        self.bounds = start..start.saturating_add_unsigned(self.step);
        true
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

    pub fn series(mut self) -> FlowSeries {
        self.windows.resize(self.most, EMPTY);
        let windows = &self.windows;
        let of_delay = |value: fn(&Window) -> i64| {
            let value = |window: &Window| (window.packets > 0).then(|| value(window));
            windows.iter().map(value).collect()
        };
        let mean = |window: &Window| window.delay_sum / window.packets as f64;
        FlowSeries {
            step: self.step,
            bytes: windows.iter().map(|window| window.bytes).collect(),
            packets: windows.iter().map(|window| window.packets).collect(),
            lost: windows
                .iter()
                .map(|window| window.expected as i64 - window.packets as i64)
                .collect(),
            delay_min: of_delay(|window| window.delay_min),
            delay_mean: windows
                .iter()
                .map(|window| (window.packets > 0).then(|| mean(window)))
                .collect(),
            delay_max: of_delay(|window| window.delay_max),
            jitter: windows.iter().map(|window| window.jitter).collect(),
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

    fn windows(arrivals: &[i64]) -> Windows {
        let mut windows = Windows::new(SCHEDULE, 100_000_000);
        for at in arrivals {
            windows.add(&Arrived {
                at: *at,
                bytes: 10,
                delay: at / 1_000_000,
                expected: 2,
                jitter: None,
            });
        }
        windows
    }

    #[test]
    fn arrivals_fall_into_windows() {
        let windows = windows(&[
            -1,
            0,
            99_999_999,
            300_000_000,
            349_999_999,
            100_000_000,
            299_999_999,
            400_000_000,
        ]);
        assert_eq!(
            (windows.measured().packets, windows.measured().bytes),
            (2, 20)
        );
        let series = windows.series();
        assert_eq!(series.bytes, [20, 10, 10, 20]);
        assert_eq!(series.packets, [2, 1, 1, 2]);
        assert_eq!(series.lost, [2, 1, 1, 2]);
        assert_eq!(series.delay_min, [Some(0), Some(100), Some(299), Some(300)]);
        assert_eq!(
            series.delay_max,
            [Some(99), Some(100), Some(299), Some(349)]
        );
        assert_eq!(series.delay_mean[3], Some(324.5));
    }

    #[test]
    fn windows_without_arrivals_are_there_and_empty() {
        let series = windows(&[100_000_000]).series();
        assert_eq!(series.packets, [0, 1, 0, 0]);
        assert_eq!(series.delay_mean, [None, Some(100.0), None, None]);
    }

    #[test]
    fn the_longest_gap_reaches_to_the_ends_of_the_measured_window() {
        assert_eq!(windows(&[]).longest_gap(), 200_000_000);
        assert_eq!(windows(&[130_000_000]).longest_gap(), 170_000_000);
        assert_eq!(
            windows(&[130_000_000, 290_000_000]).longest_gap(),
            160_000_000
        );
    }
}
