//! The receiver: listens for clients and takes part in what they ask, within its limits.

mod dialogue;
mod performance;
mod places;
mod session;
#[cfg(test)]
mod tests;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Socket, Type};

pub(crate) use places::with_port;

use crate::error::StandaloneError;
use crate::key::Trust;
use crate::limits::Limits;
use crate::message::{End, Refusal, Why};
use crate::offer::Offer;
use session::Ending;

/// Clients that may be in conversation at once, sessions included; more are hung up on.
const MOST_CONNECTIONS: usize = 64;

/// How long the receiver waits for its conversations when it ends.
const FAREWELL: Duration = Duration::from_secs(5);

const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// What to do with the news of a receiver.
pub type Observer = Box<dyn Fn(&Event<'_>) + Send + Sync>;

/// What a receiver is asked to be.
pub struct House {
    /// Who may take part.
    pub trust: Trust,
    /// In what.
    pub limits: Limits,
    /// How many sessions run at once.
    pub sessions: usize,
    /// End after one session.
    pub once: bool,
    /// Set from anywhere to end.
    pub ending: Arc<AtomicBool>,
    /// What to do with the news.
    pub observer: Observer,
    /// Sessions that run.
    busy: AtomicUsize,
    /// Sessions that have ended.
    served: AtomicUsize,
}

/// What happens at a receiver.
#[derive(Debug)]
pub enum Event<'a> {
    /// It can be reached.
    Listening(SocketAddr),
    /// A session starts.
    Began {
        /// The client.
        peer: SocketAddr,
        /// What it asked for, within the limits.
        offer: &'a Offer,
    },
    /// A session has ended.
    Ended {
        /// The client.
        peer: SocketAddr,
        /// What the receiver's jobs found out.
        flows: &'a [End],
    },
    /// A conversation ended without results.
    Failed {
        /// Who talked.
        peer: SocketAddr,
        /// Why.
        reason: &'a str,
    },
}

/// A place among the sessions that may run.
pub(crate) struct Slot<'a>(&'a House);

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::AcqRel);
        self.0.served.fetch_add(1, Ordering::AcqRel);
    }
}

impl House {
    /// Nobody is served yet.
    #[must_use]
    pub fn new(
        trust: Trust,
        limits: Limits,
        sessions: usize,
        once: bool,
        ending: Arc<AtomicBool>,
        observer: Observer,
    ) -> Self {
        let (busy, served) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Self {
            trust,
            limits,
            sessions,
            once,
            ending,
            observer,
            busy,
            served,
        }
    }

    /// Listens on `bind` until told to end.
    ///
    /// # Errors
    /// `Failed` where it cannot listen.
    pub fn receive(self, bind: SocketAddr) -> Result<(), StandaloneError> {
        let cannot = |failure: io::Error| {
            StandaloneError::failed(format!("cannot listen on TCP {bind}: {failure}"))
        };
        let listener = listen(bind).map_err(cannot)?;
        self.tell(&Event::Listening(listener.local_addr().map_err(cannot)?));
        let house = Arc::new(self);
        let mut conversations: Vec<JoinHandle<()>> = Vec::new();
        while !house.is_ending() {
            conversations.retain(|conversation| !conversation.is_finished());
            let Some((stream, peer)) = next_connection(&listener).map_err(cannot)? else {
                continue;
            };
            if conversations.len() < MOST_CONNECTIONS {
                let house = Arc::clone(&house);
                conversations.push(thread::spawn(move || converse(stream, peer, &house)));
            }
        }
        let until = Instant::now() + FAREWELL;
        while conversations
            .iter()
            .any(|conversation| !conversation.is_finished())
            && Instant::now() < until
        {
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn tell(&self, event: &Event<'_>) {
        (self.observer)(event);
    }

    fn is_ending(&self) -> bool {
        self.ending.load(Ordering::Relaxed)
            || (self.once
                && self.served.load(Ordering::Acquire) > 0
                && self.busy.load(Ordering::Acquire) == 0)
    }

    fn slot(&self) -> Result<Slot<'_>, Refusal> {
        let taken = self
            .busy
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |busy| {
                (busy < self.sessions).then_some(busy + 1)
            });
        match taken {
            Ok(_) => Ok(Slot(self)),
            Err(running) => Err(Refusal::new(
                Why::Busy,
                format!(
                    "busy with {running} of {} sessions; try again later",
                    self.sessions
                ),
            )),
        }
    }
}

fn converse(stream: TcpStream, peer: SocketAddr, house: &House) {
    let peer = canonical(peer);
    let reason = match session::serve(stream, peer, house) {
        Ok(()) => return,
        Err(Ending::Channel(error)) => error.to_string(),
        Err(Ending::Refused(refusal)) => format!("refused: {}", refusal.reason),
    };
    house.tell(&Event::Failed {
        peer,
        reason: &reason,
    });
}

/// An IPv6 address of any kind listens for IPv4 too where it is the unspecified one.
fn listen(bind: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(bind), Type::STREAM, None)?;
    if bind.is_ipv6() {
        socket.set_only_v6(!bind.ip().is_unspecified())?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&bind.into())?;
    socket.listen(16)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// None where nobody came for a while.
fn next_connection(listener: &TcpListener) -> io::Result<Option<(TcpStream, SocketAddr)>> {
    let mut readable = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
    match poll(&mut readable, Some(&TICK)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
        Ok(_) => {}
        Err(failure) => return Err(failure.into()),
    }
    match listener.accept() {
        Ok((stream, peer)) => {
            stream.set_nonblocking(false)?;
            Ok(Some((stream, peer)))
        }
        // Whatever is wrong with one connection, the next may be well; too many open files pass too.
        Err(_) => {
            thread::sleep(Duration::from_millis(10));
            Ok(None)
        }
    }
}

/// IPv4 addresses as such, also on a socket that serves both versions.
fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip.is_ipv4() => SocketAddr::new(ip, address.port()),
        _ => address,
    }
}
