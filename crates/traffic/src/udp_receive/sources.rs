//! Whose datagrams count.

use std::net::{IpAddr, Ipv6Addr};

use crate::batch::Source;

/// Takes the first source that sends something valid, and no other from then on.
pub(super) struct SourceLock {
    peer: Option<IpAddr>,
    source: Option<Source>,
}

impl SourceLock {
    /// Only addresses equal to `peer` count, where there is one.
    pub fn new(peer: Option<IpAddr>) -> Self {
        Self {
            peer: peer.map(|peer| peer.to_canonical()),
            source: None,
        }
    }

    /// Whether a valid datagram from `source` counts.
    pub fn admits(&mut self, source: &Source) -> bool {
        if let Some(first) = &self.source {
            return first == source;
        }
        if self.peer.is_some() && self.peer != address(source) {
            return false;
        }
        self.source = Some(*source);
        true
    }
}

/// The IP address in what the kernel wrote; an IPv4 address mapped into IPv6 as what it is.
fn address(source: &Source) -> Option<IpAddr> {
    let [f0, f1, _, _, a, b, c, d, ..] = *source;
    match i32::from(u16::from_ne_bytes([f0, f1])) {
        libc::AF_INET => Some(IpAddr::from([a, b, c, d])),
        libc::AF_INET6 => {
            let bytes: [u8; 16] = source[8..24].try_into().ok()?;
            Some(IpAddr::from(Ipv6Addr::from(bytes)).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::source_of;

    fn source(text: &str) -> Source {
        source_of(text.parse().unwrap())
    }

    #[test]
    fn the_first_source_is_the_only_one() {
        let mut sources = SourceLock::new(None);
        assert!(sources.admits(&source("10.0.0.1:40000")));
        assert!(sources.admits(&source("10.0.0.1:40000")));
        assert!(!sources.admits(&source("10.0.0.1:40001")));
    }

    #[test]
    fn only_a_peer_becomes_the_first_source() {
        for (peer, stranger, friend) in [
            ("10.0.0.1", "10.0.0.2:1", "10.0.0.1:1"),
            ("10.0.0.1", "[::ffff:10.0.0.2]:1", "[::ffff:10.0.0.1]:1"),
            ("::ffff:10.0.0.1", "10.0.0.2:1", "10.0.0.1:1"),
            ("fd00::1", "[fd00::2]:1", "[fd00::1]:1"),
        ] {
            let mut sources = SourceLock::new(Some(peer.parse().unwrap()));
            assert!(!sources.admits(&source(stranger)), "{stranger}");
            assert!(sources.admits(&source(friend)), "{friend}");
            assert!(!sources.admits(&source(stranger)), "{stranger}");
        }
    }
}
