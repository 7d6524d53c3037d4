//! How far the clocks of two machines are apart, and how sure that is.
//!
//! Each exchange has the four timestamps of NTP (RFC 5905 section 8): sent and received by the client, received and
//! answered by the server. Whatever the delays of its two ways, the offset lies between `answered - received` and
//! `received at the server - sent`. The bounds of all exchanges of one reading are intersected, which is the
//! minimum-delay filter of RFC 5905 section 10 for each way by itself; its half width is the uncertainty.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// How fast two clocks may drift apart while a reading is taken, ns per second: ten times a poor quartz's 100 ppm would
/// be seen as a step, and 100 ppm is above what NTP-disciplined and common free-running clocks do.
const LARGEST_DRIFT: i128 = 100_000;

/// This machine's CLOCK_REALTIME, ns since 1970.
pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// Four timestamps, ns: the outer ones of the client's clock, the inner ones of the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exchange {
    /// The client sent its request.
    pub sent: i64,
    /// The server received it.
    pub received: i64,
    /// The server sent its answer.
    pub answered: i64,
    /// The client received that.
    pub returned: i64,
}

impl Exchange {
    /// None where no pair of clocks could have given these timestamps.
    pub fn check(self) -> Option<Self> {
        let plausible = self.sent <= self.returned
            && self.received <= self.answered
            && self.width() >= 0
            && [self.sent, self.received, self.answered, self.returned]
                .iter()
                .all(|time| *time >= 0);
        plausible.then_some(self)
    }

    fn low(&self) -> i128 {
        i128::from(self.answered) - i128::from(self.returned)
    }

    fn high(&self) -> i128 {
        i128::from(self.received) - i128::from(self.sent)
    }

    /// The round trip on the network.
    fn width(&self) -> i128 {
        self.high() - self.low()
    }

    fn middle(&self) -> i64 {
        self.sent + (self.returned - self.sent) / 2
    }
}

/// The server's clock minus the client's, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// When, ns of the client's clock.
    pub at: i64,
    /// Server minus client, ns.
    pub offset: i64,
    /// The true offset is at most this far away, ns, whatever the delays of the two ways.
    pub uncertainty: u64,
    /// The shortest round trip that was seen, ns.
    pub round_trip: u64,
}

impl Reading {
    /// None without any exchange.
    pub(crate) fn of(exchanges: &[Exchange]) -> Option<Self> {
        let best = exchanges.iter().min_by_key(|exchange| exchange.width())?;
        let at = best.middle();
        let bounds = exchanges.iter().map(|exchange| {
            let apart = (i128::from(exchange.middle()) - i128::from(at)).abs() + exchange.width();
            let slack = apart * LARGEST_DRIFT / 1_000_000_000 + 1;
            (exchange.low() - slack, exchange.high() + slack)
        });
        let (low, high) = bounds
            .reduce(|(low, high), (other_low, other_high)| {
                (low.max(other_low), high.min(other_high))
            })
            // A clock that was stepped in between leaves nothing in common; the best exchange stands by itself.
            .filter(|(low, high)| low <= high)
            .unwrap_or((best.low(), best.high()));
        Some(Self {
            at,
            offset: saturated((low + high).div_euclid(2)),
            uncertainty: saturated((high - low + 1) / 2) as u64,
            round_trip: saturated(best.width()) as u64,
        })
    }
}

/// The offset over the whole of a run: readings before, during and after it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Clocks {
    /// Whether both ends read the same clock; then the offset is 0 and certain.
    pub shared: bool,
    /// All readings, in order of time.
    pub readings: Vec<Reading>,
}

/// An offset with its uncertainty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Offset {
    /// Server minus client, ns.
    pub offset: i64,
    /// The true offset is at most this far away, ns.
    pub uncertainty: u64,
}

impl Clocks {
    /// From readings in order of time. Clocks said to be one are not where a reading speaks against it.
    pub(crate) fn new(said_to_be_shared: bool, readings: Vec<Reading>) -> Self {
        let agrees = |reading: &Reading| reading.offset.unsigned_abs() <= reading.uncertainty;
        Self {
            shared: said_to_be_shared && readings.iter().all(agrees),
            readings,
        }
    }

    /// Interpolates linearly between the first and the last reading, and holds the nearer one outside. The uncertainty
    /// grows by what the readings in between deviate from that line beyond what their own allows.
    #[must_use]
    pub fn at(&self, time: i64) -> Offset {
        let (Some(first), Some(last)) = (self.readings.first(), self.readings.last()) else {
            return Offset::default();
        };
        if self.shared {
            return Offset::default();
        }
        let bent = self.readings.iter().map(|reading| {
            let line = interpolate(first, last, reading.at);
            let deviation = line.offset.abs_diff(reading.offset);
            deviation.saturating_sub(line.uncertainty.saturating_add(reading.uncertainty))
        });
        let line = interpolate(first, last, time);
        Offset {
            uncertainty: line.uncertainty.saturating_add(bent.max().unwrap_or(0)),
            ..line
        }
    }

    /// How fast the server's clock gains on the client's, parts per million; none from a single reading.
    #[must_use]
    pub fn drift(&self) -> Option<f64> {
        let (first, last) = (self.readings.first()?, self.readings.last()?);
        let elapsed = last
            .at
            .checked_sub(first.at)
            .filter(|elapsed| *elapsed > 0)?;
        let gained = i128::from(last.offset) - i128::from(first.offset);
        Some(if self.shared {
            0.0
        } else {
            gained as f64 * 1e6 / elapsed as f64
        })
    }
}

