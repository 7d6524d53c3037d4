//! What casts doubt on the figures of a flow, in words.

use tunnelbench_traffic::Outcome;

use crate::message::End;
use crate::quantity::signed_duration;
use crate::report::ends::Ends;
use crate::report::figures::Figures;

/// The share of late datagrams from which on the sender counts as too slow.
const LATE_SHARE: f64 = 0.01;

/// A step of a clock that matters beside any delay, ns.
const CLOCK_STEP: u64 = 1_000_000;

pub(super) fn doubts(ends: &Ends<'_>, figures: &Figures) -> Vec<String> {
    let mut doubts = Vec::new();
    if let Some(sent) = ends.udp_sent() {
        let late = sent.late as f64 / sent.measured.packets.max(1) as f64;
        if sent.skipped > 0 || late > LATE_SHARE {
            doubts.push(format!(
                "the sender could not keep up with the rate: {} datagrams were skipped and {:.1} % left more than 1 ms \
                 late; this tells the speed of the machine and not of the network",
                sent.skipped,
                late * 100.0
            ));
        }
        if sent.unsent > 0 {
            doubts.push(format!(
                "the sender's system refused {} datagrams; they count as neither sent nor lost",
                sent.unsent
            ));
        }
    }
    if let Some(received) = ends.udp_received() {
        if received.buffer_drops > 0 {
            doubts.push(format!(
                "the receiving program was too slow for {} datagrams, which count as lost; give it a larger --buffer, or \
                 a machine with less to do",
                received.buffer_drops
            ));
        }
        if received.flow.total.packets == 0 {
            doubts.push(
                "nothing arrived; a firewall may let the first datagrams through only".into(),
            );
        }
    }
    if let Some(probed) = ends.probed().filter(|probed| probed.skipped > 0) {
        doubts.push(format!(
            "{} echo requests were skipped, because they left too late",
            probed.skipped
        ));
    }
    if let Some(delay) = figures.delay.as_ref().filter(|delay| delay.negative > 0) {
        doubts.push(format!(
            "{} of {} delays were negative and count as 0 before the correction: the clocks drifted by more than the delay",
            delay.negative, delay.times.count
        ));
    }
    for (end, name) in [
        (ends.client, "this machine's"),
        (ends.server, "the receiver's"),
    ] {
        let step = clock_step(end);
        if step.unsigned_abs() >= CLOCK_STEP {
            doubts.push(format!(
                "{name} clock was set by {} during the run; delays are wrong by as much",
                signed_duration(step as f64)
            ));
        }
    }
    doubts
}

fn clock_step(end: &End) -> i64 {
    match end.outcome() {
        Some(Outcome::UdpSend(sent)) => sent.clock_step,
        Some(Outcome::UdpReceive(received)) => received.clock_step,
        Some(Outcome::TcpConnect(carried) | Outcome::TcpListen(carried)) => carried.clock_step,
        _ => 0,
    }
}
