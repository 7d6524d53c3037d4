//! Keeps both sides from sending more than the other has room for.

use std::fs::File;
use std::io::{self, Read};
use std::sync::{Condvar, Mutex, PoisonError};

use crate::outbox::Outbox;
use crate::protocol::Event;

/// Bytes that may be on their way to an agent behind a serial line.
///
/// A line holds 4095 bytes that nobody has read yet, and User Mode Linux stops for ever to listen to one that
/// comes near. The rest is room for the nudges that are sent beyond the window.
pub const LINE_WINDOW: u32 = 3072;

const REPORT_EVERY: u32 = LINE_WINDOW / 3;

/// A stream that reports how much of it has been read, for a sender that keeps to a window.
pub struct Reporting {
    stream: File,
    outbox: Outbox,
    unreported: u32,
}

impl Reporting {
    /// Reads from `stream` and reports to `outbox`.
    pub fn new(stream: File, outbox: Outbox) -> Self {
        Self {
            stream,
            outbox,
            unreported: 0,
        }
    }
}

impl Read for Reporting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.stream.read(buffer)?;
        self.unreported += length as u32;
        if self.unreported >= REPORT_EVERY {
            let bytes = std::mem::take(&mut self.unreported);
            self.outbox.report(Event::Received { bytes });
        }
        Ok(length)
    }
}

/// How many bytes of a program's output may still be reported before the orchestrator has taken some.
pub struct Credit {
    left: Mutex<u64>,
    grown: Condvar,
}

impl Credit {
    /// A credit of `bytes`.
    pub fn new(bytes: u64) -> Self {
        Self {
            left: Mutex::new(bytes),
            grown: Condvar::new(),
        }
    }

    /// Gives back `bytes`.
    pub fn give(&self, bytes: u64) {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        *left = left.saturating_add(bytes);
        self.grown.notify_all();
    }

    /// Waits until there is any credit, and uses up at most `wanted` of it; returns how much.
    pub fn take(&self, wanted: u64) -> u64 {
        let left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = self
            .grown
            .wait_while(left, |left| *left == 0)
            .unwrap_or_else(PoisonError::into_inner);
        let taken = wanted.min(*left);
        *left -= taken;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn credit_is_used_up_and_waited_for() {
        let credit = Arc::new(Credit::new(5));
        assert_eq!(credit.take(3), 3);
        assert_eq!(credit.take(3), 2);
        let waiting = Arc::clone(&credit);
        let waiter = thread::spawn(move || waiting.take(10));
        credit.give(4);
        assert_eq!(waiter.join().unwrap(), 4);
    }
}
