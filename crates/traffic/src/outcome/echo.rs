//! What echo servers and probers saw.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::outcome::Tally;

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
