//! Sends probes and times their replies.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::{STOP_LATENCY, monotonic};
use crate::content::repeat;
use crate::datagram::{HEADER_BYTES, Header, LARGEST_PAYLOAD};
use crate::error::TrafficError;
use crate::histogram::Recorder;
use crate::job::{EchoProbe, Protocol};
use crate::outcome::{Outcome, Probed};
use crate::probe_channel::{Channel, TcpChannel, UdpChannel};
use crate::running::Running;
use crate::schedule::LONGEST_JOB;

const MOST_PROBES: u32 = 1_000_000;
const LONGEST_TIMEOUT: u64 = 60_000_000_000;

/// Starts the job.
pub(crate) fn start(job: EchoProbe) -> Result<Running, TrafficError> {
    validate(&job)?;
    let started = monotonic();
    Running::spawn("echo-probe", None, move |stop| {
        let channel: Box<dyn Channel> = match job.protocol {
            Protocol::Udp => Box::new(UdpChannel::open(job.destination, job.socket)?),
            Protocol::Tcp => Box::new(TcpChannel::new(
                job.destination,
                job.socket,
                job.timeout,
                job.payload_bytes as usize,
            )),
        };
        Prober::new(&job, started, channel).run(stop)
    })
}

fn validate(job: &EchoProbe) -> Result<(), TrafficError> {
    job.socket.validate(job.destination)?;
    let invalid = |text: String| Err(TrafficError::Invalid(text));
    if !(HEADER_BYTES..=LARGEST_PAYLOAD).contains(&(job.payload_bytes as usize)) {
        return invalid(format!(
            "a probe has {HEADER_BYTES} to {LARGEST_PAYLOAD} bytes, not {}",
            job.payload_bytes
        ));
    }
    if !(1..=MOST_PROBES).contains(&job.count) {
        return invalid(format!(
            "a job has 1 to {MOST_PROBES} probes, not {}",
            job.count
        ));
    }
    if job.marker.as_ref().is_some_and(|marker| marker.is_empty()) {
        return invalid("the marker is empty".into());
    }
    if !(1..=LONGEST_TIMEOUT).contains(&job.timeout) {
        return invalid("the time limit of a reply is 1 ns to 60 s".into());
    }
    if job.until_first_reply && job.interval == 0 {
        return invalid("probing until the first reply needs an interval".into());
    }
    if job.interval.max(job.deadline) > LONGEST_JOB {
        return invalid("the interval and the deadline of a prober are at most an hour".into());
    }
    Ok(())
}

struct Prober<'a> {
    job: &'a EchoProbe,
    started: i64,
    channel: Box<dyn Channel>,
    probe: Vec<u8>,
    /// When each probe departed, ns since the start of the job; none once answered.
    unanswered: Vec<Option<i64>>,
    next_departure: i64,
    last_departure: i64,
    /// Since when the present connection has been tried without a reply, ns since the start of the job.
    silent_since: Option<i64>,
    round_trips: Recorder,
    probed: Probed,
}

impl<'a> Prober<'a> {
    fn new(job: &'a EchoProbe, started: i64, channel: Box<dyn Channel>) -> Self {
        let mut probe = vec![0; job.payload_bytes as usize];
        if let Some(marker) = &job.marker {
            repeat(marker, &mut probe[HEADER_BYTES..]);
        }
        Self {
            job,
            started,
            channel,
            probe,
            unanswered: Vec::new(),
            next_departure: 0,
            last_departure: 0,
            silent_since: None,
            round_trips: Recorder::new(),
            probed: Probed {
                sent: 0,
                replies: 0,
                failures: 0,
                round_trip: None,
                first_reply_after: None,
            },
        }
    }

