//! Sends in bulk: as fast as TCP takes it, or at the pace asked for.

use std::io::{self, Write};

use socket2::Socket;

use crate::error::TrafficError;
use crate::job::TcpOptions;
use crate::process::{Departures, Timetable};
use crate::tcp::flow::{Stream, Trial, is_waiting};
use crate::tcp::send::Progress;

/// How much is written between two looks at the clock, which cost as much as a small write does.
const UNWATCHED_BYTES: usize = 8 * 1024;

/// Writes `content` over and over until the schedule ends. What TCP holds up is made up for, so that an asked rate holds
/// on average.
pub(super) fn send(
    trial: Trial,
    stream: &Stream,
    content: &[u8],
    progress: &mut Progress,
) -> Result<(), TrafficError> {
    let write_bytes = trial.options.write_bytes;
    let mut timetable = timetable(trial.options);
    let writes = match timetable {
        Some(_) => 1,
        None => UNWATCHED_BYTES.div_ceil(write_bytes as usize),
    };
    let mut writer = Writer::new(&stream.socket, content, write_bytes as usize);
    loop {
        if let Some(timetable) = timetable.as_mut().filter(|_| writer.is_between_writes()) {
            // Of all streams together this one has its turn so many bytes later.
            let due = timetable.take(write_bytes * u32::from(trial.options.streams));
            trial.wait_until(i64::try_from(due).unwrap_or(i64::MAX));
            if trial.is_over(trial.timeline.elapsed())? {
                return Ok(());
            }
        }
        let (written, failure) = writer.write(writes);
        let now = trial.timeline.elapsed();
        progress.wrote(now, written);
        match failure {
            None => {}
            Some(failure) if is_waiting(&failure) => {}
            Some(_) if trial.may_end(now) => return Ok(()),
            Some(failure) => return Err(stream.broken(now, &failure.to_string())),
        }
        if trial.is_over(now)? {
            return Ok(());
        }
    }
}

/// When the writes of one stream are due; none for as fast as possible.
fn timetable(options: &TcpOptions) -> Option<Timetable> {
    let value = options.rate?;
    Departures::BitsPerSecond { value }.timetable(0)
}

/// Goes round in the content, write by write.
struct Writer<'a> {
    socket: &'a Socket,
    content: &'a [u8],
    write_bytes: usize,
    /// Where the write under way starts, and where it goes on.
    start: usize,
    position: usize,
}

impl<'a> Writer<'a> {
    fn new(socket: &'a Socket, content: &'a [u8], write_bytes: usize) -> Self {
        Self {
            socket,
            content,
            write_bytes,
            start: 0,
            position: 0,
        }
    }

    /// Whether the next byte is the first of a write.
    fn is_between_writes(&self) -> bool {
        self.position == self.start
    }

    /// Makes up to `writes` system calls; says how much was written and what came in between.
    fn write(&mut self, writes: usize) -> (u64, Option<io::Error>) {
        let mut written = 0;
        for _ in 0..writes {
            let end = self.start + self.write_bytes;
            match (&mut &*self.socket).write(&self.content[self.position..end]) {
                Ok(count) => {
                    written += count as u64;
                    self.position += count;
                }
                Err(failure) => return (written, Some(failure)),
            }
            if self.position == end {
                self.start = end % self.content.len();
                self.position = self.start;
            }
        }
        (written, None)
    }
}
