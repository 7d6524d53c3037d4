//! What a UDP sender sent.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::job::SendMode;
use crate::outcome::Tally;

/// What a UDP sender sent. Loss is `1 - received.measured.packets / sent.measured.packets`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UdpSent {
    /// How datagrams were really handed to the system, and the most that were put together.
    pub mode: SendMode,
    /// Payload bits per second that were due in the measured window; none where departures were `max`. A sender that
    /// did not keep up achieved less.
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
    /// Departure minus intended time in the measured window; none where departures were `max` or nothing was sent.
    pub departure_error: Option<Histogram>,
    /// Processor time that the sending thread took in the measured window, ns.
    pub processor: u64,
    /// By how much the node's CLOCK_REALTIME was stepped during the job, ns.
    pub clock_step: i64,
}
