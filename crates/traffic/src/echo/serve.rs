//! Sends back what the first source sends.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::clock::STOP_LATENCY;
use crate::error::TrafficError;
use crate::job::{EchoServe, Protocol};
use crate::outcome::{Echoed, Outcome, Tally};
use crate::running::Running;
use crate::schedule::LONGEST_JOB;

const LARGEST_READ: usize = 65_536;

/// How long a request to stop may wait: whoever probed waits for the end of the server before it goes on.
const PATIENCE: Duration = Duration::from_millis(2);

/// Starts the job.
pub(crate) fn start(job: &EchoServe) -> Result<Running, TrafficError> {
    if job.deadline > LONGEST_JOB {
        return Err(TrafficError::Invalid(
            "an echo server's deadline is at most an hour away".into(),
        ));
    }
    let deadline = Instant::now() + Duration::from_nanos(job.deadline);
    let bind = job.bind;
    match job.protocol {
        Protocol::Udp => {
            let (socket, bound) =
                open_udp(bind).map_err(TrafficError::io(format!("bind UDP {bind}")))?;
            Running::spawn("echo-serve", Some(bound), move |stop| {
                serve(
                    &mut UdpServer {
                        socket,
                        source: None,
                    },
                    deadline,
                    stop,
                )
            })
        }
        Protocol::Tcp => {
            let (listener, bound) =
                open_tcp(bind).map_err(TrafficError::io(format!("listen on TCP {bind}")))?;
            Running::spawn("echo-serve", Some(bound), move |stop| {
                serve(
                    &mut TcpServer {
                        listener,
                        source: None,
                        connection: None,
                    },
                    deadline,
                    stop,
                )
            })
        }
    }
}

fn open_udp(bind: SocketAddr) -> io::Result<(UdpSocket, SocketAddr)> {
    let socket = UdpSocket::bind(bind)?;
    socket.set_nonblocking(true)?;
    let bound = socket.local_addr()?;
    Ok((socket, bound))
}

fn open_tcp(bind: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(bind)?;
    listener.set_nonblocking(true)?;
    let bound = listener.local_addr()?;
    Ok((listener, bound))
}

/// One step of a server: take what is there and send it back.
trait Server {
    fn descriptors(&self) -> Vec<PollFd<'_>>;
    fn step(&mut self, buffer: &mut [u8], counts: &mut Echoed) -> io::Result<()>;
}

fn serve(
    server: &mut impl Server,
    deadline: Instant,
    stop: &AtomicBool,
) -> Result<Outcome, TrafficError> {
    let mut counts = Echoed {
        echoed: Tally::default(),
        foreign: 0,
    };
    let mut buffer = vec![0; LARGEST_READ];
    let limit = Timespec {
        tv_sec: 0,
        tv_nsec: PATIENCE.subsec_nanos().into(),
    };
    while !stop.load(Ordering::Relaxed) && Instant::now() < deadline {
        match poll(&mut server.descriptors(), Some(&limit)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => server
                .step(&mut buffer, &mut counts)
                .map_err(TrafficError::io("serve echoes"))?,
            Err(failure) => {
                return Err(TrafficError::io("wait for something to echo")(
                    failure.into(),
                ));
            }
        }
    }
    Ok(Outcome::EchoServe(counts))
}

struct UdpServer {
    socket: UdpSocket,
    source: Option<SocketAddr>,
}

impl Server for UdpServer {
    fn descriptors(&self) -> Vec<PollFd<'_>> {
        vec![PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN)]
    }

    fn step(&mut self, buffer: &mut [u8], counts: &mut Echoed) -> io::Result<()> {
        let (length, source) = match self.socket.recv_from(buffer) {
            Ok(received) => received,
            Err(failure) if is_passing(&failure) => return Ok(()),
            Err(failure) => return Err(failure),
        };
        if *self.source.get_or_insert(source) != source {
            counts.foreign += 1;
            return Ok(());
        }
        // A reply that does not get out is a lost one, which the prober notices.
        if self.socket.send_to(&buffer[..length], source).is_ok() {
            counts.echoed.add(length as u64);
        }
        Ok(())
    }
}

/// Serves one connection at a time. A newer one of the same source takes over, because its prober gave up the older.
struct TcpServer {
    listener: TcpListener,
    source: Option<IpAddr>,
    connection: Option<TcpStream>,
}

impl Server for TcpServer {
    fn descriptors(&self) -> Vec<PollFd<'_>> {
        let listener = self.listener.as_fd();
        let all = std::iter::once(listener).chain(self.connection.as_ref().map(AsFd::as_fd));
        all.map(|descriptor| PollFd::from_borrowed_fd(descriptor, PollFlags::IN))
            .collect()
    }

    fn step(&mut self, buffer: &mut [u8], counts: &mut Echoed) -> io::Result<()> {
        self.accept(counts)?;
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        match echo(connection, buffer) {
            Ok(0) => self.connection = None,
            Ok(length) => counts.echoed.add(length as u64),
            Err(failure) if is_passing(&failure) => {}
            Err(_) => self.connection = None,
        }
        Ok(())
    }
}

impl TcpServer {
    fn accept(&mut self, counts: &mut Echoed) -> io::Result<()> {
        let (connection, peer) = match self.listener.accept() {
            Ok(accepted) => accepted,
            Err(failure)
                if is_passing(&failure) || failure.kind() == ErrorKind::ConnectionAborted =>
            {
                return Ok(());
            }
            Err(failure) => return Err(failure),
        };
        if *self.source.get_or_insert(peer.ip()) != peer.ip() {
            counts.foreign += 1;
            return Ok(());
        }
        connection.set_nodelay(true)?;
        connection.set_read_timeout(Some(Duration::from_millis(1)))?;
        connection.set_write_timeout(Some(STOP_LATENCY))?;
        self.connection = Some(connection);
        Ok(())
    }
}

/// Sends back what can be read at once; 0 where the other end hung up. A prober that does not read what it is sent
/// fails here, and loses its connection.
fn echo(connection: &mut TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
    let length = connection.read(buffer)?;
    let written = connection.write_all(&buffer[..length]);
    written.map_err(|failure| io::Error::new(ErrorKind::BrokenPipe, failure))?;
    Ok(length)
}

fn is_passing(failure: &io::Error) -> bool {
    matches!(
        failure.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused
    )
}
