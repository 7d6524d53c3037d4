//! The header at the front of every datagram and echo probe.
//!
//! ```text
//!  0       4       6                  12         16
//! +-------+-------+-------------------+----------+---------…
//! | seq.  | tag   | intended departure| lateness | content
//! +-------+-------+-------------------+----------+---------…
//! ```
//! Network byte order. The intended departure is in ns since the start of the schedule (48 bits: 78 hours). The lateness
//! is by how many ns the datagram departed later than that; one too small for it has none.

/// Bytes of the header without the lateness, and so of the smallest datagram.
pub const HEADER_BYTES: usize = 12;

/// Bytes of the header with the lateness.
pub(crate) const LONG_HEADER_BYTES: usize = 16;

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
    /// Departure minus intended departure, ns; whatever does not fit is 2^32 - 1. None in a datagram too small for it.
    pub lateness: Option<u32>,
}

impl Header {
    /// How much of a datagram of this size the header takes.
    pub fn length(datagram_bytes: usize) -> usize {
        if datagram_bytes < LONG_HEADER_BYTES {
            HEADER_BYTES
        } else {
            LONG_HEADER_BYTES
        }
    }

    /// Writes the header at the front of `datagram`, which has room for all but the lateness.
    #[inline]
    pub fn write(&self, datagram: &mut [u8]) {
        datagram[..4].copy_from_slice(&self.sequence.to_be_bytes());
        datagram[4..6].copy_from_slice(&self.session.to_be_bytes());
        datagram[6..HEADER_BYTES]
            .copy_from_slice(&self.intended.min(LATEST_DEPARTURE).to_be_bytes()[2..]);
        if let (Some(lateness), Some(place)) = (
            self.lateness,
            datagram.get_mut(HEADER_BYTES..LONG_HEADER_BYTES),
        ) {
            place.copy_from_slice(&lateness.to_be_bytes());
        }
    }

    /// When the datagram departed, ns since the start of the schedule; none where it does not say.
    pub fn departed(&self) -> Option<i64> {
        let lateness = self.lateness.filter(|lateness| *lateness < u32::MAX)?;
        Some(self.intended as i64 + i64::from(lateness))
    }

    /// None where the datagram is too short to carry a header.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let (bytes, rest) = datagram.split_first_chunk::<HEADER_BYTES>()?;
        let [s0, s1, s2, s3, t0, t1, d0, d1, d2, d3, d4, d5] = *bytes;
        Some(Self {
            sequence: u32::from_be_bytes([s0, s1, s2, s3]),
            session: u16::from_be_bytes([t0, t1]),
            intended: u64::from_be_bytes([0, 0, d0, d1, d2, d3, d4, d5]),
            lateness: rest.first_chunk().map(|bytes| u32::from_be_bytes(*bytes)),
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
            sequence: u32, session: u16, intended in 0..=LATEST_DEPARTURE, lateness: u32, bytes in HEADER_BYTES..100,
        ) {
            let header = Header { sequence, session, intended, lateness: Some(lateness) };
            let mut datagram = vec![255; bytes];
            header.write(&mut datagram);
            let has_room = bytes >= LONG_HEADER_BYTES;
            prop_assert_eq!(
                Header::parse(&datagram),
                Some(Header { lateness: has_room.then_some(lateness), ..header })
            );
            prop_assert!(datagram[Header::length(bytes)..].iter().all(|byte| *byte == 255));
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
            lateness: Some(0x0d0e_0f10),
        };
        let mut datagram = [0; 17];
        header.write(&mut datagram);
        let expected: Vec<u8> = (1..=16).chain([0]).collect();
        assert_eq!(datagram.as_slice(), expected);
    }
}
