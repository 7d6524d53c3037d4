//! TOML texts into typed values, with errors that say where.

use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};
use toml::Spanned;

use crate::error::TrafficError;

/// What is wrong in a TOML text, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {}{message}", prefix(.key))]
pub struct TextError {
    /// Counted from 1.
    pub line: usize,
    /// The key in question, such as `flow[0].sizes`; empty for the text as a whole.
    pub key: String,
    /// What is wrong with it.
    pub message: String,
}

/// The path without what [`Spanned`] puts between a value and its place.
fn key_of(path: &Path) -> String {
    let inside =
        |segment: &&Segment| !matches!(segment, Segment::Map { key } if key.starts_with('$'));
    let parts = path.iter().filter(inside).map(|segment| match segment {
        Segment::Seq { index } => format!("[{index}]"),
        other => format!(".{other}"),
    });
    parts.collect::<String>().trim_start_matches('.').into()
}

fn prefix(key: &str) -> String {
    if key.is_empty() {
        String::new()
    } else {
        format!("{key}: ")
    }
}

/// A TOML text while it is made into checked values.
pub(super) struct Text<'a>(pub &'a str);

impl Text<'_> {
    /// The text as a typed value: wrong TOML, unknown keys and wrong types are errors.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, TextError> {
        let deserializer =
            toml::Deserializer::parse(self.0).map_err(|error| self.of_toml("", &error))?;
        serde_path_to_error::deserialize(deserializer)
            .map_err(|error| self.of_toml(&key_of(error.path()), error.inner()))
    }

    /// An error at a value that was parsed and turned out to make no sense.
    pub fn error_at<T>(
        &self,
        key: &str,
        value: &Spanned<T>,
        message: impl Into<String>,
    ) -> TextError {
        TextError {
            line: self.line(value.span().start),
            key: key.into(),
            message: message.into(),
        }
    }

    /// The same, for the reason that the engine gives.
    pub fn refused_at<T>(&self, key: &str, value: &Spanned<T>, reason: &TrafficError) -> TextError {
        let message = match reason {
            TrafficError::Invalid(message) => message.clone(),
            other => other.to_string(),
        };
        self.error_at(key, value, message)
    }

    fn of_toml(&self, key: &str, error: &toml::de::Error) -> TextError {
        TextError {
            line: self.line(error.span().map_or(0, |span| span.start)),
            key: key.into(),
            message: error.message().into(),
        }
    }

    fn line(&self, offset: usize) -> usize {
        let before = &self.0.as_bytes()[..offset.min(self.0.len())];
        before.iter().filter(|byte| **byte == b'\n').count() + 1
    }
}
