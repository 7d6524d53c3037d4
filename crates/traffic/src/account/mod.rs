//! The account of one flow at its receiver: pure, and the same for datagrams that arrive and for those of a log.

mod jitter;
mod loss;
mod reordering;
mod sequence;
#[cfg(test)]
mod tests;
mod variation;
mod windows;

use crate::account::jitter::Jitter;
use crate::account::reordering::Reordering;
use crate::account::sequence::{Arrival, SequenceTracker};
use crate::account::variation::{MinimumVariation, NeighbourVariation};
use crate::account::windows::{Arrived, Windows};
use crate::error::TrafficError;
use crate::histogram::Recorder;
use crate::outcome::{FlowReport, Tally};
use crate::schedule::Schedule;

/// The most steps that the series of a flow may have: an hour of 10 ms each.
pub const MOST_STEPS: u64 = 360_000;

/// One datagram of a flow as its receiver sees it. Times are ns since the start of the schedule, in the receiver's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Sequence number, modulo 2^32.
    pub sequence: u32,
    /// When it was due to leave.
    pub intended: i64,
    /// When it did leave, where it says so. Delays count from `intended`, so that a late sender hides none.
    pub sent: Option<i64>,
    /// When it arrived.
    pub arrived: i64,
    /// Its UDP payload.
    pub bytes: u64,
}

/// Beyond this a delay makes no sense, ns (three days): what wrong clocks say is cut here.
const LONGEST_DELAY: i64 = 1 << 48;

/// Takes the datagrams of one flow in the order of their arrival and sums them up in bounded memory.
pub struct FlowAccount {
    schedule: Schedule,
    sequence: SequenceTracker,
    reordering: Reordering,
    jitter: Jitter,
    delay: Recorder,
    neighbours: NeighbourVariation,
    minimum: MinimumVariation,
    windows: Windows,
    measured: Tally,
    total: Tally,
    /// Arrivals that are no duplicates, in all phases.
    unique: u64,
    duplicates: u64,
    reordered: u64,
    beyond_window: u64,
}

impl FlowAccount {
    /// Datagrams of the flow in all phases so far.
    pub(crate) fn total(&self) -> Tally {
        self.total
    }

    /// An account of what is sent on `schedule`, with a series in steps of `step` ns.
    ///
    /// # Errors
    /// [`TrafficError::Invalid`] for steps of no length or so short that the schedule has more than [`MOST_STEPS`].
    pub fn new(schedule: Schedule, step: u64) -> Result<Self, TrafficError> {
        let least = (schedule.end() as u64).div_ceil(MOST_STEPS).max(1);
        if step < least {
            return Err(TrafficError::Invalid(format!(
                "steps of {step} ns are too short for this schedule: the series may have {MOST_STEPS} steps, so use \
                 at least {least} ns"
            )));
        }
        Ok(Self {
            schedule,
            sequence: SequenceTracker::new(),
            reordering: Reordering::new(),
            jitter: Jitter::default(),
            delay: Recorder::new(),
            neighbours: NeighbourVariation::new(),
            minimum: MinimumVariation::new(),
            windows: Windows::new(schedule, step),
            measured: Tally::default(),
            total: Tally::default(),
            unique: 0,
            duplicates: 0,
            reordered: 0,
            beyond_window: 0,
        })
    }

    /// Accounts for the next arrival.
    pub fn observe(&mut self, observed: &Observed) {
        self.total.add(observed.bytes);
        let is_measured = self.schedule.measures(observed.intended);
        let delay = observed.arrived.saturating_sub(observed.intended);
        let delay = delay.clamp(-LONGEST_DELAY, LONGEST_DELAY);
        let expected = match self.sequence.observe(observed.sequence, is_measured) {
            Arrival::Duplicate => {
                self.duplicates += u64::from(is_measured);
                return;
            }
            Arrival::BeyondWindow => {
                self.beyond_window += u64::from(is_measured);
                return;
            }
            Arrival::InOrder { number, skipped } => {
                self.in_order(number, skipped, observed, is_measured.then_some(delay));
                skipped + 1
            }
            Arrival::Reordered { number } => {
                self.out_of_order(number, observed, is_measured.then_some(delay));
                0
            }
        };
        self.unique += 1;
        if is_measured {
            self.measured.add(observed.bytes);
            self.delay.record(delay);
            self.minimum.observe(delay);
            self.jitter.observe(delay);
        }
        self.windows.add(&Arrived {
            at: observed.arrived,
            bytes: observed.bytes,
            delay,
            expected,
            jitter: self.jitter.last().filter(|_| is_measured),
        });
    }

    /// The number without end of one of the last 2^31 sequence numbers; 0 for one before the first.
    pub(crate) fn number(&self, sequence: u32) -> u64 {
        self.sequence.number(sequence).unwrap_or(0)
    }

    fn in_order(&mut self, number: u64, skipped: u64, observed: &Observed, delay: Option<i64>) {
        if skipped == 0 {
            self.neighbours.next(number, delay);
        } else {
            self.neighbours.leapt(number, delay);
            self.reordering.leapt(number, self.unique, observed.arrived);
        }
    }

    fn out_of_order(&mut self, number: u64, observed: &Observed, delay: Option<i64>) {
        self.neighbours.came_late(number, delay, &self.sequence);
        if delay.is_some() {
            self.reordered += 1;
            self.reordering
                .came_late(number, self.unique, observed.arrived);
        }
    }

    /// Sums up.
    #[must_use]
    pub fn finish(self) -> FlowReport {
        let (reordering_extent, late_time_offset, extent_unknown) = self.reordering.finish();
        FlowReport {
            measured: self.measured,
            duplicates: self.duplicates,
            reordered: self.reordered,
            reordering_extent,
            late_time_offset,
            extent_unknown,
            beyond_window: self.beyond_window,
            loss: self.sequence.finish(),
            jitter_last: self.jitter.last(),
            jitter_mean: self.jitter.mean(),
            delay: self.delay.finish(),
            ipdv: self.neighbours.finish(),
            pdv: self.minimum.finish(),
            arrived: self.windows.measured(),
            longest_gap: self.windows.longest_gap(),
            series: self.windows.series(),
            total: self.total,
        }
    }
}
