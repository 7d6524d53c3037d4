//! Sends messages, each at its intended time or as soon after it as TCP takes it.

use std::io::Write;

use crate::content::Material;
use crate::datagram::Header;
use crate::error::TrafficError;
use crate::histogram::Recorder;
use crate::job::Messages;
use crate::outcome::{MessagesSent, Tally};
use crate::process::Plan;
use crate::tcp::flow::{Stream, Trial, is_waiting};
use crate::tcp::message::{MESSAGE_BYTES, Message};
use crate::tcp::send::Progress;

impl Messages {
    /// All messages in their order.
    ///
    /// # Errors
    /// [`TrafficError::Invalid`] where departures or sizes make no sense.
    pub(super) fn plan(&self) -> Result<Plan, TrafficError> {
        Plan::new(&self.departures, &self.sizes, MESSAGE_BYTES, self.seed)
    }
}

/// Sends until the schedule ends. None is skipped: what TCP holds up leaves later, and its delay tells.
pub(super) fn send(
    trial: Trial,
    stream: &Stream,
    messages: &Messages,
    material: &Material,
    progress: &mut Progress,
) -> Result<MessagesSent, TrafficError> {
    let end = trial.schedule.end();
    let mut plan = messages.plan()?;
    let mut buffer = vec![0; *MESSAGE_BYTES.end() as usize];
    let mut departure_error = Recorder::new();
    let (mut measured, mut total) = (Tally::default(), Tally::default());
    let mut behind = 0;
    for sequence in 0_u32.. {
        let planned = plan.next();
        if let Some(due) = planned.due {
            trial.wait_until(i64::try_from(due).unwrap_or(i64::MAX).min(end));
        }
        let now = trial.timeline.elapsed();
        let due = planned
            .due
            .map_or(now, |due| i64::try_from(due).unwrap_or(i64::MAX));
        if trial.is_over(now)? {
            behind = end - due;
            break;
        }
        let message = &mut buffer[..planned.bytes as usize];
        let front = Header::length(message.len());
        material.fill(progress.total_bytes as usize, &mut message[front..]);
        Message {
            sequence,
            bytes: planned.bytes as u16,
            intended: due as u64,
            lateness: Some(u32::try_from(now - due).unwrap_or(u32::MAX)),
        }
        .write(message);
        if !write(trial, stream, message, progress)? {
            behind = end - due;
            break;
        }
        total.add(planned.bytes.into());
        if trial.schedule.measures(due) {
            measured.add(planned.bytes.into());
            departure_error.record(now - due);
        }
    }
    Ok(MessagesSent {
        measured,
        total,
        behind: u64::try_from(behind).unwrap_or(0),
        departure_error: departure_error.finish(),
    })
}

/// Writes a whole message; false where the schedule ended before that.
fn write(
    trial: Trial,
    stream: &Stream,
    mut message: &[u8],
    progress: &mut Progress,
) -> Result<bool, TrafficError> {
    loop {
        let outcome = (&stream.socket).write(message);
        let now = trial.timeline.elapsed();
        match outcome {
            Ok(written) => {
                progress.wrote(now, written as u64);
                message = &message[written..];
            }
            Err(failure) if is_waiting(&failure) => {}
            Err(_) if trial.may_end(now) => return Ok(false),
            Err(failure) => return Err(stream.broken(now, &failure.to_string())),
        }
        if message.is_empty() {
            return Ok(true);
        }
        if trial.is_over(now)? {
            return Ok(false);
        }
    }
}
