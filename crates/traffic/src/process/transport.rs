//! What carries a flow.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::datagram::{HEADER_BYTES, LARGEST_PAYLOAD};

/// The longest write to a TCP stream.
const LARGEST_WRITE: u32 = 16 << 20;

/// What carries a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// A stream; sizes are those of its messages.
    Tcp,
    /// Echo requests.
    Icmp,
}

impl Transport {
    /// How many bytes of payload a datagram, echo request or message may have.
    #[must_use]
    pub fn sizes(self) -> RangeInclusive<u32> {
        match self {
            Self::Udp | Self::Icmp => HEADER_BYTES as u32..=LARGEST_PAYLOAD as u32,
            Self::Tcp => 1..=LARGEST_WRITE,
        }
    }
}
