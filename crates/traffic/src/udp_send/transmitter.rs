//! Hands datagrams to the system in the mode that was asked for, or in the next best.

use std::io;
use std::ops::{Range, RangeInclusive};

use socket2::Socket;

use crate::content::Material;
use crate::datagram::{Header, LARGEST_PAYLOAD};
use crate::error::TrafficError;
use crate::job::SendMode;
use crate::socket::set_option;
use crate::udp_send::outbox::Outbox;
use crate::udp_send::pacer::Due;

const BATCHES: RangeInclusive<u16> = 1..=1024;

/// What every Linux with UDP_SEGMENT takes (UDP_MAX_SEGMENTS).
const SEGMENTS: RangeInclusive<u16> = 1..=64;

impl SendMode {
    pub(super) fn validate(self) -> Result<(), TrafficError> {
        let (range, asked) = match self {
            Self::PerPacket => return Ok(()),
            Self::Batched { datagrams } => (BATCHES, datagrams),
            Self::Segmented { datagrams } => (SEGMENTS, datagrams),
        };
        if range.contains(&asked) {
            return Ok(());
        }
        Err(TrafficError::Invalid(format!(
            "{} to {} datagrams are handed over at once, not {asked}",
            range.start(),
            range.end()
        )))
    }

    /// The most datagrams at once.
    fn most(self) -> u16 {
        match self {
            Self::PerPacket => 1,
            Self::Batched { datagrams } | Self::Segmented { datagrams } => datagrams,
        }
    }
}

/// Sends datagrams on a connected socket.
pub(super) struct Transmitter<'a> {
    socket: &'a Socket,
    outbox: Outbox,
    mode: SendMode,
    /// Whether the system has taken joined datagrams; until then a refusal means that it never will.
    has_joined: bool,
}

impl<'a> Transmitter<'a> {
    /// `constant` is the size of all datagrams where they have one.
    pub fn new(
        asked: SendMode,
        socket: &'a Socket,
        constant: Option<u32>,
        material: &Material,
    ) -> Self {
        let mode = possible(asked, socket, constant);
        Self {
            socket,
            outbox: Outbox::new(mode.most().into(), constant, material),
            mode,
            has_joined: false,
        }
    }

    /// How datagrams are handed over, as far as is known by now.
    pub fn mode(&self) -> SendMode {
        self.mode
    }

    /// The most datagrams that can be taken at once.
    pub fn most(&self) -> usize {
        self.mode.most().into()
    }

    /// Takes the next datagrams in the place of the last ones.
    pub fn take(&mut self, due: &[Due]) {
        self.outbox.take(due);
    }

    /// Writes the header of the datagram at `index`.
    pub fn address(&mut self, index: usize, header: &Header) {
        self.outbox.address(index, header);
    }

    /// Sends as many of these datagrams as one system call may; how many the system took.
    pub fn send(&mut self, range: Range<usize>) -> io::Result<usize> {
        match self.mode {
            SendMode::PerPacket => self.outbox.send_one(self.socket, range.start),
            SendMode::Batched { .. } => self.outbox.send_batch(self.socket, range),
            SendMode::Segmented { datagrams } => {
                match self.outbox.send_joined(self.socket, range.clone()) {
                    Err(failure) if !self.has_joined && is_refusal(&failure) => {
                        set_segment_size(self.socket, 0)?;
                        self.mode = SendMode::Batched { datagrams };
                        self.outbox.send_batch(self.socket, range)
                    }
                    outcome => {
                        self.has_joined |= range.len() > 1 && outcome.is_ok();
                        outcome
                    }
                }
            }
        }
    }
}

/// The mode itself where these datagrams and this system allow it.
fn possible(mode: SendMode, socket: &Socket, constant: Option<u32>) -> SendMode {
    let SendMode::Segmented { datagrams } = mode else {
        return mode;
    };
    match constant {
        Some(bytes) if set_segment_size(socket, bytes).is_ok() => SendMode::Segmented {
            datagrams: datagrams.min((LARGEST_PAYLOAD as u32 / bytes) as u16),
        },
        _ => SendMode::Batched { datagrams },
    }
}

/// Where the system cuts what is sent; 0 nowhere.
fn set_segment_size(socket: &Socket, bytes: u32) -> io::Result<()> {
    set_option(
        socket,
        libc::IPPROTO_UDP,
        libc::UDP_SEGMENT,
        bytes as libc::c_int,
    )
}

/// Failures by which Linux says that it does not join datagrams here: above the MTU, into IPsec, or over a device that
/// does no checksums (before Linux 6.10).
fn is_refusal(failure: &io::Error) -> bool {
    let refusals = [libc::EINVAL, libc::EIO, libc::EMSGSIZE, libc::EOPNOTSUPP];
    failure
        .raw_os_error()
        .is_some_and(|number| refusals.contains(&number))
}
