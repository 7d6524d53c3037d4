//! Sends datagrams, each at its intended time.

mod outbox;
mod pacer;
mod sender;
mod transmitter;

use std::ops::RangeInclusive;

use socket2::{Domain, Socket, Type};

use crate::clock::{STOP_LATENCY, realtime};
use crate::datagram::{HEADER_BYTES, LARGEST_PAYLOAD};
use crate::error::TrafficError;
use crate::job::UdpSend;
use crate::packet_log;
use crate::process::{Distribution, Plan, Sizes};
use crate::running::Running;
use crate::schedule::START_TOLERANCE;
use crate::udp_send::sender::Sender;
use crate::udp_send::transmitter::Transmitter;

const PAYLOADS: RangeInclusive<u32> = HEADER_BYTES as u32..=LARGEST_PAYLOAD as u32;

/// Starts the job.
pub(crate) fn start(job: UdpSend) -> Result<Running, TrafficError> {
    job.schedule.validate(realtime(), 0)?;
    job.content.validate()?;
    job.socket.validate(job.destination)?;
    job.mode.validate()?;
    let plan = Plan::new(&job.departures, &job.sizes, PAYLOADS, job.seed)?;
    let material = job.content.load()?;
    let socket = open(&job)?;
    let flow = || format!("to {}", job.destination);
    let log = job.log.as_deref();
    let log = log
        .map(|path| packet_log::create(path, job.schedule, flow()))
        .transpose()?;
    job.schedule.check_start(realtime(), START_TOLERANCE)?;
    Running::spawn("udp-send", None, move |stop| {
        let constant = constant(&job.sizes);
        let transmitter = Transmitter::new(job.mode, &socket, constant, &material);
        Sender::new(&job, plan, transmitter, log).run(stop)
    })
}

fn open(job: &UdpSend) -> Result<Socket, TrafficError> {
    let socket = Socket::new(Domain::for_address(job.destination), Type::DGRAM, None)
        .map_err(TrafficError::io("open a UDP socket"))?;
    job.socket.apply(&socket, job.destination)?;
    // A full queue must not keep the sender from noticing that it shall stop.
    socket
        .set_write_timeout(Some(STOP_LATENCY))
        .map_err(TrafficError::io("set a time limit for sending"))?;
    socket
        .connect(&job.destination.into())
        .map_err(TrafficError::io(format!("reach {}", job.destination)))?;
    Ok(socket)
}

/// The size of all datagrams where they have one.
fn constant(sizes: &Sizes) -> Option<u32> {
    match sizes.0 {
        Distribution::Constant { .. } => Some(sizes.sampler(0, PAYLOADS).next()),
        _ => None,
    }
}
