//! Names the protocol of an Ethernet frame and finds where its payload starts.

/// What a frame carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Protocol {
    network: Network,
    /// IP protocol number, for IP packets.
    transport: Option<u8>,
    /// The lower of both ports, which is the service's for every protocol of interest.
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Network {
    Ipv4,
    Ipv6,
    Arp,
    Other(u16),
    Truncated,
}

const ETHERNET_HEADER: usize = 14;

impl Protocol {
    /// The protocol of an Ethernet frame, and the offset of the innermost payload that it knows.
    pub fn of(frame: &[u8]) -> (Self, usize) {
        let Some(kind) = word(frame, 12) else {
            return (Self::network(Network::Truncated), frame.len());
        };
        match kind {
            0x0800 => ipv4(frame),
            0x86dd => ipv6(frame),
            0x0806 => (Self::network(Network::Arp), ETHERNET_HEADER),
            other => (Self::network(Network::Other(other)), ETHERNET_HEADER),
        }
    }

    fn network(network: Network) -> Self {
        Self {
            network,
            transport: None,
            port: None,
        }
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.network {
            Network::Ipv4 => write!(formatter, "ipv4")?,
            Network::Ipv6 => write!(formatter, "ipv6")?,
            Network::Arp => write!(formatter, "arp")?,
            Network::Other(kind) => write!(formatter, "ethertype {kind:#06x}")?,
            Network::Truncated => write!(formatter, "truncated")?,
        }
        if let Some(transport) = self.transport {
            match transport_name(transport) {
                Some(name) => write!(formatter, " {name}")?,
                None => write!(formatter, " protocol {transport}")?,
            }
        }
        match self.port {
            Some(port) => write!(formatter, " {port}"),
            None => Ok(()),
        }
    }
}

fn ipv4(frame: &[u8]) -> (Protocol, usize) {
    let truncated = (Protocol::network(Network::Truncated), frame.len());
    let (Some(first), Some(transport), Some(fragment)) =
        (byte(frame, 14), byte(frame, 23), word(frame, 20))
    else {
        return truncated;
    };
    let offset = ETHERNET_HEADER + usize::from(first & 0x0f) * 4;
    if offset > frame.len() {
        return truncated;
    }
    let is_later_fragment = fragment & 0x1fff != 0;
    transport_of(frame, Network::Ipv4, transport, offset, is_later_fragment)
}

fn ipv6(frame: &[u8]) -> (Protocol, usize) {
    const FRAGMENT: u8 = 44;
    let (Some(mut next), mut offset) = (byte(frame, 20), ETHERNET_HEADER + 40) else {
        return (Protocol::network(Network::Truncated), frame.len());
    };
    let mut is_later_fragment = false;
    // Hop-by-hop, routing, fragment and destination options may precede the transport (RFC 8200).
    while matches!(next, 0 | 43 | FRAGMENT | 60) && !is_later_fragment {
        let (Some(following), Some(length)) = (byte(frame, offset), byte(frame, offset + 1)) else {
            return (Protocol::network(Network::Truncated), frame.len());
        };
        let is_fragment = next == FRAGMENT;
        is_later_fragment =
            is_fragment && word(frame, offset + 2).is_some_and(|field| field & 0xfff8 != 0);
        offset += if is_fragment {
            8
        } else {
            8 + usize::from(length) * 8
        };
        next = following;
    }
    transport_of(
        frame,
        Network::Ipv6,
        next,
        offset.min(frame.len()),
        is_later_fragment,
    )
}

fn transport_of(
    frame: &[u8],
    network: Network,
    transport: u8,
    offset: usize,
    is_later_fragment: bool,
) -> (Protocol, usize) {
    let ports = word(frame, offset).zip(word(frame, offset + 2));
    let port = match (transport, ports) {
        (6 | 17, Some((source, destination))) if !is_later_fragment => {
            Some(source.min(destination))
        }
        _ => None,
    };
    let header = match transport {
        _ if is_later_fragment => 0,
        6 => usize::from(byte(frame, offset + 12).unwrap_or(0) >> 4) * 4,
        17 | 50 => 8,
        _ => 0,
    };
    let protocol = Protocol {
        network,
        transport: Some(transport),
        port,
    };
    (protocol, (offset + header).min(frame.len()))
}

fn transport_name(number: u8) -> Option<&'static str> {
    Some(match number {
        1 => "icmp",
        4 => "ipip",
        6 => "tcp",
        17 => "udp",
        41 => "ip6",
        47 => "gre",
        50 => "esp",
        51 => "ah",
        58 => "icmpv6",
        108 => "ipcomp",
        115 => "l2tp",
        _ => return None,
    })
}

fn byte(frame: &[u8], offset: usize) -> Option<u8> {
    frame.get(offset).copied()
}

fn word(frame: &[u8], offset: usize) -> Option<u16> {
    Some(u16::from_be_bytes([
        *frame.get(offset)?,
        *frame.get(offset + 1)?,
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: u16, rest: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend(kind.to_be_bytes());
        frame.extend(rest);
        frame
    }

    fn ipv4_packet(transport: u8, fragment: u16, payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0];
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, transport, 0, 0]);
        packet.extend([0; 8]);
        packet.extend(payload);
        frame(0x0800, &packet)
    }

    #[test]
    fn the_service_port_names_a_udp_flow_in_both_directions() {
        let there = ipv4_packet(17, 0, &[0xc0, 0, 0x04, 0xaa, 0, 0, 0, 0, b'x']);
        let back = ipv4_packet(17, 0, &[0x04, 0xaa, 0xc0, 0, 0, 0, 0, 0, b'x']);
        assert_eq!(Protocol::of(&there).0.to_string(), "ipv4 udp 1194");
        assert_eq!(Protocol::of(&there).0, Protocol::of(&back).0);
        assert_eq!(Protocol::of(&there).1, 14 + 20 + 8);
    }

    #[test]
    fn a_later_fragment_has_no_ports() {
        let later = ipv4_packet(17, 0x00b9, &[1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(Protocol::of(&later).0.to_string(), "ipv4 udp");
    }

    #[test]
    fn esp_in_ipv6_behind_options_is_found() {
        let mut packet = vec![0x60, 0, 0, 0, 0, 0, 60, 64];
        packet.extend([0; 32]);
        packet.extend([50, 0, 0, 0, 0, 0, 0, 0]);
        packet.extend([0; 12]);
        assert_eq!(
            Protocol::of(&frame(0x86dd, &packet)).0.to_string(),
            "ipv6 esp"
        );
    }

    #[test]
    fn unknown_protocols_keep_their_numbers() {
        assert_eq!(
            Protocol::of(&ipv4_packet(253, 0, &[])).0.to_string(),
            "ipv4 protocol 253"
        );
        assert_eq!(
            Protocol::of(&frame(0x88e5, &[])).0.to_string(),
            "ethertype 0x88e5"
        );
        assert_eq!(Protocol::of(&[1, 2, 3]).0.to_string(), "truncated");
    }

    proptest! {
        #[test]
        fn any_frame_has_a_name_and_a_payload_inside_it(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let (protocol, payload) = Protocol::of(&bytes);
            prop_assert!(!protocol.to_string().is_empty());
            prop_assert!(payload <= bytes.len());
        }
    }
}
