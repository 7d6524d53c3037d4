//! Round trips of probes.

use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use crate::job::{SocketOptions, text};
use crate::schedule::Schedule;

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

/// Sends probes and times the replies (RFC 2681).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EchoProbe {
    /// Who sends the probes back.
    pub destination: EchoDestination,
    /// When to send, and which probes count.
    pub plan: ProbePlan,
    /// Time between the intended departures of two probes, ns; 0 sends the next when the last is answered or given up,
    /// so that one is under way at a time.
    pub interval: u64,
    /// Bytes of each probe, 12 to 65507, header included and ICMP's own header not.
    pub payload_bytes: u32,
    /// Repeated after the header so that it can be searched for on a wire; zeros where there is none.
    #[serde(default)]
    pub marker: Option<ByteBuf>,
    /// How long a reply, and over TCP the connection, may take, ns, at most 60 s; later replies do not count.
    pub timeout: u64,
    /// How the socket is set up; an ICMP socket has no port.
    #[serde(default)]
    pub socket: SocketOptions,
}

/// Who sends probes back, and over what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "protocol", rename_all = "snake_case", deny_unknown_fields)]
pub enum EchoDestination {
    /// An [`EchoServe`] job, in UDP datagrams.
    Udp {
        /// Its address, or that of a port forwarded to it.
        #[serde(with = "text")]
        address: SocketAddr,
    },
    /// An [`EchoServe`] job, over one TCP connection.
    Tcp {
        /// Its address, or that of a port forwarded to it.
        #[serde(with = "text")]
        address: SocketAddr,
        /// A SOCKS 5 proxy (RFC 1928) that connects to it; straight to it where there is none.
        #[serde(default, with = "text::optional")]
        proxy: Option<SocketAddr>,
    },
    /// The system at this address, in ICMP echo requests (RFC 792, RFC 4443).
    Icmp {
        /// Its address.
        #[serde(with = "text")]
        address: IpAddr,
    },
}

impl EchoDestination {
    /// Where packets are sent: its address or its proxy's; with port 0 for ICMP, which has none.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        match *self {
            Self::Udp { address } => address,
            Self::Tcp { address, proxy } => proxy.unwrap_or(address),
            Self::Icmp { address } => SocketAddr::new(address, 0),
        }
    }
}

impl Display for EchoDestination {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp { address } | Self::Tcp { address, .. } => address.fmt(formatter),
            Self::Icmp { address } => address.fmt(formatter),
        }
    }
}

/// When a prober sends, and which probes count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ProbePlan {
    /// From now on, and all probes count.
    Count {
        /// The most probes to send, at least 1; sends that fail are among them.
        count: u64,
        /// End at the first reply. Until then no failure is final: a TCP connection is tried again at each interval,
        /// which is not 0.
        until_first_reply: bool,
        /// When to end at the latest, ns after the start of the job.
        deadline: u64,
    },
    /// On a schedule; the probes count whose intended departure lies in its measured window.
    Schedule {
        /// Its last part is followed by the time limit of the last reply.
        schedule: Schedule,
    },
}

/// What carries jobs that have a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// UDP datagrams.
    Udp,
    /// TCP.
    Tcp,
}
