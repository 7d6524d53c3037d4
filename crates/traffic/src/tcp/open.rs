//! Opens the TCP connections of a job, from either end.
//!
//! The connecting end introduces each stream with a hello, and the listener sends it back. So strangers are told apart,
//! and a port that is forwarded to nowhere is found out before the clock runs.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};

use crate::clock::{STOP_LATENCY, Timeline, realtime};
use crate::error::TrafficError;
use crate::job::{Side, TcpConnect, TcpListen, TcpOptions};
use crate::outcome::{Outcome, TcpCarried};
use crate::running::Running;
use crate::schedule::{START_TOLERANCE, Schedule};
use crate::tcp::flow::{Stream, Trial, drive};

const HELLO_BYTES: usize = 14;
const MAGIC: [u8; 4] = *b"tbtc";
const LARGEST_WRITE: u32 = 16 * 1024 * 1024;
const MOST_STREAMS: u16 = 128;
const LONGEST_CONNECT: u64 = 60_000_000_000;

/// How long a listener waits for the hello of a connection.
const HELLO_TIMEOUT: Duration = Duration::from_millis(500);

/// Connects all streams and starts the job.
pub(crate) fn connect(job: TcpConnect) -> Result<Running, TrafficError> {
    validate(&job.schedule, &job.options)?;
    job.options.socket.validate(job.destination)?;
    if job.options.socket.port.is_some() && job.options.streams > 1 {
        return Err(TrafficError::Invalid(
            "only one TCP stream can connect from a given port; leave the port or the streams out"
                .into(),
        ));
    }
    if !(1..=LONGEST_CONNECT).contains(&job.connect_timeout) {
        return Err(TrafficError::Invalid(
            "the time limit for connecting is 1 ns to 60 s".into(),
        ));
    }
    let deadline = Instant::now() + Duration::from_nanos(job.connect_timeout);
    let streams = (0..job.options.streams)
        .map(|index| connect_stream(&job, index, deadline))
        .collect::<Result<Vec<Stream>, TrafficError>>()?;
    let tolerance = match job.side {
        Side::Send | Side::Both => START_TOLERANCE,
        Side::Receive => job.schedule.measured_from().max(START_TOLERANCE),
    };
    job.schedule.check_start(realtime(), tolerance)?;
    Running::spawn("tcp-connect", None, move |stop| {
        let timeline = Timeline::new(job.schedule.start_at);
        let trial = Trial {
            side: job.side,
            options: &job.options,
            schedule: job.schedule,
            timeline,
            stop,
        };
        let flow = drive(&streams, trial)?;
        Ok(Outcome::TcpConnect(TcpCarried {
            foreign: 0,
            clock_step: timeline.clock_step(),
            flow,
        }))
    })
}

/// Listens and starts the job.
pub(crate) fn listen(job: TcpListen) -> Result<Running, TrafficError> {
    validate(&job.schedule, &job.options)?;
    job.options.socket.validate_listener(job.bind)?;
    let socket = open(&job.options, job.bind)?;
    let listening = || -> io::Result<()> {
        socket.set_reuse_address(true)?;
        socket.bind(&job.bind.into())?;
        socket.listen(job.options.streams.into())?;
        socket.set_nonblocking(true)
    };
    listening().map_err(TrafficError::io(format!("listen on TCP {}", job.bind)))?;
    let bound = socket
        .local_addr()
        .map_err(TrafficError::io("read the local address"))?
        .as_socket();
    Running::spawn("tcp-listen", bound, move |stop| {
        let timeline = Timeline::new(job.schedule.start_at);
        let accepted = accept(&job, &socket, timeline, stop)?;
        let trial = Trial {
            side: job.side,
            options: &job.options,
            schedule: job.schedule,
            timeline,
            stop,
        };
        let flow = drive(&accepted.streams, trial)?;
        Ok(Outcome::TcpListen(TcpCarried {
            foreign: accepted.foreign,
            clock_step: timeline.clock_step(),
            flow,
        }))
    })
}

fn validate(schedule: &Schedule, options: &TcpOptions) -> Result<(), TrafficError> {
    schedule.validate(realtime(), 0)?;
    options.content.validate()?;
    let invalid = |text: String| Err(TrafficError::Invalid(text));
    if !(1..=LARGEST_WRITE).contains(&options.write_bytes) {
        return invalid(format!(
            "a write has 1 to {LARGEST_WRITE} bytes, not {}",
            options.write_bytes
        ));
    }
    if !(1..=MOST_STREAMS).contains(&options.streams) {
        return invalid(format!(
            "a job has 1 to {MOST_STREAMS} TCP streams, not {}",
            options.streams
        ));
    }
    Ok(())
}

