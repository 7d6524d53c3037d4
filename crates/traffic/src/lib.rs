//! The traffic engine: sends and receives what a measurement needs and counts it.
//!
//! [`start`] turns a [`Job`] into threads, [`Running`] stops them and hands over the [`Outcome`]. The engine knows
//! nothing of tunnels, laboratories or messages between nodes.

#![forbid(unsafe_op_in_unsafe_fn)]

mod clock;
mod content;
mod datagram;
mod error;
pub mod histogram;
mod jitter;
pub mod job;
pub mod outcome;
mod pacing;
mod running;
mod schedule;
mod sequence;
mod series;

pub use datagram::{HEADER_BYTES, LARGEST_PAYLOAD};
pub use error::TrafficError;
pub use job::Job;
pub use outcome::Outcome;
pub use running::Running;
pub use schedule::{LONGEST_JOB, Schedule};

/// Validates `job`, opens its sockets and starts its threads.
///
/// Returns at once, except that a TCP connection may take until its time limit.
///
/// # Errors
/// [`TrafficError::Invalid`] for a job beyond the limits, [`TrafficError::Io`] where a socket cannot be had,
/// [`TrafficError::StartPassed`] when it is too late to send on schedule.
pub fn start(job: Job) -> Result<Running, TrafficError> {
    let _ = job;
    Err(TrafficError::Invalid("this job is not carried yet".into()))
}
