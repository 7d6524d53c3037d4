//! What the jobs found out. All times are in nanoseconds; sums are exact integers, so that ratios are the reader's.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::job::Timestamps;

/// The result of a [`crate::Job`], with the same `kind`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// Of a UDP sender.
    UdpSend(UdpSent),
    /// Of a UDP receiver.
    UdpReceive(UdpReceived),
    /// Of a connecting TCP end.
    TcpConnect(TcpCarried),
    /// Of a listening TCP end.
    TcpListen(TcpCarried),
    /// Of an echo server.
    EchoServe(Echoed),
    /// Of a prober.
    EchoProbe(Probed),
}

/// Datagrams and their payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// How many.
    pub packets: u64,
    /// UDP payload bytes, headers of the engine included.
    pub bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// What a UDP sender sent. Loss is `1 - received.measured.packets / sent.measured.packets`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpSent {
    /// Payload bits per second that were asked for; none where the rate was `max`.
    pub asked_rate: Option<f64>,
    /// Payload bits per second that left in the measured window.
    pub achieved_rate: f64,
    /// Sent with an intended time in the measured window.
    pub measured: Tally,
    /// Sent in all phases.
    pub total: Tally,
    /// Of `measured`, those that departed more than 1 ms after their intended time.
    pub late: u64,
    /// Due in the measured window and never sent, because the sender was more than 10 ms behind.
    pub skipped: u64,
    /// Due in the measured window and refused by the system (such as ENOBUFS).
    pub unsent: u64,
    /// System calls that failed and were counted instead of ending the job (such as ECONNREFUSED), in all phases.
    pub send_errors: u64,
    /// Departure minus intended time in the measured window; none where the rate was `max` or nothing was sent.
    pub departure_error: Option<Histogram>,
    /// By how much the node's CLOCK_REALTIME was stepped during the job, ns.
    pub clock_step: i64,
}

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

/// Arrivals in equal steps from the start of the schedule to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of a step, ns.
    pub step: u64,
    /// Payload bytes of each step.
    pub bytes: Vec<u64>,
    /// Datagrams of each step; none for TCP.
    pub packets: Option<Vec<u64>>,
}

/// What one end of a TCP job did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TcpCarried {
    /// Connections that were not of this job and were closed.
    pub foreign: u64,
    /// By how much the node's CLOCK_REALTIME was stepped during the job, ns.
    pub clock_step: i64,
    /// What it sent or received.
    pub flow: TcpFlow,
}

/// A TCP end's figures, tagged by [`crate::job::Side`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TcpFlow {
    /// A sender's.
    Send(TcpSent),
    /// A receiver's.
    Receive(TcpReceived),
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

/// What an echo server sent back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Echoed {
    /// Sent back: datagrams, or reads of a TCP connection.
    pub echoed: Tally,
    /// Datagrams or connections from another source.
    pub foreign: u64,
}

/// What a prober saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probed {
    /// Probes that left.
    pub sent: u64,
    /// Of those, answered in time.
    pub replies: u64,
    /// Sends or connection attempts that failed.
    pub failures: u64,
    /// Round-trip times of `replies` (RFC 2681); none without any.
    pub round_trip: Option<Histogram>,
    /// From the start of the job to the first reply, ns; none without any.
    pub first_reply_after: Option<u64>,
}
