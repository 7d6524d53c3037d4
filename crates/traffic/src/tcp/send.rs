//! Sends in bulk over one TCP stream.

use std::io::{self, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;

use crate::error::TrafficError;
use crate::job::{Side, TcpOptions};
use crate::outcome::{TcpInformation, TcpSent, TcpSentStream};
use crate::processor::ProcessorMeter;
use crate::tcp::flow::{HANG_UP, Stream, Trial, is_waiting};
use crate::tcp::information::information;
use crate::tcp::pace::Pace;
use crate::tcp::sampling::{Sampled, SampledStream};

/// By how much the other end's clock may be behind: no end of a stream is seen there before the measured window's.
const CLOCKS_APART: Duration = Duration::from_millis(50);

/// How much is written between two looks at the clock, which cost as much as a small write does.
const UNWATCHED_BYTES: usize = 8 * 1024;

/// How long before a paced write is due its thread starts to watch the clock, ns.
const SPIN: i64 = 20_000;

/// What one stream carried.
pub(super) struct SentStream {
    measured_bytes: u64,
    total_bytes: u64,
    processor: u64,
    end: TcpInformation,
}

/// A multiple of the write size, so that writes go round in it.
pub(super) fn content(options: &TcpOptions) -> Result<Vec<u8>, TrafficError> {
    let material = options.content.load()?;
    let write_bytes = options.write_bytes as usize;
    let mut content = vec![0; material.period().div_ceil(write_bytes) * write_bytes];
    material.fill(0, &mut content);
    Ok(content)
}

/// Writes `content` over and over, as fast as TCP takes it or at the pace asked for, until the schedule ends.
pub(super) fn send(
    trial: Trial,
    stream: &Stream,
    content: &[u8],
) -> Result<SentStream, TrafficError> {
    let options = trial.options;
    let write_bytes = options.write_bytes as usize;
    let mut pace = options
        .rate
        .map(|rate| Pace::new(rate, options.streams, options.write_bytes));
    let writes = match pace {
        Some(_) => 1,
        None => UNWATCHED_BYTES.div_ceil(write_bytes),
    };
    let mut writer = Writer::new(&stream.socket, content, write_bytes);
    let mut processor = ProcessorMeter::new(trial.schedule);
    let (mut measured_bytes, mut total_bytes) = (0, 0);
    if !trial.timeline.wait_until(0, SPIN, trial.stop) {
        return Err(TrafficError::Stopped);
    }
    loop {
        if let Some(pace) = pace.as_mut().filter(|_| writer.is_between_writes()) {
            let due = pace.due().min(trial.schedule.end());
            trial.timeline.wait_until(due, SPIN, trial.stop);
            if trial.is_over(trial.timeline.elapsed())? {
                break;
            }
            pace.advance();
        }
        let (written, failure) = writer.write(writes);
        let now = trial.timeline.elapsed();
        processor.look(now);
        total_bytes += written;
        if trial.schedule.measures(now) {
            measured_bytes += written;
        }
        match failure {
            None => {}
            Some(failure) if is_waiting(&failure) => {}
            Some(_) if now >= trial.schedule.measured_to() => break,
            Some(failure) => return Err(stream.broken(now, &failure.to_string())),
        }
        if trial.is_over(now)? {
            break;
        }
    }
    let sent = SentStream {
        measured_bytes,
        total_bytes,
        processor: processor.finish(),
        end: information(&stream.socket)
            .map_err(TrafficError::io("read TCP_INFO of a connection"))?,
    };
    match trial.side {
        Side::Both => end_stream(&stream.socket),
        Side::Send | Side::Receive => wait_for_hang_up(&stream.socket),
    }
    Ok(sent)
}

/// What all streams carried; an error where that is nothing.
pub(super) fn sum(
    sent: Vec<SentStream>,
    sampled: Sampled,
    congestion_control: String,
) -> Result<TcpSent, TrafficError> {
    let measured_bytes = sent.iter().map(|stream| stream.measured_bytes).sum();
    if measured_bytes == 0 {
        return Err(TrafficError::NothingCarried(
            "TCP took no byte in the measured window".into(),
        ));
    }
    let seen = &sampled.streams;
    Ok(TcpSent {
        measured_bytes,
        total_bytes: sent.iter().map(|stream| stream.total_bytes).sum(),
        congestion_control,
        retransmits: seen.iter().map(SampledStream::retransmits).sum(),
        segments: seen.iter().map(SampledStream::segments).sum(),
        minimum_round_trip: sent
            .iter()
            .filter_map(|stream| stream.end.minimum_round_trip)
            .min(),
        round_trip: sampled.round_trip,
        step: sampled.step,
        streams: sent
            .into_iter()
            .zip(sampled.streams)
            .map(|(stream, sampled)| TcpSentStream {
                measured_bytes: stream.measured_bytes,
                processor: stream.processor,
                end: stream.end,
                samples: sampled.samples,
            })
            .collect(),
    })
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

/// Gives the receiver, whose clock may be behind, the time to see the measured window end undisturbed.
fn wait_for_hang_up(socket: &Socket) {
    let mut hung_up = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::RDHUP)];
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: HANG_UP.subsec_nanos().into(),
    };
    // Whether the other end hung up or not, this end does now.
    let _ = poll(&mut hung_up, Some(&limit));
}

/// Tells the receiver that there is no more; this end's own receiver still reads.
fn end_stream(socket: &Socket) {
    thread::sleep(CLOCKS_APART);
    // Fails where the connection has ended, which is as good.
    let _ = socket.shutdown(Shutdown::Write);
}
