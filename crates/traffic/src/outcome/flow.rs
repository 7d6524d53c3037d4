//! What arrived of a flow of datagrams.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::outcome::{Series, Tally};

/// What arrived of a flow of datagrams, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Unique datagrams whose *intended* time lies in the measured window, whenever they arrived.
    pub measured: Tally,
    /// Further copies of those (RFC 5560).
    pub duplicates: u64,
    /// Of `measured`, those with a sequence number below the next expected (type-P-reordered, RFC 4737 section 3).
    pub reordered: u64,
    /// Intended in the measured window, but so far behind the newest that duplicates cannot be told; in no other count but `total`.
    pub beyond_window: u64,
    /// Inter-arrival jitter (RFC 3550 section 6.4.1) after the last datagram of `measured`, ns; none with fewer than two.
    pub jitter_last: Option<f64>,
    /// The mean of that jitter over all datagrams of `measured`, ns.
    pub jitter_mean: Option<f64>,
    /// Arrival minus intended departure of `measured` (RFC 7679); none where nothing arrived.
    pub delay: Option<Histogram>,
    /// Unique datagrams by *arrival* in the measured window: throughput and packet rate come from these.
    pub arrived: Tally,
    /// The same over the whole schedule, in steps.
    pub series: Series,
    /// The longest time in the measured window in which nothing arrived, ns.
    pub longest_gap: u64,
    /// Datagrams of the flow in all phases, duplicates included.
    pub total: Tally,
}
