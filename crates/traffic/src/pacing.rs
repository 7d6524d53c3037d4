//! When each datagram is due. Pure: the sender tells the time, so tests can tell any.

use crate::job::Rate;

/// How far behind a sender may be and still send what was due: an older backlog is dropped instead of bursting out.
pub(crate) const LONGEST_BACKLOG: u64 = 10_000_000;

/// How long before an intended time a waiting sender starts to watch the clock, where datagrams are far apart.
pub(crate) const LONGEST_SPIN: u64 = 50_000;

/// The most of its waiting a sender may spend watching the clock, as a divisor: on a machine with few processors the
/// tunnel needs them more.
pub(crate) const SPIN_SHARE: u64 = 8;

/// What a sender should do now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Send this many datagrams, which are all due; [`Pacer::take`] gives their intended times.
    Send(u16),
    /// Nothing is due before this time, ns since the start.
    Wait {
        /// When the next datagram is due.
        until: u64,
        /// How long before to start watching the clock, ns.
        spin: u64,
    },
    /// The schedule is over.
    Done,
}

/// Deals out datagrams on an absolute schedule: an error in one departure never moves the next.
pub(crate) struct Pacer {
    interval: Option<Interval>,
    batch: u16,
    /// Measured from the start of the schedule: the first moment at which nothing is sent any more.
    end: u64,
    /// Number of the next datagram on the schedule, sent or skipped.
    next: u64,
    now: u64,
}

/// The exact time between two datagrams, `numerator / denominator` ns.
#[derive(Clone, Copy)]
struct Interval {
    numerator: u128,
    denominator: u128,
}

impl Interval {
    fn of(rate: Rate, payload_bytes: u32) -> Option<Self> {
        let second = 1_000_000_000_u128;
        match rate {
            Rate::BitsPerSecond { value } => Some(Self {
                numerator: u128::from(payload_bytes) * 8 * second,
                denominator: value.into(),
            }),
            Rate::PacketsPerSecond { value } => Some(Self {
                numerator: second,
                denominator: value.into(),
            }),
            Rate::Max => None,
        }
    }

    /// When datagram `number` is due, rounded up.
    fn due(&self, number: u64) -> u64 {
        (u128::from(number) * self.numerator)
            .div_ceil(self.denominator)
            .try_into()
            .unwrap_or(u64::MAX)
    }

    /// How many datagrams are due before `time`.
    fn due_before(&self, time: u64) -> u64 {
        let last = u128::from(time).saturating_sub(1) * self.denominator / self.numerator;
        if time == 0 {
            0
        } else {
            u64::try_from(last + 1).unwrap_or(u64::MAX)
        }
    }
}

impl Pacer {
    /// `rate` is not zero; `end` is in ns since the start.
    pub fn new(rate: Rate, payload_bytes: u32, batch: u16, end: u64) -> Self {
        Self {
            interval: Interval::of(rate, payload_bytes),
            batch,
            end,
            next: 0,
            now: 0,
        }
    }

    /// What to do at `now`, ns since the start. Calls `skipped` with the intended time of each datagram that is given up.
    pub fn step(&mut self, now: u64, mut skipped: impl FnMut(u64)) -> Step {
        self.now = now;
        let Some(interval) = self.interval else {
            return if now < self.end {
                Step::Send(self.batch)
            } else {
                Step::Done
            };
        };
        let due = interval.due_before((now + 1).min(self.end));
        let forgiven = interval.due_before(now.saturating_sub(LONGEST_BACKLOG).min(self.end));
        while self.next < forgiven {
            skipped(interval.due(self.next));
            self.next += 1;
        }
        if self.next < due {
            return Step::Send((due - self.next).min(self.batch.into()) as u16);
        }
        let until = interval.due(self.next);
        if until >= self.end {
            return Step::Done;
        }
        let spin =
            ((until - interval.due(self.next.saturating_sub(1))) / SPIN_SHARE).min(LONGEST_SPIN);
        Step::Wait { until, spin }
    }

    /// The intended time of the next datagram; with rate `max` that is the last time told.
    pub fn take(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        self.interval
            .map_or(self.now, |interval| interval.due(number))
    }

