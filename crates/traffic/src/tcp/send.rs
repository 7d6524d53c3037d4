//! Sends over one TCP stream.

use std::io::Write;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;

use crate::content::RANDOM_PERIOD;
use crate::error::TrafficError;
use crate::job::{Side, TcpOptions};
use crate::outcome::{TcpInformation, TcpSent};
use crate::socket::tcp_information;
use crate::tcp::flow::{HANG_UP, Stream, Trial, is_waiting};

/// By how much the other end's clock may be behind: no end of a stream is seen there before the measured window's.
const CLOCKS_APART: Duration = Duration::from_millis(50);

/// What one stream carried.
pub(super) struct SentStream {
    measured_bytes: u64,
    total_bytes: u64,
    information: TcpInformation,
}

/// A multiple of the write size, so that writes go round in it.
pub(super) fn content(options: &TcpOptions) -> Vec<u8> {
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

/// Writes `content` over and over until the schedule ends.
pub(super) fn send(
    trial: Trial,
    stream: &Stream,
    content: &[u8],
) -> Result<SentStream, TrafficError> {
    let (mut measured_bytes, mut total_bytes) = (0, 0);
    let mut writes = content
        .chunks_exact(trial.options.write_bytes as usize)
        .cycle();
    let mut pending: &[u8] = &[];
    if !trial.timeline.wait_until(0, 50_000, trial.stop) {
        return Err(TrafficError::Stopped);
    }
    loop {
        if pending.is_empty() {
            pending = writes.next().unwrap_or_default();
        }
        let outcome = (&stream.socket).write(pending);
        let now = trial.timeline.elapsed();
        match outcome {
            Ok(written) => {
                pending = &pending[written..];
                total_bytes += written as u64;
                if trial.schedule.measures(now) {
                    measured_bytes += written as u64;
                }
            }
            Err(failure) if is_waiting(&failure) => {}
            Err(_) if now >= trial.schedule.measured_to() => break,
            Err(failure) => return Err(stream.broken(now, &failure.to_string())),
        }
        if trial.is_over(now)? {
            break;
        }
    }
    let information = tcp_information(&stream.socket)
        .map_err(TrafficError::io("read TCP_INFO of a connection"))?;
    match trial.side {
        Side::Both => end_stream(&stream.socket),
        Side::Send | Side::Receive => wait_for_hang_up(&stream.socket),
    }
    Ok(SentStream {
        measured_bytes,
        total_bytes,
        information,
    })
}

/// The sum of all streams; an error where nothing was carried.
pub(super) fn sum(streams: &[SentStream]) -> Result<TcpSent, TrafficError> {
    let measured_bytes = streams.iter().map(|stream| stream.measured_bytes).sum();
    if measured_bytes == 0 {
        return Err(TrafficError::NothingCarried(
            "TCP took no byte in the measured window".into(),
        ));
    }
    Ok(TcpSent {
        measured_bytes,
        total_bytes: streams.iter().map(|stream| stream.total_bytes).sum(),
        streams: streams.iter().map(|stream| stream.information).collect(),
    })
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
