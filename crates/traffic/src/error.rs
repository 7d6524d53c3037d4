//! What can go wrong in a job, in words for the person who reads the log.

use std::io;
use std::net::SocketAddr;

use tunnelbench_packet_log::LogError;

use crate::clock::milliseconds;

/// Why a job could not start or has no result.
///
/// A job that was disturbed ends as an error and never as a low number.
#[derive(Debug, thiserror::Error)]
pub enum TrafficError {
    /// The job asks for something that makes no sense or is beyond the limits; the text says what and why.
    #[error("the job is not valid: {0}")]
    Invalid(String),

    /// It was too late to follow the schedule.
    #[error("the schedule had started {} ms before this end was ready; plan its start later", milliseconds(*.by))]
    StartPassed {
        /// How long after `start_at` this end was ready, ns.
        by: i64,
    },

    /// A system call failed.
    #[error("cannot {action}: {source}")]
    Io {
        /// What was being done, such as `bind 10.0.0.1:5201`.
        action: String,
        /// The operating system's reason.
        source: io::Error,
    },

    /// A listener did not get all its TCP streams in time.
    #[error("only {connected} of {asked} TCP streams were connected when the warm-up was over")]
    NotConnected {
        /// Streams that were.
        connected: usize,
        /// Streams that the job asks for.
        asked: usize,
    },

    /// A TCP connection ended before the end of the measured window.
    #[error("the connection with {peer} broke {} ms into the schedule, before the end of the measured window: {reason}", milliseconds(*.at))]
    Broken {
        /// The other end.
        peer: SocketAddr,
        /// When, ns since the start of the schedule.
        at: i64,
        /// Whatever the operating system said.
        reason: String,
    },

    /// The packet log can't be written.
    #[error("the packet log {0}")]
    Log(#[from] LogError),

    /// No datagram left, or no byte of a TCP stream arrived in the measured window.
    #[error("nothing was carried: {0}")]
    NothingCarried(String),

    /// [`crate::Running::stop`] was called before the end of the measured window.
    #[error("the job was stopped before the end of its measured window")]
    Stopped,

    /// A thread of the engine panicked; this is a defect of the engine.
    #[error("the traffic engine failed inside: {0}")]
    Defect(String),
}

impl TrafficError {
    /// Wraps the reason of a failed system call; `action` completes "cannot …".
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }
}
