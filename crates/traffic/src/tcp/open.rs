//! Opens the TCP connections of a job, from either end.
//!
//! The connecting end introduces each stream with a hello, and the listener sends it back. So strangers are told apart,
//! and a port that is forwarded to nowhere is found out before the clock runs.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::Socket;

use crate::clock::{STOP_LATENCY, Timeline, realtime};
use crate::content::Material;
use crate::error::TrafficError;
use crate::job::{Side, TcpConnect, TcpListen, TcpOptions};
use crate::outcome::{Outcome, TcpCarried};
use crate::running::{Control, Running};
use crate::schedule::{START_TOLERANCE, Schedule};
use crate::socks;
use crate::tcp::flow::{Stream, Trial, drive};
use crate::tcp::welcome::{HELLO_BYTES, Reception, hello};

const LONGEST_CONNECT: u64 = 60_000_000_000;

/// Connects all streams and starts the job.
pub(crate) fn connect(job: TcpConnect) -> Result<Running, TrafficError> {
    validate(&job.schedule, &job.options)?;
    if !(1..=LONGEST_CONNECT).contains(&job.connect_timeout) {
        return Err(TrafficError::Invalid(
            "the time limit for connecting is 1 ns to 60 s".into(),
        ));
    }
    let material = material(job.side, &job.options)?;
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
            material: material.as_ref(),
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
    let material = material(job.side, &job.options)?;
    let socket = job.options.open(job.bind)?;
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
        let mut reception = Reception::new(job.session, job.options.streams);
        receive_streams(&job, &socket, &mut reception, timeline, stop)?;
        let trial = Trial {
            side: job.side,
            options: &job.options,
            material: material.as_ref(),
            schedule: job.schedule,
            timeline,
            stop,
        };
        let foreign = reception.foreign;
        let flow = drive(&reception.streams(), trial)?;
        Ok(Outcome::TcpListen(TcpCarried {
            foreign,
            clock_step: timeline.clock_step(),
            flow,
        }))
    })
}

fn validate(schedule: &Schedule, options: &TcpOptions) -> Result<(), TrafficError> {
    schedule.validate(realtime(), 0)?;
    options.validate()
}

/// What there is to send.
fn material(side: Side, options: &TcpOptions) -> Result<Option<Material>, TrafficError> {
    side.sends().then(|| options.content.load()).transpose()
}

fn connect_stream(job: &TcpConnect, index: u16, deadline: Instant) -> Result<Stream, TrafficError> {
    let peer = job.destination;
    let mut socket = job.options.open(job.proxy.unwrap_or(peer))?;
    socks::connect(&socket, peer, job.proxy, time_left(deadline))
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

/// Accepts until all streams are there, at the latest until the warm-up is over.
fn receive_streams(
    job: &TcpListen,
    listener: &Socket,
    reception: &mut Reception,
    timeline: Timeline,
    stop: &Control,
) -> Result<(), TrafficError> {
    let deadline = job.schedule.measured_from().max(START_TOLERANCE);
    while !reception.is_complete() {
        if stop.load(Ordering::Relaxed) {
            return Err(TrafficError::Stopped);
        }
        if timeline.elapsed() > deadline {
            return Err(TrafficError::NotConnected {
                connected: reception.connected(),
                asked: job.options.streams.into(),
            });
        }
        let arrival = next_connection(listener, reception).map_err(TrafficError::io(format!(
            "accept connections on TCP {}",
            job.bind
        )))?;
        if let Some((socket, peer)) = arrival {
            reception.admit(socket, peer);
        }
        reception.listen();
    }
    Ok(())
}

/// Waits a moment for a connection, or for one that was accepted to say something.
fn next_connection(
    listener: &Socket,
    reception: &Reception,
) -> io::Result<Option<(Socket, SocketAddr)>> {
    let mut readable: Vec<PollFd> = std::iter::once(listener)
        .chain(reception.guests())
        .map(|socket| PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN))
        .collect();
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: STOP_LATENCY.subsec_nanos().into(),
    };
    match poll(&mut readable, Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(failure) => return Err(failure.into()),
    }
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    match listener.accept() {
        Ok((socket, peer)) => {
            socket.set_nonblocking(true)?;
            Ok(peer.as_socket().map(|peer| (socket, peer)))
        }
        Err(failure) if matches!(failure.kind(), ConnectionAborted | Interrupted | WouldBlock) => {
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}
