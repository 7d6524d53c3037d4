//! `tbnode send`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tunnelbench_traffic::job::{Content, SocketOptions};
use tunnelbench_traffic::process::{Departures, Sizes};

use crate::client::{self, Ask, Family, Findings, split};
use crate::command::{interruption, summary};
use crate::error::StandaloneError;
use crate::key::Trust;
use crate::message::End;
use crate::offer::{Direction, Flow, Offer, TcpTraffic, Traffic, UdpTraffic};
use crate::quantity::{parse_duration, parse_rate};
use crate::report::report;

const UDP_PAYLOAD: u32 = 1200;
const TCP_WRITE: u32 = 128 * 1024;
const LONGEST_PATTERN: usize = 65_536;

/// The arguments of `tbnode send`.
#[derive(Args, Debug)]
pub struct SendArguments {
    /// The machine where `tbnode receive` runs; port 5210 unless given.
    #[arg(value_name = "HOST[:PORT]", value_parser = split)]
    host: (String, u16),

    #[command(flatten)]
    transport: Transport,
    /// How fast: `max`, payload bits such as `50Mbit`, or datagrams such as `10000pps`.
    #[arg(long, default_value = "max", value_parser = parse_rate)]
    rate: Departures,
    /// Bytes of each datagram or, over TCP, of each write; 1200 and 131072 unless given.
    #[arg(long, value_name = "BYTES")]
    payload: Option<u32>,
    /// How long to measure.
    #[arg(long, value_name = "S", default_value = "10", value_parser = parse_duration)]
    seconds: Duration,
    /// Traffic before the measured time.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    warm_up: Duration,
    /// The receiver sends, and this machine receives.
    #[arg(long, conflicts_with = "both")]
    reverse: bool,
    /// Both send at once.
    #[arg(long)]
    both: bool,
    /// Flows side by side, each with the whole rate; over TCP connections, which share it.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=128))]
    streams: u16,
    /// Trains of N datagrams back to back (RFC 9004), one each `--every`.
    #[arg(long, value_name = "N", requires = "every", conflicts_with = "rate")]
    burst: Option<u32>,
    /// From the start of a train to the start of the next.
    #[arg(long, value_name = "TIME", requires = "burst", value_parser = parse_duration)]
    every: Option<Duration>,
    /// Where random numbers begin: the same seed sends the same packets.
    #[arg(long, default_value = "1")]
    seed: u64,
    /// What the payload is made of: `zeros`, `random`, or the file that is repeated.
    #[arg(long, value_name = "zeros|random|FILE", default_value = "random")]
    content: String,

    #[command(flatten)]
    socket: SocketArguments,
    /// TCP: the congestion control, such as `cubic` or `bbr`.
    #[arg(long, value_name = "NAME")]
    congestion_control: Option<String>,
    /// TCP: the maximum segment size.
    #[arg(long, value_name = "BYTES")]
    mss: Option<u32>,
    /// TCP: send small segments at once.
    #[arg(long)]
    no_delay: bool,

    /// Length of a step of the time series.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_duration)]
    step: Duration,
    /// The key that the receiver holds too.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    key_file: Option<PathBuf>,
    /// Go without authentication.
    #[arg(long)]
    insecure: bool,
    /// Use IPv4.
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6.
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Print one JSON object with everything instead of text.
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
struct Transport {
    /// UDP datagrams.
    #[arg(long)]
    udp: bool,
    /// TCP streams.
    #[arg(long)]
    tcp: bool,
}

#[derive(Args, Debug)]
struct SocketArguments {
    /// Differentiated services code point, 0 to 63.
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=63))]
    dscp: Option<u8>,
    /// Time to live, or hop limit.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
    ttl: Option<u8>,
    /// Never fragment.
    #[arg(long)]
    dont_fragment: bool,
    /// The local address to send from.
    #[arg(long, value_name = "ADDR")]
    source: Option<IpAddr>,
    /// Socket buffers at both ends.
    #[arg(long, value_name = "BYTES")]
    buffer: Option<u32>,
}

impl SendArguments {
    /// Measures, and prints what came out.
    ///
    /// # Errors
    /// `Usage` for options that make no sense together, `Refused` by the receiver, `Failed` for all else.
    pub fn run(&self) -> Result<(), StandaloneError> {
        let ask = self.ask()?;
        if ask.trust == Trust::Anybody {
            eprintln!(
                "warning: with --insecure nobody knows whether the other end is who it should be"
            );
        }
        let interrupt = interruption()?;
        let findings = client::run(&ask, &interrupt)?;
        let report = report(&findings, self.asked());
        if self.json {
            println!("{}", serde_json::to_string(&report).unwrap_or_default());
        } else {
            print!("{}", summary::full(&report));
        }
        complete(&findings)
    }

    fn ask(&self) -> Result<Ask, StandaloneError> {
        let (host, port) = self.host.clone();
        Ok(Ask {
            host,
            port,
            family: match (self.ipv4, self.ipv6) {
                (true, _) => Family::V4,
                (_, true) => Family::V6,
                _ => Family::Any,
            },
            source: self.socket.source,
            trust: Trust::choose(self.key_file.as_deref(), self.insecure)?,
            offer: Offer {
                warm_up: self.warm_up.as_nanos() as u64,
                measure: self.seconds.as_nanos() as u64,
                step: self.step.as_nanos() as u64,
                flows: self.flows()?,
            },
        })
    }

