//! Sending UDP datagrams.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::job::{Content, SocketOptions, text};
use crate::schedule::Schedule;

/// Sends datagrams of one size to one destination, each at its intended time.
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
    /// UDP payload of each datagram, 12 to 65507 bytes, header included.
    pub payload_bytes: u32,
    /// How fast.
    pub rate: Rate,
    /// The most datagrams one system call may carry, 1 to 1024. A batch holds only datagrams whose time has come.
    pub batch: u16,
    /// What follows the header.
    pub content: Content,
    /// How the socket is set up.
    #[serde(default)]
    pub socket: SocketOptions,
}

/// How fast datagrams leave.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Rate {
    /// Payload bits per second.
    BitsPerSecond {
        /// 1 or more.
        value: u64,
    },
    /// Datagrams per second.
    PacketsPerSecond {
        /// 1 or more.
        value: u64,
    },
    /// As fast as this machine can: every departure is intended for the moment it happens.
    Max,
}
