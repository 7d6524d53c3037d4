//! The client: agrees on a session with a receiver, runs its own end of it, and puts both ends' findings together.

mod address;
mod conversation;
mod watch;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tunnelbench_traffic::TrafficError;

pub use address::{Family, parse_bind, split};

use crate::clock::{Clocks, Reading};
use crate::error::StandaloneError;
use crate::jobs::Jobs;
use crate::key::Trust;
use crate::message::{Answer, End, Place, Request};
use crate::offer::Offer;
use crate::plan::{LINGER, Stand};
use crate::rendezvous;
use crate::server::with_port;
use conversation::Conversation;
use watch::Watch;
pub use watch::{Cut, Progress};

/// How long a data path may take to let the first datagram through.
const MEETING_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the receiver may take to tell its results after all has ended.
const RESULTS_TIMEOUT: Duration = Duration::from_secs(20);

/// What a client is asked to do.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The receiver.
    pub host: String,
    /// Its control port.
    pub port: u16,
    /// Which version of IP.
    pub family: Family,
    /// The local address, for control and data.
    pub source: Option<IpAddr>,
    /// Who the receiver must be.
    pub trust: Trust,
    /// What runs.
    pub offer: Offer,
    /// Where this end logs its packets; of several flows each has a file with its number in the name.
    pub log: Option<PathBuf>,
}

impl Ask {
    fn log_of(&self, number: usize) -> Option<PathBuf> {
        let path = self.log.as_ref()?;
        if self.offer.flows.len() == 1 {
            return Some(path.clone());
        }
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let extension = path.extension().map_or_else(String::new, |extension| {
            format!(".{}", extension.to_string_lossy())
        });
        Some(path.with_file_name(format!("{stem}-{}{extension}", number + 1)))
    }
}

/// What both ends found out.
#[derive(Debug)]
pub struct Findings {
    /// The receiver's address.
    pub receiver: SocketAddr,
    /// Its version of the program.
    pub receivers_version: String,
    /// The session, at the pace that the receiver takes.
    pub offer: Offer,
    /// Payload bits per second to which the receiver paces flows that asked for as much as they can get.
    pub paces: Vec<Option<u64>>,
    /// When the schedule started, ns of this machine's CLOCK_REALTIME.
    pub start_at: i64,
    /// The receiver's start minus this end's, ns: the offset of the clocks that the run was timed with.
    pub applied_offset: i64,
    /// How far the clocks are apart.
    pub clocks: Clocks,
    /// When each end stopped sending, where it was ended early.
    pub cut: Option<Cut>,
    /// This end's and the receiver's of each flow.
    pub flows: Vec<(End, End)>,
}

/// Runs one session.
///
/// # Errors
/// Whatever keeps it from a result.
pub fn run(
    ask: &Ask,
    observer: &mut dyn FnMut(&Progress),
    interrupt: &AtomicBool,
) -> Result<Findings, StandaloneError> {
    let receiver = address::resolve(&ask.host, ask.port, ask.family)?;
    let mut conversation = Conversation::open(receiver, ask.source, &ask.trust)?;
    let before = conversation.read_clocks(conversation::MANY_EXCHANGES)?;
    conversation.ask(&Request::Offer {
        offer: ask.offer.told(),
    })?;
    let (places, paces) = conversation.answer(|answer| match answer {
        Answer::Accepted { places, paces } => Ok((places, paces)),
        other => Err(other),
    })?;
    if places.len() != ask.offer.flows.len() {
        return Err(StandaloneError::failed(
            "the receiver accepted another offer than was made",
        ));
    }
    let offer = ask.offer.clone().paced(&paces);
    let locals = meet(&places, &mut conversation, receiver, interrupt)?;
    let lead = lead(&offer, &before);
    conversation.ask(&Request::Start {
        lead: lead.as_nanos() as u64,
    })?;
    let (receivers_start, ports) = conversation.answer(|answer| match answer {
        Answer::Started { start_at, ports } => Ok((start_at, ports)),
        other => Err(other),
    })?;
    let applied = Clocks::new(conversation.said_to_share_clock, vec![before]).at(before.at);
    let start_at = receivers_start.saturating_sub(applied.offset);
    let running = offer
        .flows
        .iter()
        .zip(&places)
        .zip(locals.iter().zip(&ports))
        .enumerate()
        .map(|(number, ((flow, place), (own, port)))| {
            let stand = Stand {
                own: *own,
                other: with_port(receiver, *port),
                session: place.session,
                schedule: offer.schedule(flow, start_at),
                step: offer.step,
            };
            let job = flow.clients_job(stand, ask.source, ask.log_of(number));
            Ok(Some((
                tunnelbench_traffic::start(job)?,
                flow.direction.is_sent_by_client(),
            )))
        })
        .collect::<Result<Vec<_>, TrafficError>>()
        .map_err(|failure| StandaloneError::failed(failure.to_string()))?;
    let lasting = offer.lasting() + Duration::from_nanos(LINGER) + RESULTS_TIMEOUT;
    let mut watch = Watch::new(conversation, Jobs::new(running), start_at, before, observer);
    let theirs = watch.until_the_end(Instant::now() + lead + lasting, interrupt)?;
    let cut = watch.cut();
    let (own, conversation, readings) = watch.finish()?;
    Ok(Findings {
        receiver,
        receivers_version: conversation.receivers_version.clone(),
        applied_offset: applied.offset,
        clocks: Clocks::new(conversation.said_to_share_clock, readings),
        flows: own.into_iter().zip(theirs).collect(),
        offer,
        start_at,
        paces,
        cut,
    })
}

/// Brings both ends of each UDP flow together; tells where this end's datagrams come from.
fn meet(
    places: &[Place],
    conversation: &mut Conversation,
    receiver: SocketAddr,
    interrupt: &AtomicBool,
) -> Result<Vec<SocketAddr>, StandaloneError> {
    let own = with_port(conversation.own(), 0);
    let meet_one = |place: &Place| {
        let Some(rendezvous) = &place.rendezvous else {
            return Ok(own);
        };
        let there = with_port(receiver, rendezvous.port);
        let until = Instant::now() + MEETING_TIMEOUT;
        let is_stopped = || interrupt.load(Ordering::Relaxed);
        rendezvous::meet(own, there, &rendezvous.token, until, is_stopped).map_err(|failure| {
            if failure.kind() == io::ErrorKind::TimedOut {
                StandaloneError::failed(format!(
                    "no UDP datagram gets to {there} and back, though TCP does; let UDP port {} through where a firewall \
                     stands between",
                    there.port()
                ))
            } else {
                StandaloneError::failed(format!("cannot send UDP datagrams to {there}: {failure}"))
            }
        })
    };
    places.iter().map(meet_one).collect()
}

/// Long enough for both ends to be ready, on busy machines too, every TCP stream connected: two round trips each.
fn lead(offer: &Offer, reading: &Reading) -> Duration {
    let streams: u64 = offer
        .flows
        .iter()
        .map(|flow| u64::from(flow.traffic.streams()))
        .sum();
    Duration::from_millis(1_000 + 2 * streams)
        + Duration::from_nanos(reading.round_trip.saturating_mul(4 + 2 * streams))
            .min(Duration::from_secs(20))
}
