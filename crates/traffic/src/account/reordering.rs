//! How far out of order the reordered datagrams are.

use std::collections::VecDeque;

use crate::histogram::{Histogram, Recorder};

/// How many of the last gaps in the sequence are remembered.
pub(super) const REMEMBERED_GAPS: usize = 1 << 14;

/// The reordering extent and the late time offset of RFC 4737, sections 4.2 and 4.3.
///
/// Both relate a reordered datagram to the first arrival with a higher number. Only an arrival that leaves a gap before
/// it can be that, so only such are remembered, and a flow in order costs nothing.
pub(super) struct Reordering {
    leaps: VecDeque<Leap>,
    /// The number of the last leap that was forgotten.
    forgotten: Option<u64>,
    extent: Option<Recorder>,
    late_time: Option<Recorder>,
    unknown: u64,
}

/// An arrival whose number is above the next expected.
struct Leap {
    number: u64,
    place: u64,
    arrived: i64,
}

impl Reordering {
    pub fn new() -> Self {
        Self {
            leaps: VecDeque::new(),
            forgotten: None,
            extent: None,
            late_time: None,
            unknown: 0,
        }
    }

    /// `number` came while a lower one was expected, as the `place`-th of all that are no duplicates.
    pub fn leapt(&mut self, number: u64, place: u64, arrived: i64) {
        if self.leaps.len() == REMEMBERED_GAPS {
            self.forgotten = self.leaps.pop_front().map(|leap| leap.number);
        }
        self.leaps.push_back(Leap {
            number,
            place,
            arrived,
        });
    }

    /// `number` came at last, though a higher one had come before.
    pub fn came_late(&mut self, number: u64, place: u64, arrived: i64) {
        let first = self.leaps.partition_point(|leap| leap.number <= number);
        match self.leaps.get(first) {
            Some(leap) if self.forgotten.is_none_or(|forgotten| forgotten < number) => {
                let extent = self.extent.get_or_insert_with(Recorder::of_packets);
                extent.record((place - leap.place) as i64);
                let late_time = self.late_time.get_or_insert_with(Recorder::new);
                late_time.record(arrived - leap.arrived);
            }
            _ => self.unknown += 1,
        }
    }

    /// Extent, late time offset, and how many datagrams came so late that neither is known.
    pub fn finish(self) -> (Option<Histogram>, Option<Histogram>, u64) {
        (
            self.extent.and_then(Recorder::finish),
            self.late_time.and_then(Recorder::finish),
            self.unknown,
        )
    }
}
