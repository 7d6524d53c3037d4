//! What is due now. Pure: the sender tells the time, so tests can tell any.

use crate::process::{Plan, Planned};
use crate::schedule::LONGEST_BACKLOG;

/// What a sender should do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Send what [`Pacer::step`] put into `due`.
    Send,
    /// Nothing is due before this time, ns since the start.
    Wait(u64),
    /// The schedule is over.
    Done,
}

/// A datagram that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Due {
    /// Its intended departure, ns since the start.
    pub intended: u64,
    /// Its payload.
    pub bytes: u32,
}

/// Deals out the datagrams of a plan at their absolute times: an error in one departure never moves the next.
pub(super) struct Pacer {
    plan: Plan,
    most: usize,
    /// Measured from the start of the schedule: the first moment at which nothing is sent any more.
    end: u64,
}

impl Pacer {
    /// `most` datagrams at once; `end` is in ns since the start.
    pub fn new(plan: Plan, most: usize, end: u64) -> Self {
        Self { plan, most, end }
    }

    /// What to do at `now`, ns since the start; replaces what is in `due`. Calls `skipped` with each datagram that is
    /// given up.
    pub fn step(&mut self, now: u64, due: &mut Vec<Due>, mut skipped: impl FnMut(Due)) -> Step {
        due.clear();
        if self.plan.due().is_none() {
            return self.at_once(now, due);
        }
        let intended = |planned: Planned| Due {
            intended: planned.due.unwrap_or(now),
            bytes: planned.bytes,
        };
        let forgiven = now.saturating_sub(LONGEST_BACKLOG).min(self.end);
        while let Some(planned) = self.plan.next_before(forgiven) {
            skipped(intended(planned));
        }
        let past = now.saturating_add(1).min(self.end);
        while due.len() < self.most
            && let Some(planned) = self.plan.next_before(past)
        {
            due.push(intended(planned));
        }
        match self.plan.due() {
            _ if !due.is_empty() => Step::Send,
            Some(until) if until < self.end => Step::Wait(until),
            _ => Step::Done,
        }
    }

