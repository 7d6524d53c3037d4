//! The account against a plain one that keeps every arrival and computes by the definitions.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::variation::REMEMBERED_DELAYS;
use super::*;
use crate::histogram::Histogram;

const MILLISECOND: i64 = 1_000_000;
const STEP: u64 = 7 * MILLISECOND as u64;
const SCHEDULE: Schedule = Schedule {
    start_at: 0,
    warm_up: 10 * MILLISECOND as u64,
    measure: 80 * MILLISECOND as u64,
    cool_down: 10 * MILLISECOND as u64,
};

fn report(arrivals: &[Observed]) -> FlowReport {
    let mut account = FlowAccount::new(SCHEDULE, STEP).unwrap();
    arrivals.iter().for_each(|arrival| account.observe(arrival));
    account.finish()
}

/// What becomes of one datagram on its way.
#[derive(Clone, Debug)]
struct Fate {
    lost: bool,
    copied: bool,
    delay: i64,
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let delay = prop_oneof![
        6 => 100_000..200_000_i64,
        2 => 100_000..5 * MILLISECOND,
        1 => -50_000..50_000_i64,
    ];
    let fate = (prop::bool::weighted(0.2), prop::bool::weighted(0.1), delay);
    let fate = fate.prop_map(|(lost, copied, delay)| Fate {
        lost,
        copied,
        delay,
    });
    prop::collection::vec(fate, 1..1_500)
}

/// The arrivals in their order, of datagrams that are due all over the schedule.
fn arrivals(fates: &[Fate]) -> Vec<Observed> {
    let interval = SCHEDULE.end() / fates.len() as i64;
    let mut arrivals = Vec::new();
    for (sequence, fate) in fates.iter().enumerate().filter(|(_, fate)| !fate.lost) {
        let intended = sequence as i64 * interval;
        let observed = Observed {
            sequence: sequence as u32,
            intended,
            sent: None,
            arrived: intended + fate.delay,
            bytes: 100 + sequence as u64 % 7,
        };
        arrivals.push(observed);
        if fate.copied {
            let arrived = observed.arrived + 300_000;
            arrivals.push(Observed {
                arrived,
                ..observed
            });
        }
    }
    arrivals.sort_by_key(|observed| observed.arrived);
    arrivals
}

/// The first copies of all, and of those that are due in the measured window, in the order of arrival.
fn unique(arrivals: &[Observed]) -> Vec<Observed> {
    let mut seen = std::collections::HashSet::new();
    let first = |observed: &&Observed| seen.insert(observed.sequence);
    arrivals.iter().filter(first).copied().collect()
}

fn measured(unique: &[Observed]) -> Vec<Observed> {
    let is_measured = |observed: &&Observed| SCHEDULE.measures(observed.intended);
    unique.iter().filter(is_measured).copied().collect()
}

fn delay(observed: &Observed) -> i64 {
    observed.arrived - observed.intended
}

/// Checks counts and extremes, and quantiles to `relative` and `absolute`.
fn assert_is_of(found: Option<&Histogram>, mut values: Vec<i64>, relative: f64, absolute: f64) {
    values.sort_unstable();
    let Some(found) = found else {
        assert!(values.is_empty());
        return;
    };
    assert_eq!(found.count, values.len() as u64);
    assert_eq!(
        (found.min as i64, found.max as i64),
        (values[0], values[values.len() - 1])
    );
    let mean = values.iter().sum::<i64>() as f64 / values.len() as f64;
    assert!((found.mean - mean).abs() < 1e-3);
    for (quantile, found) in [
        (0.5, found.p50),
        (0.9, found.p90),
        (0.99, found.p99),
        (0.999, found.p999),
    ] {
        let rank = (values.len() as f64 * quantile).ceil() as usize - 1;
        let error = (found as f64 - values[rank] as f64).abs();
        let bound = values[rank] as f64 * relative + absolute;
        assert!(
            error <= bound,
            "{found} instead of {} at {quantile}",
            values[rank]
        );
    }
}

