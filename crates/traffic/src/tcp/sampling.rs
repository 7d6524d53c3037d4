//! Looks at the sending connections at equal steps, in a thread of its own that spends its time asleep.

use crate::error::TrafficError;
use crate::histogram::{Histogram, Recorder};
use crate::outcome::{TcpInformation, TcpSamples};
use crate::schedule::Schedule;
use crate::tcp::flow::{Stream, Trial};
use crate::tcp::information::information;

/// The most samples of a job, all streams together: beyond, they are taken less often.
const MOST_SAMPLES: u64 = 100_000;

/// What was seen of all streams.
pub(super) struct Sampled {
    pub step: u64,
    pub streams: Vec<SampledStream>,
    /// Of the measured window.
    pub round_trip: Option<Histogram>,
}

/// What was seen of one stream.
pub(super) struct SampledStream {
    pub samples: TcpSamples,
    opened: Option<TcpInformation>,
    closed: Option<TcpInformation>,
}

impl SampledStream {
    fn new(steps: usize) -> Self {
        let column = || vec![None; steps];
        Self {
            samples: TcpSamples {
                round_trip: column(),
                round_trip_deviation: column(),
                congestion_window: column(),
                unacked: column(),
                retransmits: column(),
                pacing_rate: column(),
                delivery_rate: column(),
            },
            opened: None,
            closed: None,
        }
    }

    fn put(&mut self, step: usize, seen: &TcpInformation) {
        let samples = &mut self.samples;
        samples.round_trip[step] = Some(seen.round_trip);
        samples.round_trip_deviation[step] = Some(seen.round_trip_deviation);
        samples.congestion_window[step] = Some(seen.congestion_window);
        samples.unacked[step] = Some(seen.unacked);
        samples.retransmits[step] = Some(seen.retransmits);
        samples.pacing_rate[step] = seen.pacing_rate;
        samples.delivery_rate[step] = seen.delivery_rate;
    }

    /// Segments retransmitted in the measured window.
    pub fn retransmits(&self) -> u64 {
        self.grown(|seen| Some(seen.retransmits)).unwrap_or(0)
    }

    /// Segments with payload that were sent in the measured window, again or for the first time.
    pub fn segments(&self) -> Option<u64> {
        self.grown(|seen| seen.segments)
    }

    /// By how much a counter grew in the measured window; Linux counts modulo 2^32.
    fn grown(&self, counter: impl Fn(&TcpInformation) -> Option<u64>) -> Option<u64> {
        let opened = counter(self.opened.as_ref()?)? as u32;
        let closed = counter(self.closed.as_ref()?)? as u32;
        Some(closed.wrapping_sub(opened).into())
    }
}

enum Moment {
    Step(usize),
    WindowOpens,
    WindowCloses,
}

/// Samples until the schedule ends. What was not seen in its own step, because this thread was held up, is left out.
pub(super) fn sample(trial: Trial, streams: &[Stream]) -> Result<Sampled, TrafficError> {
    let step = step(trial.options.sample, trial.schedule, streams.len());
    let moments = moments(trial.schedule, step);
    let steps = moments.len() - 2;
    let mut sampled: Vec<_> = streams.iter().map(|_| SampledStream::new(steps)).collect();
    let mut round_trips = Recorder::new();
    for (at, moment) in moments {
        let is_on_time = trial.timeline.sleep_until(at, trial.stop);
        let now = trial.timeline.elapsed();
        // The window closes here for who contents himself with what there is.
        let moment = match moment {
            _ if !is_on_time && trial.may_end(now) => Moment::WindowCloses,
            _ if !is_on_time => break,
            moment => moment,
        };
        for (stream, sampled) in streams.iter().zip(&mut sampled) {
            let seen = information(&stream.socket)
                .map_err(TrafficError::io("read TCP_INFO of a connection"))?;
            match moment {
                Moment::WindowOpens => sampled.opened = Some(seen),
                Moment::WindowCloses => sampled.closed = Some(seen),
                Moment::Step(number) if now - at < step as i64 => {
                    sampled.put(number, &seen);
                    if trial.schedule.measures(now) {
                        round_trips.record(seen.round_trip as i64);
                    }
                }
                Moment::Step(_) => {}
            }
        }
        if !is_on_time {
            break;
        }
    }
    Ok(Sampled {
        step,
        streams: sampled,
        round_trip: round_trips.finish(),
    })
}

/// The time between two samples, ns: as asked, or a multiple where that would be too many.
fn step(asked: u64, schedule: Schedule, streams: usize) -> u64 {
    let samples = steps(schedule, asked) * streams as u64;
    asked * samples.div_ceil(MOST_SAMPLES).max(1)
}

fn steps(schedule: Schedule, step: u64) -> u64 {
    (schedule.end() as u64).div_ceil(step)
}

/// All moments to look at, in their order.
fn moments(schedule: Schedule, step: u64) -> Vec<(i64, Moment)> {
    let samples = (0..steps(schedule, step))
        .map(|number| ((number * step) as i64, Moment::Step(number as usize)));
    let edges = [
        (schedule.measured_from(), Moment::WindowOpens),
        (schedule.measured_to(), Moment::WindowCloses),
    ];
    let mut moments: Vec<_> = samples.chain(edges).collect();
    moments.sort_by_key(|(at, _)| *at);
    moments
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const STEP: u64 = 100_000_000;

    fn lasting(seconds: u64) -> Schedule {
        Schedule {
            start_at: 0,
            warm_up: SECOND,
            measure: (seconds - 2) * SECOND,
            cool_down: SECOND,
        }
    }

    #[test]
    fn samples_are_as_many_as_asked_while_that_is_bounded() {
        assert_eq!(step(STEP, lasting(10), 1), STEP);
        assert_eq!(step(STEP, lasting(3_600), 1), STEP);
        for (seconds, streams) in [(3_600, 128), (1_000, 11), (10, 128)] {
            let step = step(STEP, lasting(seconds), streams);
            assert!(steps(lasting(seconds), step) * streams as u64 <= MOST_SAMPLES);
            assert_eq!(step % STEP, 0);
        }
    }

    #[test]
    fn the_window_opens_and_closes_among_the_samples() {
        let moments = moments(lasting(3), STEP);
        assert_eq!(moments.len(), 32);
        assert!(moments.is_sorted_by_key(|(at, _)| *at));
        let at = |edge: fn(&Moment) -> bool| moments.iter().find(|(_, moment)| edge(moment));
        let opens = at(|moment| matches!(moment, Moment::WindowOpens));
        let closes = at(|moment| matches!(moment, Moment::WindowCloses));
        assert_eq!(opens.map(|(at, _)| *at), Some(SECOND as i64));
        assert_eq!(closes.map(|(at, _)| *at), Some(2 * SECOND as i64));
    }

    #[test]
    fn counters_that_wrap_around_still_grow() {
        let seen = |retransmits| TcpInformation {
            retransmits,
            ..TcpInformation::default()
        };
        let stream = SampledStream {
            opened: Some(seen(u64::from(u32::MAX))),
            closed: Some(seen(4)),
            ..SampledStream::new(0)
        };
        assert_eq!((stream.retransmits(), stream.segments()), (5, None));
    }
}
