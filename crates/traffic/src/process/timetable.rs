//! When each datagram is due, to the ns.

use crate::process::departures::Departures;
use crate::process::generator::{Generator, Purpose};
use crate::process::sampler::{Sampler, Source};
use crate::schedule::LONGEST_JOB;

const SECOND: u64 = 1_000_000_000;

/// The intended times of datagrams, ns since the start: they never decrease, and the first is 0.
///
/// A constant rate is kept with exact fractions, so that it doesn't drift however long it lasts.
#[derive(Clone, Debug)]
pub struct Timetable {
    due: u64,
    pace: Pace,
}

#[derive(Clone, Debug)]
enum Pace {
    Bits(Moment),
    Packets(Moment),
    Bursts {
        datagrams: u32,
        interval: u64,
        left: u32,
    },
    Process(Box<Sampler>),
    Talk(Box<Conversation>),
}

impl Departures {
    /// The timetable of these departures, which are valid; none for `max`, where every time is as good.
    pub fn timetable(&self, seed: u64) -> Option<Timetable> {
        let pace = match self {
            Self::Max => return None,
            Self::BitsPerSecond { value } => Pace::Bits(Moment::start(*value)),
            Self::PacketsPerSecond { value } => Pace::Packets(Moment::start(*value)),
            Self::Bursts {
                datagrams,
                interval,
            } => Pace::Bursts {
                datagrams: *datagrams,
                interval: *interval,
                left: *datagrams,
            },
            Self::Process { interval } => {
                Pace::Process(Box::new(interval.sampler_for(seed, Purpose::Departures)))
            }
            Self::Talk {
                interval,
                talk,
                silence,
            } => Pace::Talk(Box::new(Conversation::start(
                *interval,
                Source::of(talk),
                Source::of(silence),
                Generator::new(seed, Purpose::Departures),
            ))),
        };
        Some(Timetable { due: 0, pace })
    }
}

impl Timetable {
    /// When the next datagram is due.
    pub fn due(&self) -> u64 {
        self.due
    }

    /// Takes the next datagram, which has this many bytes of payload, and gives the time at which it was due.
    pub fn take(&mut self, bytes: u32) -> u64 {
        let due = self.due;
        self.due = match &mut self.pace {
            Pace::Bits(moment) => moment.advance(u64::from(bytes).saturating_mul(8 * SECOND)),
            Pace::Packets(moment) => moment.advance(SECOND),
            Pace::Bursts {
                datagrams,
                interval,
                left,
            } => {
                *left -= 1;
                if *left > 0 {
                    due
                } else {
                    *left = *datagrams;
                    due.saturating_add(*interval)
                }
            }
            Pace::Process(interval) => due.saturating_add(duration(interval.next())),
            Pace::Talk(conversation) => conversation.after(due),
        };
        due
    }
}

/// A sample as a length of time, 0 ns to one hour.
fn duration(sample: f64) -> u64 {
    // The conversion takes everything below 0 for 0.
    (sample.round() as u64).min(LONGEST_JOB)
}

/// An exact time, `whole + fraction / denominator` ns.
#[derive(Clone, Copy, Debug)]
struct Moment {
    whole: u64,
    fraction: u64,
    denominator: u64,
}

impl Moment {
    fn start(denominator: u64) -> Self {
        Self {
            whole: 0,
            fraction: 0,
            denominator,
        }
    }

    /// Adds `numerator / denominator` ns and gives the time rounded up: a datagram that were early would be a burst.
    fn advance(&mut self, numerator: u64) -> u64 {
        let (sum, overflows) = self.fraction.overflowing_add(numerator % self.denominator);
        let carries = overflows || sum >= self.denominator;
        self.fraction = if carries {
            sum.wrapping_sub(self.denominator)
        } else {
            sum
        };
        self.whole = self
            .whole
            .saturating_add(numerator / self.denominator)
            .saturating_add(carries.into());
        self.whole.saturating_add((self.fraction > 0).into())
    }
}

