//! What payloads are filled with.

use crate::error::TrafficError;
use crate::job::Content;

const SEED: u64 = 0x7475_6e6e_656c;
const LONGEST_PATTERN: usize = 65_536;

/// How much incompressible content is made before it repeats: more than the window of the compressors that VPNs use.
pub(crate) const RANDOM_PERIOD: usize = 128 * 1024;

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

    /// Whether equal pieces of it are as good as different ones.
    pub(crate) fn repeats(&self) -> bool {
        !matches!(self, Self::Random)
    }

    pub(crate) fn fill(&self, buffer: &mut [u8]) {
        match self {
            Self::Zeros => buffer.fill(0),
            Self::Random => fastrand::Rng::with_seed(SEED).fill(buffer),
            Self::Pattern { data } => repeat(data, buffer),
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

    #[test]
    fn a_pattern_repeats_and_is_cut_off() {
        let mut buffer = [0; 8];
        Content::Pattern {
            data: ByteBuf::from("abc"),
        }
        .fill(&mut buffer);
        assert_eq!(&buffer, b"abcabcab");
    }

    #[test]
    fn random_content_is_the_same_in_every_run_and_has_all_bytes() {
        let (mut first, mut second) = (vec![0; 4096], vec![0; 4096]);
        Content::Random.fill(&mut first);
        Content::Random.fill(&mut second);
        assert_eq!(first, second);
        assert!((0..=255).all(|byte| first.contains(&byte)));
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
