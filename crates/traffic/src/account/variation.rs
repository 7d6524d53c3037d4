//! Delay variation between neighbours, and from the smallest delay.

use hdrhistogram::Histogram as HdrHistogram;

use crate::account::sequence::SequenceTracker;
use crate::histogram::{Histogram, Moments, Recorder, Unit, empty};
use crate::outcome::DelayVariation;

/// How far apart in the sequence two arrivals may be for their numbers' neighbourhood to be seen.
pub(super) const REMEMBERED_DELAYS: u64 = 1 << 14;

/// In the place of the delay of a datagram that does not count.
const NOT_MEASURED: i64 = i64::MIN;

/// IPDV (RFC 3393) of all pairs of consecutive numbers that both arrived, in whichever order.
pub(super) struct NeighbourVariation {
    /// Delay of each of the last numbers, at the number modulo [`REMEMBERED_DELAYS`].
    delays: Vec<i64>,
    absolute: Recorder,
    signed: Moments,
    negative: u64,
}

impl NeighbourVariation {
    pub fn new() -> Self {
        Self {
            delays: vec![NOT_MEASURED; REMEMBERED_DELAYS as usize],
            absolute: Recorder::new(),
            signed: Moments::new(),
            negative: 0,
        }
    }

    /// `number` is the one after the highest so far; `delay` is none where it is not measured.
    pub fn next(&mut self, number: u64, delay: Option<i64>) {
        if number > 0 {
            self.pair(self.of(number - 1), delay);
        }
        self.remember(number, delay);
    }

    /// `number` is above the one that was expected.
    pub fn leapt(&mut self, number: u64, delay: Option<i64>) {
        self.remember(number, delay);
    }

    /// `number` is below the highest so far, and `arrivals` knows of it.
    pub fn came_late(&mut self, number: u64, delay: Option<i64>, arrivals: &SequenceTracker) {
        let behind = arrivals.next_expected() - number;
        if behind < REMEMBERED_DELAYS && number > 0 && arrivals.contains(number - 1) {
            self.pair(self.of(number - 1), delay);
        }
        if behind <= REMEMBERED_DELAYS + 1 && arrivals.contains(number + 1) {
            self.pair(delay, self.of(number + 1));
        }
        if behind <= REMEMBERED_DELAYS {
            self.remember(number, delay);
        }
    }

    fn of(&self, number: u64) -> Option<i64> {
        let delay = self.delays[(number % REMEMBERED_DELAYS) as usize];
        (delay != NOT_MEASURED).then_some(delay)
    }

    fn remember(&mut self, number: u64, delay: Option<i64>) {
        self.delays[(number % REMEMBERED_DELAYS) as usize] = delay.unwrap_or(NOT_MEASURED);
    }

    fn pair(&mut self, first: Option<i64>, second: Option<i64>) {
        if let (Some(first), Some(second)) = (first, second) {
            let variation = second - first;
            self.negative += u64::from(variation < 0);
            self.signed.add(variation, 1);
            self.absolute.record(variation.abs());
        }
    }

    pub fn finish(self) -> Option<DelayVariation> {
        Some(DelayVariation {
            absolute: self.absolute.finish()?,
            negative: self.negative,
            mean: self.signed.mean(),
            min: self.signed.min(),
            max: self.signed.max(),
        })
    }
}

/// From how many delays the reference is chosen.
const TRIAL: usize = 1_024;

/// PDV (RFC 5481 section 4.2): by how much each delay exceeds the smallest.
///
/// The smallest is known at the end only. So delays are recorded by their distance from a reference, above and below,
/// and shifted at the end. The reference is the smallest of the first delays and thus close to the smallest of all. A
/// quantile is exact to a thousandth of itself, and to a further two-thousandth of itself or of the distance from the
/// reference to the smallest delay, whichever is larger.
pub(super) struct MinimumVariation {
    trial: Vec<i64>,
    reference: Option<i64>,
    above: HdrHistogram<u64>,
    below: HdrHistogram<u64>,
    delays: Moments,
}

impl MinimumVariation {
    pub fn new() -> Self {
        Self {
            trial: Vec::with_capacity(TRIAL),
            reference: None,
            above: empty(),
            below: empty(),
            delays: Moments::new(),
        }
    }

    pub fn observe(&mut self, delay: i64) {
        self.delays.add(delay, 1);
        if let Some(reference) = self.reference {
            self.record(delay - reference);
            return;
        }
        self.trial.push(delay);
        if self.trial.len() == TRIAL {
            self.choose_reference();
        }
    }

    /// Returns the reference, after having recorded the first delays by it.
    fn choose_reference(&mut self) -> i64 {
        let reference = self.delays.min();
        self.reference = Some(reference);
        for delay in std::mem::take(&mut self.trial) {
            self.record(delay - reference);
        }
        reference
    }

    fn record(&mut self, distance: i64) {
        let side = if distance < 0 {
            &mut self.below
        } else {
            &mut self.above
        };
        side.saturating_record(distance.unsigned_abs());
    }

    /// None where nothing was observed.
    pub fn finish(mut self) -> Option<Histogram> {
        if self.delays.count() == 0 {
            return None;
        }
        let reference = match self.reference {
            Some(reference) => reference,
            None => self.choose_reference(),
        };
        let smallest = self.delays.min();
        let shift = (reference - smallest) as u64;
        let mut shifted = empty();
        for step in self.above.iter_recorded() {
            let distance = self.above.median_equivalent(step.value_iterated_to());
            shifted.saturating_record_n(shift + distance, step.count_at_value());
        }
        for step in self.below.iter_recorded() {
            let distance = self.below.median_equivalent(step.value_iterated_to());
            shifted.saturating_record_n(shift.saturating_sub(distance), step.count_at_value());
        }
        let exact = self.delays.shifted(-smallest);
        Some(Histogram::of(Unit::Nanoseconds, &shifted, &exact, 0))
    }
}
