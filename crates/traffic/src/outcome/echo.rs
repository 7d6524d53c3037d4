//! What echo servers and probers saw.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::job::Timestamps;
use crate::outcome::{RoundTripSeries, Tally};

/// What an echo server sent back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Echoed {
    /// Sent back: datagrams, or reads of a TCP connection.
    pub echoed: Tally,
    /// Datagrams or connections from another source.
    pub foreign: u64,
}

/// What a prober saw. Loss is `1 - replies / sent`.
///
/// On a schedule, all counts but the totals and all distributions are of the probes whose *intended* departure lies in
/// the measured window; otherwise of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probed {
    /// Probes that left.
    pub sent: u64,
    /// Of those, answered in time.
    pub replies: u64,
    /// Sends or connection attempts that failed, and probes about which an ICMP error came back, such as destination
    /// unreachable, packet too big or time exceeded.
    pub failures: u64,
    /// Further copies of `replies` within the time limit.
    pub duplicates: u64,
    /// Of `replies`, those to a probe sent before one whose reply came earlier (type-P-reordered, RFC 4737 section 3).
    pub reordered: u64,
    /// Due and never sent, because the prober was more than 10 ms behind.
    pub skipped: u64,
    /// From the real departure, just before the system call, to the arrival (RFC 2681): the time on the way; none
    /// without replies.
    pub round_trip: Option<Histogram>,
    /// From the *intended* departure to the arrival: a prober that is held up hides no waiting. None without replies,
    /// and without an interval, where every departure is intended for the moment it happens.
    pub round_trip_from_intended: Option<Histogram>,
    /// From the start of the job, or of the schedule, to the first reply, ns; none without any.
    pub first_reply_after: Option<u64>,
    /// Where the arrival times come from.
    pub timestamps: Timestamps,
    /// Each probe and its reply in the step of the probe's intended departure.
    pub series: RoundTripSeries,
    /// Probes that left in all phases.
    pub total_sent: u64,
    /// Replies in time in all phases.
    pub total_replies: u64,
    /// Replies after the time limit, in all phases.
    pub late: u64,
    /// Processor time of the prober in the measured window, ns.
    pub processor: u64,
}
