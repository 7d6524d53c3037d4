//! What carries echo probes: UDP, or a TCP connection that can be renewed.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};

use crate::datagram::{Header, LARGEST_PAYLOAD};
use crate::error::TrafficError;
use crate::job::SocketOptions;

const READ_BYTES: usize = 65_536;

/// A way to the echo server and back.
pub(crate) trait Channel {
    /// Makes the channel ready to send, if it is not.
    fn connect(&mut self) -> io::Result<()>;
    /// Sends one probe.
    fn send(&mut self, probe: &[u8]) -> io::Result<()>;
    /// Waits at most `limit` ns and hands over the header of each reply that is there then.
    fn receive(&mut self, limit: u64, reply: &mut dyn FnMut(Header)) -> io::Result<()>;
    /// Has the next [`Self::connect`] begin anew.
    fn renew(&mut self);
}

/// One socket that is not connected, so that the route and the source address may still change.
pub(crate) struct UdpChannel {
    socket: UdpSocket,
    destination: SocketAddr,
    buffer: Vec<u8>,
}

impl UdpChannel {
    pub fn open(destination: SocketAddr, options: SocketOptions) -> Result<Self, TrafficError> {
        let socket = Socket::new(Domain::for_address(destination), Type::DGRAM, None)
            .map_err(TrafficError::io("open a UDP socket"))?;
        options.apply(&socket, destination)?;
        socket
            .set_nonblocking(true)
            .map_err(TrafficError::io("set up a UDP socket"))?;
        Ok(Self {
            socket: socket.into(),
            destination,
            buffer: vec![0; LARGEST_PAYLOAD],
        })
    }
}

impl Channel for UdpChannel {
    fn connect(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn send(&mut self, probe: &[u8]) -> io::Result<()> {
        self.socket.send_to(probe, self.destination).map(|_| ())
    }

    fn receive(&mut self, limit: u64, reply: &mut dyn FnMut(Header)) -> io::Result<()> {
        wait(self.socket.as_fd(), limit)?;
        loop {
            match self.socket.recv_from(&mut self.buffer) {
                Ok((length, source)) if source == self.destination => {
                    Header::parse(&self.buffer[..length])
                        .into_iter()
                        .for_each(&mut *reply);
                }
                Ok(_) => {}
                Err(failure) if is_waiting(&failure) => return Ok(()),
                Err(failure) => return Err(failure),
            }
        }
    }

    fn renew(&mut self) {}
}

/// A TCP connection; its replies have the length of the probes.
pub(crate) struct TcpChannel {
    destination: SocketAddr,
    options: SocketOptions,
    timeout: Duration,
    probe_bytes: usize,
    connection: Option<TcpStream>,
    incoming: Vec<u8>,
    buffer: Vec<u8>,
}

impl TcpChannel {
    /// `timeout`, ns, is for connecting and for each send.
    pub fn new(
        destination: SocketAddr,
        options: SocketOptions,
        timeout: u64,
        probe_bytes: usize,
    ) -> Self {
        Self {
            destination,
            options,
            timeout: Duration::from_nanos(timeout),
            probe_bytes,
            connection: None,
            incoming: Vec::new(),
            buffer: vec![0; READ_BYTES],
        }
    }
}

impl Channel for TcpChannel {
    fn connect(&mut self) -> io::Result<()> {
        if self.connection.is_some() {
            return Ok(());
        }
        let socket = Socket::new(Domain::for_address(self.destination), Type::STREAM, None)?;
        // The connection before may have left the given port a moment ago.
        socket.set_reuse_address(self.options.port.is_some())?;
        self.options
            .apply(&socket, self.destination)
            .map_err(io::Error::other)?;
        socket.connect_timeout(&self.destination.into(), self.timeout)?;
        let connection = TcpStream::from(socket);
        connection.set_nodelay(true)?;
        connection.set_write_timeout(Some(self.timeout.max(Duration::from_millis(1))))?;
        // Reading follows a wait for something to read, and must not wait again.
        connection.set_read_timeout(Some(Duration::from_millis(1)))?;
        self.incoming.clear();
        self.connection = Some(connection);
        Ok(())
    }

    fn send(&mut self, probe: &[u8]) -> io::Result<()> {
        let Some(connection) = &mut self.connection else {
            return Err(ErrorKind::NotConnected.into());
        };
        connection.write_all(probe)
    }

    fn receive(&mut self, limit: u64, reply: &mut dyn FnMut(Header)) -> io::Result<()> {
        let Some(connection) = &mut self.connection else {
            thread::sleep(Duration::from_nanos(limit));
            return Ok(());
        };
        if !wait(connection.as_fd(), limit)? {
            return Ok(());
        }
        match connection.read(&mut self.buffer) {
            Ok(0) => {
                return Err(io::Error::new(
                    ErrorKind::UnexpectedEof,
                    "the other end hung up",
                ));
            }
            Ok(length) => self.incoming.extend_from_slice(&self.buffer[..length]),
            Err(failure) if is_waiting(&failure) => return Ok(()),
            Err(failure) => return Err(failure),
        }
        let whole = self.incoming.len() / self.probe_bytes * self.probe_bytes;
        let replies = self.incoming[..whole].chunks_exact(self.probe_bytes);
        replies.filter_map(Header::parse).for_each(reply);
        self.incoming.drain(..whole);
        Ok(())
    }

    fn renew(&mut self) {
        self.connection = None;
    }
}

/// Waits at most `limit` ns; whether there is something to read.
fn wait(descriptor: BorrowedFd<'_>, limit: u64) -> io::Result<bool> {
    let mut readable = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    let limit = Timespec {
        tv_sec: (limit / 1_000_000_000) as i64,
        tv_nsec: (limit % 1_000_000_000) as i64,
    };
    match poll(&mut readable, Some(&limit)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(failure) => Err(failure.into()),
    }
}

fn is_waiting(failure: &io::Error) -> bool {
    matches!(
        failure.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted
    )
}