/// RFC 4737: the place, among all that are no duplicates, of the first arrival with a higher number.
fn first_above(unique: &[Observed], place: usize) -> Option<usize> {
    (0..place).find(|earlier| unique[*earlier].sequence > unique[place].sequence)
}

/// The lengths of the runs of missing numbers, and of how many numbers.
fn lost_runs(measured: &[Observed]) -> (Vec<u64>, u64) {
    let mut numbers: Vec<u64> = measured
        .iter()
        .map(|observed| observed.sequence.into())
        .collect();
    numbers.sort_unstable();
    let runs = numbers
        .windows(2)
        .map(|pair| pair[1] - pair[0] - 1)
        .filter(|run| *run > 0);
    let expected = numbers.last().map_or(0, |last| last - numbers[0] + 1);
    (runs.collect(), expected)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn counts_and_delays_are_those_of_the_definitions(fates in fates()) {
        let arrivals = arrivals(&fates);
        let (unique, report) = (unique(&arrivals), report(&arrivals));
        let measured = measured(&unique);
        prop_assert_eq!(report.measured.packets, measured.len() as u64);
        prop_assert_eq!(report.measured.bytes, measured.iter().map(|observed| observed.bytes).sum::<u64>());
        prop_assert_eq!(report.total.packets, arrivals.len() as u64);
        let due = arrivals.iter().filter(|observed| SCHEDULE.measures(observed.intended)).count();
        prop_assert_eq!(report.duplicates, (due - measured.len()) as u64);
        prop_assert_eq!(report.beyond_window, 0);
        let delays = measured.iter().map(|observed| delay(observed).max(0)).collect();
        assert_is_of(report.delay.as_ref(), delays, 0.001, 1.0);
    }

    #[test]
    fn reordering_is_that_of_rfc_4737(fates in fates()) {
        let arrivals = arrivals(&fates);
        let (unique, report) = (unique(&arrivals), report(&arrivals));
        let reordered: Vec<(usize, usize)> = (0..unique.len())
            .filter(|place| SCHEDULE.measures(unique[*place].intended))
            .filter_map(|place| Some((place, first_above(&unique, place)?)))
            .collect();
        prop_assert_eq!(report.reordered, reordered.len() as u64);
        prop_assert_eq!(report.extent_unknown, 0);
        let extents = reordered.iter().map(|(place, first)| (place - first) as i64).collect();
        assert_is_of(report.reordering_extent.as_ref(), extents, 0.001, 1.0);
        let late = reordered.iter().map(|(place, first)| unique[*place].arrived - unique[*first].arrived);
        assert_is_of(report.late_time_offset.as_ref(), late.collect(), 0.001, 1.0);
    }

    #[test]
    fn variation_is_that_of_rfc_3393_and_rfc_5481(fates in fates()) {
        let arrivals = arrivals(&fates);
        let (measured, report) = (measured(&unique(&arrivals)), report(&arrivals));
        let delays: BTreeMap<u32, i64> = measured.iter().map(|one| (one.sequence, delay(one))).collect();
        let ipdv: Vec<i64> = delays
            .iter()
            .filter_map(|(number, delay)| Some(delays.get(&(number + 1))? - delay))
            .collect();
        prop_assert_eq!(report.ipdv.is_some(), !ipdv.is_empty());
        if let Some(found) = &report.ipdv {
            assert_is_of(Some(&found.absolute), ipdv.iter().map(|value| value.abs()).collect(), 0.001, 1.0);
            prop_assert_eq!(found.negative, ipdv.iter().filter(|value| **value < 0).count() as u64);
            prop_assert_eq!(Some(&found.min), ipdv.iter().min());
            prop_assert_eq!(Some(&found.max), ipdv.iter().max());
            let mean = ipdv.iter().sum::<i64>() as f64 / ipdv.len() as f64;
            prop_assert!((found.mean - mean).abs() < 1e-3);
        }
        let delays: Vec<i64> = measured.iter().map(delay).collect();
        let smallest = delays.iter().min().copied().unwrap_or(0);
        let reference = delays.iter().take(1_024).min().copied().unwrap_or(0);
        let pdv = delays.iter().map(|delay| delay - smallest).collect();
        let away = (reference - smallest) as f64;
        assert_is_of(report.pdv.as_ref(), pdv, 0.0015, away * 0.0005 + 2.0);
    }

    #[test]
    fn runs_of_losses_are_those_of_the_numbers_that_never_came(fates in fates()) {
        let arrivals = arrivals(&fates);
        let (runs, expected) = lost_runs(&measured(&unique(&arrivals)));
        let loss = report(&arrivals).loss;
        let lost = runs.iter().sum::<u64>();
        prop_assert_eq!((loss.expected, loss.lost), (expected, lost));
        prop_assert_eq!((loss.bursts, loss.longest), (runs.len() as u64, runs.iter().max().copied().unwrap_or(0)));
        let mean = lost as f64 / runs.len() as f64;
        prop_assert_eq!(loss.mean, (!runs.is_empty()).then_some(mean));
        let of_independent_losses = 1.0 / (1.0 - lost as f64 / expected as f64);
        prop_assert!(loss.ratio.is_none_or(|ratio| (ratio - mean / of_independent_losses).abs() < 1e-9));
    }

    #[test]
    fn windows_hold_what_arrived_in_them(fates in fates()) {
        let arrivals = arrivals(&fates);
        let (unique, series) = (unique(&arrivals), report(&arrivals).series);
        prop_assert_eq!(series.packets.len(), (SCHEDULE.end() as u64).div_ceil(STEP) as usize);
        let mut next_expected = 0;
        for (index, window) in series.packets.iter().enumerate() {
            let bounds = index as i64 * STEP as i64..(index as i64 + 1) * STEP as i64;
            let early = unique.iter().filter(|one| one.arrived < bounds.start);
            let before = early.map(|one| u64::from(one.sequence) + 1).max().unwrap_or(0);
            next_expected = next_expected.max(before);
            let inside: Vec<Observed> = unique.iter().filter(|one| bounds.contains(&one.arrived)).copied().collect();
            let highest = inside.iter().map(|one| u64::from(one.sequence) + 1).max().unwrap_or(0);
            let expected = highest.max(next_expected) - next_expected;
            let delays: Vec<i64> = inside.iter().map(delay).collect();
            prop_assert_eq!(*window, inside.len() as u64);
            prop_assert_eq!(series.bytes[index], inside.iter().map(|one| one.bytes).sum::<u64>());
            prop_assert_eq!(series.lost[index], expected as i64 - inside.len() as i64);
            prop_assert_eq!(series.delay_min[index], delays.iter().min().copied());
            prop_assert_eq!(series.delay_max[index], delays.iter().max().copied());
            let mean = delays.iter().sum::<i64>() as f64 / delays.len() as f64;
            prop_assert!(series.delay_mean[index].is_none_or(|found| (found - mean).abs() < 1e-3));
        }
    }
}

