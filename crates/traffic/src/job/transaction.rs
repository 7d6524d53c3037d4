//! Requests and responses.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::job::{Protocol, SocketOptions, text};
use crate::schedule::Schedule;

/// Answers the requests of a [`TransactionRun`] job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionServe {
    /// Where to listen; port 0 lets the system choose.
    #[serde(with = "text")]
    pub bind: SocketAddr,
    /// The secret of this job, drawn at random: whoever does not know it gets no answer.
    pub session: u64,
    /// When to serve, in this node's clock.
    pub schedule: Schedule,
    /// What a transaction is.
    pub transaction: Transaction,
    /// The only address whose datagrams are answered, for one that is known; others are `foreign`. Who knows the secret
    /// could otherwise have responses sent to others by lying about where a request comes from.
    #[serde(default, with = "text::optional")]
    pub peer: Option<IpAddr>,
    /// How the sockets are set up.
    #[serde(default)]
    pub socket: SocketOptions,
}

/// Sends requests to a [`TransactionServe`] job, each when the response to the last has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionRun {
    /// The server's address, or that of a port forwarded to it.
    #[serde(with = "text")]
    pub destination: SocketAddr,
    /// A SOCKS 5 proxy (RFC 1928) that connects to the destination; straight to it where there is none; for TCP alone.
    #[serde(default, with = "text::optional")]
    pub proxy: Option<SocketAddr>,
    /// The secret that the server must share.
    pub session: u64,
    /// When to send.
    pub schedule: Schedule,
    /// What a transaction is.
    pub transaction: Transaction,
    /// How long a connection may take and, over UDP, a response until the request is sent again, ns, at most 60 s.
    #[serde(default = "default_timeout")]
    pub timeout: u64,
    /// How the sockets are set up; a given port is for one transaction at a time.
    #[serde(default)]
    pub socket: SocketOptions,
}

/// What a transaction is; both ends must agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// UDP or TCP, this with TCP_NODELAY.
    pub protocol: Protocol,
    /// Bytes of a request, 1 byte to 1 MiB; over UDP at most 65507. They are not compressible, and always the same but
    /// for the number that those over UDP begin with.
    pub request_bytes: u32,
    /// Bytes of a response, within the same limits.
    pub response_bytes: u32,
    /// A new TCP connection for each transaction: connect, request, response, close.
    #[serde(default)]
    pub fresh_connections: bool,
    /// How many transactions are under way at once, each with a thread and a connection of its own, 1 to 128.
    pub concurrency: u16,
}

fn default_timeout() -> u64 {
    1_000_000_000
}
