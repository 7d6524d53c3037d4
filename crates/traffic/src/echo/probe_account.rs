//! What a prober counts.

use crate::echo::outstanding::Departure;
use crate::histogram::Recorder;
use crate::job::{EchoProbe, ProbePlan, Timestamps};
use crate::outcome::Probed;
use crate::round_trips::RoundTripCounter;
use crate::schedule::{LONGEST_JOB, Schedule};

/// Those probes of a job count whose intended departure lies in the window of this: all where it has no schedule.
pub(crate) fn window(job: &EchoProbe) -> Schedule {
    match job.plan {
        ProbePlan::Schedule { schedule } => schedule,
        ProbePlan::Count { .. } => Schedule {
            start_at: 0,
            warm_up: 0,
            measure: LONGEST_JOB,
            cool_down: 0,
        },
    }
}

/// Counts probes by their intended departure, all times in ns since the start.
pub(crate) struct ProbeAccount {
    window: Schedule,
    is_paced: bool,
    round_trip: Recorder,
    round_trip_from_intended: Recorder,
    series: RoundTripCounter,
    probed: Probed,
}

impl ProbeAccount {
    pub fn new(job: &EchoProbe, timestamps: Timestamps) -> Self {
        Self {
            window: window(job),
            is_paced: job.interval > 0,
            round_trip: Recorder::new(),
            round_trip_from_intended: Recorder::new(),
            series: RoundTripCounter::default(),
            probed: Probed {
                sent: 0,
                replies: 0,
                failures: 0,
                duplicates: 0,
                reordered: 0,
                skipped: 0,
                round_trip: None,
                round_trip_from_intended: None,
                first_reply_after: None,
                timestamps,
                series: RoundTripCounter::default().finish(),
                total_sent: 0,
                total_replies: 0,
                late: 0,
                processor: 0,
            },
        }
    }

    pub fn answered(&self) -> u64 {
        self.probed.total_replies
    }

    pub fn sent(&mut self, intended: i64) {
        self.probed.total_sent += 1;
        self.probed.sent += self.one_if_measured(intended);
        self.series.begun(intended);
    }

    pub fn replied(&mut self, departure: Departure, arrived: i64, reordered: bool) {
        let round_trip = arrived - departure.real;
        self.probed.total_replies += 1;
        self.probed
            .first_reply_after
            .get_or_insert(arrived.max(0) as u64);
        self.series.completed(departure.intended, round_trip);
        if self.one_if_measured(departure.intended) == 0 {
            return;
        }
        self.probed.replies += 1;
        self.probed.reordered += u64::from(reordered);
        self.round_trip.record(round_trip);
        if self.is_paced {
            self.round_trip_from_intended
                .record(arrived - departure.intended);
        }
    }

    pub fn failed(&mut self, intended: i64) {
        self.probed.failures += self.one_if_measured(intended);
    }

    pub fn duplicated(&mut self, intended: i64) {
        self.probed.duplicates += self.one_if_measured(intended);
    }

    pub fn skipped(&mut self, intended: i64) {
        self.probed.skipped += self.one_if_measured(intended);
    }

    pub fn late(&mut self) {
        self.probed.late += 1;
    }

    pub fn finish(self, processor: u64) -> Probed {
        Probed {
            round_trip: self.round_trip.finish(),
            round_trip_from_intended: self.round_trip_from_intended.finish(),
            series: self.series.finish(),
            processor,
            ..self.probed
        }
    }

    fn one_if_measured(&self, intended: i64) -> u64 {
        self.window.measures(intended).into()
    }
}
