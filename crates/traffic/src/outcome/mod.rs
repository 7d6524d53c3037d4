//! What the jobs found out. All times are in nanoseconds; sums are exact integers, so that ratios are the reader's.

mod echo;
mod flow;
mod round_trips;
mod tcp;
mod transaction;
mod udp_received;
mod udp_sent;

use serde::{Deserialize, Serialize};

pub use echo::{Echoed, Probed};
pub use flow::{DelayVariation, FlowReport, FlowSeries, LossBursts};
pub use round_trips::RoundTripSeries;
pub use tcp::{
    MessagesSent, TcpCarried, TcpFlow, TcpInformation, TcpReceived, TcpReceivedStream, TcpSamples,
    TcpSent, TcpSentStream,
};
pub use transaction::{Transacted, TransactionsServed};
pub use udp_received::UdpReceived;
pub use udp_sent::UdpSent;

/// The result of a [`crate::Job`], with the same `kind`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// Of a UDP sender.
    UdpSend(UdpSent),
    /// Of a UDP receiver.
    UdpReceive(UdpReceived),
    /// Of a connecting TCP end.
    TcpConnect(TcpCarried),
    /// Of a listening TCP end.
    TcpListen(TcpCarried),
    /// Of an echo server.
    EchoServe(Echoed),
    /// Of a prober.
    EchoProbe(Probed),
    /// Of a server of transactions.
    TransactionServe(TransactionsServed),
    /// Of a client of transactions.
    TransactionRun(Transacted),
}

/// Datagrams and their payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// How many.
    pub packets: u64,
    /// UDP payload bytes, headers of the engine included.
    pub bytes: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.packets += 1;
        self.bytes += bytes;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// Bytes of streams in equal steps from the start of the schedule to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of a step, ns.
    pub step: u64,
    /// Payload bytes of each step.
    pub bytes: Vec<u64>,
}
