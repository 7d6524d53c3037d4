//! Traffic over one transport, from when it departs and how long it is.

use tunnelbench_traffic::job::{Content, Messages, SocketOptions};
use tunnelbench_traffic::process::{Departures, Distribution, Sizes};

use crate::command::flows::usage;
use crate::error::StandaloneError;
use crate::offer::{IcmpTraffic, TcpTraffic};

/// Bytes of a write where messages have sizes of their own.
const ANY_WRITE: u32 = 128 * 1024;

/// How long an echo reply may take, ns.
const REPLY_TIMEOUT: u64 = 1_000_000_000;

/// A bulk stream where a rate in bits and one size say all, and messages otherwise.
pub(super) fn stream(departures: &Departures, sizes: &Sizes, seed: u64) -> TcpTraffic {
    let bulk = match (departures, &sizes.0) {
        (Departures::Max, Distribution::Constant { value }) => Some((None, *value)),
        (Departures::BitsPerSecond { value: rate }, Distribution::Constant { value }) => {
            Some((Some(*rate), *value))
        }
        _ => None,
    };
    let messages = bulk.is_none().then(|| Messages {
        departures: departures.clone(),
        sizes: sizes.clone(),
        seed,
    });
    let (rate, write_bytes) = bulk.unwrap_or((None, f64::from(ANY_WRITE)));
    TcpTraffic {
        write_bytes: write_bytes as u32,
        streams: 1,
        rate,
        messages,
        content: Content::Random,
        no_delay: false,
        congestion_control: None,
        mss: None,
        socket: SocketOptions::default(),
    }
}

pub(super) fn echo(
    departures: &Departures,
    sizes: &Sizes,
    socket: SocketOptions,
) -> Result<IcmpTraffic, StandaloneError> {
    let mut icmp = IcmpTraffic {
        interval: 0,
        payload_bytes: constant(sizes)?,
        timeout: REPLY_TIMEOUT,
        socket,
    };
    icmp.interval = match departures {
        Departures::Max => 0,
        Departures::BitsPerSecond { value } => icmp.interval_at(*value),
        Departures::PacketsPerSecond { value } => 1_000_000_000_u64.div_ceil(*value),
        _ => return usage("echo requests leave at a constant rate, or when the last was answered"),
    };
    Ok(icmp)
}

fn constant(sizes: &Sizes) -> Result<u32, StandaloneError> {
    match sizes.0 {
        Distribution::Constant { value } => Ok(value as u32),
        _ => usage("sizes that vary need UDP"),
    }
}
