//! Frames on the byte stream: a length of four bytes in network order, then that many bytes.

use std::io::{self, Read, Write};

/// The longest frame that is read or written.
pub const MAXIMUM_LENGTH: usize = 16 << 20;

/// One thing read off the stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A frame's contents.
    Frame(Vec<u8>),
    /// A frame over the limit, read and thrown away; its length.
    Oversized(usize),
    /// The stream ended.
    End,
}

/// Reads the next frame; a frame cut off by the end of the stream counts as its end.
///
/// # Errors
/// Whatever the stream reports, except its end.
pub fn read(stream: &mut impl Read) -> io::Result<Incoming> {
    let mut prefix = [0; 4];
    if !fill(stream, &mut prefix)? {
        return Ok(Incoming::End);
    }
    let length = u32::from_be_bytes(prefix) as usize;
    if length > MAXIMUM_LENGTH {
        let skipped = io::copy(&mut stream.take(length as u64), &mut io::sink())?;
        return Ok(if skipped as usize == length {
            Incoming::Oversized(length)
        } else {
            Incoming::End
        });
    }
    let mut contents = vec![0; length];
    Ok(if fill(stream, &mut contents)? {
        Incoming::Frame(contents)
    } else {
        Incoming::End
    })
}

/// Writes one frame in a single call.
///
/// # Errors
/// `InvalidData` for contents over the limit; whatever the stream reports.
pub fn write(stream: &mut impl Write, contents: &[u8]) -> io::Result<()> {
    if contents.len() > MAXIMUM_LENGTH {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("a message of {} bytes is too long", contents.len()),
        ));
    }
    let mut frame = Vec::with_capacity(4 + contents.len());
    frame.extend_from_slice(&(contents.len() as u32).to_be_bytes());
    frame.extend_from_slice(contents);
    stream.write_all(&frame)?;
    stream.flush()
}

fn fill(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match stream.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(contents in proptest::collection::vec(any::<u8>(), 0..2000)) {
            let mut stream = Vec::new();
            write(&mut stream, &contents).unwrap();
            let mut reader = stream.as_slice();
            prop_assert_eq!(read(&mut reader).unwrap(), Incoming::Frame(contents));
            prop_assert_eq!(read(&mut reader).unwrap(), Incoming::End);
        }

        #[test]
        fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = bytes.as_slice();
            while read(&mut reader).unwrap() != Incoming::End {}
        }
    }

    #[test]
    fn an_oversized_frame_is_skipped_and_the_next_one_read() {
        let mut stream = ((MAXIMUM_LENGTH + 1) as u32).to_be_bytes().to_vec();
        stream.resize(4 + MAXIMUM_LENGTH + 1, 7);
        write(&mut stream, b"next").unwrap();
        let mut reader = stream.as_slice();
        assert_eq!(
            read(&mut reader).unwrap(),
            Incoming::Oversized(MAXIMUM_LENGTH + 1)
        );
        assert_eq!(
            read(&mut reader).unwrap(),
            Incoming::Frame(b"next".to_vec())
        );
    }
}
