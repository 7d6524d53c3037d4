//! What can go wrong, in words for the person at the terminal.

use std::process::ExitCode;

use crate::message::Refusal;

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum StandaloneError {
    /// The command line, a key file or a script cannot be used as it is.
    #[error("{0}")]
    Usage(String),
    /// The receiver does not take part; it says why.
    #[error("the receiver refuses: {}", .0.reason)]
    Refused(Refusal),
    /// Ctrl-C; what was measured until then is printed.
    #[error("interrupted")]
    Interrupted,
    /// It could not be done: unreachable, broken off, a failed system call.
    #[error("{0}")]
    Failed(String),
}

impl StandaloneError {
    /// 2 for what the user has to change, 3 for a refusal, 130 for an interruption, 1 for all else.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Refused(_) => ExitCode::from(3),
            Self::Interrupted => ExitCode::from(130),
            Self::Failed(_) => ExitCode::FAILURE,
        }
    }

    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }
}
