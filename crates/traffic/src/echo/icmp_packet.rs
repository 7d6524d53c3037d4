//! ICMP echo requests and replies on the wire (RFC 792, RFC 4443 section 4).
//!
//! ```text
//!  0      1      2            4             6           8
//! +------+------+------------+-------------+-----------+---------…
//! | type | code |  checksum  | identifier  | sequence  | payload
//! +------+------+------------+-------------+-----------+---------…
//! ```
//! Network byte order.

/// Bytes of the ICMP header.
pub(crate) const ICMP_HEADER_BYTES: usize = 8;

const LEAST_IPV4_HEADER: usize = 20;

/// What of ICMP differs between the versions of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// ICMP (RFC 792).
    V4,
    /// ICMPv6 (RFC 4443).
    V6,
}

impl Version {
    pub fn request_type(self) -> u8 {
        match self {
            Self::V4 => 8,
            Self::V6 => 128,
        }
    }

    pub fn reply_type(self) -> u8 {
        match self {
            Self::V4 => 0,
            Self::V6 => 129,
        }
    }
}

/// The header of an echo request or reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Echo {
    pub identifier: u16,
    pub sequence: u16,
}

impl Echo {
    /// The header of a request with this payload. ICMPv6's checksum covers addresses that only the kernel knows, so it
    /// is left to it.
    pub fn request(self, version: Version, payload: &[u8]) -> [u8; ICMP_HEADER_BYTES] {
        let mut header = self.encode(version.request_type());
        if version == Version::V4 {
            let checksum = checksum(&header, payload);
            header[2..4].copy_from_slice(&checksum.to_be_bytes());
        }
        header
    }

    /// The reply in an ICMP message, and its payload.
    pub fn reply(version: Version, message: &[u8]) -> Option<(Self, &[u8])> {
        Self::parse(version.reply_type(), message)
    }

    /// The request in as much of an ICMP message as an error about it quotes.
    pub fn quoted_request(version: Version, message: &[u8]) -> Option<Self> {
        Self::parse(version.request_type(), message).map(|(echo, _)| echo)
    }

    fn encode(self, kind: u8) -> [u8; ICMP_HEADER_BYTES] {
        let ([i0, i1], [s0, s1]) = (self.identifier.to_be_bytes(), self.sequence.to_be_bytes());
        [kind, 0, 0, 0, i0, i1, s0, s1]
    }

    fn parse(kind: u8, message: &[u8]) -> Option<(Self, &[u8])> {
        let (header, payload) = message.split_first_chunk::<ICMP_HEADER_BYTES>()?;
        let [found, code, _, _, i0, i1, s0, s1] = *header;
        let echo = Self {
            identifier: u16::from_be_bytes([i0, i1]),
            sequence: u16::from_be_bytes([s0, s1]),
        };
        (found == kind && code == 0).then_some((echo, payload))
    }
}

/// What follows the IPv4 header of a whole packet.
pub(crate) fn ipv4_payload(packet: &[u8]) -> Option<&[u8]> {
    let header = usize::from(packet.first()? & 0x0f) * 4;
    (header >= LEAST_IPV4_HEADER)
        .then(|| packet.get(header..))
        .flatten()
}

/// The internet checksum (RFC 1071) of a header, whose own checksum is 0, and its payload.
fn checksum(header: &[u8; ICMP_HEADER_BYTES], payload: &[u8]) -> u16 {
    let mut sum = words(header) + words(payload);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn words(bytes: &[u8]) -> u64 {
    let pairs = bytes.chunks_exact(2);
    let odd = pairs
        .remainder()
        .first()
        .map_or(0, |byte| u64::from(*byte) << 8);
    let even: u64 = pairs
        .map(|pair| u64::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    even + odd
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_request_is_what_the_rfc_draws() {
        let echo = Echo {
            identifier: 0x0102,
            sequence: 0x0304,
        };
        // The sum of 0800, 0102, 0304, 6162 and 6300 is d068.
        assert_eq!(
            echo.request(Version::V4, b"abc"),
            [8, 0, 0x2f, 0x97, 1, 2, 3, 4]
        );
        assert_eq!(
            echo.request(Version::V6, b"abc"),
            [128, 0, 0, 0, 1, 2, 3, 4]
        );
    }

    #[test]
    fn options_of_an_ipv4_header_are_skipped() {
        let packet = |words: u8| [&[0x40 | words][..], &[0; 27], b"rest"].concat();
        assert_eq!(ipv4_payload(&packet(7)), Some(&b"rest"[..]));
        assert_eq!(ipv4_payload(&packet(4)), None);
        assert_eq!(ipv4_payload(&packet(15)), None);
    }

    proptest! {
        #[test]
        fn a_whole_message_sums_up_to_all_ones(identifier: u16, sequence: u16, payload: Vec<u8>) {
            let header = Echo { identifier, sequence }.request(Version::V4, &payload);
            let mut sum = words(&header) + words(&payload);
            while sum > 0xffff {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            prop_assert_eq!(sum, 0xffff);
        }

        #[test]
        fn a_reply_survives_the_wire(identifier: u16, sequence: u16, payload: Vec<u8>) {
            for version in [Version::V4, Version::V6] {
                let echo = Echo { identifier, sequence };
                let message = [&echo.encode(version.reply_type())[..], &payload].concat();
                prop_assert_eq!(Echo::reply(version, &message), Some((echo, payload.as_slice())));
                prop_assert_eq!(Echo::quoted_request(version, &message), None);
            }
        }

        #[test]
        fn any_bytes_are_parsed_or_refused(bytes: Vec<u8>) {
            for version in [Version::V4, Version::V6] {
                let whole = bytes.len() >= ICMP_HEADER_BYTES;
                let is_reply = whole && bytes[..2] == [version.reply_type(), 0];
                let is_request = whole && bytes[..2] == [version.request_type(), 0];
                prop_assert_eq!(Echo::reply(version, &bytes).is_some(), is_reply);
                prop_assert_eq!(Echo::quoted_request(version, &bytes).is_some(), is_request);
            }
            if let Some(rest) = ipv4_payload(&bytes) {
                prop_assert!(bytes.len() >= rest.len() + LEAST_IPV4_HEADER);
            }
        }
    }
}
