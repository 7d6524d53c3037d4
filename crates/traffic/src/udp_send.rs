//! Sends datagrams, each at its intended time.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use socket2::{Domain, Socket, Type};

use crate::batch::SendBatch;
use crate::clock::{STOP_LATENCY, Timeline, realtime};
use crate::content::Material;
use crate::datagram::{HEADER_BYTES, Header, LARGEST_PAYLOAD};
use crate::error::TrafficError;
use crate::histogram::Recorder;
use crate::job::{Rate, UdpSend};
use crate::outcome::{Outcome, Tally, UdpSent};
use crate::pacing::{Pacer, Step};
use crate::real_time::RealTime;
use crate::running::Running;
use crate::schedule::START_TOLERANCE;

/// A departure that is further behind its intended time than this is late, ns.
const LATE: i64 = 1_000_000;

const LARGEST_BATCH: u16 = 1024;

/// Starts the job.
pub(crate) fn start(job: UdpSend) -> Result<Running, TrafficError> {
    validate(&job)?;
    let material = job.content.load()?;
    let socket = open(&job)?;
    job.schedule.check_start(realtime(), START_TOLERANCE)?;
    Running::spawn("udp-send", None, move |stop| {
        Sender::new(&job, &socket, &material).run(stop)
    })
}

fn validate(job: &UdpSend) -> Result<(), TrafficError> {
    job.schedule.validate(realtime(), 0)?;
    job.content.validate()?;
    job.socket.validate(job.destination)?;
    let invalid = |text: String| Err(TrafficError::Invalid(text));
    if !(HEADER_BYTES..=LARGEST_PAYLOAD).contains(&(job.payload_bytes as usize)) {
        return invalid(format!(
            "a datagram has {HEADER_BYTES} to {LARGEST_PAYLOAD} bytes, not {}",
            job.payload_bytes
        ));
    }
    if !(1..=LARGEST_BATCH).contains(&job.batch) {
        return invalid(format!(
            "a batch has 1 to {LARGEST_BATCH} datagrams, not {}",
            job.batch
        ));
    }
    match job.rate {
        Rate::BitsPerSecond { value: 0 } | Rate::PacketsPerSecond { value: 0 } => {
            invalid("the rate is 0".into())
        }
        _ => Ok(()),
    }
}

fn open(job: &UdpSend) -> Result<Socket, TrafficError> {
    let socket = Socket::new(Domain::for_address(job.destination), Type::DGRAM, None)
        .map_err(TrafficError::io("open a UDP socket"))?;
    job.socket.apply(&socket, job.destination)?;
    // A full queue must not keep the sender from noticing that it shall stop.
    socket
        .set_write_timeout(Some(STOP_LATENCY))
        .map_err(TrafficError::io("set a time limit for sending"))?;
    socket
        .connect(&job.destination.into())
        .map_err(TrafficError::io(format!("reach {}", job.destination)))?;
    Ok(socket)
}

struct Sender<'a> {
    job: &'a UdpSend,
    socket: &'a Socket,
    timeline: Timeline,
    batch: SendBatch,
    intended: Vec<u64>,
    sequence: u32,
    sent: UdpSent,
    departure_error: Recorder,
    last_failure: Option<io::Error>,
}

impl<'a> Sender<'a> {
    fn new(job: &'a UdpSend, socket: &'a Socket, material: &Material) -> Self {
        Self {
            job,
            socket,
            timeline: Timeline::new(job.schedule.start_at),
            batch: SendBatch::new(job.batch.into(), job.payload_bytes as usize, material),
            intended: Vec::with_capacity(job.batch.into()),
            sequence: 0,
            sent: UdpSent {
                asked_rate: Pacer::asked_rate(job.rate, job.payload_bytes),
                achieved_rate: 0.0,
                measured: Tally::default(),
                total: Tally::default(),
                late: 0,
                skipped: 0,
                unsent: 0,
                send_errors: 0,
                departure_error: None,
                clock_step: 0,
            },
            departure_error: Recorder::new(),
            last_failure: None,
        }
    }

