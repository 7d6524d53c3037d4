//! Sends probes and times their replies.

use std::io;
use std::sync::atomic::Ordering;

use crate::clock::{STOP_LATENCY, Timeline, realtime};
use crate::content::repeat;
use crate::datagram::{HEADER_BYTES, Header, LARGEST_PAYLOAD};
use crate::echo::channel::{Channel, News};
use crate::echo::icmp_channel::IcmpChannel;
use crate::echo::outstanding::{Departure, Outstanding, Reply};
use crate::echo::probe_account::{ProbeAccount, window};
use crate::echo::tcp_channel::TcpChannel;
use crate::echo::udp_channel::UdpChannel;
use crate::error::TrafficError;
use crate::job::{EchoDestination, EchoProbe, ProbePlan};
use crate::outcome::Outcome;
use crate::processor::ProcessorMeter;
use crate::real_time::RealTime;
use crate::running::{Control, Running};
use crate::schedule::{LONGEST_BACKLOG, LONGEST_JOB, START_TOLERANCE};
use crate::waiter::WATCHED_SHARE;

/// How long before a departure a prober starts to watch the clock at the earliest, ns.
const LONGEST_SPIN: i64 = 50_000;

const LONGEST_TIMEOUT: u64 = 60_000_000_000;

/// How long a prober without an interval waits after a probe that could not be sent, ns.
const PAUSE_AFTER_FAILURE: i64 = 1_000_000;

/// The most probes that leave before the replies are looked at.
const LONGEST_RUN: u32 = 16;

/// Starts the job.
pub(crate) fn start(job: EchoProbe) -> Result<Running, TrafficError> {
    validate(&job)?;
    let start_at = match job.plan {
        ProbePlan::Count { .. } => realtime(),
        ProbePlan::Schedule { schedule } => schedule.start_at,
    };
    let timeline = Timeline::new(start_at);
    if let ProbePlan::Schedule { schedule } = job.plan {
        schedule.check_start(realtime(), START_TOLERANCE)?;
    }
    Running::spawn("echo-probe", None, move |stop| {
        let channel = open(&job)?;
        Prober::new(&job, timeline, channel).run(stop)
    })
}

fn validate(job: &EchoProbe) -> Result<(), TrafficError> {
    job.socket.validate(job.destination.peer())?;
    let invalid = |text: String| Err(TrafficError::Invalid(text));
    if matches!(job.destination, EchoDestination::Icmp { .. }) && job.socket.port.is_some() {
        return invalid("ICMP has no ports: leave the socket's port out".into());
    }
    if !(HEADER_BYTES..=LARGEST_PAYLOAD).contains(&(job.payload_bytes as usize)) {
        return invalid(format!(
            "a probe has {HEADER_BYTES} to {LARGEST_PAYLOAD} bytes, not {}",
            job.payload_bytes
        ));
    }
    if job.marker.as_ref().is_some_and(|marker| marker.is_empty()) {
        return invalid("the marker is empty".into());
    }
    if !(1..=LONGEST_TIMEOUT).contains(&job.timeout) {
        return invalid("the time limit of a reply is 1 ns to 60 s".into());
    }
    if job.interval > LONGEST_JOB {
        return invalid("the interval of a prober is at most an hour".into());
    }
    match job.plan {
        ProbePlan::Count { count: 0, .. } => invalid("a job has at least 1 probe".into()),
        ProbePlan::Count { deadline, .. } if deadline > LONGEST_JOB => {
            invalid("the deadline of a prober is at most an hour away".into())
        }
        ProbePlan::Count {
            until_first_reply: true,
            ..
        } if job.interval == 0 => invalid("probing until the first reply needs an interval".into()),
        ProbePlan::Count { .. } => Ok(()),
        ProbePlan::Schedule { schedule } => schedule.validate(realtime(), job.timeout),
    }
}

fn open(job: &EchoProbe) -> Result<Box<dyn Channel>, TrafficError> {
    Ok(match job.destination {
        EchoDestination::Udp { address } => Box::new(UdpChannel::open(address, job.socket)?),
        EchoDestination::Tcp { address, proxy } => Box::new(TcpChannel::new(
            address,
            proxy,
            job.socket,
            job.timeout,
            job.payload_bytes as usize,
        )),
        EchoDestination::Icmp { address } => Box::new(IcmpChannel::open(address, job.socket)?),
    })
}

