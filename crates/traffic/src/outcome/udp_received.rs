//! What a UDP receiver received.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::job::Timestamps;
use crate::outcome::{Series, Tally};

/// What a UDP receiver received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpReceived {
    /// The timestamps that were really used.
    pub timestamps: Timestamps,
    /// The receive buffer that the system granted, bytes.
    pub socket_buffer: u64,
    /// Unique datagrams whose *intended* time lies in the measured window, whenever they arrived.
    pub measured: Tally,
    /// Further copies of those.
    pub duplicates: u64,
    /// Of `measured`, those with a sequence number below the next expected (type-P-reordered, RFC 4737 section 3).
    pub reordered: u64,
    /// Intended in the measured window, but so far behind the newest that duplicates cannot be told; in no other count but `total`.
    pub beyond_window: u64,
    /// Inter-arrival jitter (RFC 3550 section 6.4.1) after the last datagram of `measured`, ns; none with fewer than two.
    pub jitter_last: Option<f64>,
    /// The mean of that jitter over all datagrams of `measured`, ns.
    pub jitter_mean: Option<f64>,
    /// Arrival minus intended departure of `measured`; none where nothing arrived.
    pub delay: Option<Histogram>,
    /// Unique datagrams by *arrival* in the measured window: throughput and packet rate come from these.
    pub arrived: Tally,
    /// The same over the whole schedule, in steps.
    pub series: Series,
    /// The longest time in the measured window in which nothing arrived, ns.
    pub longest_gap: u64,
    /// Datagrams of the session in all phases, duplicates included.
    pub total: Tally,
    /// Datagrams of another session or source, or without a valid header.
    pub foreign: u64,
    /// Dropped in the measured window because the receive buffer was full: the receiver's fault and not the network's.
    pub buffer_drops: u64,
    /// By how much the node's CLOCK_REALTIME was stepped during the job, ns.
    pub clock_step: i64,
}
