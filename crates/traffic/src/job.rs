//! What the engine can be asked to do. All durations are in nanoseconds, all rates count payload.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use crate::schedule::Schedule;

/// One thing to do, as it comes over the wire: a map whose `kind` names the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Job {
    /// Send UDP datagrams on a schedule.
    UdpSend(UdpSend),
    /// Receive them and account for each.
    UdpReceive(UdpReceive),
    /// Open TCP connections, then send or receive.
    TcpConnect(TcpConnect),
    /// Accept TCP connections, then send or receive.
    TcpListen(TcpListen),
    /// Send back whatever the first source sends.
    EchoServe(EchoServe),
    /// Send probes and time their replies.
    EchoProbe(EchoProbe),
}

/// Sends datagrams of one size to one destination, each at its intended time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpSend {
    /// Where the datagrams go.
    #[serde(with = "text")]
    pub destination: SocketAddr,
    /// The local port; the system chooses where there is none.
    #[serde(default)]
    pub source_port: Option<u16>,
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
    /// SO_SNDBUF in bytes; the system's default where there is none.
    #[serde(default)]
    pub socket_buffer: Option<u32>,
}

/// Receives the datagrams of one session from the first source that sends any.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpReceive {
    /// Where to listen; port 0 lets the system choose.
    #[serde(with = "text")]
    pub bind: SocketAddr,
    /// Tag of the datagrams that count.
    pub session: u16,
    /// The sender's schedule, in this node's clock.
    pub schedule: Schedule,
    /// How long to wait for stragglers after the end of the schedule, ns. Ends early when nothing came for a quarter of it.
    #[serde(default = "default_linger")]
    pub linger: u64,
    /// Which receive timestamps to use.
    #[serde(default)]
    pub timestamps: Timestamps,
    /// SO_RCVBUF in bytes; 4 MiB where there is none, so that the receiver's own pauses lose nothing.
    #[serde(default)]
    pub socket_buffer: Option<u32>,
}

/// Opens TCP connections to a [`TcpListen`] job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpConnect {
    /// The listener's address, or that of a port forwarded to it.
    #[serde(with = "text")]
    pub destination: SocketAddr,
    /// Tag that the listener must share.
    pub session: u16,
    /// When to send.
    pub schedule: Schedule,
    /// Whether this end sends or receives.
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
    /// Tag that the connecting end must share; other connections are closed.
    pub session: u16,
    /// When to send.
    pub schedule: Schedule,
    /// Whether this end sends or receives.
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
    /// What is written.
    pub content: Content,
    /// TCP_NODELAY.
    #[serde(default)]
    pub no_delay: bool,
    /// TCP_CONGESTION, such as `cubic`; the system's default where there is none.
    #[serde(default)]
    pub congestion_control: Option<String>,
    /// SO_SNDBUF and SO_RCVBUF in bytes; the system tunes them itself where there is none.
    #[serde(default)]
    pub socket_buffer: Option<u32>,
    /// TCP_MAXSEG in bytes; from the path MTU where there is none.
    #[serde(default)]
    pub mss: Option<u32>,
}

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
    /// When to end at the latest, ns after the start of the job.
    pub deadline: u64,
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

/// What the payload is made of; it decides what a compressing tunnel can save.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// Zero bytes: as compressible as can be.
    Zeros,
    /// Incompressible bytes, the same in every run, repeated no sooner than compressors can see.
    Random,
    /// These bytes, repeated.
    Pattern {
        /// 1 to 65536 bytes.
        data: ByteBuf,
    },
}

/// Which end of a TCP stream a job is, whoever connects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Writes.
    Send,
    /// Reads.
    Receive,
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

/// Where a receive time comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Timestamps {
    /// SO_TIMESTAMPNS: when the packet entered this node from its last link. On a node that decrypts the packet itself
    /// this is before the decryption.
    #[default]
    Kernel,
    /// When the receiver read the datagram: includes everything, also the receiver's own waiting for a processor.
    User,
}

fn default_linger() -> u64 {
    500_000_000
}

fn default_connect_timeout() -> u64 {
    3_000_000_000
}

/// Socket addresses as text (`10.0.0.1:5201`, `[fd00::1]:5201`) in every encoding.
pub(crate) mod text {
    use std::net::SocketAddr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(
        address: &SocketAddr,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(address)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|_| D::Error::custom(format!("`{text}` is not an IP address and port")))
    }
}
