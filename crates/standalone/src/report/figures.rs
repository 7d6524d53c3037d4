//! The figures that people and programs look for first.

use serde::Serialize;
use tunnelbench_traffic::job::SendMode;
use tunnelbench_traffic::outcome::Tally;
use tunnelbench_traffic::voice::VoiceQuality;

use crate::report::FlowReport;
use crate::report::times::{Delay, Times};

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
    pub transactions_per_second: Option<f64>,
    pub delay: Option<Delay>,
    pub round_trip: Option<Times>,
    /// The mean RFC 3550 jitter, ns.
    pub jitter: Option<f64>,
    pub jitter_last: Option<f64>,
    pub voice: Option<VoiceQuality>,
    /// How datagrams were really handed to the system.
    pub mode: Option<SendMode>,
}

impl Figures {
    /// Takes what left in a window of `measure` ns.
    pub fn send(&mut self, sent: Tally, measure: u64) {
        self.sent_packets = Some(sent.packets);
        self.sent_packets_per_second = per_second(sent.packets, measure);
        self.sent_bits_per_second = per_second(sent.bytes * 8, measure);
    }

    /// Of those that were sent, this many arrived at any time.
    pub fn lose_all_but(&mut self, arrived: u64) {
        let Some(sent) = self.sent_packets else {
            return;
        };
        let lost = sent.saturating_sub(arrived);
        self.lost_packets = Some(lost);
        self.loss_ratio = (sent > 0).then(|| lost as f64 / sent as f64);
    }
}

pub(super) fn per_second(count: u64, measure: u64) -> Option<f64> {
    Some(count as f64 * 1e9 / measure as f64)
}

/// Rates and counts of all flows together; times, jitter and voice only of a single flow, because they do not add up.
pub(super) fn total(flows: &[FlowReport]) -> Figures {
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
    let modes = flows.iter().filter_map(|flow| flow.figures.mode);
    let mut total = Figures {
        sent_packets_per_second: rate(|flow| flow.sent_packets_per_second),
        received_packets_per_second: rate(|flow| flow.received_packets_per_second),
        sent_bits_per_second: rate(|flow| flow.sent_bits_per_second),
        throughput_bits_per_second: rate(|flow| flow.throughput_bits_per_second),
        sent_packets: count(|flow| flow.sent_packets),
        duplicates: count(|flow| flow.duplicates),
        reordered: count(|flow| flow.reordered),
        retransmits: count(|flow| flow.retransmits),
        transactions_per_second: rate(|flow| flow.transactions_per_second),
        mode: modes
            .clone()
            .next()
            .filter(|mode| modes.clone().all(|other| other == *mode)),
        ..Figures::default()
    };
    if let (Some(sent), Some(lost)) = (total.sent_packets, count(|flow| flow.lost_packets)) {
        total.lose_all_but(sent.saturating_sub(lost));
    }
    total
}
