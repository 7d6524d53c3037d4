//! Sends or receives over connected TCP streams, one thread each.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;

use crate::clock::{STOP_LATENCY, Timeline};
use crate::content::RANDOM_PERIOD;
use crate::error::TrafficError;
use crate::job::{Side, TcpOptions};
use crate::outcome::{TcpFlow, TcpInformation, TcpReceived, TcpSent};
use crate::schedule::Schedule;
use crate::series::ArrivalCounter;
use crate::socket::tcp_information;

const READ_BYTES: usize = 256 * 1024;

/// How long a sender waits for the receiver to hang up first.
const HANG_UP: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 500_000_000,
};

/// One connection.
pub(crate) struct Stream {
    pub socket: Socket,
    pub peer: SocketAddr,
}

/// What all streams of a job share.
struct Trial<'a> {
    schedule: Schedule,
    timeline: Timeline,
    stop: &'a AtomicBool,
    /// Set when one stream fails, so that the others need not go on.
    failed: AtomicBool,
}

/// Runs the schedule over all streams. Both ends hang up with a reset: nothing of one trial must reach into the next.
pub(crate) fn drive(
    streams: &[Stream],
    side: Side,
    options: &TcpOptions,
    schedule: Schedule,
    timeline: Timeline,
    stop: &AtomicBool,
) -> Result<TcpFlow, TrafficError> {
    let trial = Trial {
        schedule,
        timeline,
        stop,
        failed: AtomicBool::new(false),
    };
    for stream in streams {
        let time_limits = || -> io::Result<()> {
            stream.socket.set_read_timeout(Some(STOP_LATENCY))?;
            stream.socket.set_write_timeout(Some(STOP_LATENCY))?;
            stream.socket.set_linger(Some(Duration::ZERO))
        };
        time_limits().map_err(TrafficError::io("set the time limits of a connection"))?;
    }
    match side {
        Side::Send => {
            let content = written_content(options);
            let write_bytes = options.write_bytes as usize;
            let sent = trial.each(streams, |stream| trial.send(stream, &content, write_bytes))?;
            trial.sent(&sent)
        }
        Side::Receive => {
            let received = trial.each(streams, |stream| trial.receive(stream))?;
            trial.received(&received)
        }
    }
}

/// A multiple of the write size, so that writes go round in it.
fn written_content(options: &TcpOptions) -> Vec<u8> {
    let write_bytes = options.write_bytes as usize;
    let writes = if options.content.repeats() {
        1
    } else {
        RANDOM_PERIOD.div_ceil(write_bytes)
    };
    let mut content = vec![0; writes * write_bytes];
    options.content.fill(&mut content);
    content
}

struct SentStream {
    measured_bytes: u64,
    total_bytes: u64,
    information: TcpInformation,
}

struct ReceivedStream {
    total_bytes: u64,
    arrivals: ArrivalCounter,
}

