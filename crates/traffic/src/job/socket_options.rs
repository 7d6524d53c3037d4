//! Options of the sockets that carry a job's traffic.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::job::text;

/// What a job asks of its socket; the system's own choice wherever there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SocketOptions {
    /// The local address to send from; not for a listener, which has its `bind`.
    #[serde(with = "text::optional")]
    pub source: Option<IpAddr>,
    /// The local port to send from; not for a listener, which has its `bind`.
    pub port: Option<u16>,
    /// Differentiated services code point (RFC 2474), 0 to 63; the ECN bits stay as they are.
    pub dscp: Option<u8>,
    /// Time to live, or hop limit of IPv6, 1 to 255.
    pub ttl: Option<u8>,
    /// True: no packet is fragmented, and what exceeds the path MTU that the system knows is refused. False: every
    /// packet may be fragmented on its way (IPv4) or by its sender (IPv6).
    pub dont_fragment: Option<bool>,
    /// SO_SNDBUF and SO_RCVBUF in bytes, at least 1.
    pub buffer: Option<u32>,
}
