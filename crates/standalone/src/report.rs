//! Both ends' findings as one report: what `--json` prints.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::{Value, json};
use tunnelbench_traffic::Outcome;
use tunnelbench_traffic::histogram::Histogram;
use tunnelbench_traffic::outcome::{Tally, TcpReceived, TcpSent, UdpReceived, UdpSent};

use crate::client::Findings;
use crate::clock::Offset;
use crate::message::End;
use crate::offer::Direction;

/// The whole of it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub tool: &'static str,
    pub version: &'static str,
    pub receiver_version: String,
    pub receiver: String,
    /// Every option, as it was taken.
    pub asked: Value,
    /// ns since 1970, of this machine's clock.
    pub started_at: i64,
    pub measured_seconds: f64,
    pub interrupted: bool,
    #[serde(flatten)]
    pub total: Figures,
    pub clock: ClockReport,
    pub flows: Vec<FlowReport>,
}

/// How far the clocks are apart.
#[derive(Debug, Serialize)]
pub(crate) struct ClockReport {
    pub shared: bool,
    /// Server minus client in the middle of the measured window, ns.
    pub offset: i64,
    pub uncertainty: u64,
    pub drift_ppm: Option<f64>,
    pub readings: Value,
}

/// One flow, by itself.
#[derive(Debug, Serialize)]
pub(crate) struct FlowReport {
    pub direction: Direction,
    pub offer: Value,
    #[serde(flatten)]
    pub figures: Figures,
    pub client: Value,
    pub server: Value,
}

/// The figures of one flow or of several together. What a transport does not have is null.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Figures {
    pub sent_packets_per_second: Option<f64>,
    pub received_packets_per_second: Option<f64>,
    /// Payload.
    pub sent_bits_per_second: Option<f64>,
    /// Payload at the receiving end.
    pub throughput_bits_per_second: Option<f64>,
    pub loss_ratio: Option<f64>,
    pub sent_packets: Option<u64>,
    pub lost_packets: Option<u64>,
    pub duplicates: Option<u64>,
    pub reordered: Option<u64>,
    pub retransmits: Option<u64>,
    pub delay: Option<Delay>,
    pub round_trip: Option<Times>,
    /// The mean RFC 3550 jitter, ns.
    pub jitter: Option<f64>,
    pub jitter_last: Option<f64>,
    pub mode: Option<String>,
}

/// Times in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Times {
    pub count: u64,
    pub min: i64,
    pub mean: f64,
    pub p50: i64,
    pub p90: i64,
    pub p99: i64,
    pub p999: i64,
    pub max: i64,
}

/// One-way delay, corrected by what the clocks were apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Delay {
    #[serde(flatten)]
    pub times: Times,
    /// How far the clocks were apart, server minus client, ns.
    pub clock_offset: i64,
    /// Every figure of this delay may be off by as much, ns.
    pub uncertainty: u64,
    /// What was added to the delays as the receiving end recorded them, ns.
    pub correction: i64,
    /// Of `count`, those that the receiving end recorded as negative and therefore as 0.
    pub negative: u64,
}

/// Puts the report together.
pub(crate) fn report(findings: &Findings, asked: Value) -> Report {
    let measure = findings.offer.measure;
    let from = findings
        .start_at
        .saturating_add(findings.offer.warm_up as i64);
    let to = from.saturating_add(measure as i64);
    let (first, last) = (findings.clocks.at(from), findings.clocks.at(to));
    let apart = Apart {
        applied: findings.applied_offset,
        middle: findings.clocks.at(from + (to - from) / 2),
        // Within the window the offset moves from one value to the other.
        uncertainty: first.uncertainty.max(last.uncertainty)
            + first.offset.abs_diff(last.offset).div_ceil(2),
    };
    let flows: Vec<FlowReport> = findings
        .offer
        .flows
        .iter()
        .zip(&findings.flows)
        .map(|(flow, (client, server))| FlowReport {
            direction: flow.direction,
            offer: plain(&flow.traffic),
            figures: figures(flow.direction, client, server, measure, apart),
            client: end(client),
            server: end(server),
        })
        .collect();
    Report {
        tool: "tbnode",
        version: env!("CARGO_PKG_VERSION"),
        receiver_version: findings.receivers_version.clone(),
        receiver: findings.receiver.to_string(),
        asked,
        started_at: findings.start_at,
        measured_seconds: measure as f64 / 1e9,
        interrupted: findings.interrupted,
        total: total(&flows),
        clock: ClockReport {
            shared: findings.clocks.shared,
            offset: apart.middle.offset,
            uncertainty: apart.uncertainty_shown(findings.clocks.shared),
            drift_ppm: findings.clocks.drift(),
            readings: json!(findings.clocks.readings),
        },
        flows,
    }
}

