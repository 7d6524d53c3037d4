//! Datagrams in memory, ready to be handed to the system.

use std::io::{self, IoSlice};
use std::ops::Range;
use std::os::fd::AsRawFd;

use libc::{c_uint, iovec, mmsghdr};
use socket2::Socket;

use crate::content::Material;
use crate::datagram::{Header, LARGEST_PAYLOAD, LONG_HEADER_BYTES};
use crate::udp_send::pacer::Due;

/// The datagrams of one turn, each with its content in place.
pub(super) struct Outbox {
    payloads: Payloads,
    vectors: Vec<[iovec; 2]>,
    messages: Vec<mmsghdr>,
}

enum Payloads {
    Alike(Alike),
    Varied(Varied),
}

impl Outbox {
    /// Room for `most` datagrams; `constant` is the size of all of them where they have one.
    pub fn new(most: usize, constant: Option<u32>, material: &Material) -> Self {
        let payloads = match constant {
            Some(bytes) => Payloads::Alike(Alike::new(most, bytes as usize, material)),
            None => Payloads::Varied(Varied::new(most, material)),
        };
        // SAFETY: null pointers and zero lengths are a valid message without any parts.
        let empty: mmsghdr = unsafe { std::mem::zeroed() };
        let nothing = iovec {
            iov_base: std::ptr::null_mut(),
            iov_len: 0,
        };
        Self {
            payloads,
            vectors: vec![[nothing; 2]; most],
            messages: vec![empty; most],
        }
    }

    /// Takes the next datagrams in the place of the last ones, no more than there is room for.
    pub fn take(&mut self, due: &[Due]) {
        match &mut self.payloads {
            Payloads::Alike(alike) => alike.take(due.len()),
            Payloads::Varied(varied) => varied.take(due),
        }
    }

    /// Writes the header of the datagram at `index`.
    pub fn address(&mut self, index: usize, header: &Header) {
        match &mut self.payloads {
            Payloads::Alike(alike) => header.write(alike.datagram(index)),
            Payloads::Varied(varied) => header.write(varied.header(index)),
        }
    }

    /// Sends one datagram on a connected socket.
    pub fn send_one(&self, socket: &Socket, index: usize) -> io::Result<usize> {
        match &self.payloads {
            Payloads::Alike(alike) => socket.send(alike.together(index..index + 1)),
            Payloads::Varied(varied) => {
                socket.send_vectored(&varied.parts(index).map(IoSlice::new))
            }
        }
        .map(|_| 1)
    }

    /// Sends these datagrams as one packet on a connected socket that cuts it at their size. Only for datagrams of one
    /// size.
    pub fn send_joined(&self, socket: &Socket, range: Range<usize>) -> io::Result<usize> {
        match &self.payloads {
            Payloads::Alike(alike) => {
                let count = range.len();
                socket.send(alike.together(range)).map(|_| count)
            }
            Payloads::Varied(_) => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Sends these datagrams in one call on a connected socket; how many the system took.
    pub fn send_batch(&mut self, socket: &Socket, range: Range<usize>) -> io::Result<usize> {
        let places = self.vectors.iter_mut().zip(&mut self.messages);
        for (index, (vectors, message)) in range.clone().zip(places) {
            message.msg_hdr.msg_iovlen = match &self.payloads {
                Payloads::Alike(alike) => {
                    vectors[0] = vector(alike.together(index..index + 1));
                    1
                }
                Payloads::Varied(varied) => {
                    *vectors = varied.parts(index).map(vector);
                    2
                }
            };
            message.msg_hdr.msg_iov = vectors.as_mut_ptr();
        }
        let count = range.len().min(self.messages.len()) as c_uint;
        // SAFETY: the first `count` messages point to vectors, and those to payloads, that this value owns and that the
        // system only reads.
        let sent =
            unsafe { libc::sendmmsg(socket.as_raw_fd(), self.messages.as_mut_ptr(), count, 0) };
        usize::try_from(sent).map_err(|_| io::Error::last_os_error())
    }
}

fn vector(bytes: &[u8]) -> iovec {
    iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    }
}

/// Datagrams of one size, side by side, sent over and over with new headers. There are so many that their content
/// does not repeat sooner than it must.
struct Alike {
    memory: Vec<u8>,
    bytes: usize,
    first: usize,
    count: usize,
}

impl Alike {
    fn new(most: usize, bytes: usize, material: &Material) -> Self {
        let header_bytes = Header::length(bytes);
        let content_bytes = bytes - header_bytes;
        let slots = most.max(material.period().div_ceil(content_bytes.max(1)));
        let mut memory = vec![0; slots * bytes];
        for (index, datagram) in memory.chunks_exact_mut(bytes).enumerate() {
            material.fill(index * content_bytes, &mut datagram[header_bytes..]);
        }
        Self {
            memory,
            bytes,
            first: 0,
            count: 0,
        }
    }

