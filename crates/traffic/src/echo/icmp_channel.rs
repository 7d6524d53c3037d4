//! Probes in ICMP echo requests, which the system at the other end sends back.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};

use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt,
};
use rustix::event::PollFlags;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::batch::{ReceiveBatch, Source, source_of};
use crate::datagram::{HEADER_BYTES, Header};
use crate::echo::channel::{BATCH, Channel, News, is_waiting, wait};
use crate::echo::icmp_packet::{Echo, ICMP_HEADER_BYTES, Version, ipv4_payload};
use crate::error::TrafficError;
use crate::job::{SocketOptions, Timestamps};
use crate::socket::{Buffer, filter_icmp, filter_icmpv6, kernel_timestamps, set_buffer};

/// Room for the start of the request that an ICMP error quotes: its header is enough.
const QUOTED_BYTES: usize = 128;

/// Room for what Linux says about a queued error: a structure and the address of who sent it.
const ERROR_CONTROL_BYTES: usize = 256;

/// SO_RCVBUF where the job asks for none: the prober's own pauses must lose no reply.
const DEFAULT_BUFFER: usize = 4 * 1024 * 1024;

/// One socket that is not connected, so that the route and the source address may still change.
pub(crate) struct IcmpChannel {
    socket: Socket,
    access: Access,
    version: Version,
    destination: SockAddr,
    source: Source,
    timestamps: Timestamps,
    batch: ReceiveBatch,
    error_control: Vec<u8>,
}

/// How the system lets this process send ICMP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// A ping socket: the kernel sets the identifier, and hands over the replies that have it.
    Ping,
    /// A raw socket, which gets a copy of all replies.
    Raw { identifier: u16 },
}

impl IcmpChannel {
    pub fn open(destination: IpAddr, options: SocketOptions) -> Result<Self, TrafficError> {
        let version = match destination {
            IpAddr::V4(_) => Version::V4,
            IpAddr::V6(_) => Version::V6,
        };
        let destination = SocketAddr::new(destination, 0);
        let (socket, access) = open_socket(version)?;
        options.apply(&socket, destination)?;
        if options.buffer.is_none() {
            set_buffer(&socket, Buffer::Receive, DEFAULT_BUFFER)
                .map_err(TrafficError::io("set the receive buffer"))?;
        }
        prepare(&socket, version, access).map_err(TrafficError::io("set up an ICMP socket"))?;
        Ok(Self {
            timestamps: kernel_timestamps(&socket),
            socket,
            access,
            version,
            destination: destination.into(),
            source: source_of(destination),
            batch: ReceiveBatch::new(BATCH),
            error_control: vec![0; ERROR_CONTROL_BYTES],
        })
    }

    fn read_replies(&mut self, news: &mut dyn FnMut(News)) -> io::Result<()> {
        loop {
            let count = self.batch.receive(&self.socket)?;
            for received in (0..count).map(|index| self.batch.received(index)) {
                if *received.source != self.source {
                    continue;
                }
                if let Some(header) = self.own_reply(received.payload) {
                    news(News::Reply {
                        header,
                        arrived: received.timestamp,
                    });
                }
            }
            if count < BATCH {
                return Ok(());
            }
        }
    }

    /// The header of our probe in what the socket received; none in replies to others.
    fn own_reply(&self, received: &[u8]) -> Option<Header> {
        let message = match (self.version, self.access) {
            (Version::V4, Access::Raw { .. }) => ipv4_payload(received)?,
            _ => received,
        };
        let (echo, payload) = Echo::reply(self.version, message)?;
        let header = Header::parse(payload)?;
        (self.is_own(echo) && echo.sequence == header.sequence as u16).then_some(header)
    }

    fn is_own(&self, echo: Echo) -> bool {
        match self.access {
            Access::Ping => true,
            Access::Raw { identifier } => echo.identifier == identifier,
        }
    }

