//! The messages of a TCP stream: each begins with the header of a datagram, with its length in the place of the tag.

use crate::datagram::{HEADER_BYTES, Header, LONG_HEADER_BYTES};

/// How long messages can be, bytes.
pub(super) const MESSAGE_BYTES: std::ops::RangeInclusive<u32> =
    HEADER_BYTES as u32..=u16::MAX as u32;

/// What a message says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Sequence number, modulo 2^32.
    pub sequence: u32,
    /// Length with the header, one of [`MESSAGE_BYTES`].
    pub bytes: u16,
    /// Intended departure, ns since the start of the schedule.
    pub intended: u64,
    /// Departure minus intended departure, ns; none in a message too small for it.
    pub lateness: Option<u32>,
}

impl Message {
    /// Writes the header at the front of a message.
    pub fn write(&self, message: &mut [u8]) {
        let header = Header {
            sequence: self.sequence,
            session: self.bytes,
            intended: self.intended,
            lateness: self.lateness,
        };
        header.write(message);
    }
}

/// The stream is not one of messages: one says that it is shorter than its own header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotAMessage;

/// Finds the messages in a stream, however that is cut into pieces; keeps no more of it than one header.
#[derive(Default)]
pub(super) struct MessageReader {
    front: [u8; LONG_HEADER_BYTES],
    /// How much of the current message was read.
    read: usize,
    /// How long it is; 0 until that is known.
    length: usize,
}

impl MessageReader {
    /// Takes the next piece of the stream and calls `complete` for each message that ends in it.
    pub fn push(
        &mut self,
        mut piece: &[u8],
        mut complete: impl FnMut(Message),
    ) -> Result<(), NotAMessage> {
        while !piece.is_empty() {
            piece = self.advance(piece);
            if self.read == HEADER_BYTES {
                self.length = self.announced_length()?;
            }
            if self.read >= HEADER_BYTES && self.read == self.length {
                complete(self.message());
                self.read = 0;
            }
        }
        Ok(())
    }

    /// Reads up to the end of the header or else of the message; returns what is left of the piece.
    fn advance<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let header = match self.read {
            0..HEADER_BYTES => HEADER_BYTES,
            _ => Header::length(self.length),
        };
        let end = if self.read < header {
            header
        } else {
            self.length
        };
        let (taken, rest) = piece.split_at((end - self.read).min(piece.len()));
        if self.read < header {
            self.front[self.read..self.read + taken.len()].copy_from_slice(taken);
        }
        self.read += taken.len();
        rest
    }

    fn announced_length(&self) -> Result<usize, NotAMessage> {
        let length = usize::from(u16::from_be_bytes([self.front[4], self.front[5]]));
        if length < HEADER_BYTES {
            return Err(NotAMessage);
        }
        Ok(length)
    }

    fn message(&self) -> Message {
        let header = Header::parse(&self.front[..Header::length(self.length)]);
        let header = header.expect("a header was read, because a message is no shorter");
        Message {
            sequence: header.sequence,
            bytes: header.session,
            intended: header.intended,
            lateness: header.lateness,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn messages() -> impl Strategy<Value = Vec<Message>> {
        let message = (any::<u32>(), 12_u16..200, 0_u64..1 << 48, any::<u32>()).prop_map(
            |(sequence, bytes, intended, lateness)| Message {
                sequence,
                bytes,
                intended,
                lateness: (bytes >= 16).then_some(lateness),
            },
        );
        prop::collection::vec(message, 0..20)
    }

    fn encoded(messages: &[Message]) -> Vec<u8> {
        let encode = |message: &Message| {
            let mut bytes = vec![255; message.bytes.into()];
            message.write(&mut bytes);
            bytes
        };
        messages.iter().flat_map(encode).collect()
    }

    /// What a reader finds in a stream that comes in pieces of these lengths, over and over.
    fn found(stream: &[u8], lengths: &[usize]) -> Result<Vec<Message>, NotAMessage> {
        let (mut reader, mut found) = (MessageReader::default(), Vec::new());
        let (mut rest, mut lengths) = (stream, lengths.iter().cycle());
        while !rest.is_empty() {
            let length = lengths.next().map_or(1, |length| *length).min(rest.len());
            let (piece, left) = rest.split_at(length);
            reader.push(piece, |message| found.push(message))?;
            rest = left;
        }
        Ok(found)
    }

    proptest! {
        #[test]
        fn messages_are_found_however_the_stream_is_cut(
            messages in messages(), lengths in prop::collection::vec(1_usize..100, 1..20),
        ) {
            prop_assert_eq!(found(&encoded(&messages), &lengths), Ok(messages));
        }

        #[test]
        fn what_is_cut_off_is_no_message(messages in messages(), missing in 1_usize..12) {
            let stream = encoded(&messages);
            let cut = &stream[..stream.len().saturating_sub(missing)];
            let expected = &messages[..messages.len().saturating_sub(1)];
            prop_assert_eq!(found(cut, &[7]), Ok(expected.to_vec()));
        }

        #[test]
        fn any_bytes_are_read_the_same_in_any_pieces(
            stream: Vec<u8>, lengths in prop::collection::vec(1_usize..100, 1..20),
        ) {
            prop_assert_eq!(found(&stream, &lengths), found(&stream, &[stream.len().max(1)]));
        }
    }

    #[test]
    fn a_length_below_that_of_a_header_is_refused() {
        let mut stream = [0; 12];
        stream[5] = 11;
        assert_eq!(found(&stream, &[1]), Err(NotAMessage));
    }
}
