//! The header at the front of every datagram and echo probe.
//!
//! ```text
//!  0       4       6                  12
//! +-------+-------+-------------------+---------…
//! | seq.  | tag   | intended departure| content
//! +-------+-------+-------------------+---------…
//! ```
//! Network byte order. The intended departure is in ns since the start of the schedule (48 bits: 78 hours).

/// Bytes of the header, and so of the smallest datagram.
pub const HEADER_BYTES: usize = 12;

/// The largest UDP payload over IPv4.
pub const LARGEST_PAYLOAD: usize = 65_507;

const LATEST_DEPARTURE: u64 = (1 << 48) - 1;

/// What a datagram says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Sequence number, modulo 2^32.
    pub sequence: u32,
    /// Which job the datagram belongs to.
    pub session: u16,
    /// Intended departure, ns since the start of the schedule, below 2^48.
    pub intended: u64,
}

impl Header {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&self.sequence.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.session.to_be_bytes());
        bytes[6..].copy_from_slice(&self.intended.min(LATEST_DEPARTURE).to_be_bytes()[2..]);
        bytes
    }

    /// None where the datagram is too short to carry a header.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let (bytes, _) = datagram.split_first_chunk::<HEADER_BYTES>()?;
        let [s0, s1, s2, s3, t0, t1, d0, d1, d2, d3, d4, d5] = *bytes;
        Some(Self {
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            session: u16::from_be_bytes([t0, t1]),
            intended: u64::from_be_bytes([0, 0, d0, d1, d2, d3, d4, d5]),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_survives_the_wire(
            sequence: u32, session: u16, intended in 0..=LATEST_DEPARTURE, content: Vec<u8>,
        ) {
            let header = Header { sequence, session, intended };
            let datagram = [header.encode().as_slice(), &content].concat();
            prop_assert_eq!(Header::parse(&datagram), Some(header));
        }

        #[test]
        fn any_bytes_parse_or_are_too_short(bytes: Vec<u8>) {
            prop_assert_eq!(Header::parse(&bytes).is_some(), bytes.len() >= HEADER_BYTES);
        }
    }

    #[test]
    fn the_wire_format_is_fixed() {
        let header = Header {
            sequence: 0x0102_0304,
            session: 0x0506,
            intended: 0x0708_090a_0b0c,
        };
        assert_eq!(header.encode(), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    }
}
