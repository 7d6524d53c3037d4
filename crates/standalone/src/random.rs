//! Secrets of one session.

use crate::error::StandaloneError;

/// Bytes that nobody can guess.
pub(crate) fn bytes<const N: usize>() -> Result<[u8; N], StandaloneError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|failure| {
        StandaloneError::failed(format!("cannot get random bytes: {failure}"))
    })?;
    Ok(bytes)
}
