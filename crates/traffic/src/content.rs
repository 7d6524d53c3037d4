//! What payloads are filled with.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::error::TrafficError;
use crate::job::Content;

const SEED: u64 = 0x7475_6e6e_656c;
const LONGEST_PATTERN: usize = 65_536;
const LARGEST_FILE: usize = 16 * 1024 * 1024;

/// How much incompressible content is made before it repeats: more than the window of the compressors that VPNs use.
const RANDOM_PERIOD: usize = 128 * 1024;

/// Content in memory, ready to be copied into payloads.
#[derive(Debug)]
pub(crate) struct Material {
    /// Not empty.
    bytes: Vec<u8>,
    /// Whether each payload goes on where the one before it ended, instead of beginning anew.
    continues: bool,
}

impl Content {
    pub(crate) fn validate(&self) -> Result<(), TrafficError> {
        match self {
            Self::Pattern { data } if data.is_empty() || data.len() > LONGEST_PATTERN => {
                Err(TrafficError::Invalid(format!(
                    "a content pattern has 1 to {LONGEST_PATTERN} bytes, not {}",
                    data.len()
                )))
            }
            _ => Ok(()),
        }
    }

    /// Makes or reads the content, which is valid.
    ///
    /// # Errors
    /// [`TrafficError::Io`] where a file can't be read, [`TrafficError::Invalid`] where it is empty or too large.
    pub(crate) fn load(&self) -> Result<Material, TrafficError> {
        let (bytes, continues) = match self {
            Self::Zeros => (vec![0], false),
            Self::Random => {
                let mut bytes = vec![0; RANDOM_PERIOD];
                fastrand::Rng::with_seed(SEED).fill(&mut bytes);
                (bytes, true)
            }
            Self::Pattern { data } => (data.to_vec(), false),
            Self::File { path } => (read_file(path)?, true),
        };
        Ok(Material { bytes, continues })
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, TrafficError> {
    let mut bytes = Vec::new();
    let mut read = || -> io::Result<()> {
        // Opening a pipe would wait for whoever fills it.
        if !fs::metadata(path)?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        // One byte more than allowed tells a file that is too large, whatever its kind and stated length.
        let mut limited = File::open(path)?.take(LARGEST_FILE as u64 + 1);
        limited.read_to_end(&mut bytes).map(|_| ())
    };
    let shown = path.display();
    read().map_err(TrafficError::io(format!("read the content file {shown}")))?;
    match bytes.len() {
        1..=LARGEST_FILE => Ok(bytes),
        0 => Err(TrafficError::Invalid(format!(
            "the content file {shown} is empty"
        ))),
        _ => Err(TrafficError::Invalid(format!(
            "the content file {shown} is larger than {} MiB",
            LARGEST_FILE >> 20
        ))),
    }
}

impl Material {
    /// How many payload bytes to make before they may repeat; 1 where every payload is like the first.
    pub fn period(&self) -> usize {
        if self.continues { self.bytes.len() } else { 1 }
    }

    /// Fills `payload`, before which `done` bytes of payload were filled.
    pub fn fill(&self, done: usize, mut payload: &mut [u8]) {
        let mut start = if self.continues {
            done % self.bytes.len()
        } else {
            0
        };
        while !payload.is_empty() {
            let piece = &self.bytes[start..];
            let length = piece.len().min(payload.len());
            let (front, rest) = payload.split_at_mut(length);
            front.copy_from_slice(&piece[..length]);
            payload = rest;
            start = 0;
        }
    }
}

/// Fills `buffer` with copies of `pattern`, which is not empty, the last cut off.
pub(crate) fn repeat(pattern: &[u8], buffer: &mut [u8]) {
    for chunk in buffer.chunks_mut(pattern.len()) {
        chunk.copy_from_slice(&pattern[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use serde_bytes::ByteBuf;

    use super::*;

    fn filled(content: &Content, lengths: &[usize]) -> Vec<Vec<u8>> {
        let material = content.load().unwrap();
        let mut done = 0;
        let fill = |length: &usize| {
            let mut payload = vec![255; *length];
            material.fill(done, &mut payload);
            done += length;
            payload
        };
        lengths.iter().map(fill).collect()
    }

    #[test]
    fn a_pattern_begins_anew_in_each_payload() {
        let pattern = Content::Pattern {
            data: ByteBuf::from("abc"),
        };
        assert_eq!(filled(&pattern, &[8, 2]), [&b"abcabcab"[..], b"ab"]);
        assert_eq!(pattern.load().unwrap().period(), 1);
        assert_eq!(filled(&Content::Zeros, &[3]), [[0, 0, 0]]);
    }

    #[test]
    fn random_content_is_the_same_in_every_run_has_all_bytes_and_goes_on() {
        let random = filled(&Content::Random, &[4096, 4096]);
        assert_eq!(random, filled(&Content::Random, &[4096, 4096]));
        assert_ne!(random[0], random[1]);
        assert!((0..=255).all(|byte| random[0].contains(&byte)));
    }

    #[test]
    fn a_file_goes_on_from_payload_to_payload_and_over_and_over() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "0123456789").unwrap();
        let content = Content::File {
            path: file.path().into(),
        };
        assert_eq!(
            filled(&content, &[4, 4, 25, 1]),
            [&b"0123"[..], b"4567", b"8901234567890123456789012", b"3"]
        );
        assert_eq!(content.load().unwrap().period(), 10);
    }

    #[test]
    fn a_file_that_cannot_be_used_is_named() {
        let problem = |path: &Path| {
            let content = Content::File { path: path.into() };
            content.load().unwrap_err().to_string()
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        let shown = file.path().display().to_string();
        let empty = problem(file.path());
        file.as_file().set_len(LARGEST_FILE as u64 + 1).unwrap();
        let large = problem(file.path());
        file.as_file().set_len(LARGEST_FILE as u64).unwrap();
        let largest = Content::File {
            path: file.path().into(),
        };
        assert!(largest.load().is_ok());
        let missing = problem(&file.path().with_extension("missing"));
        let directory = problem(file.path().parent().unwrap());
        assert!(
            empty.contains(&shown) && empty.ends_with("is empty"),
            "{empty}"
        );
        assert!(
            large.contains(&shown) && large.ends_with("larger than 16 MiB"),
            "{large}"
        );
        assert!(
            missing.contains(&shown) && missing.contains("No such file"),
            "{missing}"
        );
        assert!(directory.contains("not a regular file"), "{directory}");
    }

    #[test]
    fn an_empty_pattern_is_refused() {
        assert!(
            Content::Pattern {
                data: ByteBuf::new()
            }
            .validate()
            .is_err()
        );
    }
}
