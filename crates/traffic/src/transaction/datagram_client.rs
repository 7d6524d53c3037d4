//! Transactions in UDP datagrams, any of which may be lost.

use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::clock::STOP_LATENCY;
use crate::error::TrafficError;
use crate::job::TransactionRun;
use crate::transaction::client::{Attempt, Client};
use crate::transaction::hello::{HELLO_BYTES, hello};
use crate::transaction::patience::{Patience, is_waiting};

/// How long the answer to a hello may take before the hello is sent again.
const GREETING_INTERVAL: Duration = Duration::from_millis(50);

/// One source of datagrams and what it sends.
pub(super) struct DatagramClient {
    socket: Socket,
    timeout: i64,
    /// Of the present transaction.
    number: u32,
    number_bytes: usize,
    request: Vec<u8>,
    response_bytes: usize,
    incoming: Vec<u8>,
}

impl DatagramClient {
    /// Has the server know this source, and prove that it is of the same job.
    pub fn greet(job: &TransactionRun, deadline: Instant) -> Result<Self, TrafficError> {
        let peer = job.destination;
        let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, None)
            .map_err(TrafficError::io("open a UDP socket"))?;
        job.socket.apply(&socket, peer)?;
        let set_up = || -> io::Result<()> {
            socket.connect(&peer.into())?;
            socket.set_write_timeout(Some(STOP_LATENCY))?;
            socket.set_read_timeout(Some(GREETING_INTERVAL))?;
            greet(&socket, &hello(job.session), deadline)?;
            let tick = STOP_LATENCY.min(Duration::from_nanos(job.timeout));
            socket.set_read_timeout(Some(tick.max(Duration::from_micros(1))))
        };
        set_up().map_err(TrafficError::io(format!(
            "get an answer from the server behind {peer}"
        )))?;
        Ok(Self {
            socket,
            timeout: job.timeout as i64,
            number: 0,
            number_bytes: job.transaction.number_bytes(),
            request: job.transaction.request(),
            response_bytes: job.transaction.response_bytes as usize,
            // One byte more, so that a longer datagram shows.
            incoming: vec![0; job.transaction.response_bytes as usize + 1],
        })
    }

    fn is_response(&self, length: usize) -> bool {
        length == self.response_bytes
            && self.incoming[..self.number_bytes] == self.request[..self.number_bytes]
    }
}

impl Client for DatagramClient {
    fn attempt(&mut self, now: i64, patience: &Patience<'_>) -> io::Result<Attempt> {
        let number = self.number.to_be_bytes();
        self.request[..self.number_bytes]
            .copy_from_slice(&number[number.len() - self.number_bytes..]);
        // A request that does not get out is a lost one.
        let _ = (&self.socket).write(&self.request);
        loop {
            match (&self.socket).read(&mut self.incoming) {
                Ok(length) if self.is_response(length) => {
                    self.number = self.number.wrapping_add(1);
                    return Ok(Attempt::Answered { connecting: None });
                }
                // A response to an earlier attempt at an earlier transaction.
                Ok(_) => {}
                Err(failure) if is_waiting(&failure) => {}
                Err(failure) => return Ok(Attempt::Failed(failure)),
            }
            if patience.timeline.elapsed() - now >= self.timeout {
                return Ok(Attempt::Failed(ErrorKind::TimedOut.into()));
            }
            if patience.is_over() {
                return Ok(Attempt::Abandoned);
            }
        }
    }
}

/// Says hello until the server does.
fn greet(mut socket: &Socket, hello: &[u8; HELLO_BYTES], deadline: Instant) -> io::Result<()> {
    let mut answer = [0; HELLO_BYTES + 1];
    loop {
        // Refused hellos and unread answers are like lost ones: the server may not listen yet.
        let _ = socket.write(hello);
        match socket.read(&mut answer) {
            Ok(HELLO_BYTES) if answer[..HELLO_BYTES] == *hello => return Ok(()),
            _ if Instant::now() >= deadline => return Err(ErrorKind::TimedOut.into()),
            Err(failure) if !is_waiting(&failure) => std::thread::sleep(STOP_LATENCY),
            _ => {}
        }
    }
}