    fn take(&mut self, count: usize) {
        self.first += self.count;
        self.count = count;
        if (self.first + count) * self.bytes > self.memory.len() {
            self.first = 0;
        }
    }

    fn datagram(&mut self, index: usize) -> &mut [u8] {
        let start = (self.first + index) * self.bytes;
        &mut self.memory[start..start + self.bytes]
    }

    fn together(&self, range: Range<usize>) -> &[u8] {
        let start = (self.first + range.start) * self.bytes;
        &self.memory[start..start + range.len() * self.bytes]
    }
}

/// Datagrams of different sizes: headers of their own, and pieces of content that many datagrams can share, so that no
/// header is left behind in another one's content.
struct Varied {
    headers: Vec<[u8; LONG_HEADER_BYTES]>,
    pieces: Vec<Piece>,
    /// The content, and behind its end as much of it again as the largest datagram may need.
    material: Vec<u8>,
    period: usize,
    position: usize,
}

#[derive(Clone, Copy)]
struct Piece {
    header_bytes: usize,
    start: usize,
    length: usize,
}

impl Varied {
    fn new(most: usize, material: &Material) -> Self {
        let period = material.period();
        let mut memory = vec![0; period + LARGEST_PAYLOAD];
        material.fill(0, &mut memory);
        Self {
            headers: vec![[0; LONG_HEADER_BYTES]; most],
            pieces: Vec::with_capacity(most),
            material: memory,
            period,
            position: 0,
        }
    }

    fn take(&mut self, due: &[Due]) {
        self.pieces.clear();
        for due in due {
            let bytes = due.bytes as usize;
            let header_bytes = Header::length(bytes);
            let piece = Piece {
                header_bytes,
                start: self.position,
                length: bytes - header_bytes,
            };
            self.position = (self.position + piece.length) % self.period;
            self.pieces.push(piece);
        }
    }

    fn header(&mut self, index: usize) -> &mut [u8] {
        &mut self.headers[index][..self.pieces[index].header_bytes]
    }

