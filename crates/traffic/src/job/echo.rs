//! Round trips of probes.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use crate::job::{SocketOptions, text};

/// Sends back what the first source sends, until the deadline or until stopped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EchoServe {
    /// Where to listen; port 0 lets the system choose.
    #[serde(with = "text")]
    pub bind: SocketAddr,
    /// UDP or TCP.
    pub protocol: Protocol,
    /// When to end, ns after the start of the job.
    pub deadline: u64,
}

/// Sends probes to an [`EchoServe`] job and times the replies (RFC 2681).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EchoProbe {
    /// The echo server's address, or that of a port forwarded to it.
    #[serde(with = "text")]
    pub destination: SocketAddr,
    /// UDP or TCP.
    pub protocol: Protocol,
    /// The most probes to send, 1 to 1 000 000.
    pub count: u32,
    /// Time between the departures of two probes, ns; 0 sends the next when the last is answered or given up.
    pub interval: u64,
    /// Bytes of each probe, 12 to 65507, header included.
    pub payload_bytes: u32,
    /// Repeated after the header so that it can be searched for on a wire; zeros where there is none.
    #[serde(default)]
    pub marker: Option<ByteBuf>,
    /// How long a reply, and over TCP the connection, may take, ns, at most 60 s; later replies do not count.
    pub timeout: u64,
    /// End at the first reply. Until then no failure is final: a TCP connection is tried again at each interval, which
    /// is not 0.
    #[serde(default)]
    pub until_first_reply: bool,
    /// How the socket is set up.
    #[serde(default)]
    pub socket: SocketOptions,
    /// When to end at the latest, ns after the start of the job.
    pub deadline: u64,
}

/// What carries probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// UDP datagrams.
    Udp,
    /// One TCP connection.
    Tcp,
}
