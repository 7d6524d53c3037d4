//! One client's conversation with the receiver, from its hello to its results.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tunnelbench_traffic::TrafficError;

use crate::channel::{Channel, ChannelError};
use crate::clock;
use crate::message::{Answer, End, Hello, LONGEST_REQUEST, Refusal, Request, Why};
use crate::offer::Offer;
use crate::server::dialogue::{Act, Dialogue, Phase};
use crate::server::performance::Performance;
use crate::server::places::OwnPlace;
use crate::server::{Event, House, Slot};

/// How often the session looks after what does not come over the control channel.
const TICK: Duration = Duration::from_millis(5);

/// Why a conversation ended before its time.
#[derive(Debug)]
pub(crate) enum Ending {
    Channel(ChannelError),
    Refused(Refusal),
}

impl<E: Into<ChannelError>> From<E> for Ending {
    fn from(error: E) -> Self {
        Self::Channel(error.into())
    }
}

impl From<Refusal> for Ending {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// Talks with one client until the end. A refusal is told before it is returned.
pub(crate) fn serve(stream: TcpStream, peer: SocketAddr, house: &House) -> Result<(), Ending> {
    let own = super::canonical(stream.local_addr()?);
    let until = Instant::now() + Phase::Greeting.patience();
    let channel = Channel::respond(stream, &house.trust, LONGEST_REQUEST, until)?;
    let mut session = Session {
        house,
        peer,
        own,
        channel,
        dialogue: Dialogue::new(),
        since: Instant::now(),
        slot: None,
        flows: Flows::None,
    };
    let ending = session.run();
    if let Err(Ending::Refused(refusal)) = &ending {
        session.channel.send(&Answer::Refused(refusal.clone()))?;
    }
    ending
}

struct Session<'a> {
    house: &'a House,
    peer: SocketAddr,
    own: SocketAddr,
    channel: Channel,
    dialogue: Dialogue,
    /// When the phase began, or while jobs run, when the client was heard last.
    since: Instant,
    /// Held while the session takes part in anything.
    slot: Option<Slot<'a>>,
    flows: Flows,
}

/// What became of the flows so far.
enum Flows {
    None,
    Meeting { offer: Offer, places: Vec<OwnPlace> },
    Running(Performance),
}

impl Session<'_> {
    fn run(&mut self) -> Result<(), Ending> {
        loop {
            let phase = self.dialogue.phase();
            let patience = self.since + phase.patience();
            match self.channel.receive(patience.min(Instant::now() + TICK)) {
                Ok(Some(request)) => self.take(request, clock::now())?,
                Ok(None) if Instant::now() >= patience => return Err(ChannelError::Silent.into()),
                Ok(None) => {}
                Err(ChannelError::Closed) if phase == Phase::Over => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            self.look_after()?;
        }
    }

    fn take(&mut self, request: Request, received: i64) -> Result<(), Ending> {
        let before = self.dialogue.phase();
        let act = self.dialogue.take(request)?;
        if self.dialogue.phase() != before || before == Phase::Running {
            self.since = Instant::now();
        }
        match act {
            Act::Greet => self.channel.send(&Answer::Hello(Hello::own()))?,
            Act::TellTime { sent } => {
                let answered = clock::now();
                self.channel.send(&Answer::Clock {
                    sent,
                    received,
                    answered,
                })?;
            }
            Act::Consider(offer) => self.consider(offer)?,
            Act::Begin { lead } => self.begin(lead)?,
            Act::Cut => {
                if let Flows::Running(performance) = &mut self.flows {
                    let cut = performance.cut_short();
                    self.channel.send(&cut)?;
                }
            }
        }
        Ok(())
    }

    /// Opens what the offer needs where it is within the limits and nobody else is served.
    fn consider(&mut self, offer: Offer) -> Result<(), Ending> {
        let paces = self.house.limits.admit(&offer)?;
        let offer = offer.paced(&paces);
        self.slot = Some(self.house.slot()?);
        let open = |flow| {
            OwnPlace::open(flow, self.own, self.peer.ip())
                .map_err(|failure| Refusal::new(Why::Invalid, failure.to_string()))
        };
        let places = offer
            .flows
            .iter()
            .map(open)
            .collect::<Result<Vec<OwnPlace>, Refusal>>()?;
        let told = places.iter().map(OwnPlace::told).collect();
        self.channel.send(&Answer::Accepted {
            places: told,
            paces,
        })?;
        self.flows = Flows::Meeting { offer, places };
        Ok(())
    }

    /// Starts the jobs, so that they are ready when the client's packets come.
    fn begin(&mut self, lead: Duration) -> Result<(), Ending> {
        let Flows::Meeting { offer, mut places } = std::mem::replace(&mut self.flows, Flows::None)
        else {
            return Err(Refusal::new(Why::Invalid, "there is nothing to start").into());
        };
        if !places.iter_mut().all(OwnPlace::has_met) {
            return Err(Refusal::new(
                Why::Invalid,
                "no datagram with the token came from the address of the control channel",
            )
            .into());
        }
        let start_at = clock::now().saturating_add(lead.as_nanos() as i64);
        let started = places
            .into_iter()
            .zip(&offer.flows)
            .map(|(place, flow)| place.start(flow, &offer, start_at, self.own, self.peer))
            .collect::<Result<Vec<_>, TrafficError>>()
            .map_err(|failure| Refusal::new(Why::Invalid, failure.to_string()))?;
        let (running, ports) = started.into_iter().unzip();
        self.channel.send(&Answer::Started { start_at, ports })?;
        self.flows = Flows::Running(Performance::new(running, start_at, lead + offer.lasting()));
        self.house.tell(&Event::Began {
            peer: self.peer,
            offer: &offer,
        });
        Ok(())
    }

    fn look_after(&mut self) -> Result<(), Ending> {
        let is_ending = self.house.is_ending();
        match &mut self.flows {
            Flows::None if self.dialogue.phase() == Phase::Over => Ok(()),
            Flows::None | Flows::Meeting { .. } if is_ending => {
                Err(Refusal::new(Why::Ending, "it was told to end").into())
            }
            Flows::None => Ok(()),
            Flows::Meeting { places, .. } => {
                places.iter_mut().for_each(|place| {
                    place.has_met();
                });
                Ok(())
            }
            Flows::Running(performance) => {
                let proposal = if is_ending {
                    performance.propose_to_end()
                } else {
                    None
                };
                for answer in proposal.into_iter().chain(performance.progress()) {
                    self.channel.send(&answer)?;
                }
                match performance.end() {
                    Some(flows) => self.report(flows),
                    None => Ok(()),
                }
            }
        }
    }

    fn report(&mut self, flows: Vec<End>) -> Result<(), Ending> {
        self.flows = Flows::None;
        self.dialogue.over();
        self.since = Instant::now();
        self.slot = None;
        self.house.tell(&Event::Ended {
            peer: self.peer,
            flows: &flows,
        });
        self.channel.send(&Answer::Results { flows })?;
        Ok(())
    }
}