/// All times are in ns since the start of the job or its schedule.
struct Prober<'a> {
    job: &'a EchoProbe,
    timeline: Timeline,
    channel: Box<dyn Channel>,
    /// Tells our probes from those of others in what comes back.
    session: u16,
    probe: Vec<u8>,
    outstanding: Outstanding,
    account: ProbeAccount,
    processor: ProcessorMeter,
    real_time: Option<RealTime>,
    /// Probes that left or failed to.
    attempts: u64,
    next_departure: i64,
    /// Since when the present connection has been tried without a reply.
    silent_since: Option<i64>,
}

impl<'a> Prober<'a> {
    fn new(job: &'a EchoProbe, timeline: Timeline, channel: Box<dyn Channel>) -> Self {
        let mut probe = vec![0; job.payload_bytes as usize];
        if let Some(marker) = &job.marker {
            repeat(marker, &mut probe[HEADER_BYTES..]);
        }
        Self {
            job,
            timeline,
            session: fastrand::u16(..),
            probe,
            outstanding: Outstanding::new(job.timeout as i64),
            account: ProbeAccount::new(job, channel.timestamps()),
            channel,
            processor: ProcessorMeter::new(window(job)),
            real_time: None,
            attempts: 0,
            next_departure: 0,
            silent_since: None,
        }
    }