/// Talk spurts and silences by turns.
#[derive(Clone, Debug)]
struct Conversation {
    interval: u64,
    talk: Source,
    silence: Source,
    generator: Generator,
    /// When the current talk spurt is over.
    silent_from: u64,
}

impl Conversation {
    fn start(interval: u64, talk: Source, silence: Source, generator: Generator) -> Self {
        let mut conversation = Self {
            interval,
            talk,
            silence,
            generator,
            silent_from: 0,
        };
        conversation.talk_from(0);
        conversation
    }

    fn talk_from(&mut self, start: u64) -> u64 {
        let length = duration(self.talk.draw(&mut self.generator)).max(self.interval);
        self.silent_from = start.saturating_add(length);
        start
    }

    /// When the datagram after that of `due` is due.
    fn after(&mut self, due: u64) -> u64 {
        let next = due.saturating_add(self.interval);
        if next < self.silent_from {
            return next;
        }
        let silence = duration(self.silence.draw(&mut self.generator));
        self.talk_from(self.silent_from.saturating_add(silence))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::process::Distribution;

    fn dues(departures: &Departures, seed: u64, sizes: &[u32]) -> Vec<u64> {
        let mut timetable = departures.timetable(seed).unwrap();
        sizes.iter().map(|bytes| timetable.take(*bytes)).collect()
    }

    fn random_departures() -> impl Strategy<Value = Departures> {
        let distribution = prop_oneof![
            (0.0_f64..1e7).prop_map(|value| Distribution::Constant { value }),
            (1.0_f64..1e8).prop_map(|mean| Distribution::Exponential { mean }),
            (-1e6_f64..1e8, 0.0_f64..1e8)
                .prop_map(|(mean, deviation)| Distribution::Normal { mean, deviation }),
            (-1e6_f64..1e8, 1.0_f64..1e8)
                .prop_map(|(location, scale)| Distribution::Cauchy { location, scale }),
            (0.1_f64..3.0, 1.0_f64..1e6)
                .prop_map(|(shape, scale)| Distribution::Pareto { shape, scale }),
        ];
        let silence = distribution.clone();
        prop_oneof![
            distribution
                .clone()
                .prop_map(|interval| Departures::Process { interval }),
            (1_u64..1_000_000_000, distribution, silence).prop_map(|(interval, talk, silence)| {
                Departures::Talk {
                    interval,
                    talk,
                    silence,
                }
            }),
            (1_u32..100, 1_u64..1_000_000_000).prop_map(|(datagrams, interval)| {
                Departures::Bursts {
                    datagrams,
                    interval,
                }
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn packets_are_due_at_the_exact_times_rounded_up(value in 1_u64..10_000_000) {
            let timetable = dues(&Departures::PacketsPerSecond { value }, 0, &[100; 500]);
            for (number, due) in (0_u128..).zip(timetable) {
                let exact = (number * u128::from(SECOND)).div_ceil(value.into());
                prop_assert_eq!(u128::from(due), exact);
            }
        }

        #[test]
        fn datagrams_are_due_when_the_bits_before_them_have_had_their_time(
            value in 1_u64..=u64::MAX, sizes in prop::collection::vec(0_u32..70_000, 1..500),
        ) {
            let timetable = dues(&Departures::BitsPerSecond { value }, 0, &sizes);
            let mut bits = 0_u128;
            for (due, bytes) in timetable.into_iter().zip(sizes) {
                let exact = (bits * u128::from(SECOND)).div_ceil(value.into());
                prop_assert_eq!(u128::from(due), exact.min(u64::MAX.into()));
                bits += u128::from(bytes) * 8;
            }
        }

        #[test]
        fn no_window_holds_more_than_was_asked_and_one_datagram(
            value in 1_000_u64..10_000_000_000,
            sizes in prop::collection::vec(12_u32..65_507, 2..200),
            window in 1_u64..1_000_000_000,
        ) {
            let timetable = dues(&Departures::BitsPerSecond { value }, 0, &sizes);
            for (first, from) in timetable.iter().enumerate() {
                let inside = timetable[first..].iter().take_while(|due| **due - from < window).count();
                // The last one that departs in a window is the one that may stick out of it.
                let bits: u128 = sizes[first..first + inside - 1].iter().map(|bytes| u128::from(*bytes) * 8).sum();
                prop_assert!(bits * u128::from(SECOND) <= u128::from(window) * u128::from(value));
            }
        }

        #[test]
        fn dues_never_decrease_and_a_seed_gives_them_again(departures in random_departures(), seed: u64) {
            let timetable = dues(&departures, seed, &[100; 300]);
            prop_assert!(timetable.is_sorted());
            prop_assert_eq!(timetable[0], 0);
            prop_assert_eq!(timetable, dues(&departures, seed, &[1_400; 300]));
        }
    }

    #[test]
    fn a_constant_rate_does_not_drift_in_an_hour() {
        let mut timetable = Departures::PacketsPerSecond { value: 7_001 }
            .timetable(0)
            .unwrap();
        let last = (0..=7_001 * 3_600).fold(0, |_, _| timetable.take(100));
        assert_eq!(last, LONGEST_JOB);
    }

    #[test]
    fn the_long_run_rate_of_a_process_is_that_of_its_mean() {
        let departures = Departures::Process {
            interval: Distribution::Exponential { mean: 1e6 },
        };
        let last = dues(&departures, 1, &[100; 1_000_001])[1_000_000];
        // The standard deviation of the sum of a million exponential intervals is a thousandth of it.
        assert!((0.996e12..1.004e12).contains(&(last as f64)), "{last}");
    }

    #[test]
    fn seeds_give_different_processes() {
        let departures = Departures::Process {
            interval: Distribution::Exponential { mean: 1e6 },
        };
        assert_ne!(
            dues(&departures, 1, &[100; 3]),
            dues(&departures, 2, &[100; 3])
        );
    }

    #[test]
    fn a_train_leaves_back_to_back() {
        let departures = Departures::Bursts {
            datagrams: 3,
            interval: 10,
        };
        assert_eq!(dues(&departures, 0, &[100; 7]), [0, 0, 0, 10, 10, 10, 20]);
    }

    #[test]
    fn nobody_sends_in_silence() {
        let departures = Departures::Talk {
            interval: 20,
            talk: Distribution::Listed {
                values: vec![50.0, 60.0, 0.0],
            },
            silence: Distribution::Constant { value: 1_000.0 },
        };
        // Talk from 0 to 50, from 1050 to 1110, from 2110 for one interval, and from 3130 on.
        assert_eq!(
            dues(&departures, 0, &[100; 9]),
            [0, 20, 40, 1_050, 1_070, 1_090, 2_110, 3_130, 3_150]
        );
    }

    #[test]
    fn voice_talks_as_much_of_the_time_as_its_distributions_say() {
        let departures = Departures::Talk {
            interval: 20_000_000,
            talk: Distribution::Exponential { mean: 1.004e9 },
            silence: Distribution::Exponential { mean: 1.587e9 },
        };
        let timetable = dues(&departures, 3, &[100; 100_000]);
        let talking = 100_000.0 * 20e6 / timetable[99_999] as f64;
        // A spurt is cut up into whole intervals, the last of them begun: half an interval more than its length.
        let expected = 1.014 / (1.004 + 1.587);
        assert!((talking - expected).abs() < 0.01, "{talking}");
    }

    #[test]
    fn an_interval_is_at_most_an_hour_and_never_negative() {
        assert_eq!(duration(-1e300), 0);
        assert_eq!(duration(1e300), LONGEST_JOB);
        assert_eq!(duration(1.5), 2);
    }
}
