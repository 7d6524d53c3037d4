//! What a transaction may be, and what its messages hold.

use crate::clock::realtime;
use crate::datagram::LARGEST_PAYLOAD;
use crate::error::TrafficError;
use crate::job::{Protocol, Transaction};
use crate::schedule::Schedule;

const LARGEST_MESSAGE: u32 = 1024 * 1024;
const MOST_AT_ONCE: u16 = 128;

/// Bytes of the number that messages over UDP begin with, as far as both have room for it.
const NUMBER_BYTES: usize = 4;

impl Transaction {
    pub(super) fn validate(&self, schedule: &Schedule) -> Result<(), TrafficError> {
        schedule.validate(realtime(), 0)?;
        let invalid = |text: String| Err(TrafficError::Invalid(text));
        let largest = match self.protocol {
            Protocol::Tcp => LARGEST_MESSAGE,
            Protocol::Udp => LARGEST_PAYLOAD as u32,
        };
        for (name, bytes) in [
            ("request", self.request_bytes),
            ("response", self.response_bytes),
        ] {
            if !(1..=largest).contains(&bytes) {
                return invalid(format!("a {name} has 1 to {largest} bytes, not {bytes}"));
            }
        }
        if !(1..=MOST_AT_ONCE).contains(&self.concurrency) {
            return invalid(format!(
                "1 to {MOST_AT_ONCE} transactions are under way at once, not {}",
                self.concurrency
            ));
        }
        if self.fresh_connections && self.protocol == Protocol::Udp {
            return invalid("UDP has no connections that could be fresh: use TCP".into());
        }
        Ok(())
    }

    pub(super) fn request(&self) -> Vec<u8> {
        message(self.request_bytes)
    }

    pub(super) fn response(&self) -> Vec<u8> {
        message(self.response_bytes)
    }

    /// How much of a message over UDP is its number.
    pub(super) fn number_bytes(&self) -> usize {
        NUMBER_BYTES.min(self.request_bytes.min(self.response_bytes) as usize)
    }
}

fn message(bytes: u32) -> Vec<u8> {
    let mut message = vec![0; bytes as usize];
    fastrand::Rng::with_seed(bytes.into()).fill(&mut message);
    message
}
