//! The traffic engine: sends and receives what a measurement needs and counts it.
//!
//! [`start`] turns a [`Job`] into threads, [`Running`] stops them and hands over the [`Outcome`]. The engine knows
//! nothing of tunnels, laboratories or messages between nodes.

#![forbid(unsafe_op_in_unsafe_fn)]

mod account;
mod batch;
mod clock;
mod content;
mod datagram;
mod echo;
mod error;
pub mod histogram;
pub mod job;
pub mod outcome;
mod packet_log;
pub mod process;
mod processor;
mod readable_bytes;
mod real_time;
mod round_trips;
mod running;
mod schedule;
mod series;
mod socket;
mod socket_options;
mod socks;
mod tcp;
mod transaction;
mod udp_receive;
mod udp_send;
pub mod voice;
mod waiter;

pub use account::{FlowAccount, MOST_STEPS, Observed};
pub use datagram::{HEADER_BYTES, LARGEST_PAYLOAD};
pub use error::TrafficError;
pub use job::Job;
pub use outcome::Outcome;
pub use running::{Running, Stopper};
pub use schedule::{LONGEST_JOB, Schedule};

/// Validates `job`, opens its sockets and starts its threads.
///
/// Returns at once, except that a TCP connection may take until its time limit.
///
/// # Errors
/// [`TrafficError::Invalid`] for a job beyond the limits, [`TrafficError::Io`] where a socket cannot be had,
/// [`TrafficError::StartPassed`] when it is too late to send on schedule.
pub fn start(job: Job) -> Result<Running, TrafficError> {
    match job {
        Job::UdpSend(job) => udp_send::start(job),
        Job::UdpReceive(job) => udp_receive::start(job),
        Job::TcpConnect(job) => tcp::connect(job),
        Job::TcpListen(job) => tcp::listen(job),
        Job::EchoServe(job) => echo::serve(&job),
        Job::EchoProbe(job) => echo::probe(job),
        Job::TransactionServe(job) => transaction::serve(job),
        Job::TransactionRun(job) => transaction::run(job),
    }
}
