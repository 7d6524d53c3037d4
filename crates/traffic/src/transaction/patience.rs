//! How long the thread of a job goes on.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::Timeline;
use crate::error::TrafficError;
use crate::running::Control;
use crate::schedule::Schedule;

/// How long a server goes on for a client whose clock is behind, ns.
const LONGEST_OVERTIME: i64 = 1_000_000_000;

/// What all threads of a job look at when they have nothing to do.
#[derive(Clone, Copy)]
pub(super) struct Patience<'a> {
    pub schedule: Schedule,
    pub timeline: Timeline,
    pub stop: &'a Control,
    /// Set when one thread fails, so that the others need not go on.
    pub failed: &'a AtomicBool,
}

impl Patience<'_> {
    /// Whether a thread with nothing to do ends.
    pub fn is_over(&self) -> bool {
        self.is_ended_by(self.timeline.elapsed(), self.schedule.end())
    }

    /// Whether a thread ends that has something to do; `now` is ns since the start of the schedule.
    #[inline]
    pub fn is_exhausted(&self, now: i64) -> bool {
        self.is_ended_by(now, self.schedule.end() + LONGEST_OVERTIME)
    }

    fn is_ended_by(&self, now: i64, end: i64) -> bool {
        now >= end || self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// Does a system call that returns every now and then without success, until it succeeds, fails or the job is over.
    pub fn persist<T>(&self, mut call: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
        loop {
            match call() {
                Ok(value) => return Ok(Some(value)),
                Err(failure) if is_waiting(&failure) && self.is_over() => return Ok(None),
                Err(failure) if is_waiting(&failure) => {}
                Err(failure) => return Err(failure),
            }
        }
    }

    /// An error where the job was stopped before the end of its measured window.
    pub fn check_measured(&self) -> Result<(), TrafficError> {
        let is_early = self.timeline.elapsed() < self.schedule.measured_to();
        if is_early && !self.stop.contents_itself() {
            return Err(TrafficError::Stopped);
        }
        Ok(())
    }
}

/// The time limit of a socket shows as "would block"; a connection's own time-out is a real end.
pub(super) fn is_waiting(failure: &io::Error) -> bool {
    matches!(
        failure.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted
    )
}
