//! What can go wrong with a log, in words for the person who reads it.

use std::io;
use std::path::{Path, PathBuf};

use parquet::errors::ParquetError;

/// Why a log can't be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The operating system refused.
    #[error("{path} can't be {action}: {source}")]
    Io {
        /// The log.
        path: PathBuf,
        /// What was being done, such as `read`.
        action: &'static str,
        /// The operating system's reason.
        source: io::Error,
    },

    /// The file isn't a packet log, or not a whole one.
    #[error("{path} is no readable packet log: {reason}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The thread that writes the log panicked; this is a defect of this crate.
    #[error("{path}: the packet log's writer failed inside")]
    Defect {
        /// The log.
        path: PathBuf,
    },
}

impl LogError {
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            path,
            action,
            source,
        }
    }

    pub(crate) fn malformed(path: &Path, reason: &(impl ToString + ?Sized)) -> Self {
        Self::Malformed {
            path: path.to_owned(),
            reason: reason.to_string(),
        }
    }

    pub(crate) fn parquet(path: &Path, action: &'static str) -> impl FnOnce(ParquetError) -> Self {
        let path = path.to_owned();
        move |error| match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(source) => Self::Io {
                    path,
                    action,
                    source: *source,
                },
                Err(other) => Self::malformed(&path, &other),
            },
            error => Self::malformed(&path, &error),
        }
    }
}