    fn flows(&self) -> Result<Vec<Flow>, StandaloneError> {
        let directions: &[Direction] = match (self.reverse, self.both) {
            (true, _) => &[Direction::Reverse],
            (_, true) if self.transport.udp => &[Direction::Forward, Direction::Reverse],
            (_, true) => &[Direction::Both],
            _ => &[Direction::Forward],
        };
        let mut flows = Vec::new();
        for direction in directions {
            if self.transport.tcp {
                flows.push(Flow {
                    direction: *direction,
                    traffic: Traffic::Tcp(self.tcp(*direction)?),
                });
                continue;
            }
            for stream in 0..self.streams {
                let mut udp = self.udp(*direction)?;
                udp.seed = udp.seed.wrapping_add(stream.into());
                flows.push(Flow {
                    direction: *direction,
                    traffic: Traffic::Udp(udp),
                });
            }
        }
        Ok(flows)
    }

    fn udp(&self, direction: Direction) -> Result<UdpTraffic, StandaloneError> {
        Ok(UdpTraffic {
            departures: match (self.burst, self.every) {
                (Some(datagrams), Some(every)) => Departures::Bursts {
                    datagrams,
                    interval: every.as_nanos() as u64,
                },
                _ => self.rate.clone(),
            },
            sizes: Sizes::constant(self.payload.unwrap_or(UDP_PAYLOAD)),
            seed: self.seed,
            content: self.content_for(direction)?,
            socket: self.socket(),
        })
    }

    fn tcp(&self, direction: Direction) -> Result<TcpTraffic, StandaloneError> {
        let rate = match &self.rate {
            Departures::Max => None,
            Departures::BitsPerSecond { value } => Some(*value),
            _ => {
                return Err(StandaloneError::Usage(
                    "TCP has no packets of its own to count; give --rate as `max` or in bits"
                        .into(),
                ));
            }
        };
        Ok(TcpTraffic {
            write_bytes: self.payload.unwrap_or(TCP_WRITE),
            streams: self.streams,
            rate,
            content: self.content_for(direction)?,
            no_delay: self.no_delay,
            congestion_control: self.congestion_control.clone(),
            mss: self.mss,
            socket: self.socket(),
        })
    }

    fn content(&self) -> Content {
        match self.content.as_str() {
            "zeros" => Content::Zeros,
            "random" => Content::Random,
            path => Content::File { path: path.into() },
        }
    }

    /// The same for who sends from the other machine, where the file is not.
    fn content_to_tell(&self) -> Result<Content, StandaloneError> {
        let Content::File { path } = self.content() else {
            return Ok(self.content());
        };
        let data = std::fs::read(&path).map_err(|failure| {
            StandaloneError::Usage(format!(
                "cannot read the content {}: {failure}",
                path.display()
            ))
        })?;
        if data.len() > LONGEST_PATTERN {
            return Err(StandaloneError::Usage(format!(
                "{} has more than {LONGEST_PATTERN} bytes, and the receiver can't repeat more of them",
                path.display()
            )));
        }
        Ok(Content::Pattern { data: data.into() })
    }

    fn content_for(&self, direction: Direction) -> Result<Content, StandaloneError> {
        if direction.is_sent_by_receiver() {
            self.content_to_tell()
        } else {
            Ok(self.content())
        }
    }

    fn socket(&self) -> SocketOptions {
        SocketOptions {
            dscp: self.socket.dscp,
            ttl: self.socket.ttl,
            dont_fragment: self.socket.dont_fragment.then_some(true),
            buffer: self.socket.buffer,
            ..SocketOptions::default()
        }
    }

    /// Every option as it was taken, without the key.
    fn asked(&self) -> Value {
        json!({
            "host": self.host.0,
            "port": self.host.1,
            "transport": if self.transport.udp { "udp" } else { "tcp" },
            "rate": self.rate,
            "payload": self.payload,
            "seconds": self.seconds.as_secs_f64(),
            "warm_up": self.warm_up.as_secs_f64(),
            "reverse": self.reverse,
            "both": self.both,
            "streams": self.streams,
            "burst": self.burst,
            "every": self.every.map(|every| every.as_secs_f64()),
            "seed": self.seed,
            "content": self.content,
            "dscp": self.socket.dscp,
            "ttl": self.socket.ttl,
            "dont_fragment": self.socket.dont_fragment,
            "source": self.socket.source,
            "buffer": self.socket.buffer,
            "congestion_control": self.congestion_control,
            "mss": self.mss,
            "no_delay": self.no_delay,
            "step": self.step.as_secs_f64(),
            "authenticated": self.key_file.is_some(),
            "ipv4": self.ipv4,
            "ipv6": self.ipv6,
        })
    }
}

/// A report is printed in any case; the exit code says whether it is whole.
fn complete(findings: &Findings) -> Result<(), StandaloneError> {
    let failure = findings
        .flows
        .iter()
        .find_map(|(client, server)| match (client, server) {
            (End::Failure(failure), _) => Some(failure.clone()),
            (_, End::Failure(failure)) => Some(format!("the receiver: {failure}")),
            _ => None,
        });
    match failure {
        _ if findings.interrupted => Err(StandaloneError::Interrupted),
        Some(failure) => Err(StandaloneError::Failed(failure)),
        None => Ok(()),
    }
}
