//! How much processor time a thread took in the measured window: what tells a generator at its limit.

use rustix::time::{ClockId, clock_gettime};

use crate::clock::nanoseconds;
use crate::schedule::Schedule;

/// Reads the clock of its thread's processor time as the measured window opens and as it closes.
pub(crate) struct ProcessorMeter {
    window: [i64; 2],
    readings: Vec<i64>,
}

impl ProcessorMeter {
    pub fn new(schedule: Schedule) -> Self {
        Self {
            window: [schedule.measured_from(), schedule.measured_to()],
            readings: Vec::with_capacity(2),
        }
    }

    /// To be called by the thread as often as it looks at the clock anyway; `now` is ns since the start of the schedule.
    pub fn look(&mut self, now: i64) {
        while self
            .window
            .get(self.readings.len())
            .is_some_and(|edge| now >= *edge)
        {
            self.readings.push(thread_time());
        }
    }

    /// Processor time in the measured window, ns; until now where it has not closed.
    pub fn finish(mut self) -> u64 {
        self.look(i64::MAX);
        match self.readings[..] {
            [opened, closed] => (closed - opened) as u64,
            _ => 0,
        }
    }
}

/// Processor time of the calling thread, ns.
fn thread_time() -> i64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEDULE: Schedule = Schedule {
        start_at: 0,
        warm_up: 10,
        measure: 10,
        cool_down: 10,
    };

    fn work() {
        let until = thread_time() + 2_000_000;
        while thread_time() < until {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn only_the_measured_window_counts() {
        let mut processor = ProcessorMeter::new(SCHEDULE);
        work();
        processor.look(9);
        assert!(processor.readings.is_empty());
        processor.look(10);
        work();
        processor.look(20);
        let [opened, closed] = processor.readings[..] else {
            panic!("the window is over");
        };
        work();
        processor.look(30);
        assert_eq!(processor.finish() as i64, closed - opened);
        assert!(closed - opened >= 2_000_000);
    }

    #[test]
    fn a_thread_that_never_saw_the_window_took_nothing_of_it() {
        (0..20).for_each(|_| work());
        assert!(ProcessorMeter::new(SCHEDULE).finish() < thread_time() as u64 / 2);
    }
}