fn on_time(sequence: u32) -> Observed {
    Observed {
        sequence,
        intended: 20 * MILLISECOND,
        sent: None,
        arrived: 21 * MILLISECOND + i64::from(sequence),
        bytes: 100,
    }
}

#[test]
fn losses_longer_than_the_memory_are_counted() {
    let few_and_far: Vec<Observed> = [0, 1, 5_000_000, 5_000_001, 5_000_003, 9_000_000]
        .map(on_time)
        .into();
    let loss = report(&few_and_far).loss;
    assert_eq!((loss.expected, loss.lost), (9_000_001, 9_000_001 - 6));
    assert_eq!((loss.bursts, loss.longest), (3, 4_999_998));
}

#[test]
fn losses_that_have_left_the_memory_are_counted() {
    let every_third_lost: Vec<Observed> = (0..2_400_000)
        .filter(|number| number % 3 != 1)
        .map(on_time)
        .collect();
    let loss = report(&every_third_lost).loss;
    assert_eq!(
        (loss.bursts, loss.lost, loss.longest),
        (800_000, 800_000, 1)
    );
    assert!((loss.ratio.unwrap() - 2.0 / 3.0).abs() < 1e-6);
}

#[test]
fn extents_beyond_the_memory_are_told_apart() {
    let mut account = FlowAccount::new(SCHEDULE, STEP).unwrap();
    let gaps = reordering::REMEMBERED_GAPS as u32;
    (0..=gaps).for_each(|gap| account.observe(&on_time(gap * 2 + 1)));
    account.observe(&on_time(0));
    account.observe(&on_time(2));
    account.observe(&on_time(gaps * 2));
    let report = account.finish();
    assert_eq!((report.reordered, report.extent_unknown), (3, 1));
    let extent = report.reordering_extent.unwrap();
    assert_eq!(
        (extent.count, extent.min, extent.max),
        (2, 3, u64::from(gaps) + 1)
    );
}

