//! The sending thread.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

use tunnelbench_packet_log::{LogWriter, Record};

use crate::clock::Timeline;
use crate::datagram::Header;
use crate::error::TrafficError;
use crate::histogram::Recorder;
use crate::job::UdpSend;
use crate::outcome::{Outcome, Tally, UdpSent};
use crate::packet_log::FLOW;
use crate::process::{Departures, Plan};
use crate::processor::ProcessorMeter;
use crate::real_time::RealTime;
use crate::running::Control;
use crate::schedule::Schedule;
use crate::udp_send::pacer::{Due, Pacer, Step};
use crate::udp_send::transmitter::Transmitter;
use crate::waiter::Waiter;

/// A departure that is further behind its intended time than this is late, ns.
const LATE: i64 = 1_000_000;

/// How long a sender that fell behind stays an ordinary thread, ns.
const PROBATION: i64 = 1_000_000_000;

pub(super) struct Sender<'a> {
    job: &'a UdpSend,
    schedule: Schedule,
    is_paced: bool,
    timeline: Timeline,
    pacer: Pacer,
    transmitter: Transmitter<'a>,
    due: Vec<Due>,
    /// Of the next datagram, counted without end.
    sequence: u64,
    sent: UdpSent,
    /// Payload that was due in the measured window and did not leave.
    missed_bytes: u64,
    departure_error: Recorder,
    log: Option<LogWriter>,
    last_failure: Option<io::Error>,
}

impl<'a> Sender<'a> {
    pub fn new(
        job: &'a UdpSend,
        plan: Plan,
        transmitter: Transmitter<'a>,
        log: Option<LogWriter>,
    ) -> Self {
        let most = transmitter.most();
        Self {
            job,
            schedule: job.schedule,
            is_paced: job.departures != Departures::Max,
            timeline: Timeline::new(job.schedule.start_at),
            pacer: Pacer::new(plan, most, job.schedule.end() as u64),
            transmitter,
            due: Vec::with_capacity(most),
            sequence: 0,
            sent: UdpSent {
                mode: job.mode,
                asked_rate: None,
                achieved_rate: 0.0,
                measured: Tally::default(),
                total: Tally::default(),
                late: 0,
                skipped: 0,
                unsent: 0,
                send_errors: 0,
                departure_error: None,
                processor: 0,
                clock_step: 0,
            },
            missed_bytes: 0,
            departure_error: Recorder::new(),
            log,
            last_failure: None,
        }
    }

