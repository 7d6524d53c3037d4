//! From what both ends of a flow found out to its figures.

use tunnelbench_traffic::Outcome;
use tunnelbench_traffic::outcome::{
    FlowReport, Probed, Tally, TcpFlow, TcpReceived, TcpSent, UdpReceived, UdpSent,
};

use crate::message::End;
use crate::offer::{Direction, Flow, Traffic};
use crate::report::figures::{Figures, per_second};
use crate::report::times::{Apart, Times};

/// The two ends of one flow.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    pub flow: &'a Flow,
    pub client: &'a End,
    pub server: &'a End,
    /// The measured window, ns.
    pub measure: u64,
}

impl Ends<'_> {
    pub fn figures(&self, apart: Apart) -> Figures {
        match &self.flow.traffic {
            Traffic::Udp(_) => self.udp(apart),
            Traffic::Tcp(tcp) => self.tcp(apart, tcp.messages.is_some()),
            Traffic::Icmp(icmp) => self.icmp(icmp.payload_bytes.into()),
            Traffic::Transactions(_) => self.transactions(),
        }
    }

    pub fn udp_sent(&self) -> Option<&UdpSent> {
        [self.client, self.server]
            .into_iter()
            .find_map(|end| match end.outcome()? {
                Outcome::UdpSend(sent) => Some(sent),
                _ => None,
            })
    }

    pub fn udp_received(&self) -> Option<&UdpReceived> {
        [self.client, self.server]
            .into_iter()
            .find_map(|end| match end.outcome()? {
                Outcome::UdpReceive(received) => Some(received),
                _ => None,
            })
    }

    fn tcp_flows(&self) -> impl Iterator<Item = &TcpFlow> {
        [self.client, self.server]
            .into_iter()
            .filter_map(|end| match end.outcome()? {
                Outcome::TcpConnect(carried) | Outcome::TcpListen(carried) => Some(&carried.flow),
                _ => None,
            })
    }

    pub fn probed(&self) -> Option<&Probed> {
        match self.client.outcome()? {
            Outcome::EchoProbe(probed) => Some(probed),
            _ => None,
        }
    }

    fn udp(&self, apart: Apart) -> Figures {
        let mut figures = Figures::default();
        if let Some(sent) = self.udp_sent() {
            figures.send(sent.measured, self.measure);
            figures.mode = Some(sent.mode);
        }
        if let Some(received) = self.udp_received() {
            self.receive(&mut figures, &received.flow, apart);
            figures.voice = received.voice;
        }
        figures
    }

    /// What arrived of datagrams or messages.
    fn receive(&self, figures: &mut Figures, flow: &FlowReport, apart: Apart) {
        figures.received_packets_per_second = per_second(flow.arrived.packets, self.measure);
        figures.throughput_bits_per_second = per_second(flow.arrived.bytes * 8, self.measure);
        figures.duplicates = Some(flow.duplicates);
        figures.reordered = Some(flow.reordered);
        figures.jitter = flow.jitter_mean;
        figures.jitter_last = flow.jitter_last;
        let forward = self.flow.direction == Direction::Forward;
        figures.delay = flow
            .delay
            .as_ref()
            .map(|delay| apart.correct(delay, forward));
        figures.lose_all_but(flow.measured.packets + flow.beyond_window);
    }

    fn tcp(&self, apart: Apart, has_messages: bool) -> Figures {
        let sent: Vec<&TcpSent> = self
            .tcp_flows()
            .filter_map(|flow| flow.sent.as_ref())
            .collect();
        let received: Vec<&TcpReceived> = self
            .tcp_flows()
            .filter_map(|flow| flow.received.as_ref())
            .collect();
        let mut figures = Figures {
            retransmits: sent
                .iter()
                .map(|sent| sent.retransmits)
                .reduce(|sum, count| sum + count),
            round_trip: sent
                .iter()
                .find_map(|sent| sent.round_trip.as_ref())
                .map(Times::of),
            ..Figures::default()
        };
        // Messages that go both ways are two flows that share connections; their delays do not add up.
        if has_messages && self.flow.direction != Direction::Both {
            if let Some(messages) = sent.iter().find_map(|sent| sent.messages.as_ref()) {
                figures.send(messages.measured, self.measure);
            }
            if let Some(messages) = received.iter().find_map(|end| end.messages.as_ref()) {
                self.receive(&mut figures, messages, apart);
            }
            return figures;
        }
        let rate = |bytes: Option<u64>| per_second(bytes? * 8, self.measure);
        let written = sent.iter().map(|sent| sent.measured_bytes);
        let read = received.iter().map(|received| received.measured_bytes);
        figures.sent_bits_per_second = rate(written.reduce(|sum, bytes| sum + bytes));
        figures.throughput_bits_per_second = rate(read.reduce(|sum, bytes| sum + bytes));
        figures
    }

    fn transactions(&self) -> Figures {
        match self.client.outcome() {
            Some(Outcome::TransactionRun(transacted)) => Figures {
                transactions_per_second: per_second(transacted.transactions, self.measure),
                round_trip: transacted.round_trip.as_ref().map(Times::of),
                ..Figures::default()
            },
            _ => Figures::default(),
        }
    }

    fn icmp(&self, payload_bytes: u64) -> Figures {
        let mut figures = Figures::default();
        if let Some(probed) = self.probed() {
            let sent = Tally {
                packets: probed.sent,
                bytes: probed.sent * payload_bytes,
            };
            figures.send(sent, self.measure);
            figures.received_packets_per_second = per_second(probed.replies, self.measure);
            figures.throughput_bits_per_second =
                per_second(probed.replies * payload_bytes * 8, self.measure);
            figures.duplicates = Some(probed.duplicates);
            figures.reordered = Some(probed.reordered);
            figures.round_trip = probed.round_trip.as_ref().map(Times::of);
            figures.lose_all_but(probed.replies);
        }
        figures
    }
}
