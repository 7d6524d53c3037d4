//! What Linux says about a connection (TCP_INFO).

use std::io;

use socket2::Socket;

use crate::outcome::TcpInformation;
use crate::socket::option_bytes;

/// More than any Linux tells today.
const LONGEST: usize = 512;

/// Where Linux puts what is read here: `struct tcp_info` of its `include/uapi/linux/tcp.h`, which only ever grows.
mod offset {
    pub const SEGMENT_BYTES: usize = 16;
    pub const UNACKED: usize = 24;
    pub const ROUND_TRIP: usize = 68;
    pub const ROUND_TRIP_DEVIATION: usize = 72;
    pub const CONGESTION_WINDOW: usize = 80;
    pub const RETRANSMITS: usize = 100;
    pub const PACING_RATE: usize = 104;
    pub const MINIMUM_ROUND_TRIP: usize = 148;
    pub const SEGMENTS: usize = 156;
    pub const DELIVERY_RATE: usize = 160;
}

/// TCP_INFO of a connection.
pub(super) fn information(socket: &Socket) -> io::Result<TcpInformation> {
    let mut bytes = [0; LONGEST];
    let length = option_bytes(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes)?;
    let too_short = || io::Error::new(io::ErrorKind::InvalidData, "the kernel is too old for it");
    parse(&bytes[..length]).ok_or_else(too_short)
}

/// Whether the other end has acknowledged all there was to say, the end of the stream included.
pub(super) fn is_delivered(socket: &Socket) -> io::Result<bool> {
    const FIN_WAIT_1: u8 = 4;
    const LAST_ACK: u8 = 9;
    const CLOSING: u8 = 11;
    let mut state = [0];
    option_bytes(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut state)?;
    Ok(!matches!(state[0], FIN_WAIT_1 | LAST_ACK | CLOSING))
}

/// None where the kernel tells less than all Linux since 2.6 do.
fn parse(bytes: &[u8]) -> Option<TcpInformation> {
    let short = |at: usize| {
        let field = bytes.get(at..)?.first_chunk()?;
        Some(u64::from(u32::from_ne_bytes(*field)))
    };
    let long = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let microseconds = |at| Some(short(at)? * 1_000);
    // All bits stand for "no limit" and "not measured yet".
    let bits_per_second = |at| long(at).filter(|rate| *rate != u64::MAX)?.checked_mul(8);
    let measured = |at| short(at).filter(|value| *value != u64::from(u32::MAX));
    Some(TcpInformation {
        round_trip: microseconds(offset::ROUND_TRIP)?,
        round_trip_deviation: microseconds(offset::ROUND_TRIP_DEVIATION)?,
        minimum_round_trip: measured(offset::MINIMUM_ROUND_TRIP).map(|value| value * 1_000),
        congestion_window: short(offset::CONGESTION_WINDOW)?,
        unacked: short(offset::UNACKED)?,
        retransmits: short(offset::RETRANSMITS)?,
        segments: short(offset::SEGMENTS),
        segment_bytes: short(offset::SEGMENT_BYTES)?,
        pacing_rate: bits_per_second(offset::PACING_RATE),
        delivery_rate: bits_per_second(offset::DELIVERY_RATE),
    })
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_connection_of_this_kernel_has_its_figures() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let found = information(&Socket::from(stream)).unwrap();
        assert!(found.segment_bytes > 0 && found.segment_bytes < 65_536);
        assert!(found.congestion_window > 0 && found.congestion_window < 1_000);
        assert!(found.round_trip > 0 && found.round_trip < 10_000_000_000);
        assert_eq!((found.unacked, found.segments), (0, Some(0)));
    }

    #[test]
    fn what_an_older_kernel_does_not_tell_is_left_out() {
        let bytes = [1; 104];
        let found = parse(&bytes).unwrap();
        assert_eq!(found.retransmits, 0x0101_0101);
        assert_eq!((found.segments, found.delivery_rate), (None, None));
        assert_eq!(parse(&bytes[..103]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_are_too_short(bytes in prop::collection::vec(any::<u8>(), 0..LONGEST)) {
            prop_assert_eq!(parse(&bytes).is_some(), bytes.len() >= 104);
        }
    }
}
