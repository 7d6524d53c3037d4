//! Figures for people.

use std::fmt::Write;

use tunnelbench_traffic::Outcome;
use tunnelbench_traffic::job::SendMode;

use crate::client::Progress;
use crate::message::End;
use crate::offer::{Direction, Offer, Traffic};
use crate::quantity::{bits_per_second, duration, packets_per_second, signed_duration};
use crate::report::{Delay, Figures, Report, Times};

const NAME: usize = 14;

/// One line on what a client asked for.
pub(crate) fn offer(offer: &Offer) -> String {
    let flows: Vec<String> = offer
        .flows
        .iter()
        .map(|flow| {
            let transport = match flow.traffic {
                Traffic::Udp(_) => "UDP",
                Traffic::Tcp(_) => "TCP",
                Traffic::Icmp(_) => "ICMP echo",
                Traffic::Transactions(_) => "requests",
            };
            format!("{transport} {}", direction(flow.direction))
        })
        .collect();
    format!(
        "{} for {}",
        flows.join(", "),
        duration(offer.measure.into())
    )
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward => "from the client",
        Direction::Reverse => "to the client",
        Direction::Both => "both ways",
    }
}

/// One line on what an end of a flow found out.
pub(crate) fn own_end(end: &End) -> String {
    let outcome = match end {
        End::Outcome(outcome) => outcome.as_ref(),
        End::Failure(failure) => return failure.clone(),
        End::Nothing => return "the system answers".into(),
    };
    match outcome {
        Outcome::UdpSend(sent) => format!("sent {} datagrams", sent.measured.packets),
        Outcome::UdpReceive(received) => {
            format!("received {} datagrams", received.flow.measured.packets)
        }
        Outcome::TcpConnect(carried) | Outcome::TcpListen(carried) => {
            let sent = carried
                .flow
                .sent
                .as_ref()
                .map(|sent| format!("sent {} bytes", sent.measured_bytes));
            let received = carried
                .flow
                .received
                .as_ref()
                .map(|received| format!("received {} bytes", received.measured_bytes));
            sent.into_iter()
                .chain(received)
                .collect::<Vec<_>>()
                .join(", ")
        }
        Outcome::TransactionRun(transacted) => {
            format!("made {} transactions", transacted.transactions)
        }
        Outcome::TransactionServe(served) => format!("answered {} requests", served.responses),
        Outcome::EchoServe(_) | Outcome::EchoProbe(_) => "done".into(),
    }
}

/// One line on what has come since the last.
pub(crate) fn progress(progress: &Progress) -> String {
    let per_second = |count: u64| count as f64 * 1e9 / progress.since.max(1) as f64;
    let packets = match progress.received.packets {
        0 => String::new(),
        packets => format!(", {}", packets_per_second(per_second(packets))),
    };
    format!(
        "{:4} s  received {}{packets}",
        (progress.at + 500_000_000) / 1_000_000_000,
        bits_per_second(per_second(progress.received.bytes * 8))
    )
}

/// All that matters of a report.
pub(crate) fn full(report: &Report) -> String {
    let mut text = format!(
        "{} for {}{}\n",
        report.receiver,
        signed_duration(report.measured_seconds * 1e9),
        if report.interrupted {
            ", ended early"
        } else {
            ""
        }
    );
    if let [_] = report.flows.as_slice() {
        write_figures(&mut text, "", &report.total);
    } else {
        for (number, flow) in report.flows.iter().enumerate() {
            let _ = writeln!(text, "flow {} {}", number + 1, direction(flow.direction));
            write_figures(&mut text, "  ", &flow.figures);
        }
        text.push_str("all flows together\n");
        write_figures(&mut text, "  ", &report.total);
    }
    let clock = if report.clock.shared {
        "both ends have the same one".into()
    } else {
        format!(
            "the receiver's is {} ahead, ± {}",
            signed_duration(report.clock.offset as f64),
            duration(report.clock.uncertainty.into())
        )
    };
    line(&mut text, "", "clock", &clock);
    for warning in &report.warnings {
        line(&mut text, "", "warning", warning);
    }
    text
}

fn write_figures(text: &mut String, indent: &str, figures: &Figures) {
    let mut row = |name, value: Option<String>| {
        if let Some(value) = value {
            line(text, indent, name, &value);
        }
    };
    let rate = |packets: Option<f64>, bits: Option<f64>| {
        let shown: Vec<String> = bits
            .map(bits_per_second)
            .into_iter()
            .chain(packets.map(packets_per_second))
            .collect();
        (!shown.is_empty()).then(|| shown.join(", "))
    };
    row(
        "sent",
        rate(
            figures.sent_packets_per_second,
            figures.sent_bits_per_second,
        ),
    );
    row(
        "received",
        rate(
            figures.received_packets_per_second,
            figures.throughput_bits_per_second,
        ),
    );
    row(
        "loss",
        figures
            .loss_ratio
            .zip(figures.lost_packets)
            .zip(figures.sent_packets)
            .map(|((ratio, lost), sent)| format!("{:.4} % ({lost} of {sent})", ratio * 100.0)),
    );
    row(
        "duplicates",
        figures
            .duplicates
            .filter(|count| *count > 0)
            .map(|count| count.to_string()),
    );
    row(
        "reordered",
        figures
            .reordered
            .filter(|count| *count > 0)
            .map(|count| count.to_string()),
    );
    row("one-way delay", figures.delay.as_ref().map(delay));
    row("round trip", figures.round_trip.as_ref().map(times));
    row("jitter", figures.jitter.map(signed_duration));
    row(
        "call quality",
        figures
            .voice
            .map(|voice| format!("R factor {:.1}, MOS {:.2}", voice.r_factor, voice.mos)),
    );
    row(
        "transactions",
        figures.transactions_per_second.map(packets_per_second),
    );
    row("mode", figures.mode.map(mode));
    row(
        "retransmits",
        figures.retransmits.map(|count| count.to_string()),
    );
}

fn mode(mode: SendMode) -> String {
    match mode {
        SendMode::PerPacket => "each datagram in a system call of its own".into(),
        SendMode::Batched { datagrams } => {
            format!("up to {datagrams} datagrams in one system call")
        }
        SendMode::Segmented { datagrams } => {
            format!("up to {datagrams} datagrams as one packet, cut up late")
        }
    }
}

fn delay(delay: &Delay) -> String {
    match delay.uncertainty {
        0 => times(&delay.times),
        uncertainty => format!(
            "{}, each ± {}",
            times(&delay.times),
            duration(uncertainty.into())
        ),
    }
}

fn times(times: &Times) -> String {
    let [least, median, p99, most] =
        [times.min, times.p50, times.p99, times.max].map(|time| signed_duration(time as f64));
    format!("median {median}, 99 % below {p99}, from {least} to {most}")
}

fn line(text: &mut String, indent: &str, name: &str, value: &str) {
    let _ = writeln!(text, "{indent}{name:NAME$}{value}");
}
