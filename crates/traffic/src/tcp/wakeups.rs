//! Spares a receiver from being woken for every segment, which would cost it and the sender more than the segment does.

use socket2::Socket;

use crate::socket::set_option;

/// How often a busy receiver should be woken, ns: what it reads is known to be that old at most.
const INTERVAL: i64 = 500_000;

/// How often the amount to wait for is adapted to the rate, ns.
const PERIOD: i64 = 20_000_000;

/// The most to wait for: what is read must still be in the processor's cache.
const MOST_BYTES: i64 = 16 * 1024;

/// Sets SO_RCVLOWAT to what arrives in [`INTERVAL`] at the rate of the last [`PERIOD`].
pub(super) struct Wakeups<'a> {
    socket: &'a Socket,
    since: i64,
    bytes: i64,
}

impl<'a> Wakeups<'a> {
    pub fn new(socket: &'a Socket) -> Self {
        Self {
            socket,
            since: 0,
            bytes: 0,
        }
    }

    /// Takes note of `bytes` read at `now`, ns.
    pub fn read(&mut self, now: i64, bytes: usize) {
        self.bytes += bytes as i64;
        if now - self.since < PERIOD {
            return;
        }
        let awaited = (self.bytes * INTERVAL / (now - self.since)).clamp(1, MOST_BYTES);
        // Without it the receiver is only woken more often.
        let _ = set_option(
            self.socket,
            libc::SOL_SOCKET,
            libc::SO_RCVLOWAT,
            awaited as libc::c_int,
        );
        (self.since, self.bytes) = (now, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::socket::option;

    #[test]
    fn a_receiver_waits_for_what_arrives_in_half_a_millisecond() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = Socket::from(stream);
        let awaited = || option::<1>(&socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT).unwrap()[0];
        let mut wakeups = Wakeups::new(&socket);
        wakeups.read(PERIOD - 1, 200_000);
        assert_eq!(awaited(), 1, "before the rate is known");
        wakeups.read(PERIOD, 200_000);
        assert_eq!(awaited(), 10_000);
        wakeups.read(2 * PERIOD, 40_000_000);
        assert_eq!(i64::from(awaited()), MOST_BYTES);
        wakeups.read(3 * PERIOD, 0);
        assert_eq!(awaited(), 1);
    }
}