#[test]
fn neighbours_that_come_too_late_make_no_pair() {
    let far = REMEMBERED_DELAYS as u32;
    let with_one_late = |late: u32| {
        let in_order = (0..far).filter(|number| *number != late).chain([late]);
        report(&in_order.map(on_time).collect::<Vec<_>>())
            .ipdv
            .unwrap()
            .absolute
            .count
    };
    assert_eq!(with_one_late(far / 2), u64::from(far) - 1);
    assert_eq!(with_one_late(0), u64::from(far) - 1);
    let mut account = FlowAccount::new(SCHEDULE, STEP).unwrap();
    [0].into_iter()
        .chain(2..far + 10)
        .chain([1])
        .for_each(|number| account.observe(&on_time(number)));
    assert_eq!(
        account.finish().ipdv.unwrap().absolute.count,
        u64::from(far) + 7
    );
}

#[test]
fn a_reference_far_above_the_smallest_delay_costs_what_is_promised() {
    let with_delay = |(sequence, delay): (u32, i64)| Observed {
        arrived: 20 * MILLISECOND + delay,
        ..on_time(sequence)
    };
    let slow = (0..1_024).map(|number| (number, 5 * MILLISECOND));
    let fast = (1_024..30_000).map(|number| (number, 10_000 + i64::from(number)));
    let delays: Vec<(u32, i64)> = slow.chain(fast).collect();
    let report = report(&delays.iter().copied().map(with_delay).collect::<Vec<_>>());
    let smallest = 11_024;
    let pdv = delays.iter().map(|(_, delay)| delay - smallest).collect();
    let away = (5 * MILLISECOND - smallest) as f64;
    assert_is_of(report.pdv.as_ref(), pdv, 0.0015, away * 0.0005 + 2.0);
}

#[test]
fn senseless_times_do_no_harm() {
    let extremes = [i64::MIN, -1, 0, i64::MAX];
    let senseless = extremes
        .iter()
        .flat_map(|intended| extremes.iter().map(|arrived| (*intended, *arrived)));
    let arrivals: Vec<Observed> = senseless
        .enumerate()
        .map(|(number, (intended, arrived))| Observed {
            intended,
            arrived,
            ..on_time(number as u32)
        })
        .collect();
    assert_eq!(report(&arrivals).total.packets, 16);
}

#[test]
fn steps_that_are_too_many_are_refused() {
    let hour = Schedule {
        measure: 3_600_000_000_000,
        ..SCHEDULE
    };
    assert!(FlowAccount::new(SCHEDULE, 0).is_err());
    assert!(FlowAccount::new(hour, 9_000_000).is_err());
    assert!(FlowAccount::new(hour, 11_000_000).is_ok());
}
