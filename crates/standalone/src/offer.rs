//! What a client asks a receiver to take part in. All durations are in nanoseconds.
//!
//! An offer names no address: traffic goes only between the two ends of the control channel.

use serde::{Deserialize, Serialize};
use tunnelbench_traffic::job::{Content, SocketOptions};
use tunnelbench_traffic::process::{Departures, Sizes};

/// The most flows that run side by side.
pub(crate) const MOST_FLOWS: usize = 64;

/// One session: flows that run side by side on one schedule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// Sending before the measured window.
    pub warm_up: u64,
    /// The measured window.
    pub measure: u64,
    /// Length of a step of every time series.
    pub step: u64,
    /// What runs side by side.
    pub flows: Vec<Flow>,
}

/// One flow of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Who sends.
    pub direction: Direction,
    /// What is sent.
    pub traffic: Traffic,
}

/// Which way the payload goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the receiver.
    Forward,
    /// From the receiver to the client.
    Reverse,
    /// Both ways at once over the same TCP connections.
    Both,
}

impl Direction {
    /// Whether the end that accepted the offer sends.
    pub(crate) fn is_sent_by_receiver(self) -> bool {
        matches!(self, Self::Reverse | Self::Both)
    }
}

/// What is sent, in the words of the engine's jobs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Traffic {
    /// UDP datagrams.
    Udp(UdpTraffic),
    /// TCP streams.
    Tcp(TcpTraffic),
}

impl Offer {
    /// The same with these paces, payload bits per second, for flows that ask for as much as they can get.
    pub(crate) fn paced(mut self, paces: &[Option<u64>]) -> Self {
        for (flow, pace) in self.flows.iter_mut().zip(paces) {
            if let Some(pace) = *pace {
                flow.traffic.set_pace(pace);
            }
        }
        self
    }

    /// What the receiver is told: the content of what it does not send is of no use to it.
    pub(crate) fn told(&self) -> Self {
        let mut told = self.clone();
        let forward = |flow: &&mut Flow| flow.direction == Direction::Forward;
        told.flows
            .iter_mut()
            .filter(forward)
            .for_each(|flow| *flow.traffic.content() = Content::Zeros);
        told
    }
}

impl Traffic {
    fn set_pace(&mut self, pace: u64) {
        match self {
            Self::Udp(udp) if udp.departures == Departures::Max => {
                udp.departures = Departures::BitsPerSecond { value: pace };
            }
            Self::Udp(_) => {}
            Self::Tcp(tcp) => tcp.rate = Some(tcp.rate.unwrap_or(pace)),
        }
    }

    fn content(&mut self) -> &mut Content {
        match self {
            Self::Udp(udp) => &mut udp.content,
            Self::Tcp(tcp) => &mut tcp.content,
        }
    }

    /// Connections that have to be opened.
    pub(crate) fn streams(&self) -> u16 {
        match self {
            Self::Udp(_) => 0,
            Self::Tcp(tcp) => tcp.streams,
        }
    }
}

/// UDP datagrams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UdpTraffic {
    /// When they depart.
    pub departures: Departures,
    /// How long they are.
    pub sizes: Sizes,
    /// Where random numbers begin.
    pub seed: u64,
    /// What follows the header.
    pub content: Content,
    /// How the sender's socket is set up, without its address and port.
    pub socket: SocketOptions,
}

/// TCP streams.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TcpTraffic {
    /// Bytes of each write.
    pub write_bytes: u32,
    /// Connections side by side.
    pub streams: u16,
    /// Payload bits per second of all streams together; as fast as TCP takes them where there is none.
    pub rate: Option<u64>,
    /// What is written.
    pub content: Content,
    /// TCP_NODELAY.
    pub no_delay: bool,
    /// TCP_CONGESTION.
    pub congestion_control: Option<String>,
    /// TCP_MAXSEG in bytes.
    pub mss: Option<u32>,
    /// How the sockets are set up, without their address and port.
    pub socket: SocketOptions,
}
