//! Sending UDP datagrams.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::job::{Content, SocketOptions, text};
use crate::process::{Departures, Sizes};
use crate::schedule::Schedule;

/// Sends datagrams to one destination, each at its intended time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpSend {
    /// Where the datagrams go.
    #[serde(with = "text")]
    pub destination: SocketAddr,
    /// Tag of the datagrams of this job; the receiver ignores others.
    pub session: u16,
    /// When to send.
    pub schedule: Schedule,
    /// When each datagram is due.
    pub departures: Departures,
    /// UDP payload of each datagram, 12 to 65507 bytes, header included. What exceeds the MTU is fragmented.
    pub sizes: Sizes,
    /// Of everything that is drawn: the same seed sends the same datagrams at the same intended times.
    #[serde(default)]
    pub seed: u64,
    /// How datagrams are handed to the system. None leaves before it is due.
    pub mode: SendMode,
    /// What follows the header.
    pub content: Content,
    /// How the socket is set up.
    #[serde(default)]
    pub socket: SocketOptions,
    /// Where to log every datagram that departs, a file on the node of the job; none where there is no path.
    #[serde(default)]
    pub log: Option<PathBuf>,
}

/// How datagrams that are due together are handed to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum SendMode {
    /// Each in a system call of its own.
    PerPacket,
    /// Several in one system call (`sendmmsg`), but each a packet of its own all the way.
    Batched {
        /// The most in one call, 1 to 1024.
        datagrams: u16,
    },
    /// Several as one packet (UDP_SEGMENT), which the system or the network device cuts into datagrams as late as it
    /// can. Only datagrams of one size that fit the MTU can be put together; otherwise they are `batched`.
    Segmented {
        /// The most in one packet, 1 to 64, and no more than 65507 bytes together.
        datagrams: u16,
    },
}