/// How far the clocks are apart in the measured window.
#[derive(Clone, Copy)]
struct Apart {
    applied: i64,
    middle: Offset,
    uncertainty: u64,
}

impl Apart {
    fn uncertainty_shown(&self, shared: bool) -> u64 {
        if shared { 0 } else { self.uncertainty }
    }

    fn correct(&self, recorded: &Histogram, to_server: bool) -> Delay {
        let ahead = self.middle.offset.saturating_sub(self.applied);
        let correction = if to_server {
            ahead.saturating_neg()
        } else {
            ahead
        };
        Delay {
            times: times(recorded, correction),
            clock_offset: self.middle.offset,
            uncertainty: self.uncertainty,
            correction,
            negative: recorded.negative,
        }
    }
}

fn times(recorded: &Histogram, correction: i64) -> Times {
    let moved = |value: u64| {
        i64::try_from(value)
            .unwrap_or(i64::MAX)
            .saturating_add(correction)
    };
    Times {
        count: recorded.count,
        min: moved(recorded.min),
        mean: recorded.mean + correction as f64,
        p50: moved(recorded.p50),
        p90: moved(recorded.p90),
        p99: moved(recorded.p99),
        p999: moved(recorded.p999),
        max: moved(recorded.max),
    }
}

fn figures(
    direction: Direction,
    client: &End,
    server: &End,
    measure: u64,
    apart: Apart,
) -> Figures {
    let per_second = |count: u64| Some(count as f64 * 1e9 / measure as f64);
    let (sender, receiver) = match direction {
        Direction::Forward | Direction::Both => (client, server),
        Direction::Reverse => (server, client),
    };
    let mut figures = Figures::default();
    let (sent, received) = (udp_sent(sender), udp_received(receiver));
    if let Some(sent) = sent {
        figures.sent_packets = Some(sent.measured.packets);
        figures.sent_packets_per_second = per_second(sent.measured.packets);
        figures.sent_bits_per_second = per_second(sent.measured.bytes * 8);
    }
    if let Some(received) = received {
        let flow = &received.flow;
        figures.received_packets_per_second = per_second(flow.arrived.packets);
        figures.throughput_bits_per_second = per_second(flow.arrived.bytes * 8);
        figures.duplicates = Some(flow.duplicates);
        figures.reordered = Some(flow.reordered);
        figures.jitter = flow.jitter_mean;
        figures.jitter_last = flow.jitter_last;
        figures.delay = flow
            .delay
            .as_ref()
            .map(|delay| apart.correct(delay, direction == Direction::Forward));
    }
    if let (Some(Tally { packets: sent, .. }), Some(received)) =
        (sent.map(|sent| sent.measured), received)
    {
        let lost =
            sent.saturating_sub(received.flow.measured.packets + received.flow.beyond_window);
        figures.lost_packets = Some(lost);
        figures.loss_ratio = (sent > 0).then(|| lost as f64 / sent as f64);
    }
    let ways = match direction {
        Direction::Both => vec![(client, server), (server, client)],
        _ => vec![(sender, receiver)],
    };
    let sum = |values: Vec<Option<u64>>| {
        values
            .into_iter()
            .flatten()
            .reduce(|sum, value| sum + value)
    };
    let sent: Vec<Option<&TcpSent>> = ways.iter().map(|(sender, _)| tcp_sent(sender)).collect();
    let received: Vec<Option<&TcpReceived>> = ways
        .iter()
        .map(|(_, receiver)| tcp_received(receiver))
        .collect();
    if let Some(bytes) = sum(sent
        .iter()
        .map(|sent| sent.map(|sent| sent.measured_bytes))
        .collect())
    {
        figures.sent_bits_per_second = per_second(bytes * 8);
    }
    if let Some(bytes) = sum(received
        .iter()
        .map(|end| end.map(|end| end.measured_bytes))
        .collect())
    {
        figures.throughput_bits_per_second = per_second(bytes * 8);
    }
    figures.retransmits = sum(sent
        .iter()
        .map(|sent| sent.map(|sent| sent.retransmits))
        .collect());
    figures.round_trip = figures.round_trip.or_else(|| {
        let sent = sent.iter().flatten().next()?;
        Some(times(sent.round_trip.as_ref()?, 0))
    });
    figures
}

