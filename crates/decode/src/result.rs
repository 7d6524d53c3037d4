//! What decoding gives.

use std::path::PathBuf;

use serde::Serialize;
use tunnelbench_packet_log::{Clock, LogSchedule};
use tunnelbench_traffic::outcome::FlowReport;

use crate::summary::Summary;

/// Some logs, decoded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decoded {
    /// Each log, in the order asked for.
    pub logs: Vec<DecodedLog>,
    /// All flows of all logs together.
    pub total: Summary,
}

/// One log, decoded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecodedLog {
    /// Where it is.
    pub path: PathBuf,
    /// The version of the program that wrote it.
    pub version: String,
    /// Packets in it.
    pub records: u64,
    /// Packets missing from it because the disk was too slow.
    pub dropped_records: u64,
    /// Whether it was finished; the log of a killed run lacks its last packets.
    pub complete: bool,
    /// What was sent when, and which part of it the figures are of.
    pub schedule: LogSchedule,
    /// How sender's and receiver's clocks relate; every delay may be wrong by its uncertainty.
    pub clock: Option<Clock>,
    /// Each flow, by its number.
    pub flows: Vec<DecodedFlow>,
}

/// One flow of a log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DecodedFlow {
    /// Its number.
    pub flow: u16,
    /// Its name, where it has one.
    pub name: Option<String>,
    /// Packets sent in the measured window, by the sender's log.
    pub sent: Option<u64>,
    /// What D-ITG's decoder prints.
    pub summary: Summary,
    /// Everything that the engine knows of a flow.
    pub report: FlowReport,
}