    fn run(mut self, stop: &Control) -> Result<Outcome, TrafficError> {
        // A coarser timer would add its slack to every departure; where it cannot be had, the round trips from the
        // intended departure tell.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        if !self.timeline.sleep_until(0, stop) {
            return Err(TrafficError::Stopped);
        }
        // Without an interval a prober may need a whole processor, and must leave the tunnel its share.
        self.real_time = (self.job.interval > 0).then(RealTime::enter).flatten();
        let mut run = 0;
        loop {
            let now = self.timeline.elapsed();
            self.processor.look(now);
            if self.is_over(now) {
                break;
            }
            if stop.load(Ordering::Relaxed) {
                return self.stopped(now, stop.contents_itself());
            }
            let is_due = self.is_due(now);
            if is_due && run < LONGEST_RUN {
                self.send(now)?;
                run += 1;
                continue;
            }
            run = 0;
            let pause = if is_due { 0 } else { self.next_event() - now };
            let before = self.account.answered();
            self.receive(pause)?;
            let replies = self.account.answered() - before;
            stop.received(replies, replies * u64::from(self.job.payload_bytes));
        }
        Ok(self.finish())
    }

    fn finish(self) -> Outcome {
        Outcome::EchoProbe(self.account.finish(self.processor.finish()))
    }

    fn stopped(self, now: i64, contents_itself: bool) -> Result<Outcome, TrafficError> {
        match self.job.plan {
            ProbePlan::Schedule { schedule }
                if contents_itself || now >= schedule.measured_to() =>
            {
                Ok(self.finish())
            }
            _ => Err(TrafficError::Stopped),
        }
    }

    fn is_over(&self, now: i64) -> bool {
        let is_settled = !self.may_send(now) && self.outstanding.waiting() == 0;
        match self.job.plan {
            ProbePlan::Schedule { .. } => is_settled,
            ProbePlan::Count {
                until_first_reply,
                deadline,
                ..
            } => {
                let is_answered = until_first_reply && self.account.answered() > 0;
                is_settled || is_answered || now >= deadline as i64
            }
        }
    }

    fn may_send(&self, now: i64) -> bool {
        match self.job.plan {
            ProbePlan::Count { count, .. } => self.attempts < count,
            ProbePlan::Schedule { schedule } => self.next_departure.max(now) < schedule.end(),
        }
    }

    fn is_due(&self, now: i64) -> bool {
        let is_free = self.job.interval > 0 || self.outstanding.waiting() == 0;
        self.may_send(now) && is_free && now >= self.next_departure
    }

    /// Until when there is nothing to do but wait for replies.
    fn next_event(&self) -> i64 {
        let given_up = self.outstanding.last_given_up().unwrap_or(i64::MAX);
        let is_free = self.job.interval > 0 || self.outstanding.waiting() == 0;
        if is_free && self.may_send(self.next_departure) {
            self.next_departure
        } else {
            given_up.saturating_add(1)
        }
    }

    /// Sends what is due; what is due since too long is skipped instead of bursting out.
    fn send(&mut self, now: i64) -> Result<(), TrafficError> {
        let interval = self.job.interval as i64;
        while interval > 0 && now - self.next_departure > LONGEST_BACKLOG as i64 {
            self.account.skipped(self.next_departure);
            self.next_departure += interval;
            // Who cannot keep the pace needs a whole processor, and must leave the tunnel its share.
            self.real_time = None;
        }
        let intended = if interval > 0 {
            self.next_departure
        } else {
            now
        };
        self.next_departure = intended + interval;
        self.attempts += 1;
        if self.is_until_first_reply() {
            self.renew_when_silent(now);
        }
        let header = Header {
            sequence: self.outstanding.next_sequence(),
            session: self.session,
            intended: intended as u64,
            lateness: None,
        };
        header.write(&mut self.probe);
        let outcome = self.channel.connect().and_then(|()| {
            let real = self.timeline.elapsed();
            self.channel.send(&self.probe).map(|()| real)
        });
        match outcome {
            Ok(real) => {
                self.outstanding.departed(Departure { intended, real });
                self.account.sent(intended);
                Ok(())
            }
            Err(failure) => {
                if interval == 0 {
                    self.next_departure = now + PAUSE_AFTER_FAILURE;
                }
                self.failed(intended, failure, "probe")
            }
        }
    }

    /// Takes what came back, after a wait of at most `pause` ns.
    fn receive(&mut self, pause: i64) -> Result<(), TrafficError> {
        let spin = (self.job.interval as i64 / WATCHED_SHARE).min(LONGEST_SPIN);
        let limit = (pause - spin).clamp(0, STOP_LATENCY.as_nanos() as i64);
        let (timeline, session) = (self.timeline, self.session);
        let (outstanding, account) = (&mut self.outstanding, &mut self.account);
        let outcome = self.channel.receive(limit as u64, &mut |news| match news {
            News::Reply { header, arrived } if header.session == session => {
                let arrived = arrived.map_or_else(
                    || timeline.elapsed(),
                    |timestamp| timeline.moment_of(timestamp),
                );
                let intended = header.intended as i64;
                match outstanding.reply(header.sequence, intended, arrived) {
                    Reply::First {
                        departure,
                        reordered,
                    } => account.replied(departure, arrived, reordered),
                    Reply::Duplicate { departure } => account.duplicated(departure.intended),
                    Reply::Late => account.late(),
                    Reply::Foreign => {}
                }
            }
            News::Reply { .. } => {}
            News::Refused { sequence } => {
                if let Some(departure) = outstanding.refused(sequence) {
                    account.failed(departure.intended);
                }
            }
        });
        let now = self.timeline.elapsed();
        self.outstanding.expire(now);
        outcome.or_else(|failure| self.failed(now, failure, "receive a reply from"))
    }

    fn is_until_first_reply(&self) -> bool {
        matches!(
            self.job.plan,
            ProbePlan::Count {
                until_first_reply: true,
                ..
            }
        )
    }

    /// Gives up a way on which nothing came back for the time limit: a stalled TCP connection tries again ever more
    /// seldom, and would tell too late that the way is open.
    fn renew_when_silent(&mut self, now: i64) {
        let since = *self.silent_since.get_or_insert(now);
        if now - since >= self.job.timeout as i64 {
            self.channel.renew();
            self.silent_since = Some(now);
        }
    }

    /// Counts a failure where a later probe may do better: over TCP only until the first reply, otherwise always.
    fn failed(
        &mut self,
        intended: i64,
        failure: io::Error,
        action: &str,
    ) -> Result<(), TrafficError> {
        self.account.failed(intended);
        let is_tcp = matches!(self.job.destination, EchoDestination::Tcp { .. });
        if !is_tcp || self.is_until_first_reply() {
            self.channel.renew();
            self.silent_since = None;
            return Ok(());
        }
        let destination = self.job.destination;
        Err(TrafficError::io(format!("{action} {destination}"))(failure))
    }
}
