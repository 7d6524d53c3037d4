//! Has a SOCKS 5 proxy connect to where a job wants to go (RFC 1928), without authentication.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::Socket;

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const CONNECT: u8 = 1;
const RESERVED: u8 = 0;
const IPV4: u8 = 1;
const DOMAIN_NAME: u8 = 3;
const IPV6: u8 = 4;

/// The shortest time limit: 0 would mean none.
const SHORTEST_LIMIT: Duration = Duration::from_millis(1);

/// Connects to `destination`, or to `proxy` which is asked to connect to it. Each step may take `limit`.
pub(crate) fn connect(
    socket: &Socket,
    destination: SocketAddr,
    proxy: Option<SocketAddr>,
    limit: Duration,
) -> io::Result<()> {
    let Some(proxy) = proxy else {
        return socket.connect_timeout(&destination.into(), limit);
    };
    socket.connect_timeout(&proxy.into(), limit)?;
    ask(socket, destination, limit)
}

/// Asks the proxy that a socket is connected to; leaves `limit` as the socket's limit for reading and writing.
pub(crate) fn ask(socket: &Socket, destination: SocketAddr, limit: Duration) -> io::Result<()> {
    let limit = Some(limit.max(SHORTEST_LIMIT));
    socket.set_read_timeout(limit)?;
    socket.set_write_timeout(limit)?;
    request(socket, destination)
}

/// The dialogue up to where the connection carries the job's own bytes.
fn request(mut proxy: impl Read + Write, destination: SocketAddr) -> io::Result<()> {
    proxy.write_all(&[VERSION, 1, NO_AUTHENTICATION])?;
    let [version, method] = read(&mut proxy)?;
    check_version(version)?;
    if method != NO_AUTHENTICATION {
        return Err(io::Error::other("the proxy wants authentication"));
    }
    proxy.write_all(&connect_request(destination))?;
    let [version, reply, _reserved, kind] = read(&mut proxy)?;
    check_version(version)?;
    if reply != 0 {
        return Err(io::Error::other(format!(
            "the proxy says: {}",
            meaning(reply)
        )));
    }
    skip_address(&mut proxy, kind)
}

fn connect_request(destination: SocketAddr) -> Vec<u8> {
    let mut request = vec![VERSION, CONNECT, RESERVED];
    match destination.ip() {
        IpAddr::V4(address) => {
            request.push(IPV4);
            request.extend(address.octets());
        }
        IpAddr::V6(address) => {
            request.push(IPV6);
            request.extend(address.octets());
        }
    }
    request.extend(destination.port().to_be_bytes());
    request
}

/// Reads past the address and port from which the proxy connected, and not a byte more.
fn skip_address(proxy: &mut impl Read, kind: u8) -> io::Result<()> {
    let address_bytes: u64 = match kind {
        IPV4 => 4,
        IPV6 => 16,
        DOMAIN_NAME => {
            let [length] = read(proxy)?;
            length.into()
        }
        _ => return Err(not_socks()),
    };
    let expected = address_bytes + 2;
    let read = io::copy(&mut proxy.take(expected), &mut io::sink())?;
    if read < expected {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(())
}

fn read<const N: usize>(proxy: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    proxy.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn check_version(version: u8) -> io::Result<()> {
    if version == VERSION {
        Ok(())
    } else {
        Err(not_socks())
    }
}

fn not_socks() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the proxy does not speak SOCKS 5",
    )
}

/// What the replies of RFC 1928, section 6, mean.
fn meaning(reply: u8) -> &'static str {
    match reply {
        1 => "general SOCKS server failure",
        2 => "connection not allowed by ruleset",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "connection refused",
        6 => "TTL expired",
        7 => "command not supported",
        8 => "address type not supported",
        _ => "a reply that RFC 1928 does not know",
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    /// A proxy that says what it says, whatever it is told.
    struct Proxy {
        says: Cursor<Vec<u8>>,
        told: Vec<u8>,
    }

    impl Proxy {
        fn saying(bytes: &[u8]) -> Self {
            Self {
                says: Cursor::new(bytes.to_vec()),
                told: Vec::new(),
            }
        }
    }

    impl Read for &mut Proxy {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.says.read(buffer)
        }
    }

    impl Write for &mut Proxy {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.told.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn ask(says: &[u8], destination: &str) -> (Result<(), String>, Proxy) {
        let mut proxy = Proxy::saying(says);
        let outcome = request(&mut proxy, destination.parse().unwrap());
        (outcome.map_err(|failure| failure.to_string()), proxy)
    }

    #[test]
    fn an_ipv4_destination_is_asked_for_as_the_standard_says() {
        let says = [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0, b'!'];
        let (outcome, proxy) = ask(&says, "10.2.0.10:5201");
        outcome.unwrap();
        assert_eq!(proxy.told, [5, 1, 0, 5, 1, 0, 1, 10, 2, 0, 10, 0x14, 0x51]);
        assert_eq!(proxy.says.position(), 12, "what follows is the job's");
    }

    #[test]
    fn an_ipv6_destination_has_its_sixteen_bytes() {
        let (outcome, proxy) = ask(
            &[&[5, 0, 5, 0, 0, 4][..], &[0; 18]].concat(),
            "[fd00:2::10]:1",
        );
        outcome.unwrap();
        assert_eq!(proxy.told[3..10], [5, 1, 0, 4, 0xfd, 0, 0]);
        assert_eq!(proxy.told.len(), 3 + 4 + 16 + 2);
    }

    #[test]
    fn a_bound_address_may_be_a_name() {
        let says = [5, 0, 5, 0, 0, 3, 2, b'g', b'w', 0, 22];
        assert_eq!(ask(&says, "10.2.0.10:1").0, Ok(()));
    }

    #[test]
    fn a_refusal_is_told_in_the_standards_words() {
        for (says, complaint) in [
            (&[5, 0, 5, 5, 0, 1][..], "connection refused"),
            (&[5, 0, 5, 99, 0, 1], "RFC 1928 does not know"),
            (&[5, 255], "wants authentication"),
            (&[4, 0], "does not speak SOCKS 5"),
            (&[5, 0, 5, 0, 0, 9], "does not speak SOCKS 5"),
        ] {
            let failure = ask(says, "10.2.0.10:1").0.unwrap_err();
            assert!(failure.contains(complaint), "{failure}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_proxy_says_does_no_harm(says: Vec<u8>) {
            let (outcome, proxy) = ask(&says, "10.2.0.10:1");
            if outcome.is_ok() {
                prop_assert!(proxy.says.position() <= says.len() as u64);
            }
        }

        #[test]
        fn a_reply_cut_short_is_no_success(length in 0_usize..12) {
            let says = [5, 0, 5, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            prop_assert!(ask(&says[..length], "10.2.0.10:1").0.is_err());
        }
    }
}
