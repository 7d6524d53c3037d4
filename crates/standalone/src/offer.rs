//! What a client asks a receiver to take part in. All durations are in nanoseconds.
//!
//! An offer names no address: traffic goes only between the two ends of the control channel.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tunnelbench_traffic::job::{Content, Messages, SendMode, SocketOptions, Transaction};
use tunnelbench_traffic::process::{Departures, HIGHEST_RATE, Plan, Sizes, Transport};
use tunnelbench_traffic::voice::Codec;

/// What a message over TCP can have.
pub(crate) const MESSAGE_BYTES: RangeInclusive<u32> = 12..=65_535;

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
    /// What it is called in results, where it has a name.
    pub name: Option<String>,
    /// Who sends.
    pub direction: Direction,
    /// From the start of the session to that of the flow.
    pub delay: u64,
    /// How long it is measured; none for the whole session, or the rest of it after the delay.
    pub length: Option<u64>,
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
    /// Whether the end that made the offer sends.
    pub(crate) fn is_sent_by_client(self) -> bool {
        matches!(self, Self::Forward | Self::Both)
    }

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
    /// ICMP echo requests, which the receiver's system answers.
    Icmp(IcmpTraffic),
    /// Requests, each sent when the response to the last has come.
    Transactions(TransactionTraffic),
}

impl Offer {
    /// From the start to the end of the measured window.
    pub(crate) fn lasting(&self) -> Duration {
        Duration::from_nanos(self.warm_up.saturating_add(self.measure))
    }

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
        let not_sent_there = |flow: &&mut Flow| flow.direction == Direction::Forward;
        for flow in told.flows.iter_mut().filter(not_sent_there) {
            if let Some(content) = flow.traffic.content() {
                *content = Content::Zeros;
            }
        }
        told
    }
}

impl Flow {
    /// How long the flow is measured in a session that measures for `whole`.
    pub(crate) fn measure(&self, whole: u64) -> u64 {
        self.length
            .unwrap_or(whole)
            .min(whole.saturating_sub(self.delay))
    }
}

impl Traffic {
    fn set_pace(&mut self, pace: u64) {
        match self {
            Self::Udp(udp) if udp.departures == Departures::Max => {
                let range = Transport::Udp.sizes();
                udp.departures = paced(pace, &udp.sizes, range, udp.seed);
            }
            Self::Udp(_) => {}
            Self::Tcp(tcp) => match &mut tcp.messages {
                Some(messages) if messages.departures == Departures::Max => {
                    let range = MESSAGE_BYTES;
                    messages.departures = paced(pace, &messages.sizes, range, messages.seed);
                }
                Some(_) => {}
                None => tcp.rate = Some(tcp.rate.unwrap_or(pace)),
            },
            Self::Icmp(icmp) => icmp.interval = icmp.interval.max(icmp.interval_at(pace)),
            // Never more is under way than one response to each.
            Self::Transactions(_) => {}
        }
    }

    fn content(&mut self) -> Option<&mut Content> {
        match self {
            Self::Udp(udp) => Some(&mut udp.content),
            Self::Tcp(tcp) => Some(&mut tcp.content),
            Self::Icmp(_) | Self::Transactions(_) => None,
        }
    }

    /// Connections that have to be opened.
    pub(crate) fn streams(&self) -> u16 {
        match self {
            Self::Udp(_) | Self::Icmp(_) => 0,
            Self::Transactions(traffic) => traffic.transaction.concurrency,
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
    /// How they are handed to the system.
    pub mode: SendMode,
    /// What follows the header.
    pub content: Content,
    /// How it is rated as a voice call; none for what is no voice.
    pub voice: Option<Codec>,
    /// How the sender's socket is set up, without its address and port.
    pub socket: SocketOptions,
}

/// As many payload bits per second as can be timed: tiny datagrams come to the most that a timetable has first.
fn paced(bits_per_second: u64, sizes: &Sizes, range: RangeInclusive<u32>, seed: u64) -> Departures {
    let paced = Departures::BitsPerSecond {
        value: bits_per_second,
    };
    match Plan::new(&paced, sizes, range, seed) {
        Ok(_) => paced,
        Err(_) => Departures::PacketsPerSecond {
            value: HIGHEST_RATE,
        },
    }
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
    /// Messages, each with a time of its own, instead of a bulk stream.
    pub messages: Option<Messages>,
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

/// ICMP echo requests (RFC 792, RFC 4443).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IcmpTraffic {
    /// Between two requests; 0 sends the next when the last is answered or given up.
    pub interval: u64,
    /// After ICMP's own header.
    pub payload_bytes: u32,
    /// How long a reply may take.
    pub timeout: u64,
    /// How the socket is set up, without its address.
    pub socket: SocketOptions,
}

impl IcmpTraffic {
    /// Payload bits per second; none where the replies set the pace.
    pub(crate) fn rate(&self) -> Option<f64> {
        (self.interval > 0).then(|| f64::from(self.payload_bytes) * 8e9 / self.interval as f64)
    }

    /// The interval that makes this many payload bits per second.
    pub(crate) fn interval_at(&self, bits_per_second: u64) -> u64 {
        (u64::from(self.payload_bytes) * 8_000_000_000).div_ceil(bits_per_second.max(1))
    }
}

/// Requests and responses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TransactionTraffic {
    /// What one is.
    pub transaction: Transaction,
    /// How the sockets are set up, without their address and port.
    pub socket: SocketOptions,
}
