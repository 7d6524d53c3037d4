//! Receiving them.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::job::{SocketOptions, text};
use crate::schedule::Schedule;
use crate::voice::Codec;

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
    /// How long to wait for stragglers after the end of the schedule, ns. Ends early when nothing came for a sixteenth of
    /// it longer than ever before.
    #[serde(default = "default_linger")]
    pub linger: u64,
    /// Length of a step of the series, ns.
    #[serde(default = "default_step")]
    pub step: u64,
    /// Which receive timestamps to use.
    #[serde(default)]
    pub timestamps: Timestamps,
    /// The only address whose datagrams count, for one that is known; others are `foreign`.
    #[serde(default, with = "text::optional")]
    pub peer: Option<IpAddr>,
    /// The codec of the voice call that the flow stands for; none where it stands for no call.
    #[serde(default)]
    pub voice: Option<Codec>,
    /// Where to log every datagram of the flow that arrives, copies too, a file on the node of the job; none where there
    /// is no path.
    #[serde(default)]
    pub log: Option<PathBuf>,
    /// How the socket is set up. Its buffer has 4 MiB where there is none, so that the receiver's own pauses lose
    /// nothing.
    #[serde(default)]
    pub socket: SocketOptions,
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

fn default_step() -> u64 {
    100_000_000
}
