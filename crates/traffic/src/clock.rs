//! The two clocks of a node, and waiting on one of them.
//!
//! Schedules and kernel timestamps are in CLOCK_REALTIME, because that is what nodes share. Waiting is on
//! CLOCK_MONOTONIC, so that a step of the wall clock cannot hold a job up.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::thread::ClockId as SleepClock;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// How long a wait may ignore a request to stop.
pub(crate) const STOP_LATENCY: Duration = Duration::from_millis(10);

/// CLOCK_REALTIME, ns since 1970.
pub(crate) fn realtime() -> i64 {
    nanoseconds(clock_gettime(ClockId::Realtime))
}

/// CLOCK_MONOTONIC, ns.
pub(crate) fn monotonic() -> i64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

pub(crate) fn milliseconds(nanoseconds: i64) -> String {
    format!("{:.1}", nanoseconds as f64 / 1e6)
}

/// Time since the start of a schedule, in ns and negative before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timeline {
    start_realtime: i64,
    start_monotonic: i64,
}

impl Timeline {
    /// `start_at` is in CLOCK_REALTIME.
    pub fn new(start_at: i64) -> Self {
        Self {
            start_realtime: start_at,
            start_monotonic: start_at.saturating_sub(realtime_ahead()),
        }
    }

    /// Time since the start, on the clock that never steps.
    pub fn elapsed(&self) -> i64 {
        monotonic() - self.start_monotonic
    }

    /// The same of a CLOCK_REALTIME timestamp such as the kernel's.
    pub fn of_realtime(&self, timestamp: i64) -> i64 {
        timestamp - self.start_realtime
    }

    /// The moment of a CLOCK_REALTIME timestamp that was taken just now, on the clock that never steps: a step of the
    /// wall clock since the start does not move it.
    pub fn moment_of(&self, timestamp: i64) -> i64 {
        let (now, wall_clock) = (self.elapsed(), realtime());
        now - (wall_clock - timestamp).max(0)
    }

    /// The CLOCK_REALTIME of a time since the start.
    pub fn realtime_at(&self, offset: i64) -> i64 {
        self.start_realtime + offset
    }

    /// How far CLOCK_REALTIME was stepped since this was made.
    pub fn clock_step(&self) -> i64 {
        realtime_ahead() - (self.start_realtime - self.start_monotonic)
    }

    /// Sleeps until `offset` on this time line; returns early, saying so with false, when asked to stop.
    pub fn sleep_until(&self, offset: i64, stop: &AtomicBool) -> bool {
        loop {
            if stop.load(Ordering::Relaxed) {
                return false;
            }
            let now = self.elapsed();
            if now >= offset {
                return true;
            }
            let slice = offset.min(now + STOP_LATENCY.as_nanos() as i64);
            sleep_until_monotonic(self.start_monotonic + slice);
        }
    }

    /// Sleeps until `spin` ns before `offset` and watches the clock from there, which is precise and costs a processor.
    pub fn wait_until(&self, offset: i64, spin: i64, stop: &AtomicBool) -> bool {
        if !self.sleep_until(offset - spin, stop) {
            return false;
        }
        while self.elapsed() < offset {
            std::hint::spin_loop();
        }
        true
    }
}

/// CLOCK_REALTIME minus CLOCK_MONOTONIC, from the tightest of a few looks at both.
fn realtime_ahead() -> i64 {
    let look = |_| {
        let before = monotonic();
        let realtime = realtime();
        let after = monotonic();
        (after - before, realtime - (before + (after - before) / 2))
    };
    (0..8).map(look).min().map_or(0, |(_, ahead)| ahead)
}

fn sleep_until_monotonic(deadline: i64) {
    let deadline = Timespec {
        tv_sec: deadline / 1_000_000_000,
        tv_nsec: deadline % 1_000_000_000,
    };
    // An interrupted sleep is one that ended early, and every caller looks at the clock again.
    let _ = rustix::thread::clock_nanosleep_absolute(SleepClock::Monotonic, &deadline);
}

pub(crate) fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_since_the_start_agrees_on_both_clocks() {
        let timeline = Timeline::new(realtime() - 5_000_000);
        assert!(timeline.elapsed() >= 5_000_000);
        let before = timeline.elapsed();
        let between = timeline.of_realtime(realtime());
        let after = timeline.elapsed();
        // As far as the wall clock is adjusted meanwhile.
        let range = before - 1_000_000..after + 1_000_000;
        assert!(range.contains(&between), "{between} ns is not in {range:?}");
    }

    #[test]
    fn sleeping_ends_no_earlier_than_asked() {
        let timeline = Timeline::new(realtime());
        assert!(timeline.wait_until(3_000_000, 50_000, &AtomicBool::new(false)));
        assert!(timeline.elapsed() >= 3_000_000);
    }

    #[test]
    fn a_stopped_sleep_says_so() {
        let timeline = Timeline::new(realtime());
        assert!(!timeline.sleep_until(i64::MAX / 2, &AtomicBool::new(true)));
    }
}
