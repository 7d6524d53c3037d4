//! What the ends of TCP streams did.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::outcome::{FlowReport, Series, Tally};

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

/// What a TCP sender handed to the system, and what the system told of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpSent {
    /// Bytes written in the measured window, all streams.
    pub measured_bytes: u64,
    /// Bytes written in all phases.
    pub total_bytes: u64,
    /// The congestion control in use.
    pub congestion_control: String,
    /// Segments retransmitted in the measured window, all streams.
    pub retransmits: u64,
    /// Segments with payload sent in the measured window, retransmissions included, all streams; none where Linux
    /// doesn't tell.
    pub segments: Option<u64>,
    /// The smallest round trip that Linux saw in its last minutes, of all streams, ns.
    pub minimum_round_trip: Option<u64>,
    /// The sampled round trips of all streams in the measured window.
    pub round_trip: Option<Histogram>,
    /// Time between two samples, ns.
    pub step: u64,
    /// Each stream.
    pub streams: Vec<TcpSentStream>,
    /// Of a job with messages.
    pub messages: Option<MessagesSent>,
}

/// The messages that a sender handed to the system in whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessagesSent {
    /// Due in the measured window.
    pub measured: Tally,
    /// In all phases.
    pub total: Tally,
    /// How long the first message that was left at the end of the schedule had been due then, ns: above 0 TCP was too
    /// slow for the messages.
    pub behind: u64,
    /// Departure minus intended departure in the measured window; none where nothing was due.
    pub departure_error: Option<Histogram>,
}

/// What one stream sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpSentStream {
    /// Bytes written in the measured window.
    pub measured_bytes: u64,
    /// Processor time of its sending thread in the measured window, ns.
    pub processor: u64,
    /// TCP_INFO at the end of the schedule.
    pub end: TcpInformation,
    /// TCP_INFO over time.
    pub samples: TcpSamples,
}

/// What Linux says about a TCP connection (TCP_INFO).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpInformation {
    /// Smoothed round-trip time (RFC 6298), ns.
    pub round_trip: u64,
    /// Its mean deviation, ns.
    pub round_trip_deviation: u64,
    /// The smallest round trip that Linux saw in its last minutes, ns.
    pub minimum_round_trip: Option<u64>,
    /// Congestion window, segments.
    pub congestion_window: u64,
    /// Segments sent and not yet acknowledged.
    pub unacked: u64,
    /// Segments retransmitted so far.
    pub retransmits: u64,
    /// Segments with payload sent so far, retransmissions included.
    pub segments: Option<u64>,
    /// Sending maximum segment size, bytes.
    pub segment_bytes: u64,
    /// How fast Linux lets segments leave, bits per second; none where it sets no limit.
    pub pacing_rate: Option<u64>,
    /// How fast the receiver last got data, as Linux estimates it from acknowledgements, bits per second.
    pub delivery_rate: Option<u64>,
}

/// [`TcpInformation`] of one stream in equal steps from the start of the schedule to its end. A value is missing where
/// the sampler was held up for a whole step, or where Linux has none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpSamples {
    /// ns.
    pub round_trip: Vec<Option<u64>>,
    /// ns.
    pub round_trip_deviation: Vec<Option<u64>>,
    /// Segments.
    pub congestion_window: Vec<Option<u64>>,
    /// Segments.
    pub unacked: Vec<Option<u64>>,
    /// Segments since the connection was opened.
    pub retransmits: Vec<Option<u64>>,
    /// Bits per second.
    pub pacing_rate: Vec<Option<u64>>,
    /// Bits per second.
    pub delivery_rate: Vec<Option<u64>>,
}

/// What a TCP receiver read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpReceived {
    /// Bytes read in the measured window, all streams: throughput comes from these.
    pub measured_bytes: u64,
    /// Bytes read in all phases.
    pub total_bytes: u64,
    /// Each stream.
    pub streams: Vec<TcpReceivedStream>,
    /// All streams in steps.
    pub series: Series,
    /// The longest time in the measured window in which nothing arrived on one stream, ns.
    pub longest_gap: u64,
    /// The account of all messages of a job with messages; a message arrives with its last byte.
    pub messages: Option<FlowReport>,
}

/// What one stream received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpReceivedStream {
    /// Bytes read in the measured window.
    pub measured_bytes: u64,
    /// Processor time of its receiving thread in the measured window, ns.
    pub processor: u64,
}