    /// The asked payload bits per second; none for rate `max`.
    pub fn asked_rate(rate: Rate, payload_bytes: u32) -> Option<f64> {
        match rate {
            Rate::BitsPerSecond { value } => Some(value as f64),
            Rate::PacketsPerSecond { value } => Some(value as f64 * f64::from(payload_bytes) * 8.0),
            Rate::Max => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Run {
        departures: Vec<(u64, u64)>,
        skipped: Vec<u64>,
        largest_batch: u16,
    }

    /// Drives a pacer with a clock that loses `lateness` after each wait and `cost` for each batch sent.
    fn simulate(mut pacer: Pacer, lateness: &[u64], cost: u64) -> Run {
        let mut run = Run::default();
        let mut now = 0;
        let mut lateness = lateness.iter().cycle();
        loop {
            match pacer.step(now, |due| run.skipped.push(due)) {
                Step::Done => return run,
                Step::Wait { until, spin } => {
                    assert!(until > now && spin <= LONGEST_SPIN);
                    now = until + lateness.next().copied().unwrap_or(0);
                }
                Step::Send(count) => {
                    run.largest_batch = run.largest_batch.max(count);
                    run.departures
                        .extend((0..count).map(|_| (pacer.take(), now)));
                    now += cost;
                }
            }
        }
    }

    fn rates() -> impl Strategy<Value = Rate> {
        prop_oneof![
            (1_u64..200_000).prop_map(|value| Rate::PacketsPerSecond { value }),
            (10_000_u64..2_000_000_000).prop_map(|value| Rate::BitsPerSecond { value }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn every_datagram_departs_once_in_order_and_never_early(
            rate in rates(), payload_bytes in 12_u32..2000, batch in 1_u16..64,
            lateness in prop::collection::vec(0_u64..30_000_000, 1..20), cost in 1_u64..200_000,
        ) {
            let end = 50_000_000;
            let run = simulate(Pacer::new(rate, payload_bytes, batch, end), &lateness, cost);
            let mut accounted: Vec<u64> = run.departures.iter().map(|(due, _)| *due).chain(run.skipped).collect();
            accounted.sort_unstable();
            let interval = Interval::of(rate, payload_bytes).unwrap();
            let all: Vec<u64> = (0..).map(|number| interval.due(number)).take_while(|due| *due < end).collect();
            prop_assert_eq!(accounted, all);
            prop_assert!(run.largest_batch <= batch);
            for (due, departed) in &run.departures {
                prop_assert!(departed >= due, "early by {}", due - departed);
                prop_assert!(departed - due <= LONGEST_BACKLOG + 1, "late by {}", departed - due);
            }
            prop_assert!(run.departures.is_sorted());
        }
    }

    #[test]
    fn a_prompt_sender_sends_one_by_one_and_exactly_on_time() {
        let run = simulate(
            Pacer::new(Rate::PacketsPerSecond { value: 3 }, 100, 64, 2_000_000_000),
            &[0],
            0,
        );
        let expected = [
            0,
            333_333_334,
            666_666_667,
            1_000_000_000,
            1_333_333_334,
            1_666_666_667,
        ];
        assert_eq!(run.departures, expected.map(|due| (due, due)));
        assert_eq!((run.largest_batch, run.skipped.len()), (1, 0));
    }

    #[test]
    fn a_sender_that_overslept_catches_up_only_so_far() {
        let pacer = Pacer::new(
            Rate::PacketsPerSecond { value: 1_000 },
            100,
            64,
            100_000_000,
        );
        let run = simulate(pacer, &[50_000_000], 1);
        assert_eq!(run.departures[0], (0, 0));
        assert_eq!(run.departures[1], (41_000_000, 51_000_000));
        assert_eq!(run.skipped[..3], [1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn the_highest_rate_always_sends_whole_batches_for_now() {
        let run = simulate(Pacer::new(Rate::Max, 64, 16, 1_000), &[0], 100);
        assert_eq!(run.departures.len(), 160);
        assert!(run.departures.iter().all(|(due, departed)| due == departed));
    }

    #[test]
    fn bits_count_the_payload() {
        let interval = Interval::of(Rate::BitsPerSecond { value: 8_000_000 }, 1000).unwrap();
        assert_eq!(interval.due(7), 7_000_000);
    }

    #[test]
    fn watching_the_clock_is_a_bounded_share_of_waiting() {
        let spin = |value| match Pacer::new(Rate::PacketsPerSecond { value }, 64, 1, u64::MAX)
            .after_first()
        {
            Step::Wait { spin, .. } => spin,
            step => panic!("{step:?}"),
        };
        assert_eq!(spin(100), 50_000);
        assert_eq!(spin(100_000), 1_250);
    }

    impl Pacer {
        fn after_first(mut self) -> Step {
            self.take();
            self.step(0, |_| ())
        }
    }
}
