//! Serves transactions over UDP: each thread takes a source that says hello, and answers it on a socket of its own.

use std::collections::HashSet;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};

use socket2::{Domain, Socket, Type};

use crate::clock::STOP_LATENCY;
use crate::error::TrafficError;
use crate::job::{SocketOptions, TransactionServe};
use crate::transaction::hello::{HELLO_BYTES, hello};
use crate::transaction::patience::is_waiting;
use crate::transaction::serve::{Server, Service};

pub(super) struct DatagramService {
    /// Gets what comes from sources without a socket of their own.
    door: UdpSocket,
    bound: SocketAddr,
    peer: Option<IpAddr>,
    options: SocketOptions,
    hello: [u8; HELLO_BYTES],
    request_bytes: usize,
    number_bytes: usize,
    /// Sources that a thread serves.
    served: Mutex<HashSet<SocketAddr>>,
}

impl DatagramService {
    pub fn open(job: &TransactionServe) -> Result<Self, TrafficError> {
        let listening = || -> io::Result<(UdpSocket, SocketAddr)> {
            let door: UdpSocket = open(job.bind, job.socket)?.into();
            let bound = door.local_addr()?;
            Ok((door, bound))
        };
        let (door, bound) =
            listening().map_err(TrafficError::io(format!("bind UDP {}", job.bind)))?;
        Ok(Self {
            door,
            bound,
            peer: job.peer,
            options: job.socket,
            hello: hello(job.session),
            request_bytes: job.transaction.request_bytes as usize,
            number_bytes: job.transaction.number_bytes(),
            served: Mutex::new(HashSet::new()),
        })
    }

    /// Answers requests until the job is over: a source of datagrams does not hang up.
    fn serve_all(&self, source: SocketAddr, server: &mut Server<'_>) -> io::Result<()> {
        let socket: UdpSocket = open(self.bound, self.options)?.into();
        socket.connect(source)?;
        let _ = socket.send(&self.hello);
        loop {
            // Room for a hello, which is longer than a small request.
            match socket.recv(&mut server.incoming) {
                Ok(length) if server.incoming[..length] == self.hello => {
                    let _ = socket.send(&self.hello);
                }
                Ok(length) if length == self.request_bytes => {
                    let number = &server.incoming[..self.number_bytes];
                    server.response[..self.number_bytes].copy_from_slice(number);
                    // A response that does not get out is a lost one, which the client notices.
                    if socket.send(&server.response).is_ok() && !server.answered() {
                        return Ok(());
                    }
                }
                Ok(_) => server.counts.foreign += 1,
                Err(failure) if is_waiting(&failure) && server.patience.is_over() => return Ok(()),
                Err(failure) if is_passing(&failure) => {}
                Err(failure) => return Err(failure),
            }
        }
    }
}

impl Service for DatagramService {
    fn bound(&self) -> Option<SocketAddr> {
        Some(self.bound)
    }

    fn serve_next(&self, server: &mut Server<'_>) -> io::Result<bool> {
        let (length, source) = match self.door.recv_from(&mut server.incoming) {
            Ok(received) => received,
            Err(failure) if is_passing(&failure) => return Ok(false),
            Err(failure) => return Err(failure),
        };
        let is_foreign = self.peer.is_some_and(|peer| peer != source.ip());
        if is_foreign || server.incoming[..length] != self.hello {
            server.counts.foreign += 1;
            return Ok(true);
        }
        let is_new = self
            .served
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(source);
        if is_new {
            server.counts.connections += 1;
            self.serve_all(source, server)?;
        }
        Ok(true)
    }
}

/// A socket that others may share the address with: the kernel hands a datagram to the one that is connected to its
/// source, if there is one.
fn open(bind: SocketAddr, options: SocketOptions) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(bind), Type::DGRAM, None)?;
    options.apply(&socket, bind).map_err(io::Error::other)?;
    socket.set_reuse_address(true)?;
    socket.set_read_timeout(Some(STOP_LATENCY))?;
    socket.set_write_timeout(Some(STOP_LATENCY))?;
    socket.bind(&bind.into())?;
    Ok(socket)
}

/// Nothing to read, or only news of an earlier datagram.
fn is_passing(failure: &io::Error) -> bool {
    is_waiting(failure) || failure.kind() == ErrorKind::ConnectionRefused
}
