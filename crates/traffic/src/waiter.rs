//! Waiting for a moment, as exactly as a bounded share of a processor allows.

use std::sync::atomic::AtomicBool;

use crate::clock::Timeline;

/// The most of its waiting that may be spent on watching the clock, as a divisor: on a machine with few processors the
/// tunnel needs them more.
pub(crate) const WATCHED_SHARE: i64 = 8;

/// How long before its moment a waiter starts to watch the clock at the earliest, ns.
const LONGEST_WATCH: i64 = 200_000;

/// A shorter sleep costs the processor about as much as it spares. Whoever has less time than this until its moment
/// oversleeps it, rather than to take a whole processor from the tunnel at rates of many thousand packets a second.
const SHORTEST_SLEEP: i64 = 20_000;

/// What is assumed of the first sleep, ns.
const USUAL_OVERSLEEP: i64 = 60_000;

/// Sleeps, and watches the clock for about as long as its sleeps have lately ended late.
///
/// They end late mostly where the processor slept too: there, watching takes nothing from anybody. On a busy processor
/// they end sooner, and so little is watched.
pub(crate) struct Waiter {
    timeline: Timeline,
    oversleep: i64,
}

impl Waiter {
    pub fn new(timeline: Timeline) -> Self {
        Self {
            timeline,
            oversleep: USUAL_OVERSLEEP,
        }
    }

    /// Waits until `offset` on the time line; returns early, saying so with false, when asked to stop.
    pub fn wait_until(&mut self, offset: i64, stop: &AtomicBool) -> bool {
        let now = self.timeline.elapsed();
        let waiting = offset - now;
        if waiting <= 0 {
            return true;
        }
        let watched = self.oversleep.min(waiting / WATCHED_SHARE);
        let alarm = (offset - watched).max(now + SHORTEST_SLEEP);
        if !self.timeline.sleep_until(alarm, stop) {
            return false;
        }
        let mut now = self.timeline.elapsed();
        self.learn(now - alarm);
        while now < offset {
            std::hint::spin_loop();
            now = self.timeline.elapsed();
        }
        true
    }

    /// Follows the longer of the usual delays: up in a few steps, down in many.
    fn learn(&mut self, overslept: i64) {
        let change = overslept.min(LONGEST_WATCH) - self.oversleep;
        self.oversleep += if change > 0 { change / 4 } else { change / 256 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::realtime;

    #[test]
    fn waiting_ends_no_earlier_than_asked() {
        let timeline = Timeline::new(realtime());
        let mut waiter = Waiter::new(timeline);
        for moment in (0..20).map(|index| index * 200_000) {
            assert!(waiter.wait_until(moment, &AtomicBool::new(false)));
            assert!(timeline.elapsed() >= moment);
        }
        assert!(!waiter.wait_until(i64::MAX / 2, &AtomicBool::new(true)));
    }

    #[test]
    fn the_watch_follows_how_late_sleeps_end_and_is_bounded() {
        let mut waiter = Waiter::new(Timeline::new(0));
        (0..4_000).for_each(|_| waiter.learn(5_000));
        assert!(
            (5_000..6_000).contains(&waiter.oversleep),
            "{}",
            waiter.oversleep
        );
        (0..20).for_each(|_| waiter.learn(40_000));
        assert!(
            (39_000..=40_000).contains(&waiter.oversleep),
            "{}",
            waiter.oversleep
        );
        (0..1_000).for_each(|_| waiter.learn(50_000_000));
        assert!((LONGEST_WATCH - 10..=LONGEST_WATCH).contains(&waiter.oversleep));
    }
}
