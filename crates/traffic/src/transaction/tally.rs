//! What a client counts, in each thread and in all.

use std::io;

use crate::clock::milliseconds;
use crate::error::TrafficError;
use crate::histogram::Recorder;
use crate::outcome::Transacted;
use crate::round_trips::RoundTripCounter;
use crate::schedule::Schedule;

/// Counts transactions by times in ns since the start of the schedule.
pub(super) struct Tally {
    schedule: Schedule,
    transactions: u64,
    total: u64,
    failures: u64,
    round_trip: Recorder,
    connect: Option<Recorder>,
    series: RoundTripCounter,
    pub processor: u64,
    last_failure: Option<(i64, io::Error)>,
}

impl Tally {
    pub fn new(schedule: Schedule, fresh_connections: bool) -> Self {
        Self {
            schedule,
            transactions: 0,
            total: 0,
            failures: 0,
            round_trip: Recorder::new(),
            connect: fresh_connections.then(Recorder::new),
            series: RoundTripCounter::default(),
            processor: 0,
            last_failure: None,
        }
    }

    #[inline]
    pub fn completed(&mut self, began: i64, ended: i64, connecting: Option<i64>) {
        self.total += 1;
        self.series.begun(began);
        self.series.completed(ended, ended - began);
        if !self.schedule.measures(ended) {
            return;
        }
        self.transactions += 1;
        self.round_trip.record(ended - began);
        if let (Some(recorder), Some(connecting)) = (&mut self.connect, connecting) {
            recorder.record(connecting);
        }
    }

    pub fn failed(&mut self, at: i64, failure: io::Error) {
        self.failures += u64::from(self.schedule.measures(at));
        self.last_failure = Some((at, failure));
    }

    /// Adds what another thread counted.
    pub fn merge(mut self, other: Self) -> Self {
        self.transactions += other.transactions;
        self.total += other.total;
        self.failures += other.failures;
        self.round_trip.merge(&other.round_trip);
        if let (Some(recorder), Some(others)) = (&mut self.connect, &other.connect) {
            recorder.merge(others);
        }
        self.series.merge(&other.series);
        self.processor += other.processor;
        self.last_failure = other.last_failure.or(self.last_failure);
        self
    }

    pub fn finish(self) -> Result<Transacted, TrafficError> {
        if self.transactions == 0 {
            let reason = self.last_failure.map_or_else(String::new, |(at, failure)| {
                format!("; {} ms into the schedule: {failure}", milliseconds(at))
            });
            return Err(TrafficError::NothingCarried(format!(
                "no transaction was completed in the measured window{reason}"
            )));
        }
        Ok(Transacted {
            transactions: self.transactions,
            failures: self.failures,
            round_trip: self.round_trip.finish(),
            connect: self.connect.and_then(Recorder::finish),
            series: self.series.finish(),
            total: self.total,
            processor: self.processor,
        })
    }
}
