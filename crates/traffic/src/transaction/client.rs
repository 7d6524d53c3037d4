//! Runs transactions, one after the other in each thread.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::clock::{Timeline, realtime};
use crate::error::TrafficError;
use crate::job::{Protocol, TransactionRun};
use crate::outcome::Outcome;
use crate::processor::ProcessorMeter;
use crate::running::Running;
use crate::schedule::START_TOLERANCE;
use crate::transaction::datagram_client::DatagramClient;
use crate::transaction::fresh_client::FreshClient;
use crate::transaction::patience::Patience;
use crate::transaction::stream_client::StreamClient;
use crate::transaction::tally::Tally;

const LONGEST_TIMEOUT: u64 = 60_000_000_000;

/// How long a server of datagrams may at least take until it knows all sources.
const SHORTEST_GREETING: Duration = Duration::from_secs(1);

/// Between a fresh connection that failed and the next attempt.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(1);

/// One way to make transactions with a server.
pub(super) trait Client: Send {
    /// Makes an attempt at the present transaction; `now` is ns since the start of the schedule.
    fn attempt(&mut self, now: i64, patience: &Patience<'_>) -> io::Result<Attempt>;
}

/// How an attempt at a transaction ended; an error where there is no way to go on.
pub(super) enum Attempt {
    /// With a response; where the connection was fresh, it took so many ns.
    Answered { connecting: Option<i64> },
    /// Without one; another attempt may do better.
    Failed(io::Error),
    /// The job was over before.
    Abandoned,
}

/// Greets the server on all connections that stay and starts the job.
pub(crate) fn start(job: TransactionRun) -> Result<Running, TrafficError> {
    validate(&job)?;
    let clients = open(&job)?;
    job.schedule.check_start(realtime(), START_TOLERANCE)?;
    Running::spawn("transaction-run", None, move |stop| {
        let failed = AtomicBool::new(false);
        let patience = Patience {
            schedule: job.schedule,
            timeline: Timeline::new(job.schedule.start_at),
            stop,
            failed: &failed,
        };
        run(&job, clients, patience)
    })
}

fn validate(job: &TransactionRun) -> Result<(), TrafficError> {
    job.transaction.validate(&job.schedule)?;
    job.socket.validate(job.proxy.unwrap_or(job.destination))?;
    let invalid = |text: &str| Err(TrafficError::Invalid(text.into()));
    if !(1..=LONGEST_TIMEOUT).contains(&job.timeout) {
        return invalid("the time limit of a transaction is 1 ns to 60 s");
    }
    if job.proxy.is_some() && job.transaction.protocol == Protocol::Udp {
        return invalid("a SOCKS proxy is for transactions over TCP alone");
    }
    if job.socket.port.is_some() && job.transaction.concurrency > 1 {
        return invalid("one local port is not enough for several transactions at once");
    }
    Ok(())
}

fn open(job: &TransactionRun) -> Result<Vec<Box<dyn Client>>, TrafficError> {
    let greeting = Duration::from_nanos(job.timeout).max(SHORTEST_GREETING);
    let deadline = Instant::now() + greeting;
    let client = || -> Result<Box<dyn Client>, TrafficError> {
        Ok(match job.transaction.protocol {
            Protocol::Udp => Box::new(DatagramClient::greet(job, deadline)?),
            Protocol::Tcp if job.transaction.fresh_connections => Box::new(FreshClient::new(job)),
            Protocol::Tcp => Box::new(StreamClient::greet(job)?),
        })
    };
    (0..job.transaction.concurrency).map(|_| client()).collect()
}

fn run(
    job: &TransactionRun,
    clients: Vec<Box<dyn Client>>,
    patience: Patience<'_>,
) -> Result<Outcome, TrafficError> {
    let none = Tally::new(job.schedule, job.transaction.fresh_connections);
    let tally = thread::scope(|scope| {
        let threads: Vec<_> = clients
            .into_iter()
            .map(|client| scope.spawn(move || work(job, client, patience)))
            .collect();
        let defect = |_| Err(TrafficError::Defect("a client's thread panicked".into()));
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(defect))
            .reduce(worse_or_both)
            .unwrap_or(Ok(none))
    })?;
    Ok(Outcome::TransactionRun(tally.finish()?))
}

/// Both tallies together. Of two failures the first that says more than "stopped" counts.
fn worse_or_both(
    first: Result<Tally, TrafficError>,
    second: Result<Tally, TrafficError>,
) -> Result<Tally, TrafficError> {
    match (first, second) {
        (Ok(first), Ok(second)) => Ok(first.merge(second)),
        (Err(TrafficError::Stopped) | Ok(_), Err(failure)) => Err(failure),
        (Err(failure), _) => Err(failure),
    }
}

/// Makes transactions until the schedule ends.
fn work(
    job: &TransactionRun,
    mut client: Box<dyn Client>,
    patience: Patience<'_>,
) -> Result<Tally, TrafficError> {
    let (schedule, timeline) = (patience.schedule, patience.timeline);
    let mut tally = Tally::new(schedule, job.transaction.fresh_connections);
    let mut processor = ProcessorMeter::new(schedule);
    timeline.wait_until(0, 50_000, patience.stop);
    let mut now = timeline.elapsed();
    let mut began = now;
    while now < schedule.end() && !patience.is_exhausted(now) {
        processor.look(now);
        let outcome = client.attempt(now, &patience);
        now = timeline.elapsed();
        match outcome {
            Ok(Attempt::Answered { connecting }) => {
                tally.completed(began, now, connecting);
                patience
                    .stop
                    .received(1, job.transaction.response_bytes.into());
                began = now;
            }
            Ok(Attempt::Failed(failure)) => {
                tally.failed(now, failure);
                thread::sleep(PAUSE_AFTER_FAILURE);
                now = timeline.elapsed();
            }
            Ok(Attempt::Abandoned) => break,
            Err(_) if patience.check_measured().is_ok() => break,
            Err(failure) => {
                patience.failed.store(true, Ordering::Relaxed);
                return Err(TrafficError::Broken {
                    peer: job.destination,
                    at: now,
                    reason: failure.to_string(),
                });
            }
        }
    }
    patience.check_measured()?;
    processor.look(now);
    tally.processor = processor.finish();
    Ok(tally)
}
