//! What arrived of a flow of datagrams.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::outcome::Tally;
use crate::voice::{Codec, JITTER_BUFFER, VoiceQuality, burst_ratio};

/// What arrived of a flow of datagrams, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Unique datagrams whose *intended* time lies in the measured window, whenever they arrived.
    pub measured: Tally,
    /// Further copies of those (RFC 5560).
    pub duplicates: u64,
    /// Of `measured`, those with a sequence number below the next expected (type-P-reordered, RFC 4737 section 3).
    pub reordered: u64,
    /// How far these were out of order, in packets: how many arrivals ago the first with a higher number came (RFC 4737
    /// section 4.2); none where nothing was reordered.
    pub reordering_extent: Option<Histogram>,
    /// How long ago that was (late time offset, RFC 4737 section 4.3).
    pub late_time_offset: Option<Histogram>,
    /// Of `reordered`, those that came after so many further gaps in the sequence that their extent is not known.
    pub extent_unknown: u64,
    /// Intended in the measured window, but so far behind the newest that duplicates cannot be told; in no other count but `total`.
    pub beyond_window: u64,
    /// Runs of datagrams that never arrived.
    pub loss: LossBursts,
    /// Inter-arrival jitter (RFC 3550 section 6.4.1) after the last datagram of `measured`, ns; none with fewer than two.
    pub jitter_last: Option<f64>,
    /// The mean of that jitter over all datagrams of `measured`, ns.
    pub jitter_mean: Option<f64>,
    /// Arrival minus intended departure of `measured` (RFC 7679); none where nothing arrived.
    pub delay: Option<Histogram>,
    /// Delay variation of neighbours of `measured` (RFC 3393); none where no two neighbours arrived.
    pub ipdv: Option<DelayVariation>,
    /// Delay minus the smallest delay of `measured` (RFC 5481 section 4.2); none where nothing arrived.
    pub pdv: Option<Histogram>,
    /// Unique datagrams by *arrival* in the measured window: throughput and packet rate come from these.
    pub arrived: Tally,
    /// The same and more over the whole schedule, in steps.
    pub series: FlowSeries,
    /// The longest time in the measured window in which nothing arrived, ns.
    pub longest_gap: u64,
    /// Datagrams of the flow in all phases, duplicates included.
    pub total: Tally,
}

impl FlowReport {
    /// How good a voice call the flow would be; none where nothing arrived.
    ///
    /// A datagram that comes more than [`JITTER_BUFFER`] after the quickest is as good as lost. Losses are those of
    /// `loss`, and so those between the first and the last that arrived.
    #[must_use]
    pub fn voice(&self, codec: Codec) -> Option<VoiceQuality> {
        let (delay, pdv) = (self.delay.as_ref()?, self.pdv.as_ref()?);
        let expected = self.loss.expected as f64;
        let lost = self.loss.lost as f64;
        let late = pdv.count_above(JITTER_BUFFER)? as f64;
        let bursts = burst_ratio(self.loss.mean.unwrap_or(1.0), lost / expected);
        let quality = VoiceQuality::of(codec, delay.min, (lost + late) / expected, bursts);
        Some(quality)
    }
}

/// Runs of lost datagrams, as far as the sequence shows them: between the lowest and the highest number of `measured`.
///
/// A datagram that arrives late is not lost in the end, but one that came `beyond_window` is. What is lost before the
/// first and after the last that arrived is seen by none, so that loss as a ratio is to be had from what was sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LossBursts {
    /// Numbers from the lowest to the highest.
    pub expected: u64,
    /// Of those, missing in the end.
    pub lost: u64,
    /// Runs of consecutive missing numbers.
    pub bursts: u64,
    /// Their mean length; none where nothing was lost.
    pub mean: Option<f64>,
    /// The longest.
    pub longest: u64,
    /// BurstR of the E-model (ITU-T G.107; McGowan 2005): the mean length by that of independent losses of the same
    /// ratio. Above 1 the losses come in bursts.
    pub ratio: Option<f64>,
}

/// By how much the delay of a datagram exceeds that of the one sent before it (RFC 3393): of all pairs of consecutive
/// sequence numbers that both arrived, except pairs of which one came more than 16 384 numbers late.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DelayVariation {
    /// The absolute values. Their mean is what D-ITG calls average jitter.
    pub absolute: Histogram,
    /// How many of the values are negative.
    pub negative: u64,
    /// Mean with the sign, ns.
    pub mean: f64,
    /// Lowest, ns.
    pub min: i64,
    /// Highest, ns.
    pub max: i64,
}

/// Unique datagrams by their arrival, in equal steps from the start of the schedule to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSeries {
    /// Length of a step, ns.
    pub step: u64,
    /// Payload bytes of each step.
    pub bytes: Vec<u64>,
    /// Datagrams of each step.
    pub packets: Vec<u64>,
    /// By how much the next expected number rose in each step, less the datagrams that arrived in it (RFC 3550 section
    /// A.3): the gaps that showed in it. Negative where datagrams came late that were missing in an earlier step.
    pub lost: Vec<i64>,
    /// Smallest delay of each step, ns; none where nothing arrived.
    pub delay_min: Vec<Option<i64>>,
    /// Mean delay of each step, ns.
    pub delay_mean: Vec<Option<f64>>,
    /// Largest delay of each step, ns.
    pub delay_max: Vec<Option<i64>>,
    /// Inter-arrival jitter at the end of each step, ns; none where nothing measured arrived in it.
    pub jitter: Vec<Option<f64>>,
}