    /// Whatever the time, as many as may be.
    fn at_once(&mut self, now: u64, due: &mut Vec<Due>) -> Step {
        if now >= self.end {
            return Step::Done;
        }
        due.extend((0..self.most).map(|_| Due {
            intended: now,
            bytes: self.plan.next().bytes,
        }));
        Step::Send
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::process::{Departures, Distribution, Sizes};

    #[derive(Default)]
    struct Run {
        departures: Vec<(Due, u64)>,
        skipped: Vec<Due>,
        largest_batch: usize,
        calls: usize,
    }

    fn plan(departures: &Departures, sizes: &Sizes) -> Plan {
        Plan::new(departures, sizes, 12..=65_507, 42).unwrap()
    }

    fn packets_per_second(value: u64) -> Plan {
        plan(
            &Departures::PacketsPerSecond { value },
            &Sizes::constant(100),
        )
    }

    /// Drives a pacer with a clock that loses `lateness` after each wait and `cost` for each batch sent.
    fn simulate(mut pacer: Pacer, lateness: &[u64], cost: u64) -> Run {
        let mut run = Run::default();
        let mut now = 0;
        let mut lateness = lateness.iter().cycle();
        let mut due = Vec::new();
        loop {
            match pacer.step(now, &mut due, |due| run.skipped.push(due)) {
                Step::Done => return run,
                Step::Wait(until) => {
                    assert!(until > now && due.is_empty());
                    now = until + lateness.next().copied().unwrap_or(0);
                }
                Step::Send => {
                    run.calls += 1;
                    run.largest_batch = run.largest_batch.max(due.len());
                    run.departures.extend(due.iter().map(|due| (*due, now)));
                    now += cost;
                }
            }
        }
    }

    fn departures() -> impl Strategy<Value = Departures> {
        prop_oneof![
            (1_u64..200_000).prop_map(|value| Departures::PacketsPerSecond { value }),
            (10_000_u64..2_000_000_000).prop_map(|value| Departures::BitsPerSecond { value }),
            (1_u32..500, 100_000_u64..20_000_000).prop_map(|(datagrams, interval)| {
                Departures::Bursts {
                    datagrams,
                    interval,
                }
            }),
            (10_000.0_f64..5e6).prop_map(|mean| Departures::Process {
                interval: Distribution::Exponential { mean },
            }),
            (20_000_u64..1_000_000).prop_map(|interval| Departures::Talk {
                interval,
                talk: Distribution::Exponential { mean: 5e6 },
                silence: Distribution::Exponential { mean: 5e6 },
            }),
        ]
    }

    fn sizes() -> impl Strategy<Value = Sizes> {
        prop_oneof![
            (100_u32..2_000).prop_map(Sizes::constant),
            (100.0_f64..500.0, 0.0_f64..2_000.0).prop_map(|(low, width)| {
                Sizes(Distribution::Uniform {
                    low,
                    high: low + width,
                })
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn every_datagram_departs_once_in_order_never_early_and_not_too_late(
            departures in departures(), sizes in sizes(), most in 1_usize..64,
            lateness in prop::collection::vec(0_u64..30_000_000, 1..20), cost in 1_u64..200_000,
        ) {
            let end = 50_000_000;
            let mut planned = plan(&departures, &sizes);
            let run = simulate(Pacer::new(planned.clone(), most, end), &lateness, cost);
            let mut accounted: Vec<Due> = run.departures.iter().map(|(due, _)| *due).collect();
            accounted.extend(&run.skipped);
            accounted.sort_by_key(|due| due.intended);
            let mut all: Vec<Due> = Vec::new();
            while let Some(Planned { due, bytes }) = planned.next_before(end) {
                all.push(Due { intended: due.unwrap(), bytes });
            }
            prop_assert_eq!(accounted.len(), all.len());
            prop_assert!(accounted.iter().zip(&all).all(|(one, other)| one.intended == other.intended));
            let sum = |dues: &[Due]| dues.iter().map(|due| u64::from(due.bytes)).sum::<u64>();
            prop_assert_eq!(sum(&accounted), sum(&all));
            prop_assert!(run.largest_batch <= most);
            for (due, departed) in &run.departures {
                prop_assert!(*departed >= due.intended, "early by {}", due.intended - departed);
                let late = departed - due.intended;
                prop_assert!(late <= LONGEST_BACKLOG, "late by {}", late);
            }
            prop_assert!(run.departures.is_sorted_by_key(|(due, departed)| (due.intended, *departed)));
        }

        #[test]
        fn no_burst_exceeds_what_was_asked(
            departures in departures(), sizes in sizes(), lateness in prop::collection::vec(0_u64..3_000_000, 1..20),
        ) {
            let end = 50_000_000;
            let all = simulate(Pacer::new(plan(&departures, &sizes), 1_024, end), &[0], 0).departures;
            let run = simulate(Pacer::new(plan(&departures, &sizes), 64, end), &lateness, 1_000);
            for (index, (_, departed)) in run.departures.iter().enumerate() {
                let due = all.partition_point(|(due, _)| due.intended <= *departed);
                prop_assert!(index < due, "{} left when {} were due", index + 1, due);
            }
        }
    }

    #[test]
    fn a_prompt_sender_sends_one_by_one_and_exactly_on_time() {
        let run = simulate(
            Pacer::new(packets_per_second(3), 64, 2_000_000_000),
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
        let departures: Vec<(u64, u64)> = run
            .departures
            .iter()
            .map(|(due, departed)| (due.intended, *departed))
            .collect();
        assert_eq!(departures, expected.map(|due| (due, due)));
        assert_eq!((run.largest_batch, run.skipped.len()), (1, 0));
    }

    #[test]
    fn a_sender_that_overslept_catches_up_only_so_far() {
        let pacer = Pacer::new(packets_per_second(1_000), 64, 100_000_000);
        let run = simulate(pacer, &[50_000_000], 1);
        let departed = |index: usize| {
            let (due, departed) = run.departures[index];
            (due.intended, departed)
        };
        assert_eq!(
            (departed(0), departed(1)),
            ((0, 0), (41_000_000, 51_000_000))
        );
        let skipped: Vec<u64> = run.skipped[..3].iter().map(|due| due.intended).collect();
        assert_eq!(skipped, [1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn the_highest_rate_always_sends_whole_batches_for_now() {
        let sizes = Sizes(Distribution::Listed {
            values: vec![64.0, 1400.0],
        });
        let run = simulate(
            Pacer::new(plan(&Departures::Max, &sizes), 16, 1_000),
            &[0],
            100,
        );
        assert_eq!((run.departures.len(), run.calls), (160, 10));
        assert!(
            run.departures
                .iter()
                .all(|(due, departed)| due.intended == *departed)
        );
        assert_eq!(
            (run.departures[0].0.bytes, run.departures[1].0.bytes),
            (64, 1400)
        );
    }

    #[test]
    fn a_train_goes_in_as_few_calls_as_may_be() {
        let trains = Departures::Bursts {
            datagrams: 100,
            interval: 1_000_000,
        };
        let pacer = Pacer::new(plan(&trains, &Sizes::constant(64)), 64, 3_000_000);
        let run = simulate(pacer, &[0], 1_000);
        assert_eq!((run.departures.len(), run.calls), (300, 6));
    }
}