    fn parts(&self, index: usize) -> [&[u8]; 2] {
        let piece = self.pieces[index];
        [
            &self.headers[index][..piece.header_bytes],
            &self.material[piece.start..piece.start + piece.length],
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::time::Duration;

    use proptest::prelude::*;
    use serde_bytes::ByteBuf;
    use socket2::{Domain, Type};

    use super::*;
    use crate::job::Content;

    fn sockets() -> (Socket, UdpSocket) {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        receiver
            .set_read_timeout(Some(Duration::from_secs(10)))
            .unwrap();
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        socket
            .connect(&receiver.local_addr().unwrap().into())
            .unwrap();
        (socket, receiver)
    }

    fn due(sizes: &[u32]) -> Vec<Due> {
        let due = |(index, bytes): (usize, &u32)| Due {
            intended: index as u64 * 7,
            bytes: *bytes,
        };
        sizes.iter().enumerate().map(due).collect()
    }

    /// What arrives when these datagrams are sent in turns of `most`.
    fn carried(
        content: &Content,
        constant: Option<u32>,
        sizes: &[u32],
        most: usize,
        one_by_one: bool,
    ) -> Vec<Vec<u8>> {
        let (socket, receiver) = sockets();
        let mut outbox = Outbox::new(most, constant, &content.load().unwrap());
        let mut arrived = Vec::new();
        let mut sequence = 0;
        for turn in due(sizes).chunks(most) {
            outbox.take(turn);
            for (index, due) in turn.iter().enumerate() {
                outbox.address(index, &header(sequence, due));
                sequence += 1;
            }
            let mut done = 0;
            while done < turn.len() {
                done += if one_by_one {
                    outbox.send_one(&socket, done).unwrap()
                } else {
                    outbox.send_batch(&socket, done..turn.len()).unwrap()
                };
            }
            for _ in turn {
                let mut buffer = vec![0; 65_536];
                let length = receiver.recv(&mut buffer).unwrap();
                buffer.truncate(length);
                arrived.push(buffer);
            }
        }
        arrived
    }

    fn header(sequence: u32, due: &Due) -> Header {
        Header {
            sequence,
            session: 9,
            intended: due.intended,
            lateness: (due.bytes >= 16).then_some(5),
        }
    }

    fn contents() -> impl Strategy<Value = Content> {
        prop_oneof![
            Just(Content::Zeros),
            Just(Content::Random),
            prop::collection::vec(any::<u8>(), 1..300).prop_map(|data| Content::Pattern {
                data: ByteBuf::from(data)
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn datagrams_of_all_sizes_arrive_with_header_and_content(
            content in contents(), sizes in prop::collection::vec(12_u32..3_000, 1..30), most in 1_usize..16,
            one_by_one: bool,
        ) {
            let arrived = carried(&content, None, &sizes, most, one_by_one);
            let material = content.load().unwrap();
            let mut done = 0;
            for (index, (datagram, due)) in arrived.iter().zip(due(&sizes)).enumerate() {
                prop_assert_eq!(datagram.len() as u32, due.bytes);
                prop_assert_eq!(Header::parse(datagram), Some(header(index as u32, &due)));
                let rest = &datagram[Header::length(datagram.len())..];
                let mut expected = vec![0; rest.len()];
                material.fill(done, &mut expected);
                prop_assert_eq!(rest, expected);
                done += rest.len();
            }
        }

        #[test]
        fn one_size_makes_no_difference_to_what_is_carried(
            content in contents(), bytes in 12_u32..3_000, count in 1_usize..40, most in 1_usize..16, one_by_one: bool,
        ) {
            let sizes = vec![bytes; count];
            let alike = carried(&content, Some(bytes), &sizes, most, one_by_one);
            prop_assert_eq!(alike, carried(&content, None, &sizes, most, one_by_one));
        }
    }

    #[test]
    fn the_content_of_small_datagrams_does_not_repeat_soon() {
        let material = Content::Random.load().unwrap();
        let mut alike = Alike::new(4, 64, &material);
        let mut seen = std::collections::HashSet::new();
        for _ in 0..600 {
            alike.take(4);
            for index in 0..4 {
                assert!(seen.insert(alike.datagram(index)[LONG_HEADER_BYTES..].to_vec()));
            }
        }
    }

    #[test]
    fn joined_datagrams_lie_side_by_side() {
        let (socket, receiver) = sockets();
        let mut outbox = Outbox::new(3, Some(20), &Content::Zeros.load().unwrap());
        let due = due(&[20, 20, 20]);
        outbox.take(&due);
        for (index, due) in due.iter().enumerate() {
            outbox.address(index, &header(index as u32, due));
        }
        assert_eq!(outbox.send_joined(&socket, 1..3).unwrap(), 2);
        let mut buffer = [0; 100];
        assert_eq!(
            receiver.recv(&mut buffer).unwrap(),
            40,
            "nothing cuts them here"
        );
        assert_eq!(Header::parse(&buffer), Some(header(1, &due[1])));
        assert_eq!(Header::parse(&buffer[20..]), Some(header(2, &due[2])));
        let varied = Outbox::new(3, None, &Content::Zeros.load().unwrap());
        assert!(varied.send_joined(&socket, 0..1).is_err());
    }
}
