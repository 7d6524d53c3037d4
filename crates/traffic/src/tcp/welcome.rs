//! Tells the streams of a job from strangers, who may come in any number and say anything or nothing.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use socket2::Socket;

use crate::tcp::flow::Stream;

const MAGIC: [u8; 4] = *b"tbtc";
pub(super) const HELLO_BYTES: usize = 14;

/// How long a connection may take for its hello.
const HELLO_TIMEOUT: Duration = Duration::from_millis(500);

/// The most connections whose hello is awaited at once; the oldest gives way to one more.
const MOST_GUESTS: usize = 256;

/// What introduces stream `index` of a job.
pub(super) fn hello(session: u64, index: u16) -> [u8; HELLO_BYTES] {
    let mut bytes = [0; HELLO_BYTES];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..12].copy_from_slice(&session.to_be_bytes());
    bytes[12..].copy_from_slice(&index.to_be_bytes());
    bytes
}

/// Which stream of the job `session` a hello introduces; none for a stranger's.
fn introduced(hello: [u8; HELLO_BYTES], session: u64) -> Option<usize> {
    let [m0, m1, m2, m3, s0, s1, s2, s3, s4, s5, s6, s7, i0, i1] = hello;
    let known = [m0, m1, m2, m3] == MAGIC
        && u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]) == session;
    known.then(|| usize::from(u16::from_be_bytes([i0, i1])))
}

/// The streams of a job as they come in.
pub(super) struct Reception {
    session: u64,
    places: Vec<Option<Stream>>,
    guests: Vec<Guest>,
    /// Connections that were turned away.
    pub foreign: u64,
}

/// A connection that has not introduced itself.
struct Guest {
    stream: Stream,
    hello: [u8; HELLO_BYTES],
    read: usize,
    since: Instant,
}

impl Reception {
    pub fn new(session: u64, streams: u16) -> Self {
        Self {
            session,
            places: (0..streams).map(|_| None).collect(),
            guests: Vec::new(),
            foreign: 0,
        }
    }

    pub fn is_complete(&self) -> bool {
        self.places.iter().all(Option::is_some)
    }

    pub fn connected(&self) -> usize {
        self.places.iter().flatten().count()
    }

    pub fn guests(&self) -> impl Iterator<Item = &Socket> {
        self.guests.iter().map(|guest| &guest.stream.socket)
    }

    /// Takes in a connection that does not block.
    pub fn admit(&mut self, socket: Socket, peer: SocketAddr) {
        if self.guests.len() == MOST_GUESTS {
            self.guests.remove(0);
            self.foreign += 1;
        }
        self.guests.push(Guest {
            stream: Stream { socket, peer },
            hello: [0; HELLO_BYTES],
            read: 0,
            since: Instant::now(),
        });
    }

    /// Hears what the guests have to say; gives a place to those of the job and turns the others away.
    pub fn listen(&mut self) {
        for mut guest in std::mem::take(&mut self.guests) {
            match guest.hear() {
                Heard::Nothing => self.guests.push(guest),
                Heard::Hello if self.seat(guest).is_some() => {}
                Heard::Hello | Heard::Stranger => self.foreign += 1,
            }
        }
    }

    /// Answers a hello of this job and puts the stream in its place; none for a stranger, or where the place is taken.
    fn seat(&mut self, guest: Guest) -> Option<()> {
        let index = introduced(guest.hello, self.session)?;
        let place = self.places.get_mut(index).filter(|place| place.is_none())?;
        let stream = guest.stream;
        (&stream.socket).write_all(&guest.hello).ok()?;
        stream.socket.set_nonblocking(false).ok()?;
        *place = Some(stream);
        Some(())
    }

    /// All streams in their order, once complete.
    pub fn streams(self) -> Vec<Stream> {
        self.places.into_iter().flatten().collect()
    }
}

enum Heard {
    Hello,
    Nothing,
    Stranger,
}

impl Guest {
    /// Reads no more than the hello: what follows it belongs to the stream.
    fn hear(&mut self) -> Heard {
        match (&self.stream.socket).read(&mut self.hello[self.read..]) {
            Ok(0) => return Heard::Stranger,
            Ok(count) => self.read += count,
            Err(failure)
                if matches!(
                    failure.kind(),
                    ErrorKind::WouldBlock | ErrorKind::Interrupted
                ) => {}
            Err(_) => return Heard::Stranger,
        }
        if self.read == HELLO_BYTES {
            Heard::Hello
        } else if self.since.elapsed() > HELLO_TIMEOUT {
            Heard::Stranger
        } else {
            Heard::Nothing
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_hello_introduces_its_stream_to_its_own_job_alone(session: u64, other: u64, index: u16) {
            let hello = hello(session, index);
            prop_assert_eq!(introduced(hello, session), Some(usize::from(index)));
            prop_assert_eq!(introduced(hello, other).is_some(), other == session);
        }

        #[test]
        fn whatever_differs_in_one_bit_of_a_secret_is_strange(session: u64, index: u16, bit in 0_u32..96) {
            let mut hello = hello(session, index);
            hello[(bit / 8) as usize] ^= 1 << (bit % 8);
            prop_assert_eq!(introduced(hello, session), None);
        }
    }
}
