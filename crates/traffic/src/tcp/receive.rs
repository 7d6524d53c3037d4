//! Receives from one TCP stream, in bulk or in messages.

use std::io::Read;
use std::sync::atomic::Ordering;

use crate::account::{FlowAccount, Observed};
use crate::error::TrafficError;
use crate::outcome::{TcpReceived, TcpReceivedStream};
use crate::processor::ProcessorMeter;
use crate::schedule::Schedule;
use crate::series::ArrivalCounter;
use crate::tcp::ending::HANG_UP;
use crate::tcp::flow::{Stream, Trial, is_waiting};
use crate::tcp::message::{Message, MessageReader};

/// Length of a step of the series, ns.
const SERIES_STEP: u64 = 100_000_000;

const READ_BYTES: usize = 256 * 1024;

/// What one stream carried.
pub(super) struct ReceivedStream {
    total_bytes: u64,
    processor: u64,
    arrivals: ArrivalCounter,
    messages: Option<FlowAccount>,
}

/// What is done with the bytes that arrive.
enum Reader {
    Bulk,
    Messages(Box<(MessageReader, FlowAccount)>),
}

impl Reader {
    fn new(trial: Trial) -> Result<Self, TrafficError> {
        if trial.options.messages.is_none() {
            return Ok(Self::Bulk);
        }
        let account = FlowAccount::new(trial.schedule, SERIES_STEP)?;
        Ok(Self::Messages(Box::new((
            MessageReader::default(),
            account,
        ))))
    }

    fn take(&mut self, stream: &Stream, now: i64, piece: &[u8]) -> Result<(), TrafficError> {
        match self {
            Self::Bulk => {}
            Self::Messages(messages) => {
                let (reader, account) = messages.as_mut();
                let complete = |message: Message| {
                    let intended = message.intended as i64;
                    account.observe(&Observed {
                        sequence: message.sequence,
                        intended,
                        sent: message
                            .lateness
                            .map(|lateness| intended + i64::from(lateness)),
                        arrived: now,
                        bytes: message.bytes.into(),
                    });
                };
                let strange = |_| stream.broken(now, "what it sends is not messages of this job");
                reader.push(piece, complete).map_err(strange)?;
            }
        }
        Ok(())
    }
}

/// Reads until the schedule ends, or until the stream does where all that was sent counts.
pub(super) fn receive(trial: Trial, stream: &Stream) -> Result<ReceivedStream, TrafficError> {
    let mut buffer = vec![0; READ_BYTES];
    let mut reader = Reader::new(trial)?;
    let mut arrivals = ArrivalCounter::new(trial.schedule, SERIES_STEP);
    let mut processor = ProcessorMeter::new(trial.schedule);
    let mut total_bytes = 0;
    loop {
        let outcome = (&stream.socket).read(&mut buffer);
        let now = trial.timeline.elapsed();
        processor.look(now);
        match outcome {
            Ok(0) if trial.may_end(now) => break,
            Ok(0) => return Err(stream.broken(now, "the other end hung up")),
            Ok(read) => {
                total_bytes += read as u64;
                trial.stop.received(0, read as u64);
                arrivals.add(now, read as u64);
                reader.take(stream, now, &buffer[..read])?;
            }
            Err(failure) if is_waiting(&failure) => {}
            Err(_) if trial.may_end(now) => break,
            Err(failure) => return Err(stream.broken(now, &failure.to_string())),
        }
        if trial.is_over(now)? && !still_listens(trial, now) {
            break;
        }
    }
    Ok(ReceivedStream {
        total_bytes,
        processor: processor.finish(),
        arrivals,
        messages: match reader {
            Reader::Bulk => None,
            Reader::Messages(messages) => Some(messages.1),
        },
    })
}

/// Whether what was under way when the schedule ended may still come in.
fn still_listens(trial: Trial, now: i64) -> bool {
    let is_in_time = now < trial.schedule.end() + HANG_UP.as_nanos() as i64;
    is_in_time && !trial.stop.load(Ordering::Relaxed)
}

/// The sum of all streams; an error where nothing was carried.
pub(super) fn sum(
    schedule: Schedule,
    mut streams: Vec<ReceivedStream>,
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
    let messages = streams.iter_mut().find_map(|stream| stream.messages.take());
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
        messages: messages.map(FlowAccount::finish),
    })
}
