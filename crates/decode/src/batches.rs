//! Reads a log on a thread of its own, so that one processor decodes while another one counts.

use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use tunnelbench_packet_log::{LogError, LogReader, Record};

/// Batches that are read ahead.
const AHEAD: usize = 4;

/// The records of a log, batch by batch, in memory that is used again and again.
pub(crate) struct Batches {
    full: Receiver<Result<Vec<Record>, LogError>>,
    used: SyncSender<Vec<Record>>,
    current: Vec<Record>,
    /// How many of the current records were given one by one.
    given: usize,
    /// Ends by itself once `full` is dropped.
    _thread: JoinHandle<()>,
}

impl Batches {
    pub fn of(reader: LogReader) -> Self {
        let (into_full, full) = sync_channel(AHEAD);
        let (used, from_used) = sync_channel(AHEAD);
        let thread = thread::spawn(move || read_all(reader, &into_full, &from_used));
        Self {
            full,
            used,
            current: Vec::new(),
            given: 0,
            _thread: thread,
        }
    }

    /// Replaces what `batch` holds by the next records; false at the end.
    pub fn take(&mut self, batch: &mut Vec<Record>) -> Result<bool, LogError> {
        // A reader that has ended takes none back.
        let _ = self.used.try_send(mem::take(batch));
        match self.full.recv() {
            Ok(next) => *batch = next?,
            Err(_) => return Ok(false),
        }
        Ok(true)
    }

    /// The next record; none at the end.
    pub fn next_record(&mut self) -> Result<Option<&Record>, LogError> {
        if self.given == self.current.len() {
            let mut batch = mem::take(&mut self.current);
            self.take(&mut batch)?;
            self.current = batch;
            self.given = 0;
        }
        self.given += 1;
        Ok(self.current.get(self.given - 1))
    }
}

fn read_all(
    mut reader: LogReader,
    full: &SyncSender<Result<Vec<Record>, LogError>>,
    used: &Receiver<Vec<Record>>,
) {
    loop {
        let mut batch = used.try_recv().unwrap_or_default();
        let read = match reader.read(&mut batch) {
            Ok(false) => return,
            Ok(true) => Ok(batch),
            Err(error) => Err(error),
        };
        let is_last = read.is_err();
        if full.send(read).is_err() || is_last {
            return;
        }
    }
}
