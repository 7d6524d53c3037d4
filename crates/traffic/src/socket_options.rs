//! Sets a job's options on its socket.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use socket2::{Socket, Type};

use crate::error::TrafficError;
use crate::job::SocketOptions;
use crate::socket::{Buffer, option, set_buffer, set_option};

/// The low bits of the traffic class, which belong to congestion notification (RFC 3168).
const ECN_BITS: libc::c_int = 0b11;

const HIGHEST_DSCP: u8 = 63;

impl SocketOptions {
    /// Says what is wrong with them for a socket that sends to `destination`.
    pub(crate) fn validate(&self, destination: SocketAddr) -> Result<(), TrafficError> {
        let invalid = |text: String| Err(TrafficError::Invalid(text));
        if let Some(source) = self.source
            && source.is_ipv4() != destination.is_ipv4()
        {
            return invalid(format!(
                "the source address {source} and the destination {destination} are of different IP versions"
            ));
        }
        if let Some(dscp) = self.dscp
            && dscp > HIGHEST_DSCP
        {
            return invalid(format!("a DSCP is 0 to {HIGHEST_DSCP}, not {dscp}"));
        }
        if self.ttl == Some(0) {
            return invalid("a time to live is 1 to 255, not 0".into());
        }
        if self.buffer == Some(0) {
            return invalid("a socket buffer has at least 1 byte".into());
        }
        Ok(())
    }

    /// The same for a socket that listens on `bind`.
    pub(crate) fn validate_listener(&self, bind: SocketAddr) -> Result<(), TrafficError> {
        if self.source.is_some() || self.port.is_some() {
            return Err(TrafficError::Invalid(
                "a listener's address and port are given by its bind, not by its socket options"
                    .into(),
            ));
        }
        self.validate(bind)
    }

    /// Sets them all on a fresh socket for traffic with `peer`, or for listening on it, and binds the socket to the
    /// source where there is one. On an IPv6 socket they hold for IPv4-mapped addresses too.
    pub(crate) fn apply(&self, socket: &Socket, peer: SocketAddr) -> Result<(), TrafficError> {
        let is_raw = socket
            .r#type()
            .map_err(TrafficError::io("read the type of a socket"))?
            == Type::RAW;
        let families: &[Family] = match peer {
            SocketAddr::V4(_) => &[IPV4],
            // A raw one has no IPv4-mapped addresses, and refuses what is of IPv4.
            SocketAddr::V6(_) if is_raw => &[IPV6],
            SocketAddr::V6(_) => &[IPV4, IPV6],
        };
        for family in families {
            self.apply_family(socket, family)?;
        }
        if let Some(bytes) = self.buffer {
            set_buffer(socket, Buffer::Send, bytes as usize)
                .map_err(TrafficError::io("set the send buffer"))?;
            set_buffer(socket, Buffer::Receive, bytes as usize)
                .map_err(TrafficError::io("set the receive buffer"))?;
        }
        self.bind_source(socket, peer)
    }

    fn apply_family(&self, socket: &Socket, family: &Family) -> Result<(), TrafficError> {
        let set = |name, value| set_option(socket, family.level, name, value);
        if let Some(dscp) = self.dscp {
            option(socket, family.level, family.traffic_class)
                .and_then(|[class]: [u32; 1]| {
                    let ecn = class as libc::c_int & ECN_BITS;
                    set(family.traffic_class, libc::c_int::from(dscp) << 2 | ecn)
                })
                .map_err(TrafficError::io(format!("send with DSCP {dscp}")))?;
        }
        if let Some(ttl) = self.ttl {
            set(family.hops, ttl.into()).map_err(TrafficError::io(format!(
                "send with a time to live of {ttl}"
            )))?;
        }
        if let Some(dont_fragment) = self.dont_fragment {
            let discovery = if dont_fragment {
                libc::IP_PMTUDISC_DO
            } else {
                libc::IP_PMTUDISC_DONT
            };
            set(family.path_mtu_discovery, discovery)
                .and_then(|()| {
                    family
                        .dont_fragment
                        .map_or(Ok(()), |name| set(name, dont_fragment.into()))
                })
                .map_err(TrafficError::io("choose whether packets may be fragmented"))?;
        }
        Ok(())
    }

