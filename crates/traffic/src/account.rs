//! The account of one flow at its receiver: pure, and the same for datagrams that arrive and for those of a log.

use crate::error::TrafficError;
use crate::histogram::Recorder;
use crate::jitter::Jitter;
use crate::outcome::{FlowReport, Tally};
use crate::schedule::Schedule;
use crate::sequence::{Arrival, SequenceTracker};
use crate::series::ArrivalCounter;

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

/// Takes the datagrams of one flow in the order of their arrival and sums them up in bounded memory.
pub struct FlowAccount {
    schedule: Schedule,
    sequence: SequenceTracker,
    jitter: Jitter,
    delay: Recorder,
    arrivals: ArrivalCounter,
    measured: Tally,
    total: Tally,
    duplicates: u64,
    reordered: u64,
    beyond_window: u64,
}

impl FlowAccount {
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
            jitter: Jitter::default(),
            delay: Recorder::new(),
            arrivals: ArrivalCounter::new(schedule, step),
            measured: Tally::default(),
            total: Tally::default(),
            duplicates: 0,
            reordered: 0,
            beyond_window: 0,
        })
    }

    /// Accounts for the next arrival.
    pub fn observe(&mut self, observed: &Observed) {
        self.total.add(observed.bytes);
        let is_measured = self.schedule.measures(observed.intended);
        match self.sequence.observe(observed.sequence) {
            Arrival::Duplicate => {
                self.duplicates += u64::from(is_measured);
                return;
            }
            Arrival::BeyondWindow => {
                self.beyond_window += u64::from(is_measured);
                return;
            }
            Arrival::Reordered => self.reordered += u64::from(is_measured),
            Arrival::InOrder => {}
        }
        self.arrivals.add(observed.arrived, observed.bytes);
        if is_measured {
            let delay = observed.arrived - observed.intended;
            self.measured.add(observed.bytes);
            self.delay.record(delay);
            self.jitter.observe(delay);
        }
    }

    /// Sums up.
    #[must_use]
    pub fn finish(self) -> FlowReport {
        FlowReport {
            measured: self.measured,
            duplicates: self.duplicates,
            reordered: self.reordered,
            beyond_window: self.beyond_window,
            jitter_last: self.jitter.last(),
            jitter_mean: self.jitter.mean(),
            delay: self.delay.finish(),
            arrived: self.arrivals.measured(),
            series: self.arrivals.datagrams(),
            longest_gap: self.arrivals.longest_gap(),
            total: self.total,
        }
    }
}
