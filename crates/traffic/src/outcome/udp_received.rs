//! What a UDP receiver received.

use serde::{Deserialize, Serialize};

use crate::job::Timestamps;
use crate::outcome::FlowReport;

/// What a UDP receiver received.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpReceived {
    /// The timestamps that were really used.
    pub timestamps: Timestamps,
    /// The receive buffer that the system granted, bytes.
    pub socket_buffer: u64,
    /// What arrived of the flow.
    pub flow: Box<FlowReport>,
    /// Datagrams of another session or source, or without a valid header.
    pub foreign: u64,
    /// Dropped in the measured window because the receive buffer was full: the receiver's fault and not the network's.
    pub buffer_drops: u64,
    /// By how much the node's CLOCK_REALTIME was stepped during the job, ns.
    pub clock_step: i64,
}
