//! Takes records from a thread that must not wait, and has another thread write them.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{mem, thread};

use crate::columns::Columns;
use crate::error::LogError;
use crate::head::LogHead;
use crate::log_file::LogFile;
use crate::record::Record;

/// Records handed over at once.
const BLOCK: usize = 2048;
/// Blocks that may wait for the disk: a quarter of a million records.
const WAITING_BLOCKS: usize = 128;
/// The longest time that intended departures in one block are apart, ns: so much of a slow flow a killed run loses.
const BLOCK_SPAN: u64 = 1_000_000_000;
/// How many rows are held in memory until they are written together.
const ROWS_PER_GROUP: usize = 1 << 18;
/// The longest time that records wait for their row group to fill.
const GROUP_AGE: Duration = Duration::from_secs(10);

/// The end of a log at which records are put in.
///
/// Make it before the thread that measures gets its real-time priority, which the writing thread would inherit.
/// A log whose writer is dropped without [`LogWriter::finish`] is readable, but says that it is not complete.
pub struct LogWriter {
    path: PathBuf,
    block: Vec<Record>,
    full: SyncSender<Block>,
    empty: Receiver<Vec<Record>>,
    dropped: u64,
    thread: JoinHandle<Result<Finished, LogError>>,
}

/// What became of the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// In the file.
    pub records: u64,
    /// Not in the file, because it could not be written as fast as they came.
    pub dropped: u64,
    /// The file's size.
    pub bytes: u64,
}

struct Block {
    records: Vec<Record>,
    /// Dropped so far.
    dropped: u64,
    last: bool,
}

struct Finished {
    records: u64,
    bytes: u64,
}

impl LogWriter {
    /// Starts a log at `path`, readable for its owner alone, and the thread that writes it. Replaces a file that is there.
    ///
    /// # Errors
    /// [`LogError::Io`] where the file can't be made.
    pub fn create(path: &Path, head: &LogHead) -> Result<Self, LogError> {
        let file = LogFile::create(path, head.clone())?;
        let (full, to_write) = sync_channel(WAITING_BLOCKS);
        let (used, empty) = sync_channel(WAITING_BLOCKS);
        let thread = thread::Builder::new()
            .name("packet-log".into())
            .spawn(move || write_all(file, &to_write, &used))
            .map_err(LogError::io(path, "written by a thread of its own"))?;
        Ok(Self {
            path: path.to_owned(),
            block: Vec::with_capacity(BLOCK),
            full,
            empty,
            dropped: 0,
            thread,
        })
    }

    /// Adds a packet. Never waits: where the disk can't follow, the record is dropped and counted.
    pub fn record(&mut self, record: Record) {
        if self.is_due(&record) && !self.hand_over() && self.block.len() >= BLOCK {
            self.dropped += 1;
            return;
        }
        self.block.push(record);
    }

    /// Waits until everything is in the file.
    ///
    /// # Errors
    /// [`LogError::Io`] where the disk is full or failed; the file then has what was written before.
    pub fn finish(mut self) -> Result<Written, LogError> {
        let last = Block {
            records: mem::take(&mut self.block),
            dropped: self.dropped,
            last: true,
        };
        // Where the other end is gone, its thread's result says why.
        let _ = self.full.send(last);
        let finished = self
            .thread
            .join()
            .map_err(|_| LogError::Defect { path: self.path })??;
        Ok(Written {
            records: finished.records,
            dropped: self.dropped,
            bytes: finished.bytes,
        })
    }

    fn is_due(&self, next: &Record) -> bool {
        let Some(first) = self.block.first() else {
            return false;
        };
        self.block.len() >= BLOCK || next.intended.abs_diff(first.intended) > BLOCK_SPAN
    }

    /// False where the disk can't follow; the block then stays.
    fn hand_over(&mut self) -> bool {
        let records = mem::take(&mut self.block);
        let sent = self.full.try_send(Block {
            records,
            dropped: self.dropped,
            last: false,
        });
        match sent {
            Ok(()) => {
                self.block = self
                    .empty
                    .try_recv()
                    .unwrap_or_else(|_| Vec::with_capacity(BLOCK));
                true
            }
            Err(TrySendError::Full(block) | TrySendError::Disconnected(block)) => {
                self.block = block.records;
                false
            }
        }
    }
}

/// The writing thread: gathers blocks to row groups until the last one.
fn write_all(
    mut file: LogFile,
    to_write: &Receiver<Block>,
    used: &SyncSender<Vec<Record>>,
) -> Result<Finished, LogError> {
    let mut columns = Columns::default();
    let mut records = 0;
    let mut dropped = 0;
    let mut group_due = Instant::now() + GROUP_AGE;
    loop {
        let next = to_write.recv_timeout(group_due.saturating_duration_since(Instant::now()));
        let last = match next {
            Ok(mut block) => {
                dropped = block.dropped;
                records += block.records.len() as u64;
                columns.extend(&block.records);
                block.records.clear();
                // Where nobody takes it back, it is freed.
                let _ = used.try_send(block.records);
                block.last
            }
            Err(RecvTimeoutError::Timeout) => false,
            // Dropped without an end: what came is kept, in a log that is not complete.
            Err(RecvTimeoutError::Disconnected) => {
                file.append(&columns, dropped)?;
                file.put(dropped)?;
                return Ok(Finished { records, bytes: 0 });
            }
        };
        if columns.rows() > 0
            && (last || columns.rows() + BLOCK > ROWS_PER_GROUP || Instant::now() >= group_due)
        {
            file.append(&columns, dropped)?;
            columns.clear();
        }
        if columns.rows() == 0 {
            group_due = Instant::now() + GROUP_AGE;
        }
        if last {
            return Ok(Finished {
                records,
                bytes: file.finish(dropped)?,
            });
        }
    }
}