    fn bind_source(&self, socket: &Socket, peer: SocketAddr) -> Result<(), TrafficError> {
        if self.source.is_none() && self.port.is_none() {
            return Ok(());
        }
        let any: IpAddr = match peer {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let source = SocketAddr::new(self.source.unwrap_or(any), self.port.unwrap_or(0));
        socket
            .bind(&source.into())
            .map_err(TrafficError::io(format!("send from {source}")))
    }
}

/// The names of one IP version's options.
struct Family {
    level: libc::c_int,
    traffic_class: libc::c_int,
    hops: libc::c_int,
    path_mtu_discovery: libc::c_int,
    dont_fragment: Option<libc::c_int>,
}

const IPV4: Family = Family {
    level: libc::IPPROTO_IP,
    traffic_class: libc::IP_TOS,
    hops: libc::IP_TTL,
    path_mtu_discovery: libc::IP_MTU_DISCOVER,
    dont_fragment: None,
};

const IPV6: Family = Family {
    level: libc::IPPROTO_IPV6,
    traffic_class: libc::IPV6_TCLASS,
    hops: libc::IPV6_UNICAST_HOPS,
    path_mtu_discovery: libc::IPV6_MTU_DISCOVER,
    dont_fragment: Some(libc::IPV6_DONTFRAG),
};

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsRawFd;
    use std::time::Duration;

    use socket2::Domain;

    use super::*;
    use crate::socket::granted_buffer;

    const EXPEDITED: SocketOptions = SocketOptions {
        source: None,
        port: None,
        dscp: Some(46),
        ttl: Some(7),
        dont_fragment: None,
        buffer: None,
    };

    fn loopbacks() -> [SocketAddr; 2] {
        [
            (Ipv4Addr::LOCALHOST, 0).into(),
            (Ipv6Addr::LOCALHOST, 0).into(),
        ]
    }

