//! Runs a job's schedule over connected TCP streams: one thread for each stream and way.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::thread::{Scope, ScopedJoinHandle, scope};
use std::time::Duration;

use socket2::Socket;

use crate::clock::{STOP_LATENCY, Timeline};
use crate::content::Material;
use crate::error::TrafficError;
use crate::job::{Side, TcpOptions};
use crate::outcome::TcpFlow;
use crate::running::Control;
use crate::schedule::Schedule;
use crate::tcp::options::congestion_control;
use crate::tcp::sampling::sample;
use crate::tcp::send::Payload;
use crate::tcp::{receive, send};

/// How long before a departure its thread starts to watch the clock, ns, and the most of the wait that it may spend on it.
const LONGEST_SPIN: i64 = 50_000;
const SPIN_SHARE: i64 = 8;

/// One connection.
pub(super) struct Stream {
    pub socket: Socket,
    pub peer: SocketAddr,
}

impl Stream {
    pub fn broken(&self, at: i64, reason: &str) -> TrafficError {
        TrafficError::Broken {
            peer: self.peer,
            at,
            reason: reason.into(),
        }
    }
}

/// What all threads of a job share.
#[derive(Clone, Copy)]
pub(super) struct Trial<'a> {
    pub side: Side,
    pub options: &'a TcpOptions,
    /// What a sender sends.
    pub material: Option<&'a Material>,
    pub schedule: Schedule,
    pub timeline: Timeline,
    /// Set from outside, and by a thread that fails, so that the others need not go on.
    pub stop: &'a Control,
}

/// Runs the schedule over all streams. Both ends hang up with a reset: nothing of one trial must reach into the next.
pub(super) fn drive(streams: &[Stream], trial: Trial) -> Result<TcpFlow, TrafficError> {
    for stream in streams {
        let time_limits = || -> io::Result<()> {
            stream.socket.set_read_timeout(Some(STOP_LATENCY))?;
            stream.socket.set_write_timeout(Some(STOP_LATENCY))?;
            stream.socket.set_linger(Some(Duration::ZERO))
        };
        time_limits().map_err(TrafficError::io("set the time limits of a connection"))?;
    }
    let congestion_control = congestion_control(&streams[0].socket)?;
    let payload = trial
        .material
        .map(|material| Payload::new(trial.options, material));
    let (sent, received, sampled) = scope(|scope| {
        let sending = payload
            .iter()
            .flat_map(|payload| streams.iter().map(move |stream| (stream, payload)));
        let senders = sending
            .map(|(stream, payload)| trial.spawn(scope, move || send::send(trial, stream, payload)))
            .collect();
        let receivers = streams
            .iter()
            .filter(|_| trial.side.receives())
            .map(|stream| trial.spawn(scope, move || receive::receive(trial, stream)))
            .collect();
        let sampler = payload
            .iter()
            .map(|_| trial.spawn(scope, move || sample(trial, streams)))
            .collect();
        (join(senders), join(receivers), join(sampler))
    });
    let (sent, received, sampled) = match (sent, received, sampled) {
        (Ok(sent), Ok(received), Ok(sampled)) => (sent, received, sampled),
        (sent, received, sampled) => {
            let failures = [sent.err(), received.err(), sampled.err()];
            return Err(most_telling(failures.into_iter().flatten()));
        }
    };
    Ok(TcpFlow {
        sent: sampled
            .into_iter()
            .next()
            .map(|sampled| send::sum(sent, sampled, congestion_control))
            .transpose()?,
        received: trial
            .side
            .receives()
            .then(|| receive::sum(trial.schedule, received))
            .transpose()?,
    })
}

type Thread<'scope, T> = ScopedJoinHandle<'scope, Result<T, TrafficError>>;

impl<'env> Trial<'env> {
    /// Starts a thread which stops all others where it fails.
    fn spawn<'scope, T: Send + 'scope>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        work: impl FnOnce() -> Result<T, TrafficError> + Send + 'scope,
    ) -> Thread<'scope, T> {
        scope.spawn(move || work().inspect_err(|_| self.stop.store(true, Ordering::Relaxed)))
    }

    /// Waits for a moment of the schedule, or for its end; false where it is to stop.
    pub fn wait_until(&self, due: i64) -> bool {
        let due = due.min(self.schedule.end());
        let spin = (due - self.timeline.elapsed()) / SPIN_SHARE;
        self.timeline
            .wait_until(due, spin.clamp(0, LONGEST_SPIN), self.stop)
    }

    /// Whether the schedule ends here; an error where that is too early.
    pub fn is_over(&self, now: i64) -> Result<bool, TrafficError> {
        if now >= self.schedule.end() {
            return Ok(true);
        }
        let stopped = self.stop.load(Ordering::Relaxed);
        if stopped && !self.may_end(now) {
            return Err(TrafficError::Stopped);
        }
        Ok(stopped)
    }

    /// Whether an end at `now` leaves a result.
    pub fn may_end(&self, now: i64) -> bool {
        now >= self.schedule.measured_to() || self.stop.contents_itself()
    }
}

fn join<T>(threads: Vec<Thread<T>>) -> Result<Vec<T>, TrafficError> {
    let defect = |_| Err(TrafficError::Defect("a stream's thread panicked".into()));
    let (mut done, mut failures) = (Vec::new(), Vec::new());
    for thread in threads {
        match thread.join().unwrap_or_else(defect) {
            Ok(result) => done.push(result),
            Err(failure) => failures.push(failure),
        }
    }
    if failures.is_empty() {
        return Ok(done);
    }
    Err(most_telling(failures))
}

/// The first that says more than "stopped".
fn most_telling(failures: impl IntoIterator<Item = TrafficError>) -> TrafficError {
    failures
        .into_iter()
        .min_by_key(|failure| matches!(failure, TrafficError::Stopped))
        .unwrap_or(TrafficError::Stopped)
}

/// The time limit of a socket shows as "would block"; a connection's own time-out is a real end.
pub(super) fn is_waiting(failure: &io::Error) -> bool {
    matches!(
        failure.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
