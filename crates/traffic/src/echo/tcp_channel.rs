//! Probes over a TCP connection that can be renewed.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::thread;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::datagram::Header;
use crate::echo::channel::{Channel, News, is_waiting, wait};
use crate::job::{SocketOptions, Timestamps};
use crate::socks;

const READ_BYTES: usize = 65_536;

/// A TCP connection; its replies have the length of the probes.
pub(crate) struct TcpChannel {
    destination: SocketAddr,
    proxy: Option<SocketAddr>,
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
        proxy: Option<SocketAddr>,
        options: SocketOptions,
        timeout: u64,
        probe_bytes: usize,
    ) -> Self {
        Self {
            destination,
            proxy,
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
        let peer = self.proxy.unwrap_or(self.destination);
        let socket = Socket::new(Domain::for_address(peer), Type::STREAM, None)?;
        // The connection before may have left the given port a moment ago.
        socket.set_reuse_address(self.options.port.is_some())?;
        self.options
            .apply(&socket, peer)
            .map_err(io::Error::other)?;
        socks::connect(&socket, self.destination, self.proxy, self.timeout)?;
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

    fn receive(&mut self, limit: u64, news: &mut dyn FnMut(News)) -> io::Result<()> {
        let Some(connection) = &mut self.connection else {
            thread::sleep(Duration::from_nanos(limit));
            return Ok(());
        };
        if wait(connection.as_fd(), limit)?.is_empty() {
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
        for header in self.incoming[..whole]
            .chunks_exact(self.probe_bytes)
            .filter_map(Header::parse)
        {
            news(News::Reply {
                header,
                arrived: None,
            });
        }
        self.incoming.drain(..whole);
        Ok(())
    }

    fn renew(&mut self) {
        self.connection = None;
    }

    fn timestamps(&self) -> Timestamps {
        Timestamps::User
    }
}