fn udp_sent(end: &End) -> Option<&UdpSent> {
    match end {
        End::Outcome(outcome) => match outcome.as_ref() {
            Outcome::UdpSend(sent) => Some(sent),
            _ => None,
        },
        End::Failure(_) => None,
    }
}

fn udp_received(end: &End) -> Option<&UdpReceived> {
    match end {
        End::Outcome(outcome) => match outcome.as_ref() {
            Outcome::UdpReceive(received) => Some(received),
            _ => None,
        },
        End::Failure(_) => None,
    }
}

fn tcp_sent(end: &End) -> Option<&TcpSent> {
    match end {
        End::Outcome(outcome) => match outcome.as_ref() {
            Outcome::TcpConnect(carried) | Outcome::TcpListen(carried) => {
                carried.flow.sent.as_ref()
            }
            _ => None,
        },
        End::Failure(_) => None,
    }
}

fn tcp_received(end: &End) -> Option<&TcpReceived> {
    match end {
        End::Outcome(outcome) => match outcome.as_ref() {
            Outcome::TcpConnect(carried) | Outcome::TcpListen(carried) => {
                carried.flow.received.as_ref()
            }
            _ => None,
        },
        End::Failure(_) => None,
    }
}

/// Rates and counts of all flows together; times and jitter only where one flow has any, because they do not add up.
fn total(flows: &[FlowReport]) -> Figures {
    if let [only] = flows {
        return only.figures.clone();
    }
    let rate = |of: fn(&Figures) -> Option<f64>| {
        flows
            .iter()
            .filter_map(|flow| of(&flow.figures))
            .reduce(|sum, value| sum + value)
    };
    let count = |of: fn(&Figures) -> Option<u64>| {
        flows
            .iter()
            .filter_map(|flow| of(&flow.figures))
            .reduce(|sum, value| sum + value)
    };
    let (sent, lost) = (
        count(|flow| flow.sent_packets),
        count(|flow| flow.lost_packets),
    );
    Figures {
        sent_packets_per_second: rate(|flow| flow.sent_packets_per_second),
        received_packets_per_second: rate(|flow| flow.received_packets_per_second),
        sent_bits_per_second: rate(|flow| flow.sent_bits_per_second),
        throughput_bits_per_second: rate(|flow| flow.throughput_bits_per_second),
        loss_ratio: sent
            .zip(lost)
            .filter(|(sent, _)| *sent > 0)
            .map(|(sent, lost)| lost as f64 / sent as f64),
        sent_packets: sent,
        lost_packets: lost,
        duplicates: count(|flow| flow.duplicates),
        reordered: count(|flow| flow.reordered),
        retransmits: count(|flow| flow.retransmits),
        mode: flows.first().and_then(|flow| flow.figures.mode.clone()),
        ..Figures::default()
    }
}

pub(crate) fn end(end: &End) -> Value {
    match end {
        End::Outcome(outcome) => plain(outcome.as_ref()),
        End::Failure(failure) => json!({ "failure": failure }),
    }
}

/// JSON, with histograms in the usual text form of HdrHistogram's encoding: base64.
fn plain(value: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(value).unwrap_or(Value::Null);
    encode_bytes(&mut value);
    value
}

fn encode_bytes(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                match bytes(field) {
                    Some(bytes) if ["encoded", "data"].contains(&name.as_str()) => {
                        *field = STANDARD.encode(bytes).into();
                    }
                    _ => encode_bytes(field),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(encode_bytes),
        _ => {}
    }
}

fn bytes(value: &Value) -> Option<Vec<u8>> {
    let byte = |value: &Value| value.as_u64().and_then(|number| u8::try_from(number).ok());
    value.as_array()?.iter().map(byte).collect()
}
