//! The receiver's end of each flow: its secrets, its port, and the proof of the client's address.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tunnelbench_traffic::{Job, Running, TrafficError};

use crate::error::StandaloneError;
use crate::jobs::Started;
use crate::message::{Place, Rendezvous, TOKEN_BYTES};
use crate::offer::{Flow, Offer, Traffic};
use crate::plan::Stand;
use crate::random;
use crate::rendezvous::Meeting;

/// How many ports after the control channel's are tried for data before any other, so that a firewall can let a few in.
const DATA_PORTS: u16 = 100;

/// A flow that is agreed and has no job yet.
pub(crate) struct OwnPlace {
    session: u64,
    meeting: Option<(Meeting, Rendezvous)>,
}

impl OwnPlace {
    /// `own` is the control channel's local address, `peer` the client's.
    pub fn open(flow: &Flow, own: SocketAddr, peer: IpAddr) -> Result<Self, StandaloneError> {
        let session = u64::from_be_bytes(random::bytes()?);
        let meeting = match flow.traffic {
            Traffic::Udp(_) => Some(open_meeting(own, peer)?),
            Traffic::Tcp(_) | Traffic::Icmp(_) | Traffic::Transactions(_) => None,
        };
        Ok(Self { session, meeting })
    }

    /// What the client is told.
    pub fn told(&self) -> Place {
        Place {
            session: self.session,
            rendezvous: self
                .meeting
                .as_ref()
                .map(|(_, rendezvous)| rendezvous.clone()),
        }
    }

    /// Looks whether the client has come; true also where it need not.
    pub fn has_met(&mut self) -> bool {
        self.meeting
            .as_mut()
            .is_none_or(|(meeting, _)| meeting.look().is_some())
    }

    /// Starts the receiver's job of the flow, if it has any, and tells its port.
    pub fn start(
        mut self,
        flow: &Flow,
        offer: &Offer,
        start_at: i64,
        own: SocketAddr,
        peer: SocketAddr,
    ) -> Result<(Started, u16), TrafficError> {
        let met = self
            .meeting
            .as_mut()
            .and_then(|(meeting, _)| meeting.look());
        let job = |port| {
            flow.receivers_job(Stand {
                own: with_port(own, port),
                other: met.unwrap_or(peer),
                session: self.session,
                schedule: offer.schedule(flow, start_at),
                step: offer.step,
            })
        };
        let port = self.meeting.as_ref().map(|(_, rendezvous)| rendezvous.port);
        // The job binds the port again.
        drop(self.meeting);
        let (running, port) = match port {
            Some(port) => (start(job(port))?, port),
            None => start_on_free_port(job, own.port())?,
        };
        let sends = flow.direction.is_sent_by_receiver();
        Ok((running.map(|running| (running, sends)), port))
    }
}

fn start(job: Option<Job>) -> Result<Option<Running>, TrafficError> {
    job.map(tunnelbench_traffic::start).transpose()
}

fn open_meeting(own: SocketAddr, peer: IpAddr) -> Result<(Meeting, Rendezvous), StandaloneError> {
    let token = random::bytes::<TOKEN_BYTES>()?;
    let open = |port| Meeting::open(with_port(own, port), peer, &token);
    let meeting = on_free_port(own.port(), open, |failure: &io::Error| Some(failure.kind()));
    let met = meeting.and_then(|meeting| Ok((meeting.port()?, meeting)));
    let (port, meeting) = met
        .map_err(|failure| StandaloneError::failed(format!("cannot open a UDP port: {failure}")))?;
    Ok((meeting, Rendezvous { port, token }))
}

fn start_on_free_port(
    job: impl Fn(u16) -> Option<Job>,
    control: u16,
) -> Result<(Option<Running>, u16), TrafficError> {
    let kind = |failure: &TrafficError| match failure {
        TrafficError::Io { source, .. } => Some(source.kind()),
        _ => None,
    };
    let running = on_free_port(control, |port| start(job(port)), kind)?;
    let bound = running.as_ref().and_then(Running::bound);
    let port = bound.map_or(0, |bound| bound.port());
    Ok((running, port))
}

/// Does `open` with the ports after `control` until one is free, and at last with any port.
fn on_free_port<T, E>(
    control: u16,
    open: impl Fn(u16) -> Result<T, E>,
    kind: impl Fn(&E) -> Option<io::ErrorKind>,
) -> Result<T, E> {
    let near = (1..=DATA_PORTS).filter_map(|distance| control.checked_add(distance));
    for port in near {
        match open(port) {
            Err(failure) if kind(&failure) == Some(io::ErrorKind::AddrInUse) => {}
            outcome => return outcome,
        }
    }
    open(0)
}

/// The same address, scope included, with another port.
pub(crate) fn with_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}
