//! Whole messages over TCP connections.

use std::io::{self, ErrorKind, Read, Write};

use socket2::Socket;

use crate::transaction::patience::Patience;

/// Reads until `buffer` holds at least `least` bytes, of which it holds `held` already; how many it holds then. None
/// where the job is over before.
pub(super) fn read_at_least(
    mut socket: &Socket,
    buffer: &mut [u8],
    held: usize,
    least: usize,
    patience: &Patience<'_>,
) -> io::Result<Option<usize>> {
    let mut held = held;
    while held < least {
        match patience.persist(|| socket.read(&mut buffer[held..]))? {
            Some(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Some(read) => held += read,
            None => return Ok(None),
        }
    }
    Ok(Some(held))
}

/// Writes all of `message`; none where the job is over before.
pub(super) fn write_all(
    mut socket: &Socket,
    message: &[u8],
    patience: &Patience<'_>,
) -> io::Result<Option<()>> {
    let mut left = message;
    while !left.is_empty() {
        match patience.persist(|| socket.write(left))? {
            Some(written) => left = &left[written..],
            None => return Ok(None),
        }
    }
    Ok(Some(()))
}
