//! Mutual authentication and encryption of the control channel: the Noise protocol framework, revision 34.
//!
//! With a key the pattern is `NNpsk0`: who does not hold it cannot complete the handshake, and fresh ephemeral keys of
//! both ends make a recorded conversation useless to who replays it. Without a key the pattern is `NN`.

use snow::{Builder, HandshakeState, TransportState};

use crate::frames::{self, LONGEST_FRAME};
use crate::key::Trust;

/// The longest message of either handshake: an ephemeral key and a tag.
pub(crate) const LONGEST_HANDSHAKE: usize = 48;

const PROLOGUE: &[u8] = b"tunnelbench control channel 1";
const WITH_KEY: &str = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s";
const WITHOUT_KEY: &str = "Noise_NN_25519_ChaChaPoly_BLAKE2s";
const TAG_BYTES: usize = 16;
const LAST: u8 = 0;
const MORE: u8 = 1;

/// Bytes that do not belong on the channel.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Violation {
    #[error(
        "the handshake failed: the two ends hold different keys, or one of them runs with --insecure"
    )]
    Handshake,
    #[error("a message was forged, replayed or damaged")]
    Forged,
    #[error("a message is longer than {0} bytes")]
    TooLong(usize),
}

/// One end of a handshake of two messages: the initiator writes first.
pub(crate) struct Handshake(HandshakeState);

impl Handshake {
    pub fn initiate(trust: &Trust) -> Self {
        Self(
            builder(trust)
                .build_initiator()
                .expect("the pattern needs no key but those given"),
        )
    }

    pub fn respond(trust: &Trust) -> Self {
        Self(
            builder(trust)
                .build_responder()
                .expect("the pattern needs no key but those given"),
        )
    }

    pub fn write(&mut self) -> Result<Vec<u8>, Violation> {
        let mut message = vec![0; LONGEST_HANDSHAKE];
        let length = self
            .0
            .write_message(&[], &mut message)
            .map_err(|_| Violation::Handshake)?;
        message.truncate(length);
        Ok(message)
    }

    pub fn read(&mut self, message: &[u8]) -> Result<(), Violation> {
        let mut payload = [0; LONGEST_HANDSHAKE];
        match self.0.read_message(message, &mut payload) {
            Ok(0) => Ok(()),
            _ => Err(Violation::Handshake),
        }
    }

    /// Ready for messages of up to `longest` bytes from the other end.
    pub fn finish(self, longest: usize) -> Result<Sealed, Violation> {
        let transport = self
            .0
            .into_transport_mode()
            .map_err(|_| Violation::Handshake)?;
        Ok(Sealed {
            transport,
            longest,
            assembled: Vec::new(),
        })
    }
}

fn builder(trust: &Trust) -> Builder<'_> {
    let pattern = match trust {
        Trust::Key(_) => WITH_KEY,
        Trust::Anybody => WITHOUT_KEY,
    };
    let builder = Builder::new(
        pattern
            .parse()
            .expect("the pattern is one of the library's"),
    );
    let builder = builder.prologue(PROLOGUE).expect("it is set once");
    match trust {
        Trust::Key(key) => builder
            .psk(0, key.bytes())
            .expect("it is set once, where the pattern has it"),
        Trust::Anybody => builder,
    }
}

/// An established channel: seals messages into frames and opens frames into messages.
pub(crate) struct Sealed {
    transport: TransportState,
    longest: usize,
    assembled: Vec<u8>,
}

impl Sealed {
    /// The frames of one message, as they go over the wire.
    pub fn seal(&mut self, message: &[u8]) -> Result<Vec<u8>, Violation> {
        let mut wire = Vec::with_capacity(message.len() + 64);
        let mut sealed = vec![0; LONGEST_FRAME];
        let mut rest = message;
        loop {
            let (part, remaining) = rest.split_at(rest.len().min(LONGEST_FRAME - TAG_BYTES - 1));
            rest = remaining;
            let mut plain = Vec::with_capacity(1 + part.len());
            plain.push(if rest.is_empty() { LAST } else { MORE });
            plain.extend_from_slice(part);
            let length = self
                .transport
                .write_message(&plain, &mut sealed)
                .map_err(|_| Violation::Forged)?;
            frames::encode(&sealed[..length], &mut wire);
            if rest.is_empty() {
                return Ok(wire);
            }
        }
    }

