//! Sends over one TCP stream, in bulk or in messages.

use crate::content::Material;
use crate::error::TrafficError;
use crate::job::{Messages, TcpOptions};
use crate::outcome::{MessagesSent, TcpInformation, TcpSent, TcpSentStream};
use crate::processor::ProcessorMeter;
use crate::schedule::Schedule;
use crate::tcp::ending::hear_out;
use crate::tcp::flow::{Stream, Trial};
use crate::tcp::information::information;
use crate::tcp::sampling::{Sampled, SampledStream};
use crate::tcp::{bulk, message_send};

/// What there is to send.
pub(super) enum Payload<'a> {
    /// Write after write of this, which is a multiple of the write size, over and over.
    Bulk(Vec<u8>),
    /// Messages with this content.
    Messages(&'a Messages, &'a Material),
}

impl<'a> Payload<'a> {
    pub fn new(options: &'a TcpOptions, material: &'a Material) -> Self {
        if let Some(messages) = &options.messages {
            return Self::Messages(messages, material);
        }
        let write_bytes = options.write_bytes as usize;
        let mut content = vec![0; material.period().div_ceil(write_bytes) * write_bytes];
        material.fill(0, &mut content);
        Self::Bulk(content)
    }
}

/// What one stream carried.
pub(super) struct SentStream {
    measured_bytes: u64,
    total_bytes: u64,
    processor: u64,
    end: TcpInformation,
    messages: Option<MessagesSent>,
}

/// How far one stream is.
pub(super) struct Progress {
    schedule: Schedule,
    processor: ProcessorMeter,
    measured_bytes: u64,
    pub total_bytes: u64,
}

impl Progress {
    /// Takes note that `bytes` had been written at `now`.
    pub fn wrote(&mut self, now: i64, bytes: u64) {
        self.processor.look(now);
        self.total_bytes += bytes;
        if self.schedule.measures(now) {
            self.measured_bytes += bytes;
        }
    }
}

/// Sends until the schedule ends.
pub(super) fn send(
    trial: Trial,
    stream: &Stream,
    payload: &Payload,
) -> Result<SentStream, TrafficError> {
    let mut progress = Progress {
        schedule: trial.schedule,
        processor: ProcessorMeter::new(trial.schedule),
        measured_bytes: 0,
        total_bytes: 0,
    };
    // A coarser timer would add its slack to every departure.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    if !trial.wait_until(0) {
        return Err(TrafficError::Stopped);
    }
    let messages = match payload {
        Payload::Bulk(content) => {
            bulk::send(trial, stream, content, &mut progress)?;
            None
        }
        Payload::Messages(messages, material) => Some(message_send::send(
            trial,
            stream,
            messages,
            material,
            &mut progress,
        )?),
    };
    let sent = SentStream {
        measured_bytes: progress.measured_bytes,
        total_bytes: progress.total_bytes,
        processor: progress.processor.finish(),
        end: information(&stream.socket)
            .map_err(TrafficError::io("read TCP_INFO of a connection"))?,
        messages,
    };
    hear_out(&stream.socket);
    Ok(sent)
}

/// What all streams carried; an error where that is nothing.
pub(super) fn sum(
    mut sent: Vec<SentStream>,
    sampled: Sampled,
    congestion_control: String,
) -> Result<TcpSent, TrafficError> {
    let measured_bytes = sent.iter().map(|stream| stream.measured_bytes).sum();
    if measured_bytes == 0 {
        return Err(TrafficError::NothingCarried(
            "TCP took no byte in the measured window".into(),
        ));
    }
    let seen = &sampled.streams;
    Ok(TcpSent {
        measured_bytes,
        total_bytes: sent.iter().map(|stream| stream.total_bytes).sum(),
        congestion_control,
        retransmits: seen.iter().map(SampledStream::retransmits).sum(),
        segments: seen.iter().map(SampledStream::segments).sum(),
        minimum_round_trip: sent
            .iter()
            .filter_map(|stream| stream.end.minimum_round_trip)
            .min(),
        round_trip: sampled.round_trip,
        step: sampled.step,
        messages: sent.iter_mut().find_map(|stream| stream.messages.take()),
        streams: sent
            .into_iter()
            .zip(sampled.streams)
            .map(|(stream, sampled)| TcpSentStream {
                measured_bytes: stream.measured_bytes,
                processor: stream.processor,
                end: stream.end,
                samples: sampled.samples,
            })
            .collect(),
    })
}
