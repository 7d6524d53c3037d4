//! The figures that D-ITG's decoder prints, of one flow or of several together.

use serde::Serialize;
use tunnelbench_traffic::outcome::FlowReport;

/// What ITGDec prints of a flow and in total. Everything is of the packets that were due in the measured window, each
/// counted once; delays count from when a packet was due.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// From the first arrival to the last, ns.
    pub total_time: u64,
    /// That arrived.
    pub packets: u64,
    /// Their delay; none where nothing arrived.
    pub delay: Option<DelaySummary>,
    /// The mean of by how much the delays of consecutive packets differ, ns; none where no two arrived.
    pub average_jitter: Option<f64>,
    /// Payload that arrived.
    pub bytes: u64,
    /// Payload by total time, bits/s; none without such a time.
    pub average_bitrate: Option<f64>,
    /// Packets by total time, per second.
    pub average_packet_rate: Option<f64>,
    /// That never arrived: by the sender's log where there is one, else as far as the sequence shows.
    pub dropped: u64,
    /// Those by all that were sent; none where nothing was.
    pub dropped_ratio: Option<f64>,
    /// Mean number of packets lost one after the other; none where nothing was lost.
    pub average_loss_burst: Option<f64>,
}

/// One-way delay, ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DelaySummary {
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Mean.
    pub average: f64,
    /// Standard deviation.
    pub deviation: f64,
}

/// What is summed up of one flow.
pub(crate) struct Part<'a> {
    pub report: &'a FlowReport,
    /// First and last arrival, ns since the epoch; none where nothing arrived.
    pub span: Option<(i64, i64)>,
    /// How many packets were sent in the measured window, where that is known.
    pub sent: Option<u64>,
}

impl Summary {
    /// Of all parts together. As in ITGDec the total time runs from the first arrival of any to the last of any.
    pub(crate) fn of(parts: &[Part<'_>]) -> Self {
        let sum = |value: fn(&FlowReport) -> u64| {
            parts.iter().map(|part| value(part.report)).sum::<u64>()
        };
        let packets = sum(|report| report.measured.packets);
        let bytes = sum(|report| report.measured.bytes);
        let first = parts
            .iter()
            .filter_map(|part| part.span)
            .map(|span| span.0)
            .min();
        let last = parts
            .iter()
            .filter_map(|part| part.span)
            .map(|span| span.1)
            .max();
        let total_time = first
            .zip(last)
            .map_or(0, |(first, last)| last.abs_diff(first));
        let seconds = (total_time > 0).then_some(total_time as f64 / 1e9);
        let dropped: u64 = parts.iter().map(Part::dropped).sum();
        let expected = packets + dropped;
        let bursts = sum(|report| report.loss.bursts);
        let in_bursts = sum(|report| report.loss.lost);
        Self {
            total_time,
            packets,
            delay: delay(parts),
            average_jitter: average_jitter(parts),
            bytes,
            average_bitrate: seconds.map(|seconds| bytes as f64 * 8.0 / seconds),
            average_packet_rate: seconds.map(|seconds| packets as f64 / seconds),
            dropped,
            dropped_ratio: (expected > 0).then(|| dropped as f64 / expected as f64),
            average_loss_burst: (bursts > 0).then(|| in_bursts as f64 / bursts as f64),
        }
    }
}

impl Part<'_> {
    fn dropped(&self) -> u64 {
        match self.sent {
            Some(sent) => sent.saturating_sub(self.report.measured.packets),
            None => self.report.loss.lost,
        }
    }
}

/// Mean and deviation of several samples together follow from those of each.
fn delay(parts: &[Part<'_>]) -> Option<DelaySummary> {
    let delays: Vec<_> = parts
        .iter()
        .filter_map(|part| part.report.delay.as_ref())
        .collect();
    let count: f64 = delays.iter().map(|delay| delay.count as f64).sum();
    let average = delays
        .iter()
        .map(|delay| delay.mean * delay.count as f64)
        .sum::<f64>()
        / count;
    let squares = delays.iter().map(|delay| {
        (delay.deviation.powi(2) + (delay.mean - average).powi(2)) * delay.count as f64
    });
    let variance = squares.sum::<f64>() / count;
    Some(DelaySummary {
        min: delays
            .iter()
            .map(|delay| delay.min as f64)
            .reduce(f64::min)?,
        max: delays
            .iter()
            .map(|delay| delay.max as f64)
            .reduce(f64::max)?,
        average,
        deviation: variance.sqrt(),
    })
}

fn average_jitter(parts: &[Part<'_>]) -> Option<f64> {
    let absolute = parts
        .iter()
        .filter_map(|part| part.report.ipdv.as_ref())
        .map(|ipdv| &ipdv.absolute);
    let (sum, count) = absolute.fold((0.0, 0), |(sum, count), values| {
        (
            sum + values.mean * values.count as f64,
            count + values.count,
        )
    });
    (count > 0).then(|| sum / count as f64)
}
