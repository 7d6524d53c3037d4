//! The packet log of a job.

use std::collections::BTreeMap;
use std::path::Path;

use tunnelbench_packet_log::{LogHead, LogSchedule, LogWriter};

use crate::error::TrafficError;
use crate::schedule::Schedule;

/// The number of a job's only flow.
pub(crate) const FLOW: u16 = 0;

/// Starts the log of a job with one flow. To be called before a thread becomes a real-time one, which the log's own
/// thread would inherit.
pub(crate) fn create(
    path: &Path,
    schedule: Schedule,
    flow: String,
) -> Result<LogWriter, TrafficError> {
    let head = LogHead {
        version: env!("CARGO_PKG_VERSION").into(),
        schedule: LogSchedule {
            start_at: schedule.start_at,
            warm_up: schedule.warm_up,
            measure: schedule.measure,
            cool_down: schedule.cool_down,
        },
        flows: BTreeMap::from([(FLOW, flow)]),
        clock: None,
    };
    Ok(LogWriter::create(path, &head)?)
}
