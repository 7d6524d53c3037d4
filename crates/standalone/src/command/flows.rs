//! The flows that `tbnode send` asks for, from its options, a profile or a script.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tunnelbench_traffic::TrafficError;
use tunnelbench_traffic::job::{Content, Protocol, SendMode, SocketOptions, Transaction};
use tunnelbench_traffic::process::{self, Departures, Sizes, Transport, script};
use tunnelbench_traffic::voice::Codec;

use crate::command::kinds::{echo, stream};
use crate::error::StandaloneError;
use crate::offer::{Direction, Flow, TcpTraffic, Traffic, TransactionTraffic, UdpTraffic};
use crate::quantity::{parse_duration, parse_rate};

const UDP_PAYLOAD: u32 = 1200;
const TCP_WRITE: u32 = 128 * 1024;
const ICMP_PAYLOAD: u32 = 56;

/// The most datagrams that go to the system together.
const BATCH: u16 = 64;

/// The most bytes of a file that the other machine can be told to repeat.
const LONGEST_PATTERN: u64 = 65_536;

const LONGEST_SCRIPT: u64 = 16 << 20;

/// What is sent.
#[derive(Args, Debug)]
pub(super) struct FlowArguments {
    #[command(flatten)]
    kind: Kind,
    /// How fast: `max`, payload bits such as `50Mbit`, or datagrams such as `10000pps`. `max` unless given.
    #[arg(long, value_parser = parse_rate)]
    rate: Option<Departures>,
    /// Bytes of each datagram, echo request or TCP write; 1200, 56 and 131072 unless given.
    #[arg(long, value_name = "BYTES")]
    payload: Option<u32>,
    /// The receiver sends, and this machine receives.
    #[arg(long, conflicts_with = "both")]
    reverse: bool,
    /// Both send at once.
    #[arg(long)]
    both: bool,
    /// UDP flows side by side, each at the whole rate, or TCP connections, which share it.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=64))]
    streams: u16,
    /// UDP: trains of N datagrams back to back (RFC 9004), one each `--every`.
    #[arg(long, value_name = "N", requires = "every", conflicts_with = "rate")]
    burst: Option<u32>,
    /// From the start of a train to the start of the next.
    #[arg(long, value_name = "TIME", requires = "burst", value_parser = parse_duration)]
    every: Option<std::time::Duration>,
    /// UDP: hand datagrams to the system one by one, many in one call, or many as one packet that it cuts up late.
    #[arg(long, value_enum, default_value_t = Mode::Batched)]
    mode: Mode,
    /// Requests and responses of REQ and RES bytes, each when the last is answered; `--streams` of them at once.
    #[arg(long, value_name = "REQ,RES", num_args = 0..=1, default_missing_value = "1,1", value_parser = parse_exchange)]
    request_response: Option<(u32, u32)>,
    /// The same, each over a TCP connection of its own.
    #[arg(long, value_name = "REQ,RES", num_args = 0..=1, default_missing_value = "1,1", value_parser = parse_exchange, conflicts_with = "request_response", requires = "tcp")]
    connect_request_response: Option<(u32, u32)>,
    /// Where random numbers begin: the same seed sends the same packets.
    #[arg(long, default_value = "1")]
    seed: u64,
    /// What the payload is made of: `zeros`, `random`, or a file, over and over.
    #[arg(long, value_name = "zeros|random|FILE", default_value = "random")]
    content: String,
    /// Differentiated services code point, 0 to 63.
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: Option<u8>,
    /// Time to live, or hop limit.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
    ttl: Option<u8>,
    /// Never fragment.
    #[arg(long)]
    dont_fragment: bool,
    /// Socket buffers at both ends.
    #[arg(long, value_name = "BYTES")]
    buffer: Option<u32>,
    /// TCP: the congestion control, such as `cubic` or `bbr`.
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    /// TCP: the maximum segment size.
    #[arg(long, value_name = "BYTES")]
    mss: Option<u32>,
    /// TCP: send small segments at once.
    #[arg(long)]
    no_delay: bool,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct Kind {
    /// UDP datagrams.
    #[arg(long)]
    udp: bool,
    /// TCP streams.
    #[arg(long)]
    tcp: bool,
    /// ICMP echo requests, which the other machine's system answers.
    #[arg(long)]
    icmp: bool,
    /// The traffic of an application, such as `voip-g711`; a name that does not exist lists them all.
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Flows side by side, from a TOML file with a [[flow]] for each.
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
}

/// How datagrams are handed to the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    PerPacket,
    Batched,
    Segmented,
}

/// What one flow sends, whatever carries it.
struct Sent {
    transport: Transport,
    departures: Departures,
    sizes: Sizes,
    voice: Option<Codec>,
}

