//! Frames on the control channel: a length of two bytes in network order, then that many bytes.

/// The most that a frame can carry.
pub(crate) const LONGEST_FRAME: usize = u16::MAX as usize;

/// Puts `contents` into a frame; they are at most [`LONGEST_FRAME`] bytes.
pub(crate) fn encode(contents: &[u8], into: &mut Vec<u8>) {
    into.extend_from_slice(&(contents.len() as u16).to_be_bytes());
    into.extend_from_slice(contents);
}

/// Cuts a stream of bytes into frames, in memory of no more than one frame and one read.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    buffer: Vec<u8>,
}

/// A frame that announces more bytes than its place in the dialogue allows.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {length} bytes came where {allowed} are allowed")]
pub(crate) struct Oversized {
    length: usize,
    allowed: usize,
}

impl Decoder {
    /// Takes what was read off the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, if there is one. One longer than `allowed` is refused by its length alone.
    pub fn next(&mut self, allowed: usize) -> Result<Option<Vec<u8>>, Oversized> {
        let Some((prefix, rest)) = self.buffer.split_first_chunk::<2>() else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes(*prefix));
        if length > allowed {
            return Err(Oversized { length, allowed });
        }
        let Some(contents) = rest.get(..length) else {
            return Ok(None);
        };
        let contents = contents.to_vec();
        self.buffer.drain(..2 + length);
        Ok(Some(contents))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn frames_come_out_as_they_went_in_however_the_stream_is_cut(
            frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..10), cut in 1_usize..50,
        ) {
            let mut stream = Vec::new();
            frames.iter().for_each(|frame| encode(frame, &mut stream));
            let mut decoder = Decoder::default();
            let mut found = Vec::new();
            for part in stream.chunks(cut) {
                decoder.feed(part);
                while let Some(frame) = decoder.next(LONGEST_FRAME).unwrap() {
                    found.push(frame);
                }
            }
            prop_assert_eq!(found, frames);
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, allowed in 0_usize..300) {
            let mut decoder = Decoder::default();
            decoder.feed(&bytes);
            while let Ok(Some(frame)) = decoder.next(allowed) {
                prop_assert!(frame.len() <= allowed);
            }
        }
    }

    #[test]
    fn an_oversized_frame_is_refused_before_it_is_there() {
        let mut decoder = Decoder::default();
        decoder.feed(&[1, 0]);
        assert_eq!(
            decoder.next(255),
            Err(Oversized {
                length: 256,
                allowed: 255
            })
        );
    }
}