    pub fn run(mut self, stop: &Control) -> Result<Outcome, TrafficError> {
        // A coarser timer would add its slack to every departure; where it cannot be had, `late` tells.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut real_time = if self.is_paced {
            RealTime::enter()
        } else {
            None
        };
        let mut ordinary_until = i64::MIN;
        let mut processor = ProcessorMeter::new(self.schedule);
        let mut waiter = Waiter::new(self.timeline);
        let mut going = waiter.wait_until(0, stop);
        while going {
            let now = self.timeline.elapsed();
            processor.look(now);
            let (schedule, sent, missed) = (self.schedule, &mut self.sent, &mut self.missed_bytes);
            let step = self.pacer.step(now.max(0) as u64, &mut self.due, |due| {
                if schedule.measures(due.intended as i64) {
                    sent.skipped += 1;
                    *missed += u64::from(due.bytes);
                }
                // Who cannot keep the rate needs a whole processor, and must leave the tunnel its share.
                real_time = None;
                ordinary_until = now + PROBATION;
            });
            match step {
                Step::Done => {
                    // The last datagram may be due long before the end.
                    self.timeline.sleep_until(schedule.measured_to(), stop);
                    break;
                }
                Step::Wait(until) => {
                    if real_time.is_none() && now >= ordinary_until {
                        real_time = RealTime::enter();
                        ordinary_until = now + PROBATION;
                    }
                    going = waiter.wait_until(until as i64, stop);
                }
                Step::Send => {
                    self.depart(now)?;
                    going = !stop.load(Ordering::Relaxed);
                }
            }
        }
        let is_early = self.timeline.elapsed() < self.schedule.measured_to();
        if is_early && !stop.contents_itself() {
            return Err(TrafficError::Stopped);
        }
        self.sent.processor = processor.finish();
        drop(real_time);
        if let Some(log) = self.log.take() {
            log.finish()?;
        }
        self.finish()
    }

    /// Sends what is due, as was found out at `now`. A datagram that the system refuses twice stays behind, so that the
    /// rest is not held up: the first refusal may be news of an earlier datagram.
    fn depart(&mut self, now: i64) -> Result<(), TrafficError> {
        self.transmitter.take(&self.due);
        let count = self.due.len();
        let mut done = 0;
        let mut refused = false;
        // At the highest rate a departure is intended for the time just read.
        let mut departure = if self.is_paced {
            self.timeline.elapsed()
        } else {
            now
        };
        while done < count {
            self.address(done, departure);
            match self.transmitter.send(done..count) {
                Ok(taken) => {
                    self.departed(done..done + taken, departure);
                    done += taken;
                    refused = false;
                }
                Err(failure) if is_passing(&failure) => {
                    self.sent.send_errors += 1;
                    self.last_failure = Some(failure);
                    if refused {
                        self.stays_behind(done);
                        done += 1;
                    }
                    refused = !refused;
                }
                Err(failure) => {
                    let action = format!("send to {}", self.job.destination);
                    return Err(TrafficError::io(action)(failure));
                }
            }
            if done < count {
                departure = self.timeline.elapsed();
            }
        }
        self.sequence += count as u64;
        Ok(())
    }

    /// Writes the headers of the datagrams from `first` on, which depart now.
    fn address(&mut self, first: usize, departure: i64) {
        for (index, due) in self.due.iter().enumerate().skip(first) {
            let header = Header {
                sequence: (self.sequence + index as u64) as u32,
                session: self.job.session,
                intended: due.intended,
                lateness: Some(lateness(*due, departure)),
            };
            self.transmitter.address(index, &header);
        }
    }

    fn departed(&mut self, range: Range<usize>, departure: i64) {
        if let Some(log) = &mut self.log {
            for index in range.clone() {
                let due = self.due[index];
                log.record(Record {
                    flow: FLOW,
                    sequence: self.sequence + index as u64,
                    intended: self.timeline.realtime_at(due.intended as i64),
                    sent: Some(self.timeline.realtime_at(departure)),
                    received: None,
                    bytes: due.bytes,
                });
            }
        }
        for due in &self.due[range] {
            let bytes = u64::from(due.bytes);
            self.sent.total.add(bytes);
            if !self.schedule.measures(due.intended as i64) {
                continue;
            }
            self.sent.measured.add(bytes);
            if self.is_paced {
                let error = departure - due.intended as i64;
                self.sent.late += u64::from(error > LATE);
                self.departure_error.record(error);
            }
        }
    }

    fn stays_behind(&mut self, index: usize) {
        let due = self.due[index];
        if self.schedule.measures(due.intended as i64) {
            self.sent.unsent += 1;
            self.missed_bytes += u64::from(due.bytes);
        }
    }

    fn finish(mut self) -> Result<Outcome, TrafficError> {
        if self.sent.measured.packets == 0 {
            let failure = self
                .last_failure
                .map_or_else(|| "none was due".into(), |failure| failure.to_string());
            return Err(TrafficError::NothingCarried(format!(
                "no datagram left for {} in the measured window: {failure}",
                self.job.destination
            )));
        }
        let rate = |bytes: u64| bytes as f64 * 8e9 / self.schedule.measure as f64;
        self.sent.achieved_rate = rate(self.sent.measured.bytes);
        self.sent.asked_rate = self
            .is_paced
            .then(|| rate(self.sent.measured.bytes + self.missed_bytes));
        self.sent.mode = self.transmitter.mode();
        self.sent.clock_step = self.timeline.clock_step();
        self.sent.departure_error = self.departure_error.finish();
        Ok(Outcome::UdpSend(self.sent))
    }
}

/// Saturating, and 0 for what left no later than intended.
fn lateness(due: Due, departure: i64) -> u32 {
    let lateness = (departure - due.intended as i64).max(0);
    u32::try_from(lateness).unwrap_or(u32::MAX)
}

/// Failures that say something of one datagram or of the moment and not of all that follow.
fn is_passing(failure: &io::Error) -> bool {
    let passing = [
        libc::EAGAIN,
        libc::ECONNREFUSED,
        libc::EHOSTUNREACH,
        libc::EINTR,
        libc::EMSGSIZE,
        libc::ENETUNREACH,
        libc::ENOBUFS,
        libc::ENOMEM,
        libc::EPERM,
    ];
    failure
        .raw_os_error()
        .is_some_and(|number| passing.contains(&number))
}