impl Trial<'_> {
    /// Does `work` for all streams at once. Of several failures the first that says more than "stopped" counts.
    fn each<T: Send>(
        &self,
        streams: &[Stream],
        work: impl Fn(&Stream) -> Result<T, TrafficError> + Sync,
    ) -> Result<Vec<T>, TrafficError> {
        let noting_failure =
            |stream| work(stream).inspect_err(|_| self.failed.store(true, Ordering::Relaxed));
        let results: Vec<Result<T, TrafficError>> = thread::scope(|scope| {
            let threads: Vec<_> = streams
                .iter()
                .map(|stream| scope.spawn(move || noting_failure(stream)))
                .collect();
            let defect = |_| Err(TrafficError::Defect("a stream's thread panicked".into()));
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(defect))
                .collect()
        });
        let (done, failures): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
        let mut failures: Vec<TrafficError> =
            failures.into_iter().filter_map(Result::err).collect();
        failures.sort_by_key(|failure| matches!(failure, TrafficError::Stopped));
        match failures.into_iter().next() {
            Some(failure) => Err(failure),
            None => Ok(done.into_iter().flatten().collect()),
        }
    }

    fn send(
        &self,
        stream: &Stream,
        content: &[u8],
        write_bytes: usize,
    ) -> Result<SentStream, TrafficError> {
        let (mut measured_bytes, mut total_bytes) = (0, 0);
        let mut writes = content.chunks_exact(write_bytes).cycle();
        let mut pending: &[u8] = &[];
        if !self.timeline.wait_until(0, 50_000, self.stop) {
            return Err(TrafficError::Stopped);
        }
        loop {
            if pending.is_empty() {
                pending = writes.next().unwrap_or_default();
            }
            let outcome = (&stream.socket).write(pending);
            let now = self.timeline.elapsed();
            match outcome {
                Ok(written) => {
                    pending = &pending[written..];
                    total_bytes += written as u64;
                    if self.schedule.measures(now) {
                        measured_bytes += written as u64;
                    }
                }
                Err(failure) if is_waiting(&failure) => {}
                Err(_) if now >= self.schedule.measured_to() => break,
                Err(failure) => return Err(broken(stream, now, &failure.to_string())),
            }
            if self.is_over(now)? {
                break;
            }
        }
        let information = tcp_information(&stream.socket)
            .map_err(TrafficError::io("read TCP_INFO of a connection"))?;
        wait_for_hang_up(&stream.socket);
        Ok(SentStream {
            measured_bytes,
            total_bytes,
            information,
        })
    }

    fn receive(&self, stream: &Stream) -> Result<ReceivedStream, TrafficError> {
        let mut buffer = vec![0; READ_BYTES];
        let mut arrivals = ArrivalCounter::new(self.schedule);
        let mut total_bytes = 0;
        loop {
            let outcome = (&stream.socket).read(&mut buffer);
            let now = self.timeline.elapsed();
            match outcome {
                Ok(0) if now >= self.schedule.measured_to() => break,
                Ok(0) => return Err(broken(stream, now, "the other end hung up")),
                Ok(read) => {
                    total_bytes += read as u64;
                    arrivals.add(now, read as u64);
                }
                Err(failure) if is_waiting(&failure) => {}
                Err(_) if now >= self.schedule.measured_to() => break,
                Err(failure) => return Err(broken(stream, now, &failure.to_string())),
            }
            if self.is_over(now)? {
                break;
            }
        }
        Ok(ReceivedStream {
            total_bytes,
            arrivals,
        })
    }

    /// Whether the schedule ends here; an error where that is too early.
    fn is_over(&self, now: i64) -> Result<bool, TrafficError> {
        if now >= self.schedule.end() {
            return Ok(true);
        }
        let stopped = self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed);
        if stopped && now < self.schedule.measured_to() {
            return Err(TrafficError::Stopped);
        }
        Ok(stopped)
    }

    fn sent(&self, streams: &[SentStream]) -> Result<TcpFlow, TrafficError> {
        let measured_bytes = streams.iter().map(|stream| stream.measured_bytes).sum();
        if measured_bytes == 0 {
            return Err(TrafficError::NothingCarried(
                "TCP took no byte in the measured window".into(),
            ));
        }
        Ok(TcpFlow::Send(TcpSent {
            measured_bytes,
            total_bytes: streams.iter().map(|stream| stream.total_bytes).sum(),
            streams: streams.iter().map(|stream| stream.information).collect(),
        }))
    }

    fn received(&self, streams: &[ReceivedStream]) -> Result<TcpFlow, TrafficError> {
        let mut all = ArrivalCounter::new(self.schedule);
        streams
            .iter()
            .for_each(|stream| all.merge(&stream.arrivals));
        if all.measured().bytes == 0 {
            return Err(TrafficError::NothingCarried(
                "no byte arrived over TCP in the measured window".into(),
            ));
        }
        Ok(TcpFlow::Receive(TcpReceived {
            measured_bytes: all.measured().bytes,
            total_bytes: streams.iter().map(|stream| stream.total_bytes).sum(),
            streams: streams
                .iter()
                .map(|stream| stream.arrivals.measured().bytes)
                .collect(),
            series: all.stream(),
            longest_gap: streams
                .iter()
                .map(|stream| stream.arrivals.longest_gap())
                .max()
                .unwrap_or(0),
        }))
    }
}

/// The receive time limit of a socket shows as "would block"; a connection's own time-out is a real end.
fn is_waiting(failure: &io::Error) -> bool {
    matches!(
        failure.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

/// Gives the receiver, whose clock may be behind, the time to see the measured window end undisturbed.
fn wait_for_hang_up(socket: &Socket) {
    let mut hung_up = [PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::RDHUP)];
    // Whether the other end hung up or not, this end does now.
    let _ = poll(&mut hung_up, Some(&HANG_UP));
}

fn broken(stream: &Stream, at: i64, reason: &str) -> TrafficError {
    TrafficError::Broken {
        peer: stream.peer,
        at,
        reason: reason.into(),
    }
}
