//! What the ends of TCP streams did.

use serde::{Deserialize, Serialize};

use crate::outcome::Series;

/// What one end of a TCP job did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpCarried {
    /// Connections that were not of this job and were closed.
    pub foreign: u64,
    /// By how much the node's CLOCK_REALTIME was stepped during the job, ns.
    pub clock_step: i64,
    /// What it sent and received.
    pub flow: TcpFlow,
}

/// A TCP end's figures: one or both, as its [`crate::job::Side`] says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpFlow {
    /// Of what it sent.
    pub sent: Option<TcpSent>,
    /// Of what it received.
    pub received: Option<TcpReceived>,
}

/// What a TCP sender handed to the system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpSent {
    /// Bytes written in the measured window, all streams.
    pub measured_bytes: u64,
    /// Bytes written in all phases.
    pub total_bytes: u64,
    /// TCP_INFO of each stream at the end of the schedule.
    pub streams: Vec<TcpInformation>,
}

/// What Linux says about a TCP connection (TCP_INFO).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpInformation {
    /// Smoothed round-trip time, ns.
    pub round_trip: u64,
    /// Its mean deviation, ns.
    pub round_trip_deviation: u64,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Congestion window, segments.
    pub congestion_window: u64,
    /// Sending maximum segment size, bytes.
    pub segment_bytes: u64,
}

/// What a TCP receiver read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpReceived {
    /// Bytes read in the measured window, all streams: throughput comes from these.
    pub measured_bytes: u64,
    /// Bytes read in all phases.
    pub total_bytes: u64,
    /// `measured_bytes` of each stream.
    pub streams: Vec<u64>,
    /// All streams in steps.
    pub series: Series,
    /// The longest time in the measured window in which nothing arrived on one stream, ns.
    pub longest_gap: u64,
}