    fn run(mut self, stop: &AtomicBool) -> Result<Outcome, TrafficError> {
        while !self.is_over() {
            if stop.load(Ordering::Relaxed) {
                return Err(TrafficError::Stopped);
            }
            let now = self.elapsed();
            if self.may_send() && now >= self.next_departure() {
                self.send(now)?;
                continue;
            }
            let limit = (self.next_event() - now).clamp(0, STOP_LATENCY.as_nanos() as i64);
            let mut headers = Vec::new();
            let outcome = self
                .channel
                .receive(limit as u64, &mut |header| headers.push(header));
            let now = self.elapsed();
            headers.iter().for_each(|header| self.answered(header, now));
            outcome.or_else(|failure| self.failed(failure, "receive a reply from"))?;
        }
        self.probed.round_trip = self.round_trips.finish();
        Ok(Outcome::EchoProbe(self.probed))
    }

    fn elapsed(&self) -> i64 {
        monotonic() - self.started
    }

    fn is_over(&self) -> bool {
        let now = self.elapsed();
        let answered = self.job.until_first_reply && self.probed.replies > 0;
        let waited = !self.may_send()
            && (self.probed.replies == self.probed.sent || now >= self.last_given_up());
        now >= self.job.deadline as i64 || answered || waited
    }

    fn may_send(&self) -> bool {
        self.unanswered.len() < self.job.count as usize
    }

    /// When the next probe is due: at its interval, or without one when the last is answered or given up.
    fn next_departure(&self) -> i64 {
        match self.unanswered.last() {
            Some(Some(_)) if self.job.interval == 0 => self.last_given_up(),
            _ => self.next_departure,
        }
    }

    fn last_given_up(&self) -> i64 {
        self.last_departure + self.job.timeout as i64
    }

    /// Until when there is nothing to do but wait for replies.
    fn next_event(&self) -> i64 {
        let event = if self.may_send() {
            self.next_departure()
        } else {
            self.last_given_up()
        };
        event.min(self.job.deadline as i64)
    }

    fn send(&mut self, now: i64) -> Result<(), TrafficError> {
        self.next_departure = if self.job.interval == 0 {
            now
        } else {
            self.next_departure + self.job.interval as i64
        };
        if self.job.until_first_reply {
            self.renew_when_silent(now);
        }
        let sequence = self.unanswered.len() as u32;
        let header = Header {
            sequence,
            session: 0,
            intended: now as u64,
            lateness: None,
        };
        header.write(&mut self.probe);
        let outcome = self.channel.connect().and_then(|()| {
            let departure = monotonic() - self.started;
            self.channel.send(&self.probe).map(|()| departure)
        });
        match outcome {
            Ok(departure) => {
                self.unanswered.push(Some(departure));
                self.last_departure = departure;
                self.probed.sent += 1;
                Ok(())
            }
            Err(failure) => {
                if !self.job.until_first_reply {
                    self.unanswered.push(None);
                }
                self.failed(failure, "probe")
            }
        }
    }

    /// Gives up a way on which nothing came back for the time limit: a stalled TCP connection tries again ever more
    /// seldom, and would tell too late that the way is open.
    fn renew_when_silent(&mut self, now: i64) {
        let since = *self.silent_since.get_or_insert(now);
        if now - since >= self.job.timeout as i64 {
            self.channel.renew();
            self.silent_since = Some(now);
            self.next_departure = self.next_departure.max(now);
        }
    }

    /// Counts a failure where a later probe may do better: always over UDP, and over TCP until the first reply.
    fn failed(&mut self, failure: io::Error, action: &str) -> Result<(), TrafficError> {
        self.probed.failures += 1;
        if self.job.protocol == Protocol::Udp || self.job.until_first_reply {
            self.channel.renew();
            self.silent_since = None;
            return Ok(());
        }
        Err(TrafficError::io(format!(
            "{action} {}",
            self.job.destination
        ))(failure))
    }

    fn answered(&mut self, header: &Header, now: i64) {
        let Some(place) = self.unanswered.get_mut(header.sequence as usize) else {
            return;
        };
        let Some(departure) = *place else { return };
        if now - departure > self.job.timeout as i64 {
            return;
        }
        *place = None;
        self.probed.replies += 1;
        self.probed.first_reply_after.get_or_insert(now as u64);
        self.round_trips.record(now - departure);
    }
}
