//! Runs a job's schedule over connected TCP streams: one thread for each stream and way.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle, scope};
use std::time::Duration;

use socket2::Socket;

use crate::clock::{STOP_LATENCY, Timeline};
use crate::error::TrafficError;
use crate::job::{Side, TcpOptions};
use crate::outcome::TcpFlow;
use crate::schedule::Schedule;
use crate::tcp::{receive, send};

/// How long an end waits for the other to hang up or to have nothing more to say.
pub(super) const HANG_UP: Duration = Duration::from_millis(500);

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
    pub schedule: Schedule,
    pub timeline: Timeline,
    /// Set from outside, and by a thread that fails, so that the others need not go on.
    pub stop: &'a AtomicBool,
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
    let content = send::content(trial.options);
    let (sent, received) = scope(|scope| {
        let senders = trial
            .side
            .sends()
            .then(|| trial.spawn(scope, streams, |stream| send::send(trial, stream, &content)));
        let receivers = trial
            .side
            .receives()
            .then(|| trial.spawn(scope, streams, |stream| receive::receive(trial, stream)));
        (senders.map(join), receivers.map(join))
    });
    match (sent.transpose(), received.transpose()) {
        (Err(TrafficError::Stopped), Err(failure)) | (Err(failure), _) | (_, Err(failure)) => {
            Err(failure)
        }
        (Ok(sent), Ok(received)) => Ok(TcpFlow {
            sent: sent.map(|streams| send::sum(&streams)).transpose()?,
            received: received
                .map(|streams| receive::sum(trial.schedule, &streams))
                .transpose()?,
        }),
    }
}

type Threads<'scope, T> = Vec<ScopedJoinHandle<'scope, Result<T, TrafficError>>>;

impl<'env> Trial<'env> {
    /// Does `work` for all streams at once.
    fn spawn<'scope, T: Send + 'scope>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        streams: &'env [Stream],
        work: impl Fn(&Stream) -> Result<T, TrafficError> + Clone + Send + 'scope,
    ) -> Threads<'scope, T> {
        let thread = |stream: &'env Stream| {
            let work = work.clone();
            scope.spawn(move || {
                work(stream).inspect_err(|_| self.stop.store(true, Ordering::Relaxed))
            })
        };
        streams.iter().map(thread).collect()
    }

    /// Whether the schedule ends here; an error where that is too early.
    pub fn is_over(&self, now: i64) -> Result<bool, TrafficError> {
        if now >= self.schedule.end() {
            return Ok(true);
        }
        let stopped = self.stop.load(Ordering::Relaxed);
        if stopped && now < self.schedule.measured_to() {
            return Err(TrafficError::Stopped);
        }
        Ok(stopped)
    }
}

/// Of several failures the first that says more than "stopped" counts.
fn join<T>(threads: Threads<T>) -> Result<Vec<T>, TrafficError> {
    let defect = |_| Err(TrafficError::Defect("a stream's thread panicked".into()));
    let results = threads
        .into_iter()
        .map(|thread| thread.join().unwrap_or_else(defect));
    let (mut done, mut failure) = (Vec::new(), None);
    for result in results {
        match (result, &failure) {
            (Ok(stream), _) => done.push(stream),
            (Err(_), Some(known)) if !matches!(known, TrafficError::Stopped) => {}
            (Err(new), _) => failure = Some(new),
        }
    }
    failure.map_or(Ok(done), Err)
}

/// The time limit of a socket shows as "would block"; a connection's own time-out is a real end.
pub(super) fn is_waiting(failure: &io::Error) -> bool {
    matches!(
        failure.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}