impl FlowArguments {
    /// The flows, checked as far as this end can.
    ///
    /// # Errors
    /// `Usage` for options that make no sense together, files that cannot be read, scripts that are wrong.
    pub fn flows(&self) -> Result<Vec<Flow>, StandaloneError> {
        if let Some(path) = &self.kind.script {
            return self.scripted(path);
        }
        if let Some(transaction) = self.transaction()? {
            let socket = self.socket();
            return Ok(vec![Flow {
                name: None,
                direction: Direction::Forward,
                delay: 0,
                length: None,
                traffic: Traffic::Transactions(TransactionTraffic {
                    transaction,
                    socket,
                }),
            }]);
        }
        let sent = self.sent()?;
        let directions: &[Direction] = match (self.reverse, self.both) {
            (true, _) => &[Direction::Reverse],
            (_, true) if sent.transport == Transport::Udp => {
                &[Direction::Forward, Direction::Reverse]
            }
            (_, true) => &[Direction::Both],
            _ => &[Direction::Forward],
        };
        let flows_of_each = if sent.transport == Transport::Udp {
            self.streams
        } else {
            1
        };
        let seeds = (0..flows_of_each).map(|stream| self.seed.wrapping_add(stream.into()));
        directions
            .iter()
            .flat_map(|direction| seeds.clone().map(move |seed| (*direction, seed)))
            .map(|(direction, seed)| {
                let content = self.content(direction)?;
                let traffic = self.traffic(&sent, direction, seed, content)?;
                Ok(Flow {
                    name: None,
                    direction,
                    delay: 0,
                    length: None,
                    traffic,
                })
            })
            .collect()
    }

    fn transaction(&self) -> Result<Option<Transaction>, StandaloneError> {
        let fresh_connections = self.connect_request_response.is_some();
        let asked = self.request_response.or(self.connect_request_response);
        let Some((request_bytes, response_bytes)) = asked else {
            return Ok(None);
        };
        let protocol = match self.kind {
            Kind { udp: true, .. } => Protocol::Udp,
            Kind { tcp: true, .. } => Protocol::Tcp,
            _ => return usage("requests and responses go over --udp or --tcp"),
        };
        if self.reverse
            || self.both
            || self.rate.is_some()
            || self.payload.is_some()
            || self.burst.is_some()
        {
            return usage(
                "requests leave from here, when the last was answered; leave out --reverse, --both, --rate, --payload \
                 and --burst",
            );
        }
        Ok(Some(Transaction {
            protocol,
            request_bytes,
            response_bytes,
            fresh_connections,
            concurrency: self.streams,
        }))
    }

    fn sent(&self) -> Result<Sent, StandaloneError> {
        let asked = match (self.burst, self.every) {
            (Some(datagrams), Some(every)) => Some(Departures::Bursts {
                datagrams,
                interval: every.as_nanos() as u64,
            }),
            _ => self.rate.clone(),
        };
        if let Some(name) = &self.kind.profile {
            let profile = process::profile(name).map_err(unusable)?;
            return Ok(Sent {
                transport: profile.transport,
                departures: asked
                    .or_else(|| profile.departures.clone())
                    .unwrap_or(Departures::Max),
                sizes: self
                    .payload
                    .map_or_else(|| profile.sizes.clone(), Sizes::constant),
                voice: profile.codec,
            });
        }
        let (transport, payload) = match self.kind {
            Kind { udp: true, .. } => (Transport::Udp, UDP_PAYLOAD),
            Kind { tcp: true, .. } => (Transport::Tcp, TCP_WRITE),
            _ => (Transport::Icmp, ICMP_PAYLOAD),
        };
        Ok(Sent {
            transport,
            departures: asked.unwrap_or(Departures::Max),
            sizes: Sizes::constant(self.payload.unwrap_or(payload)),
            voice: None,
        })
    }

    fn traffic(
        &self,
        sent: &Sent,
        direction: Direction,
        seed: u64,
        content: Content,
    ) -> Result<Traffic, StandaloneError> {
        let socket = self.socket();
        match sent.transport {
            Transport::Udp => Ok(Traffic::Udp(UdpTraffic {
                departures: sent.departures.clone(),
                sizes: sent.sizes.clone(),
                seed,
                mode: self.mode.datagrams(),
                content,
                voice: sent.voice,
                socket,
            })),
            Transport::Tcp => {
                let mut tcp = stream(&sent.departures, &sent.sizes, seed);
                tcp.streams = self.streams;
                tcp.content = content;
                tcp.no_delay = self.no_delay;
                tcp.congestion_control.clone_from(&self.congestion_control);
                tcp.mss = self.mss;
                tcp.socket = socket;
                Ok(Traffic::Tcp(tcp))
            }
            Transport::Icmp if direction != Direction::Forward || self.streams > 1 => usage(
                "echo requests go from here in one flow; leave out --reverse, --both and --streams",
            ),
            Transport::Icmp => Ok(Traffic::Icmp(echo(&sent.departures, &sent.sizes, socket)?)),
        }
    }

    fn scripted(&self, path: &Path) -> Result<Vec<Flow>, StandaloneError> {
        let shown = path.display();
        let text = read_text(path).map_err(|failure| {
            StandaloneError::Usage(format!("cannot read the script {shown}: {failure}"))
        })?;
        let beside = path.parent().unwrap_or(Path::new("."));
        let flows = script::flows(&text, |name| read_text(&beside.join(name)))
            .map_err(|wrong| StandaloneError::Usage(format!("{shown}: {wrong}")))?;
        flows.into_iter().map(|flow| self.of_script(flow)).collect()
    }

