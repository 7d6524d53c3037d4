//! Transactions over a TCP connection that stays.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::clock::STOP_LATENCY;
use crate::error::TrafficError;
use crate::job::{SocketOptions, TransactionRun};
use crate::socks;
use crate::transaction::client::{Attempt, Client};
use crate::transaction::hello::{HELLO_BYTES, hello};
use crate::transaction::patience::Patience;
use crate::transaction::stream::{read_at_least, write_all};

/// One connection and what goes over it.
pub(super) struct StreamClient {
    socket: Socket,
    request: Vec<u8>,
    response: Vec<u8>,
}

impl StreamClient {
    /// Connects, and has the server prove that it is of the same job.
    pub fn greet(job: &TransactionRun) -> Result<Self, TrafficError> {
        let peer = job.destination;
        let timeout = Duration::from_nanos(job.timeout).max(Duration::from_millis(1));
        let socket = open(job.proxy.unwrap_or(peer), job.socket)?;
        socks::connect(&socket, peer, job.proxy, timeout)
            .map_err(TrafficError::io(format!("connect to {peer}")))?;
        let hello = hello(job.session);
        greet(&socket, &hello, timeout).map_err(TrafficError::io(format!(
            "get an answer from the server behind {peer}"
        )))?;
        Ok(Self {
            socket,
            request: job.transaction.request(),
            response: job.transaction.response(),
        })
    }
}

impl Client for StreamClient {
    fn attempt(&mut self, _now: i64, patience: &Patience<'_>) -> io::Result<Attempt> {
        let expected = self.response.len();
        if write_all(&self.socket, &self.request, patience)?.is_none() {
            return Ok(Attempt::Abandoned);
        }
        let read = read_at_least(&self.socket, &mut self.response, 0, expected, patience)?;
        Ok(match read {
            Some(_) => Attempt::Answered { connecting: None },
            None => Attempt::Abandoned,
        })
    }
}

/// A TCP socket that sends at once, and hangs up with a reset: nothing of one job must reach into the next, and no
/// port must wait.
pub(super) fn open(peer: SocketAddr, options: SocketOptions) -> Result<Socket, TrafficError> {
    let socket = Socket::new(Domain::for_address(peer), Type::STREAM, None)
        .map_err(TrafficError::io("open a TCP socket"))?;
    let set_up = || -> io::Result<()> {
        socket.set_reuse_address(options.port.is_some())?;
        socket.set_tcp_nodelay(true)?;
        socket.set_linger(Some(Duration::ZERO))
    };
    set_up().map_err(TrafficError::io("set up a TCP socket"))?;
    options.apply(&socket, peer)?;
    Ok(socket)
}

fn greet(mut socket: &Socket, hello: &[u8; HELLO_BYTES], timeout: Duration) -> io::Result<()> {
    use std::io::{Read, Write};
    let mut answer = [0; HELLO_BYTES];
    socket.set_read_timeout(Some(timeout))?;
    socket.write_all(hello)?;
    socket.read_exact(&mut answer)?;
    if answer != *hello {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is not a server of this job",
        ));
    }
    socket.set_read_timeout(Some(STOP_LATENCY))?;
    socket.set_write_timeout(Some(STOP_LATENCY))
}