fn interpolate(first: &Reading, last: &Reading, time: i64) -> Offset {
    let length = i128::from(last.at) - i128::from(first.at);
    let into = (i128::from(time) - i128::from(first.at)).clamp(0, length.max(0));
    let between = |from: i128, to: i128| {
        if length <= 0 {
            to
        } else {
            from + (to - from) * into / length
        }
    };
    Offset {
        offset: saturated(between(first.offset.into(), last.offset.into())),
        // Rounding up, because division has rounded the offset by up to 1 ns.
        uncertainty: saturated(between(first.uncertainty.into(), last.uncertainty.into()) + 2)
            as u64,
    }
}

fn saturated(value: i128) -> i64 {
    value.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// What tells two clocks from each other: the same text means the same running kernel, whose CLOCK_REALTIME is one for
/// all its containers and namespaces. Empty where the kernel does not say.
pub(crate) fn identity() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Two clocks: the server's shows `offset + drift * time` more than the client's.
    #[derive(Clone, Copy, Debug)]
    struct Pair {
        offset: i64,
        drift_ppb: i64,
    }

    impl Pair {
        fn truth(&self, time: i64) -> i64 {
            self.offset
                + (i128::from(time - START) * i128::from(self.drift_ppb) / 1_000_000_000) as i64
        }

        fn exchange(&self, sent: i64, (there, inside, back): (i64, i64, i64)) -> Exchange {
            let server = |time: i64| time + self.truth(time);
            Exchange {
                sent,
                received: server(sent + there),
                answered: server(sent + there + inside),
                returned: sent + there + inside + back,
            }
        }
    }

    const START: i64 = 1_700_000_000_000_000_000;
    const SECOND: i64 = 1_000_000_000;

    fn pair() -> impl Strategy<Value = Pair> {
        (-1_000_000 * SECOND..1_000_000 * SECOND, -50_000_i64..50_000)
            .prop_map(|(offset, drift_ppb)| Pair { offset, drift_ppb })
    }

    /// Ways of very different lengths, as queues make them.
    fn delays() -> impl Strategy<Value = Vec<(i64, i64, i64)>> {
        prop::collection::vec(
            (
                1_000..50_000_000_i64,
                0..5_000_000_i64,
                1_000..400_000_000_i64,
            ),
            1..30,
        )
    }

    fn reading(pair: Pair, start: i64, delays: &[(i64, i64, i64)]) -> Reading {
        let mut sent = start;
        let exchanges: Vec<_> = delays
            .iter()
            .map(|ways| {
                let exchange = pair.exchange(sent, *ways);
                sent = exchange.returned + 1_000;
                exchange.check().unwrap()
            })
            .collect();
        Reading::of(&exchanges).unwrap()
    }

    proptest! {
        #[test]
        fn the_true_offset_lies_within_the_uncertainty(pair in pair(), delays in delays()) {
            let reading = reading(pair, START, &delays);
            let error = reading.offset.abs_diff(pair.truth(reading.at));
            prop_assert!(error <= reading.uncertainty + 1, "{error} ns off, {} allowed", reading.uncertainty);
            let shortest = delays.iter().map(|(there, _, back)| there + back).min().unwrap() as u64;
            prop_assert!(reading.uncertainty <= shortest / 2 + shortest / 1_000 + 10, "{reading:?}");
        }

        #[test]
        fn it_does_so_all_through_a_run_of_clocks_that_drift(
            pair in pair(), before in delays(), during in delays(), after in delays(), moment in 0..60 * SECOND,
        ) {
            let readings = vec![
                reading(pair, START, &before),
                reading(pair, START + 30 * SECOND, &during),
                reading(pair, START + 60 * SECOND, &after),
            ];
            let (from, to) = (readings[0].at, readings[2].at);
            let clocks = Clocks::new(false, readings);
            let time = (START + moment).clamp(from, to);
            let found = clocks.at(time);
            let error = found.offset.abs_diff(pair.truth(time));
            prop_assert!(error <= found.uncertainty, "{error} ns off, {} allowed", found.uncertainty);
        }

        #[test]
        fn any_timestamps_are_survived(times in prop::collection::vec(any::<[i64; 4]>(), 0..10), at: i64) {
            let exchanges: Vec<_> = times
                .into_iter()
                .filter_map(|[sent, received, answered, returned]| {
                    Exchange { sent, received, answered, returned }.check()
                })
                .collect();
            let readings: Vec<_> = Reading::of(&exchanges).into_iter().collect();
            let clocks = Clocks::new(true, [readings.clone(), readings].concat());
            let _ = (clocks.at(at), clocks.drift());
        }
    }

    #[test]
    fn one_clock_is_certain_unless_a_reading_speaks_against_it() {
        let reading = |offset| Reading {
            at: START,
            offset,
            uncertainty: 20_000,
            round_trip: 40_000,
        };
        let shared = Clocks::new(true, vec![reading(-15_000)]);
        assert!(shared.shared);
        assert_eq!(
            shared.at(START),
            Offset {
                offset: 0,
                uncertainty: 0
            }
        );
        let restored_twice = Clocks::new(true, vec![reading(-15_000), reading(21_000)]);
        assert!(!restored_twice.shared);
    }

    #[test]
    fn a_step_in_the_middle_shows_in_the_uncertainty() {
        let reading = |seconds, offset| Reading {
            at: START + seconds * SECOND,
            offset,
            uncertainty: 100,
            round_trip: 200,
        };
        let clocks = Clocks::new(
            false,
            vec![reading(0, 0), reading(5, 1_000_000), reading(10, 0)],
        );
        assert!(clocks.at(START + 2 * SECOND).uncertainty >= 999_000);
        assert_eq!(clocks.drift(), Some(0.0));
    }
}
