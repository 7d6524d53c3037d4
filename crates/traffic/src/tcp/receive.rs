//! Receives from one TCP stream.

use std::io::Read;

use crate::error::TrafficError;
use crate::job::Side;
use crate::outcome::{TcpReceived, TcpReceivedStream};
use crate::processor::ProcessorMeter;
use crate::schedule::Schedule;
use crate::series::ArrivalCounter;
use crate::tcp::flow::{HANG_UP, Stream, Trial, is_waiting};
use crate::tcp::wakeups::Wakeups;

/// Length of a step of the series, ns.
const SERIES_STEP: u64 = 100_000_000;

const READ_BYTES: usize = 256 * 1024;

/// What one stream carried.
pub(super) struct ReceivedStream {
    total_bytes: u64,
    processor: u64,
    arrivals: ArrivalCounter,
}

/// Reads until the schedule ends.
pub(super) fn receive(trial: Trial, stream: &Stream) -> Result<ReceivedStream, TrafficError> {
    let mut buffer = vec![0; READ_BYTES];
    let mut arrivals = ArrivalCounter::new(trial.schedule, SERIES_STEP);
    let mut processor = ProcessorMeter::new(trial.schedule);
    let mut wakeups = Wakeups::new(&stream.socket);
    let mut total_bytes = 0;
    loop {
        let outcome = (&stream.socket).read(&mut buffer);
        let now = trial.timeline.elapsed();
        processor.look(now);
        match outcome {
            Ok(0) if now >= trial.schedule.measured_to() => break,
            Ok(0) => return Err(stream.broken(now, "the other end hung up")),
            Ok(read) => {
                total_bytes += read as u64;
                arrivals.add(now, read as u64);
                wakeups.read(now, read);
            }
            Err(failure) if is_waiting(&failure) => {}
            Err(_) if now >= trial.schedule.measured_to() => break,
            Err(failure) => return Err(stream.broken(now, &failure.to_string())),
        }
        if trial.is_over(now)? && (trial.side == Side::Receive || is_drained(trial, now)) {
            break;
        }
    }
    Ok(ReceivedStream {
        total_bytes,
        processor: processor.finish(),
        arrivals,
    })
}

/// Whether an end that also sends has read long enough for what was under way when the schedule ended: without that,
/// its hanging up would cut the other end's stream short.
fn is_drained(trial: Trial, now: i64) -> bool {
    now >= trial.schedule.end() + HANG_UP.as_nanos() as i64
}

/// The sum of all streams; an error where nothing was carried.
pub(super) fn sum(
    schedule: Schedule,
    streams: &[ReceivedStream],
) -> Result<TcpReceived, TrafficError> {
    let mut all = ArrivalCounter::new(schedule, SERIES_STEP);
    streams
        .iter()
        .for_each(|stream| all.merge(&stream.arrivals));
    if all.measured().bytes == 0 {
        return Err(TrafficError::NothingCarried(
            "no byte arrived over TCP in the measured window".into(),
        ));
    }
    Ok(TcpReceived {
        measured_bytes: all.measured().bytes,
        total_bytes: streams.iter().map(|stream| stream.total_bytes).sum(),
        streams: streams
            .iter()
            .map(|stream| TcpReceivedStream {
                measured_bytes: stream.arrivals.measured().bytes,
                processor: stream.processor,
            })
            .collect(),
        series: all.stream(),
        longest_gap: streams
            .iter()
            .map(|stream| stream.arrivals.longest_gap())
            .max()
            .unwrap_or(0),
    })
}
