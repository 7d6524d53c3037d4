//! What can go wrong while decoding, in words for the person who asked for it.

use std::io;
use std::path::PathBuf;

use tunnelbench_packet_log::LogError;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A log can't be read; the text names it.
    #[error(transparent)]
    Log(#[from] LogError),

    /// A log was read, but there is no sense in what was asked of it.
    #[error("{path}: {reason}")]
    Senseless {
        /// The log.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },

    /// The options don't go together.
    #[error("{0}")]
    Options(String),

    /// The result can't be written.
    #[error("{path} can't be written: {source}")]
    Output {
        /// Where to.
        path: PathBuf,
        /// The operating system's reason.
        source: io::Error,
    },
}
