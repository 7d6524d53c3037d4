//! Transactions over a new TCP connection each.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::clock::STOP_LATENCY;
use crate::job::{SocketOptions, TransactionRun};
use crate::socks;
use crate::transaction::client::{Attempt, Client};
use crate::transaction::hello::hello;
use crate::transaction::patience::Patience;
use crate::transaction::stream::{read_at_least, write_all};
use crate::transaction::stream_client::open;

/// What every connection is made of.
pub(super) struct FreshClient {
    destination: SocketAddr,
    proxy: Option<SocketAddr>,
    options: SocketOptions,
    timeout: Duration,
    /// The hello and the request.
    request: Vec<u8>,
    response: Vec<u8>,
}

impl FreshClient {
    pub fn new(job: &TransactionRun) -> Self {
        Self {
            destination: job.destination,
            proxy: job.proxy,
            options: job.socket,
            timeout: Duration::from_nanos(job.timeout).max(Duration::from_millis(1)),
            request: [&hello(job.session)[..], &job.transaction.request()].concat(),
            response: job.transaction.response(),
        }
    }

    fn transact(&mut self, now: i64, patience: &Patience<'_>) -> io::Result<Attempt> {
        let peer = self.proxy.unwrap_or(self.destination);
        let socket = open(peer, self.options).map_err(io::Error::other)?;
        // Linux limits connecting by the time limit of writing.
        socket.set_write_timeout(Some(self.timeout))?;
        socket.connect(&peer.into())?;
        if self.proxy.is_some() {
            socks::ask(&socket, self.destination, self.timeout)?;
        }
        socket.set_read_timeout(Some(STOP_LATENCY))?;
        let connecting = Some(patience.timeline.elapsed() - now);
        if write_all(&socket, &self.request, patience)?.is_none() {
            return Ok(Attempt::Abandoned);
        }
        let expected = self.response.len();
        let read = read_at_least(&socket, &mut self.response, 0, expected, patience)?;
        Ok(match read {
            Some(_) => Attempt::Answered { connecting },
            None => Attempt::Abandoned,
        })
    }
}

impl Client for FreshClient {
    fn attempt(&mut self, now: i64, patience: &Patience<'_>) -> io::Result<Attempt> {
        Ok(self.transact(now, patience).unwrap_or_else(Attempt::Failed))
    }
}