    fn datagram_socket(options: &SocketOptions, peer: SocketAddr) -> Socket {
        let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, None).unwrap();
        options.apply(&socket, peer).unwrap();
        socket
    }

    /// Traffic class and hops to live of the next packet.
    fn read_packet(socket: &UdpSocket, is_ipv4: bool) -> (i32, i32) {
        let mut payload = [0_u8; 64];
        let mut control = [0_u64; 32];
        let mut vector = libc::iovec {
            iov_base: payload.as_mut_ptr().cast(),
            iov_len: payload.len(),
        };
        // SAFETY: null pointers and zero lengths are a valid message without any parts.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut vector;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control) as _;
        // SAFETY: the message points to live buffers of the lengths it tells.
        let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
        assert!(length >= 0, "{}", std::io::Error::last_os_error());
        let (mut class, mut hops) = (-1, -1);
        // SAFETY: the kernel filled in the message, and its control buffer lives.
        let mut next = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
        // SAFETY: as above; the macros return null or a whole and aligned message within the buffer.
        while let Some(header) = unsafe { next.as_ref() } {
            // SAFETY: as above; IP_TOS has one byte of data and the others an integer.
            let (byte, integer) = unsafe {
                let data = libc::CMSG_DATA(next);
                let has_integer = header.cmsg_len >= libc::CMSG_LEN(4) as usize;
                (
                    i32::from(*data),
                    has_integer.then(|| data.cast::<i32>().read_unaligned()),
                )
            };
            match (is_ipv4, header.cmsg_type) {
                (true, libc::IP_TOS) => class = byte,
                (true, libc::IP_TTL) | (false, libc::IPV6_HOPLIMIT) => hops = integer.unwrap(),
                (false, libc::IPV6_TCLASS) => class = integer.unwrap(),
                other => panic!("{other:?}"),
            }
            // SAFETY: as above.
            next = unsafe { libc::CMSG_NXTHDR(&raw const message, next) };
        }
        (class, hops)
    }

    #[test]
    fn packets_carry_the_class_and_the_hops_and_keep_their_ecn_bits() {
        for address in loopbacks() {
            let receiver = UdpSocket::bind(address).unwrap();
            receiver
                .set_read_timeout(Some(Duration::from_secs(10)))
                .unwrap();
            let reported = Socket::from(receiver.try_clone().unwrap());
            let (level, names) = if address.is_ipv4() {
                (libc::IPPROTO_IP, [libc::IP_RECVTOS, libc::IP_RECVTTL])
            } else {
                (
                    libc::IPPROTO_IPV6,
                    [libc::IPV6_RECVTCLASS, libc::IPV6_RECVHOPLIMIT],
                )
            };
            for name in names {
                set_option(&reported, level, name, 1).unwrap();
            }
            let destination = receiver.local_addr().unwrap();
            let sender = Socket::new(Domain::for_address(address), Type::DGRAM, None).unwrap();
            let family = if address.is_ipv4() { IPV4 } else { IPV6 };
            set_option(&sender, level, family.traffic_class, 0b10).unwrap();
            EXPEDITED.apply(&sender, destination).unwrap();
            sender.send_to(b"datagram", &destination.into()).unwrap();
            let seen = read_packet(&receiver, address.is_ipv4());
            assert_eq!(seen, (46 << 2 | 0b10, 7), "{address}");
        }
    }

    #[test]
    fn tcp_takes_them_too() {
        for address in loopbacks() {
            let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).unwrap();
            EXPEDITED.apply(&socket, address).unwrap();
            let family = if address.is_ipv4() { IPV4 } else { IPV6 };
            let read = |name| -> [u32; 1] { option(&socket, family.level, name).unwrap() };
            assert_eq!(read(family.traffic_class), [46 << 2]);
            assert_eq!(read(family.hops), [7]);
        }
    }

    #[test]
    fn fragmentation_is_chosen() {
        for address in loopbacks() {
            let family = if address.is_ipv4() { IPV4 } else { IPV6 };
            let discovery = |dont_fragment| -> [u32; 1] {
                let socket = datagram_socket(&fragmenting(dont_fragment), address);
                option(&socket, family.level, family.path_mtu_discovery).unwrap()
            };
            assert_eq!(discovery(Some(true)), [libc::IP_PMTUDISC_DO as u32]);
            assert_eq!(discovery(Some(false)), [libc::IP_PMTUDISC_DONT as u32]);
        }
    }

    #[test]
    fn what_must_not_be_fragmented_is_refused_above_the_mtu() {
        let receiver = UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).unwrap();
        let destination = receiver.local_addr().unwrap();
        let loopback_mtu = 65_536;
        let largest = loopback_mtu - 48;
        let is_sent = |dont_fragment, bytes: usize| {
            let socket = datagram_socket(&fragmenting(dont_fragment), destination);
            socket.send_to(&vec![0; bytes], &destination.into()).is_ok()
        };
        assert!(is_sent(Some(true), largest));
        assert!(!is_sent(Some(true), largest + 1));
        assert!(is_sent(Some(false), largest + 1));
        assert!(is_sent(None, largest + 1));
    }

    fn fragmenting(dont_fragment: Option<bool>) -> SocketOptions {
        SocketOptions {
            dont_fragment,
            ..SocketOptions::default()
        }
    }

    #[test]
    fn the_source_is_bound() {
        for address in loopbacks() {
            let free = UdpSocket::bind(address)
                .unwrap()
                .local_addr()
                .unwrap()
                .port();
            let options = SocketOptions {
                source: Some(address.ip()),
                port: Some(free),
                ..SocketOptions::default()
            };
            let bound = datagram_socket(&options, address).local_addr().unwrap();
            assert_eq!(bound.as_socket(), Some(SocketAddr::new(address.ip(), free)));
        }
    }

    #[test]
    fn both_buffers_are_granted() {
        let options = SocketOptions {
            buffer: Some(50_000),
            ..SocketOptions::default()
        };
        let socket = datagram_socket(&options, loopbacks()[0]);
        assert_eq!(granted_buffer(&socket, Buffer::Send).unwrap(), 50_000);
        assert_eq!(granted_buffer(&socket, Buffer::Receive).unwrap(), 50_000);
    }

    #[test]
    fn options_that_make_no_sense_are_refused() {
        let [ipv4, ipv6] = loopbacks();
        let none = SocketOptions::default();
        let from_ipv4 = SocketOptions {
            source: Some(ipv4.ip()),
            ..none
        };
        assert!(EXPEDITED.validate(ipv4).is_ok() && from_ipv4.validate(ipv4).is_ok());
        assert!(from_ipv4.validate(ipv6).is_err());
        assert!(from_ipv4.validate_listener(ipv4).is_err());
        let refused = [
            SocketOptions {
                dscp: Some(64),
                ..none
            },
            SocketOptions {
                ttl: Some(0),
                ..none
            },
            SocketOptions {
                buffer: Some(0),
                ..none
            },
        ];
        assert!(
            refused
                .iter()
                .all(|options| options.validate(ipv4).is_err())
        );
    }
}
