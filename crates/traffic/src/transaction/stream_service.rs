//! Serves transactions over TCP: each thread accepts a connection and answers it until it ends.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::clock::STOP_LATENCY;
use crate::error::TrafficError;
use crate::job::TransactionServe;
use crate::socket::set_option;
use crate::transaction::hello::{HELLO_BYTES, hello};
use crate::transaction::patience::is_waiting;
use crate::transaction::serve::{Server, Service};
use crate::transaction::stream::{read_at_least, write_all};

/// How long a connection may take for its hello.
const HELLO_TIMEOUT: Duration = Duration::from_millis(500);

/// Connections that may wait for a thread.
const BACKLOG: i32 = 1024;

pub(super) struct StreamService {
    listener: Socket,
    bound: Option<SocketAddr>,
    hello: [u8; HELLO_BYTES],
    request_bytes: usize,
    fresh_connections: bool,
}

impl StreamService {
    pub fn open(job: &TransactionServe) -> Result<Self, TrafficError> {
        let listener = Socket::new(Domain::for_address(job.bind), Type::STREAM, None)
            .map_err(TrafficError::io("open a TCP socket"))?;
        job.socket.apply(&listener, job.bind)?;
        let listening = || -> io::Result<Option<SocketAddr>> {
            listener.set_reuse_address(true)?;
            // What follows holds for the connections too.
            listener.set_tcp_nodelay(true)?;
            listener.set_read_timeout(Some(STOP_LATENCY))?;
            listener.set_write_timeout(Some(STOP_LATENCY))?;
            // Who connects and says nothing does not keep a thread from its work.
            set_option(&listener, libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT, 1)?;
            listener.bind(&job.bind.into())?;
            listener.listen(BACKLOG)?;
            Ok(listener.local_addr()?.as_socket())
        };
        let bound = listening().map_err(TrafficError::io(format!("listen on TCP {}", job.bind)))?;
        Ok(Self {
            listener,
            bound,
            hello: hello(job.session),
            request_bytes: job.transaction.request_bytes as usize,
            fresh_connections: job.transaction.fresh_connections,
        })
    }

    /// Reads what a connection begins with; how much that is, or none for a stranger's.
    fn hear(&self, connection: &Socket, server: &mut Server<'_>) -> Option<usize> {
        use std::io::Read;
        let deadline = Instant::now() + HELLO_TIMEOUT;
        let longest = if self.fresh_connections {
            HELLO_BYTES + self.request_bytes
        } else {
            HELLO_BYTES
        };
        let mut held = 0;
        while held < HELLO_BYTES {
            let mut connection = connection;
            match connection.read(&mut server.incoming[held..longest]) {
                Ok(0) => return None,
                Ok(read) => held += read,
                Err(failure) if is_waiting(&failure) && Instant::now() < deadline => {
                    if server.patience.is_over() {
                        return None;
                    }
                }
                Err(_) => return None,
            }
        }
        (server.incoming[..HELLO_BYTES] == self.hello).then_some(held)
    }

    /// Answers the one request of a fresh connection. It is closed in order, so that no response is lost on the way;
    /// the client's reset frees its port.
    fn serve_fresh(
        &self,
        connection: &Socket,
        held: usize,
        server: &mut Server<'_>,
    ) -> io::Result<Option<()>> {
        let whole = HELLO_BYTES + self.request_bytes;
        let (incoming, patience) = (&mut server.incoming, &server.patience);
        if read_at_least(connection, &mut incoming[..whole], held, whole, patience)?.is_none() {
            return Ok(None);
        }
        let written = write_all(connection, &server.response, patience)?;
        if written.is_some() {
            server.answered();
        }
        Ok(written)
    }

    /// Answers requests until the client hangs up.
    fn serve_all(&self, connection: &Socket, server: &mut Server<'_>) -> io::Result<Option<()>> {
        if write_all(connection, &self.hello, &server.patience)?.is_none() {
            return Ok(None);
        }
        loop {
            let (whole, patience) = (self.request_bytes, &server.patience);
            let incoming = &mut server.incoming[..whole];
            if read_at_least(connection, incoming, 0, whole, patience)?.is_none() {
                return Ok(None);
            }
            let written = write_all(connection, &server.response, patience)?;
            if written.is_none() || !server.answered() {
                return Ok(written);
            }
        }
    }
}

impl Service for StreamService {
    fn bound(&self) -> Option<SocketAddr> {
        self.bound
    }

    fn serve_next(&self, server: &mut Server<'_>) -> io::Result<bool> {
        let connection = match self.listener.accept() {
            Ok((connection, _)) => connection,
            Err(failure) if is_waiting(&failure) => return Ok(false),
            Err(failure) if failure.kind() == ErrorKind::ConnectionAborted => return Ok(true),
            Err(failure) => return Err(failure),
        };
        let Some(held) = self.hear(&connection, server) else {
            server.counts.foreign += 1;
            return Ok(true);
        };
        server.counts.connections += 1;
        // However a connection ends, its client counts what that cost.
        let _ = if self.fresh_connections {
            self.serve_fresh(&connection, held, server)
        } else {
            self.serve_all(&connection, server)
        };
        Ok(true)
    }
}
