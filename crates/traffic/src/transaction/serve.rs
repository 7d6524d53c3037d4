//! Answers transactions, with as many threads as there are under way at once.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::clock::Timeline;
use crate::error::TrafficError;
use crate::job::{Protocol, TransactionServe};
use crate::outcome::{Outcome, TransactionsServed};
use crate::processor::ProcessorMeter;
use crate::running::Running;
use crate::transaction::datagram_service::DatagramService;
use crate::transaction::hello::HELLO_BYTES;
use crate::transaction::patience::Patience;
use crate::transaction::stream_service::StreamService;

/// One way to serve clients.
pub(super) trait Service: Send + Sync {
    fn bound(&self) -> Option<SocketAddr>;

    /// Takes one client and serves it as long as it stays; false where there was none.
    fn serve_next(&self, server: &mut Server<'_>) -> io::Result<bool>;
}

/// One thread of a server.
pub(super) struct Server<'a> {
    pub patience: Patience<'a>,
    pub counts: TransactionsServed,
    processor: ProcessorMeter,
    /// Room for the longest request.
    pub incoming: Vec<u8>,
    pub response: Vec<u8>,
}

impl Server<'_> {
    /// Counts a request that was answered; whether to go on.
    #[inline]
    pub fn answered(&mut self) -> bool {
        let now = self.patience.timeline.elapsed();
        self.counts.responses += 1;
        self.processor.look(now);
        !self.patience.is_exhausted(now)
    }
}

/// Starts the job.
pub(crate) fn start(job: TransactionServe) -> Result<Running, TrafficError> {
    job.transaction.validate(&job.schedule)?;
    job.socket.validate_listener(job.bind)?;
    let service: Box<dyn Service> = match job.transaction.protocol {
        Protocol::Udp => Box::new(DatagramService::open(&job)?),
        Protocol::Tcp => Box::new(StreamService::open(&job)?),
    };
    Running::spawn("transaction-serve", service.bound(), move |stop| {
        let failed = AtomicBool::new(false);
        let patience = Patience {
            schedule: job.schedule,
            timeline: Timeline::new(job.schedule.start_at),
            stop,
            failed: &failed,
        };
        serve(&job, service.as_ref(), patience)
    })
}

fn serve(
    job: &TransactionServe,
    service: &dyn Service,
    patience: Patience<'_>,
) -> Result<Outcome, TrafficError> {
    let served = thread::scope(|scope| {
        let threads: Vec<_> = (0..job.transaction.concurrency)
            .map(|_| scope.spawn(move || work(job, service, patience)))
            .collect();
        let defect = |_| Err(TrafficError::Defect("a server's thread panicked".into()));
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(defect))
            .collect::<Result<Vec<TransactionsServed>, TrafficError>>()
    })?;
    patience.check_measured()?;
    let sum = |count: fn(&TransactionsServed) -> u64| served.iter().map(count).sum();
    Ok(Outcome::TransactionServe(TransactionsServed {
        responses: sum(|served| served.responses),
        connections: sum(|served| served.connections),
        foreign: sum(|served| served.foreign),
        processor: sum(|served| served.processor),
    }))
}

fn work(
    job: &TransactionServe,
    service: &dyn Service,
    patience: Patience<'_>,
) -> Result<TransactionsServed, TrafficError> {
    let mut server = Server {
        patience,
        counts: TransactionsServed {
            responses: 0,
            connections: 0,
            foreign: 0,
            processor: 0,
        },
        processor: ProcessorMeter::new(job.schedule),
        incoming: vec![0; HELLO_BYTES + job.transaction.request_bytes as usize],
        response: job.transaction.response(),
    };
    loop {
        let now = patience.timeline.elapsed();
        server.processor.look(now);
        match service.serve_next(&mut server) {
            Ok(true) if !patience.is_exhausted(now) => {}
            Ok(false) if !patience.is_over() => {}
            Ok(_) => break,
            Err(failure) => {
                patience.failed.store(true, Ordering::Relaxed);
                let action = format!("serve transactions on {}", job.bind);
                return Err(TrafficError::io(action)(failure));
            }
        }
    }
    Ok(TransactionsServed {
        processor: server.processor.finish(),
        ..server.counts
    })
}