    /// Takes the contents of the next frame; a message where that was its last.
    pub fn open(&mut self, frame: &[u8]) -> Result<Option<Vec<u8>>, Violation> {
        let mut plain = vec![0; frame.len()];
        let length = self
            .transport
            .read_message(frame, &mut plain)
            .map_err(|_| Violation::Forged)?;
        let Some((mark, part)) = plain[..length].split_first() else {
            return Err(Violation::Forged);
        };
        if self.assembled.len() + part.len() > self.longest {
            return Err(Violation::TooLong(self.longest));
        }
        self.assembled.extend_from_slice(part);
        match *mark {
            LAST => Ok(Some(std::mem::take(&mut self.assembled))),
            // A part without contents could be sent for ever.
            MORE if !part.is_empty() => Ok(None),
            _ => Err(Violation::Forged),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frames::Decoder;
    use crate::key::Key;

    fn established(initiator: &Trust, responder: &Trust) -> Result<(Sealed, Sealed), Violation> {
        let (mut left, mut right) = (
            Handshake::initiate(initiator),
            Handshake::respond(responder),
        );
        right.read(&left.write()?)?;
        left.read(&right.write()?)?;
        Ok((left.finish(200_000)?, right.finish(200_000)?))
    }

    fn with_key() -> Trust {
        Trust::Key(Key::generate().unwrap())
    }

    fn frames(wire: &[u8]) -> Vec<Vec<u8>> {
        let mut decoder = Decoder::default();
        decoder.feed(wire);
        std::iter::from_fn(|| decoder.next(LONGEST_FRAME).unwrap()).collect()
    }

    #[test]
    fn only_who_has_the_same_key_gets_through() {
        let trust = with_key();
        assert!(established(&trust, &trust).is_ok());
        assert!(established(&Trust::Anybody, &Trust::Anybody).is_ok());
        for other in [with_key(), Trust::Anybody] {
            assert_eq!(
                established(&trust, &other).err(),
                Some(Violation::Handshake)
            );
            assert_eq!(
                established(&other, &trust).err(),
                Some(Violation::Handshake)
            );
        }
    }

    #[test]
    fn a_replayed_conversation_is_not_understood() {
        let trust = with_key();
        let (mut left, mut right) = (Handshake::initiate(&trust), Handshake::respond(&trust));
        let first = left.write().unwrap();
        right.read(&first).unwrap();
        left.read(&right.write().unwrap()).unwrap();
        let recorded = left.finish(100).unwrap().seal(b"an offer").unwrap();

        let mut again = Handshake::respond(&trust);
        again.read(&first).unwrap();
        again.write().unwrap();
        let mut sealed = again.finish(100).unwrap();
        assert_eq!(sealed.open(&frames(&recorded)[0]), Err(Violation::Forged));
    }

    #[test]
    fn a_message_is_not_taken_twice_and_not_beyond_its_limit() {
        let (mut left, mut right) = established(&Trust::Anybody, &Trust::Anybody).unwrap();
        let wire = left.seal(b"once").unwrap();
        assert_eq!(right.open(&frames(&wire)[0]), Ok(Some(b"once".to_vec())));
        assert_eq!(right.open(&frames(&wire)[0]), Err(Violation::Forged));

        let (mut left, mut right) = established(&Trust::Anybody, &Trust::Anybody).unwrap();
        let wire = left.seal(&vec![1; 200_001]).unwrap();
        let refused = frames(&wire)
            .iter()
            .find_map(|frame| right.open(frame).err());
        assert_eq!(refused, Some(Violation::TooLong(200_000)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn messages_survive_the_channel(message in prop::collection::vec(any::<u8>(), 0..150_000)) {
            let (mut left, mut right) = established(&Trust::Anybody, &Trust::Anybody).unwrap();
            let wire = left.seal(&message).unwrap();
            let opened: Vec<_> =
                frames(&wire).iter().filter_map(|frame| right.open(frame).unwrap()).collect();
            prop_assert_eq!(opened, vec![message]);
        }

        #[test]
        fn any_bytes_and_any_change_are_refused(
            bytes in prop::collection::vec(any::<u8>(), 0..100), place: prop::sample::Index, change in 1_u8..,
        ) {
            let trust = with_key();
            prop_assert!(Handshake::respond(&trust).read(&bytes).is_err());
            let (mut left, mut right) = established(&trust, &trust).unwrap();
            let mut frame = frames(&left.seal(b"message").unwrap()).remove(0);
            *place.get_mut(&mut frame) ^= change;
            prop_assert_eq!(right.open(&frame), Err(Violation::Forged));
            prop_assert_eq!(right.open(&bytes), Err(Violation::Forged));
        }
    }
}
