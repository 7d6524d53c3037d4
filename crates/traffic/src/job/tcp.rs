//! TCP streams.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::job::{Content, SocketOptions, text};
use crate::process::{Departures, Sizes};
use crate::schedule::Schedule;

/// Opens TCP connections to a [`TcpListen`] job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpConnect {
    /// The listener's address, or that of a port forwarded to it.
    #[serde(with = "text")]
    pub destination: SocketAddr,
    /// A SOCKS 5 proxy (RFC 1928) that connects to the destination; straight to it where there is none.
    #[serde(default, with = "text::optional")]
    pub proxy: Option<SocketAddr>,
    /// The secret of this job, which the listener must share.
    pub session: u64,
    /// When to send.
    pub schedule: Schedule,
    /// Whether this end sends, receives or does both.
    pub side: Side,
    /// How the streams are driven.
    pub options: TcpOptions,
    /// How long all streams together may take to connect, ns.
    #[serde(default = "default_connect_timeout")]
    pub connect_timeout: u64,
}

/// Accepts the TCP connections of a [`TcpConnect`] job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpListen {
    /// Where to listen; port 0 lets the system choose.
    #[serde(with = "text")]
    pub bind: SocketAddr,
    /// The secret of this job, drawn at random: whoever connects and does not know it is turned away.
    pub session: u64,
    /// When to send.
    pub schedule: Schedule,
    /// Whether this end sends, receives or does both.
    pub side: Side,
    /// How the streams are driven.
    pub options: TcpOptions,
}

/// How TCP streams are driven; each end has its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpOptions {
    /// Bytes of each write, 1 byte to 16 MiB; of no use to a receiver.
    pub write_bytes: u32,
    /// Connections side by side, 1 to 128; both ends must agree.
    pub streams: u16,
    /// Payload bits per second of all streams together; as fast as TCP takes them where there is none.
    #[serde(default)]
    pub rate: Option<u64>,
    /// Messages instead of writes one after the other: `write_bytes` and `rate` don't apply, and there is one stream.
    #[serde(default)]
    pub messages: Option<Messages>,
    /// What is written.
    pub content: Content,
    /// TCP_NODELAY.
    #[serde(default)]
    pub no_delay: bool,
    /// TCP_CONGESTION, such as `cubic`; the system's default where there is none.
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// TCP_MAXSEG in bytes, 88 to 32767; from the path MTU where there is none.
    #[serde(default)]
    pub mss: Option<u32>,
    /// Time between two samples of a sender's TCP_INFO, ns, at least 1 ms; longer where that is too many to keep.
    #[serde(default = "default_sample")]
    pub sample: u64,
    /// How the sockets are set up. A given port leaves room for one stream; without a buffer the system tunes it itself.
    #[serde(default)]
    pub socket: SocketOptions,
}

/// Messages that an application sends over one stream, each at its own time. Both ends must say the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Messages {
    /// When each is due.
    pub departures: Departures,
    /// Bytes of each, 12 to 65535, with a header that says which one it is.
    pub sizes: Sizes,
    /// Where the random ones of both begin: the same seed sends the same messages.
    pub seed: u64,
}

/// What a job does with its TCP streams, whoever connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Writes.
    Send,
    /// Reads.
    Receive,
    /// Writes and reads at once over each connection; the other end does too.
    Both,
}

impl Side {
    /// Whether this end writes.
    #[must_use]
    pub fn sends(self) -> bool {
        matches!(self, Self::Send | Self::Both)
    }

    /// Whether this end reads.
    #[must_use]
    pub fn receives(self) -> bool {
        matches!(self, Self::Receive | Self::Both)
    }
}

fn default_sample() -> u64 {
    100_000_000
}

fn default_connect_timeout() -> u64 {
    3_000_000_000
}