    /// Empties the queue of ICMP errors about what was sent.
    fn read_errors(&mut self, news: &mut dyn FnMut(News)) -> io::Result<()> {
        let mut quoted = [0; QUOTED_BYTES];
        loop {
            let mut vector = [IoSliceMut::new(&mut quoted)];
            let message = recvmsg::<SockaddrStorage>(
                self.socket.as_raw_fd(),
                &mut vector,
                Some(&mut self.error_control),
                MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT,
            )?;
            let from_network = message.cmsgs()?.any(|control| is_from_network(&control));
            let length = message.bytes;
            let echo = Echo::quoted_request(self.version, &quoted[..length]);
            if let Some(echo) = echo.filter(|echo| from_network && self.is_own(*echo)) {
                news(News::Refused {
                    sequence: echo.sequence,
                });
            }
        }
    }
}

impl Channel for IcmpChannel {
    fn connect(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn send(&mut self, probe: &[u8]) -> io::Result<()> {
        let sequence = probe
            .first_chunk::<HEADER_BYTES>()
            .and_then(|header| Header::parse(header))
            .map_or(0, |header| header.sequence as u16);
        let identifier = match self.access {
            Access::Ping => 0,
            Access::Raw { identifier } => identifier,
        };
        let echo = Echo {
            identifier,
            sequence,
        };
        let header: [u8; ICMP_HEADER_BYTES] = echo.request(self.version, probe);
        let packet = [IoSlice::new(&header), IoSlice::new(probe)];
        let send = || self.socket.send_to_vectored(&packet, &self.destination);
        // The first refusal may be news of an earlier probe, which is in the queue of errors too.
        send().or_else(|_| send()).map(|_| ())
    }

    fn receive(&mut self, limit: u64, news: &mut dyn FnMut(News)) -> io::Result<()> {
        let ready = wait(self.socket.as_fd(), limit)?;
        if ready.contains(PollFlags::ERR) {
            settled(self.read_errors(news))?;
        }
        if ready.contains(PollFlags::IN) {
            // What fails here, besides having nothing to read, is news of a probe, which is in the queue of errors too.
            let _ = self.read_replies(news);
        }
        Ok(())
    }

    fn timestamps(&self) -> Timestamps {
        self.timestamps
    }
}

/// A ping socket where this process's group may have one, otherwise a raw socket where it may have that.
fn open_socket(version: Version) -> Result<(Socket, Access), TrafficError> {
    let (domain, protocol) = match version {
        Version::V4 => (Domain::IPV4, Protocol::ICMPV4),
        Version::V6 => (Domain::IPV6, Protocol::ICMPV6),
    };
    if let Ok(socket) = Socket::new(domain, Type::DGRAM, Some(protocol)) {
        return Ok((socket, Access::Ping));
    }
    let identifier = fastrand::u16(..);
    match Socket::new(domain, Type::RAW, Some(protocol)) {
        Ok(socket) => Ok((socket, Access::Raw { identifier })),
        Err(failure) if failure.kind() == ErrorKind::PermissionDenied => {
            Err(TrafficError::Invalid(
                "this user may not send ICMP: run as root, or have the user's group within \
                 net.ipv4.ping_group_range"
                    .into(),
            ))
        }
        Err(failure) => Err(TrafficError::io("open an ICMP socket")(failure)),
    }
}

fn prepare(socket: &Socket, version: Version, access: Access) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    match version {
        Version::V4 => setsockopt(&socket.as_fd(), sockopt::Ipv4RecvErr, &true)?,
        Version::V6 => setsockopt(&socket.as_fd(), sockopt::Ipv6RecvErr, &true)?,
    }
    match (version, access) {
        (_, Access::Ping) => Ok(()),
        (Version::V4, Access::Raw { .. }) => filter_icmp(socket, version.reply_type()),
        (Version::V6, Access::Raw { .. }) => filter_icmpv6(socket, version.reply_type()),
    }
}

/// Whether a queued error came as an ICMP message, and not from this system's own attempt to send.
fn is_from_network(control: &ControlMessageOwned) -> bool {
    let origin = match control {
        ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => {
            error.ee_origin
        }
        _ => return false,
    };
    matches!(origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6)
}

/// Having nothing more to read is no failure.
fn settled(outcome: io::Result<()>) -> io::Result<()> {
    outcome.or_else(|failure| {
        if is_waiting(&failure) {
            Ok(())
        } else {
            Err(failure)
        }
    })
}