    fn run(mut self, stop: &AtomicBool) -> Result<Outcome, TrafficError> {
        let schedule = self.job.schedule;
        // A coarser timer would add its slack to every departure; where it cannot be had, `late` tells.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut pacer = Pacer::new(
            self.job.rate,
            self.job.payload_bytes,
            self.job.batch,
            schedule.end() as u64,
        );
        let mut real_time = match self.job.rate {
            Rate::Max => None,
            Rate::BitsPerSecond { .. } | Rate::PacketsPerSecond { .. } => RealTime::enter(),
        };
        let mut going = self.timeline.wait_until(0, 50_000, stop);
        while going {
            let now = self.timeline.elapsed().max(0) as u64;
            let skipped = &mut self.sent.skipped;
            let step = pacer.step(now, |due| {
                *skipped += u64::from(schedule.measures(due as i64));
                // Who cannot keep the rate needs a whole processor, and must leave the tunnel its share.
                real_time = None;
            });
            match step {
                Step::Done => break,
                Step::Wait { until, spin } => {
                    going = self.timeline.wait_until(until as i64, spin as i64, stop);
                }
                Step::Send(count) => {
                    self.intended.clear();
                    self.intended.extend((0..count).map(|_| pacer.take()));
                    self.depart()?;
                    going = !stop.load(Ordering::Relaxed);
                }
            }
        }
        if self.timeline.elapsed() < schedule.measured_to() {
            return Err(TrafficError::Stopped);
        }
        self.finish()
    }

    /// Sends one datagram for each intended time. One that the system refuses twice stays behind, so that the rest is
    /// not held up: the first refusal may be news of an earlier datagram.
    fn depart(&mut self) -> Result<(), TrafficError> {
        let (session, first) = (self.job.session, self.sequence);
        let departure = self.timeline.elapsed();
        let headers = self
            .intended
            .iter()
            .enumerate()
            .map(|(index, intended)| Header {
                sequence: first.wrapping_add(index as u32),
                session,
                intended: *intended,
                lateness: Some(lateness(*intended, departure)),
            });
        self.batch.prepare(headers);
        self.sequence = first.wrapping_add(self.intended.len() as u32);
        let mut done = 0;
        let mut refused = false;
        while done < self.intended.len() {
            let departure = self.timeline.elapsed();
            match self.batch.send(self.socket, done) {
                Ok(count) => {
                    (done..done + count).for_each(|index| self.departed(index, departure));
                    done += count;
                    refused = false;
                }
                Err(failure) if is_passing(&failure) => {
                    self.sent.send_errors += 1;
                    self.last_failure = Some(failure);
                    if refused {
                        self.sent.unsent += u64::from(self.is_measured(done));
                        done += 1;
                    }
                    refused = !refused;
                }
                Err(failure) => {
                    return Err(TrafficError::io(format!(
                        "send to {}",
                        self.job.destination
                    ))(failure));
                }
            }
        }
        Ok(())
    }

    fn departed(&mut self, index: usize, departure: i64) {
        let bytes = u64::from(self.job.payload_bytes);
        self.sent.total.add(bytes);
        if !self.is_measured(index) {
            return;
        }
        self.sent.measured.add(bytes);
        if self.sent.asked_rate.is_some() {
            let error = departure - self.intended[index] as i64;
            self.sent.late += u64::from(error > LATE);
            self.departure_error.record(error);
        }
    }

    fn is_measured(&self, index: usize) -> bool {
        self.job.schedule.measures(self.intended[index] as i64)
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
        self.sent.achieved_rate =
            self.sent.measured.bytes as f64 * 8e9 / self.job.schedule.measure as f64;
        self.sent.clock_step = self.timeline.clock_step();
        self.sent.departure_error = self.departure_error.finish();
        Ok(Outcome::UdpSend(self.sent))
    }
}

fn lateness(intended: u64, departure: i64) -> u32 {
    let lateness = (departure - intended as i64).max(0);
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