    fn of_script(&self, flow: script::Flow) -> Result<Flow, StandaloneError> {
        let traffic = match flow.transport {
            Transport::Udp => Traffic::Udp(UdpTraffic {
                departures: flow.departures,
                sizes: flow.sizes,
                seed: flow.seed,
                mode: self.mode.datagrams(),
                content: flow.content,
                voice: flow.codec,
                socket: flow.socket,
            }),
            Transport::Tcp => Traffic::Tcp(TcpTraffic {
                streams: flow.streams,
                content: flow.content,
                socket: flow.socket,
                ..stream(&flow.departures, &flow.sizes, flow.seed)
            }),
            Transport::Icmp if flow.reverse => {
                return usage(&format!(
                    "the flow `{}`: a receiver sends no echo requests",
                    flow.name
                ));
            }
            Transport::Icmp => Traffic::Icmp(echo(&flow.departures, &flow.sizes, flow.socket)?),
        };
        Ok(Flow {
            name: Some(flow.name),
            direction: if flow.reverse {
                Direction::Reverse
            } else {
                Direction::Forward
            },
            delay: flow.delay,
            length: flow.length,
            traffic,
        })
    }

    /// A file is where the content is sent from, or travels there as a pattern.
    fn content(&self, direction: Direction) -> Result<Content, StandaloneError> {
        let path = match self.content.as_str() {
            "zeros" => return Ok(Content::Zeros),
            "random" => return Ok(Content::Random),
            path => PathBuf::from(path),
        };
        if !direction.is_sent_by_receiver() {
            return Ok(Content::File { path });
        }
        let shown = path.display();
        let mut data = Vec::new();
        std::fs::File::open(&path)
            .and_then(|file| file.take(LONGEST_PATTERN + 1).read_to_end(&mut data))
            .map_err(|failure| {
                StandaloneError::Usage(format!("cannot read the content {shown}: {failure}"))
            })?;
        if data.len() as u64 > LONGEST_PATTERN {
            return usage(&format!(
                "{shown} has more than {LONGEST_PATTERN} bytes, and the receiver can't repeat more of them"
            ));
        }
        Ok(Content::Pattern { data: data.into() })
    }

    fn socket(&self) -> SocketOptions {
        SocketOptions {
            dscp: self.dscp,
            ttl: self.ttl,
            dont_fragment: self.dont_fragment.then_some(true),
            buffer: self.buffer,
            ..SocketOptions::default()
        }
    }

    /// Every option as it was taken.
    pub fn asked(&self) -> Value {
        json!({
            "transport": match self.kind {
                Kind { udp: true, .. } => Some("udp"),
                Kind { tcp: true, .. } => Some("tcp"),
                Kind { icmp: true, .. } => Some("icmp"),
                _ => None,
            },
            "profile": self.kind.profile,
            "script": self.kind.script,
            "rate": self.rate,
            "payload": self.payload,
            "reverse": self.reverse,
            "both": self.both,
            "streams": self.streams,
            "burst": self.burst,
            "every": self.every.map(|every| every.as_secs_f64()),
            "mode": self.mode.name(),
            "request_response": self.request_response,
            "connect_request_response": self.connect_request_response,
            "seed": self.seed,
            "content": self.content,
            "dscp": self.dscp,
            "ttl": self.ttl,
            "dont_fragment": self.dont_fragment,
            "buffer": self.buffer,
            "congestion_control": self.congestion_control,
            "mss": self.mss,
            "no_delay": self.no_delay,
        })
    }
}

impl Mode {
    fn datagrams(self) -> SendMode {
        match self {
            Self::PerPacket => SendMode::PerPacket,
            Self::Batched => SendMode::Batched { datagrams: BATCH },
            Self::Segmented => SendMode::Segmented { datagrams: BATCH },
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::PerPacket => "per-packet",
            Self::Batched => "batched",
            Self::Segmented => "segmented",
        }
    }
}

fn parse_exchange(text: &str) -> Result<(u32, u32), String> {
    let bytes = |text: &str| {
        text.parse()
            .map_err(|_| format!("`{text}` is no number of bytes"))
    };
    let (request, response) = text
        .split_once(',')
        .ok_or_else(|| format!("`{text}` is not two sizes such as `64,1024`"))?;
    Ok((bytes(request)?, bytes(response)?))
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?
        .take(LONGEST_SCRIPT)
        .read_to_string(&mut text)?;
    Ok(text)
}

fn unusable(problem: TrafficError) -> StandaloneError {
    match problem {
        TrafficError::Invalid(text) => StandaloneError::Usage(text),
        other => StandaloneError::Usage(other.to_string()),
    }
}

pub(super) fn usage<T>(text: &str) -> Result<T, StandaloneError> {
    Err(StandaloneError::Usage(text.into()))
}