/// A socket with its options, which accepted connections inherit.
fn open(options: &TcpOptions, address: SocketAddr) -> Result<Socket, TrafficError> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)
        .map_err(TrafficError::io("open a TCP socket"))?;
    socket
        .set_reuse_address(options.socket.port.is_some())
        .map_err(TrafficError::io("reuse a local port"))?;
    options.socket.apply(&socket, address)?;
    if let Some(name) = &options.congestion_control {
        socket
            .set_tcp_congestion(name.as_bytes())
            .map_err(TrafficError::io(format!(
                "use the congestion control `{name}`"
            )))?;
    }
    if let Some(mss) = options.mss {
        socket
            .set_tcp_mss(mss)
            .map_err(TrafficError::io(format!("use a segment size of {mss}")))?;
    }
    socket
        .set_tcp_nodelay(options.no_delay)
        .map_err(TrafficError::io("set TCP_NODELAY"))?;
    Ok(socket)
}

fn connect_stream(job: &TcpConnect, index: u16, deadline: Instant) -> Result<Stream, TrafficError> {
    let peer = job.destination;
    let mut socket = open(&job.options, peer)?;
    socket
        .connect_timeout(&peer.into(), time_left(deadline))
        .map_err(TrafficError::io(format!("connect to {peer}")))?;
    let hello = hello(job.session, index);
    let mut answer = [0; HELLO_BYTES];
    let mut greet = || -> io::Result<()> {
        socket.set_read_timeout(Some(time_left(deadline)))?;
        socket.write_all(&hello)?;
        socket.read_exact(&mut answer)
    };
    greet().map_err(TrafficError::io(format!(
        "get an answer from the listener behind {peer}"
    )))?;
    if answer != hello {
        let foreign = io::Error::new(
            io::ErrorKind::InvalidData,
            "it is not a listener of this job",
        );
        return Err(TrafficError::io(format!("use what listens behind {peer}"))(
            foreign,
        ));
    }
    Ok(Stream { socket, peer })
}

/// At least a moment, because 0 would mean no limit.
fn time_left(deadline: Instant) -> Duration {
    deadline
        .saturating_duration_since(Instant::now())
        .max(Duration::from_millis(1))
}

struct Accepted {
    streams: Vec<Stream>,
    foreign: u64,
}

/// Accepts until all streams are there, at the latest until the warm-up is over.
fn accept(
    job: &TcpListen,
    listener: &Socket,
    timeline: Timeline,
    stop: &AtomicBool,
) -> Result<Accepted, TrafficError> {
    let asked = usize::from(job.options.streams);
    let deadline = job.schedule.measured_from().max(START_TOLERANCE);
    let mut streams: Vec<Option<Stream>> = (0..asked).map(|_| None).collect();
    let mut foreign = 0;
    while streams.iter().any(Option::is_none) {
        if stop.load(Ordering::Relaxed) {
            return Err(TrafficError::Stopped);
        }
        if timeline.elapsed() > deadline {
            let connected = streams.iter().flatten().count();
            return Err(TrafficError::NotConnected { connected, asked });
        }
        let Some((socket, peer)) = next_connection(listener).map_err(TrafficError::io(format!(
            "accept connections on TCP {}",
            job.bind
        )))?
        else {
            continue;
        };
        if welcome(socket, peer, job.session, &mut streams).is_none() {
            foreign += 1;
        }
    }
    Ok(Accepted {
        streams: streams.into_iter().flatten().collect(),
        foreign,
    })
}

fn next_connection(listener: &Socket) -> io::Result<Option<(Socket, SocketAddr)>> {
    let mut readable = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: STOP_LATENCY.subsec_nanos().into(),
    };
    match poll(&mut readable, Some(&limit)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
        Ok(_) => {}
        Err(failure) => return Err(failure.into()),
    }
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    match listener.accept() {
        Ok((socket, peer)) => Ok(peer.as_socket().map(|peer| (socket, peer))),
        Err(failure) if matches!(failure.kind(), ConnectionAborted | Interrupted | WouldBlock) => {
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

/// Answers a hello of this job and puts the stream in its place; none for a stranger.
fn welcome(
    mut socket: Socket,
    peer: SocketAddr,
    session: u64,
    streams: &mut [Option<Stream>],
) -> Option<()> {
    let mut greeting = [0; HELLO_BYTES];
    socket.set_read_timeout(Some(HELLO_TIMEOUT)).ok()?;
    socket.read_exact(&mut greeting).ok()?;
    let index = u16::from_be_bytes([greeting[12], greeting[13]]);
    let place = streams
        .get_mut(usize::from(index))
        .filter(|place| place.is_none())?;
    if greeting != hello(session, index) {
        return None;
    }
    socket.write_all(&greeting).ok()?;
    *place = Some(Stream { socket, peer });
    Some(())
}

fn hello(session: u64, index: u16) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..12].copy_from_slice(&session.to_be_bytes());
    bytes[12..].copy_from_slice(&index.to_be_bytes());
    bytes
}
