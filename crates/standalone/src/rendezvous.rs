//! Proves that the client receives at the address its datagrams come from, before anything is sent there.
//!
//! The receiver hands out a random token over the control channel. The client sends it from its data socket to the
//! receiver's, which opens what translates or filters addresses on the way, until the receiver sends it back. Nothing
//! is sent to an address other than that of the control channel's peer, and no more than came from there.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::message::TOKEN_BYTES;

const MAGIC: [u8; 4] = *b"tbrv";
const DATAGRAM_BYTES: usize = MAGIC.len() + TOKEN_BYTES;
const AGAIN: Duration = Duration::from_millis(100);

fn datagram(token: &[u8; TOKEN_BYTES]) -> [u8; DATAGRAM_BYTES] {
    let mut bytes = [0; DATAGRAM_BYTES];
    bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
    bytes[MAGIC.len()..].copy_from_slice(token);
    bytes
}

/// The receiver's end of one flow.
pub(crate) struct Meeting {
    socket: UdpSocket,
    peer: IpAddr,
    expected: [u8; DATAGRAM_BYTES],
    met: Option<SocketAddr>,
}

impl Meeting {
    /// Waits at `address` for who has the token and comes from `peer`.
    pub fn open(address: SocketAddr, peer: IpAddr, token: &[u8; TOKEN_BYTES]) -> io::Result<Self> {
        let socket = bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            peer,
            expected: datagram(token),
            met: None,
        })
    }

    pub fn port(&self) -> io::Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }

    /// Looks for the token, sends it back each time it comes, and tells where from; none until it came.
    pub fn look(&mut self) -> Option<SocketAddr> {
        let mut bytes = [0; DATAGRAM_BYTES + 1];
        // Strangers must not keep the session from its other duties.
        for _ in 0..64 {
            let Ok((length, source)) = self.socket.recv_from(&mut bytes) else {
                break;
            };
            if source.ip() == self.peer && bytes[..length] == self.expected {
                self.met = Some(source);
                // Lost ones are asked for again.
                let _ = self.socket.send_to(&self.expected, source);
            }
        }
        self.met
    }
}

/// The client's end: a socket from which the receiver at `receiver` can be reached. Returns its local address.
pub(crate) fn meet(
    local: SocketAddr,
    receiver: SocketAddr,
    token: &[u8; TOKEN_BYTES],
    until: Instant,
    mut is_stopped: impl FnMut() -> bool,
) -> io::Result<SocketAddr> {
    let socket = bind(local)?;
    socket.connect(receiver)?;
    socket.set_read_timeout(Some(AGAIN))?;
    let expected = datagram(token);
    let mut bytes = [0; DATAGRAM_BYTES + 1];
    while Instant::now() < until && !is_stopped() {
        // A refusal is news of an earlier datagram, and the next may fare better.
        let _ = socket.send(&expected);
        match socket.recv(&mut bytes) {
            Ok(length) if bytes[..length] == expected => return socket.local_addr(),
            Ok(_) => {}
            Err(failure) if failure.kind() == io::ErrorKind::ConnectionRefused => {
                std::thread::sleep(AGAIN);
            }
            Err(_) => {}
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::thread;

    use super::*;

    const TOKEN: [u8; TOKEN_BYTES] = [7; TOKEN_BYTES];

    fn loopback(port: u16) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, port).into()
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[test]
    fn the_token_brings_both_ends_together() {
        let mut meeting = Meeting::open(loopback(0), Ipv4Addr::LOCALHOST.into(), &TOKEN).unwrap();
        let there = loopback(meeting.port().unwrap());
        let client =
            thread::spawn(move || meet(loopback(0), there, &TOKEN, soon(), || false).unwrap());
        while !client.is_finished() {
            meeting.look();
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(meeting.look(), Some(client.join().unwrap()));
    }

    #[test]
    fn a_wrong_token_or_another_address_gets_no_answer() {
        let elsewhere = IpAddr::from([127, 0, 0, 9]);
        for (peer, token) in [
            (IpAddr::from(Ipv4Addr::LOCALHOST), [8; TOKEN_BYTES]),
            (elsewhere, TOKEN),
        ] {
            let mut meeting = Meeting::open(loopback(0), peer, &TOKEN).unwrap();
            let stranger = bind(loopback(0)).unwrap();
            stranger
                .send_to(&datagram(&token), loopback(meeting.port().unwrap()))
                .unwrap();
            thread::sleep(Duration::from_millis(20));
            assert_eq!(meeting.look(), None);
            stranger.set_nonblocking(true).unwrap();
            assert!(stranger.recv(&mut [0; 64]).is_err());
        }
    }
}
