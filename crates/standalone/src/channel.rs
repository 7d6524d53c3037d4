//! The control channel: typed messages over an authenticated and encrypted TCP connection.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::frames::{self, Decoder, LONGEST_FRAME, Oversized};
use crate::key::Trust;
use crate::secrecy::{Handshake, LONGEST_HANDSHAKE, Sealed, Violation};

/// How long a message may take to be taken by the other end.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

const READ_BYTES: usize = 16 * 1024;

/// Why the channel is of no more use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    #[error("the other end closed the connection")]
    Closed,
    #[error("the other end did not answer in time")]
    Silent,
    #[error(transparent)]
    Violation(#[from] Violation),
    #[error(transparent)]
    Oversized(#[from] Oversized),
    #[error("a message is not understood: {0}")]
    Malformed(#[from] rmp_serde::decode::Error),
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
}

/// One end of the channel.
pub(crate) struct Channel {
    pipe: Pipe,
    sealed: Sealed,
}

impl Channel {
    /// Shakes hands as the end that connected. Messages of up to `longest` bytes are taken.
    pub fn initiate(
        stream: TcpStream,
        trust: &Trust,
        longest: usize,
        until: Instant,
    ) -> Result<Self, ChannelError> {
        let mut pipe = Pipe::new(stream)?;
        let mut handshake = Handshake::initiate(trust);
        pipe.write_frame(&handshake.write()?)?;
        // An end that cannot make sense of the first message hangs up.
        let answer = pipe
            .frame(LONGEST_HANDSHAKE, until)
            .map_err(|failure| match failure {
                ChannelError::Closed => Violation::Handshake.into(),
                failure => failure,
            })?;
        handshake.read(&answer.ok_or(ChannelError::Silent)?)?;
        Ok(Self {
            pipe,
            sealed: handshake.finish(longest)?,
        })
    }

    /// Shakes hands as the end that accepted.
    pub fn respond(
        stream: TcpStream,
        trust: &Trust,
        longest: usize,
        until: Instant,
    ) -> Result<Self, ChannelError> {
        let mut pipe = Pipe::new(stream)?;
        let mut handshake = Handshake::respond(trust);
        let first = pipe
            .frame(LONGEST_HANDSHAKE, until)?
            .ok_or(ChannelError::Silent)?;
        handshake.read(&first)?;
        pipe.write_frame(&handshake.write()?)?;
        Ok(Self {
            pipe,
            sealed: handshake.finish(longest)?,
        })
    }

    /// Sends one message.
    pub fn send(&mut self, message: &impl Serialize) -> Result<(), ChannelError> {
        let encoded = rmp_serde::to_vec_named(message)
            .map_err(|failure| io::Error::new(io::ErrorKind::InvalidData, failure))?;
        let wire = self.sealed.seal(&encoded)?;
        self.pipe.stream.write_all(&wire)?;
        Ok(())
    }

    /// The next message; none where `until` comes first, and then what has arrived of it is kept.
    pub fn receive<M: DeserializeOwned>(
        &mut self,
        until: Instant,
    ) -> Result<Option<M>, ChannelError> {
        while let Some(frame) = self.pipe.frame(LONGEST_FRAME, until)? {
            if let Some(message) = self.sealed.open(&frame)? {
                return Ok(Some(rmp_serde::from_slice(&message)?));
            }
        }
        Ok(None)
    }
}

struct Pipe {
    stream: TcpStream,
    decoder: Decoder,
}

impl Pipe {
    fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE_TIMEOUT))?;
        Ok(Self {
            stream,
            decoder: Decoder::default(),
        })
    }

    fn write_frame(&mut self, contents: &[u8]) -> io::Result<()> {
        let mut wire = Vec::new();
        frames::encode(contents, &mut wire);
        self.stream.write_all(&wire)
    }

    fn frame(&mut self, allowed: usize, until: Instant) -> Result<Option<Vec<u8>>, ChannelError> {
        let mut bytes = [0; READ_BYTES];
        loop {
            if let Some(frame) = self.decoder.next(allowed)? {
                return Ok(Some(frame));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(&mut bytes) {
                Ok(0) => return Err(ChannelError::Closed),
                Ok(length) => self.decoder.feed(&bytes[..length]),
                Err(failure) if is_nothing_yet(&failure) => {}
                Err(failure) if failure.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(ChannelError::Closed);
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }
}

fn is_nothing_yet(failure: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(failure.kind(), WouldBlock | TimedOut | Interrupted)
}
