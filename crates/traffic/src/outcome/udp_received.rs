//! What a UDP receiver received.

use serde::{Deserialize, Serialize};

use crate::job::Timestamps;
use crate::outcome::FlowReport;
use crate::voice::VoiceQuality;

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
    /// System calls that received something, in all phases.
    pub receive_calls: u64,
    /// Datagrams, in all phases, that the kernel handed over together as one large packet. Where there are none, each
    /// datagram was a packet of its own all the way.
    pub coalesced: u64,
    /// Processor time that the receiving thread took in the measured window, ns.
    pub processor: u64,
    /// How good a voice call the flow would be; none where the job names no codec, or nothing arrived.
    pub voice: Option<VoiceQuality>,
    /// Records that are not in the packet log because it could not be written as fast as they came; none without a log.
    pub log_dropped: Option<u64>,
    /// By how much the node's CLOCK_REALTIME was stepped during the job, ns.
    pub clock_step: i64,
}
