//! Round trips of probes: who sends them, and who sends them back.

mod channel;
mod icmp_channel;
mod icmp_packet;
mod outstanding;
mod probe;
mod probe_account;
mod serve;
mod tcp_channel;
mod udp_channel;

pub(crate) use probe::start as probe;
pub(crate) use serve::start as serve;
