//! Receives datagrams and tells those of the flow from others.

mod drops;
mod receiver;
mod silence;
mod sources;

use std::net::SocketAddr;

use socket2::{Domain, Socket, Type};

use crate::account::FlowAccount;
use crate::clock::realtime;
use crate::error::TrafficError;
use crate::job::{SocketOptions, Timestamps, UdpReceive};
use crate::packet_log;
use crate::running::Running;
use crate::socket::{Buffer, enable_coalescing, granted_buffer, kernel_timestamps};
use crate::udp_receive::receiver::Receiver;

const DEFAULT_BUFFER: u32 = 4 * 1024 * 1024;

/// Starts the job.
pub(crate) fn start(job: UdpReceive) -> Result<Running, TrafficError> {
    job.schedule.validate(realtime(), job.linger)?;
    job.socket.validate_listener(job.bind)?;
    validate_peer(&job)?;
    let account = FlowAccount::new(job.schedule, job.step)?;
    let open = Open::new(&job)?;
    let bound = open.bound;
    let flow = || format!("to {}", bound.unwrap_or(job.bind));
    let log = job.log.as_deref();
    let log = log
        .map(|path| packet_log::create(path, job.schedule, flow()))
        .transpose()?;
    Running::spawn("udp-receive", bound, move |stop| {
        Receiver::new(&job, &open, account, log).run(stop)
    })
}

fn validate_peer(job: &UdpReceive) -> Result<(), TrafficError> {
    let (bind, Some(peer)) = (job.bind.ip(), job.peer) else {
        return Ok(());
    };
    // A socket on all addresses of IPv6 hears IPv4 too.
    if peer.is_ipv4() == bind.is_ipv4() || (bind.is_ipv6() && bind.is_unspecified()) {
        return Ok(());
    }
    Err(TrafficError::Invalid(format!(
        "a receiver on {bind} hears nothing from {peer}, which is of another IP version"
    )))
}

/// A socket that is ready to receive, and how it came out.
struct Open {
    socket: Socket,
    bound: Option<SocketAddr>,
    buffer: u64,
    timestamps: Timestamps,
}

impl Open {
    fn new(job: &UdpReceive) -> Result<Self, TrafficError> {
        let socket = Socket::new(Domain::for_address(job.bind), Type::DGRAM, None)
            .map_err(TrafficError::io("open a UDP socket"))?;
        let options = SocketOptions {
            buffer: job.socket.buffer.or(Some(DEFAULT_BUFFER)),
            ..job.socket
        };
        options.apply(&socket, job.bind)?;
        let buffer = granted_buffer(&socket, Buffer::Receive)
            .map_err(TrafficError::io("read the size of the receive buffer"))?;
        let timestamps = match job.timestamps {
            Timestamps::Kernel => kernel_timestamps(&socket),
            Timestamps::User => Timestamps::User,
        };
        enable_coalescing(&socket);
        socket
            .bind(&job.bind.into())
            .map_err(TrafficError::io(format!("bind UDP {}", job.bind)))?;
        let bound = socket
            .local_addr()
            .map_err(TrafficError::io("read the local address"))?
            .as_socket();
        Ok(Self {
            socket,
            bound,
            buffer: buffer as u64,
            timestamps,
        })
    }
}
