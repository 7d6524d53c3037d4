//! What tells the client of a job from strangers.

const MAGIC: [u8; 4] = *b"tbrr";

pub(super) const HELLO_BYTES: usize = 12;

/// What introduces the client of the job `session`.
pub(super) fn hello(session: u64) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..].copy_from_slice(&session.to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn jobs_have_different_hellos(session: u64, other: u64) {
            prop_assert_eq!(hello(session) == hello(other), session == other);
        }
    }
}
