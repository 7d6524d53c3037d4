//! The options of TCP streams, checked and put on sockets.

use std::fs;
use std::net::SocketAddr;

use socket2::{Domain, Socket, Type};

use crate::error::TrafficError;
use crate::job::TcpOptions;

const LARGEST_WRITE: u32 = 16 * 1024 * 1024;
const MOST_STREAMS: u16 = 128;
const SHORTEST_SAMPLE: u64 = 1_000_000;

/// What Linux takes as TCP_MAXSEG.
const SEGMENT_SIZES: std::ops::RangeInclusive<u32> = 88..=32_767;

const CONGESTION_CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

impl TcpOptions {
    pub(super) fn validate(&self) -> Result<(), TrafficError> {
        self.content.validate()?;
        let invalid = |text: String| Err(TrafficError::Invalid(text));
        if !(1..=LARGEST_WRITE).contains(&self.write_bytes) {
            return invalid(format!(
                "a write has 1 to {LARGEST_WRITE} bytes, not {}",
                self.write_bytes
            ));
        }
        if !(1..=MOST_STREAMS).contains(&self.streams) {
            return invalid(format!(
                "a job has 1 to {MOST_STREAMS} TCP streams, not {}",
                self.streams
            ));
        }
        if self.rate == Some(0) {
            return invalid(
                "a rate has 1 bit per second or more; leave it out for as fast as possible".into(),
            );
        }
        if let Some(messages) = &self.messages {
            messages.plan()?;
            if self.streams != 1 || self.rate.is_some() {
                return invalid(
                    "messages go over one stream and at their own times; start a job for each such stream".into(),
                );
            }
        }
        if self.sample < SHORTEST_SAMPLE {
            return invalid(format!(
                "TCP_INFO is sampled every {SHORTEST_SAMPLE} ns or less often, not every {}",
                self.sample
            ));
        }
        match self.mss {
            Some(mss) if !SEGMENT_SIZES.contains(&mss) => invalid(format!(
                "a segment has {} to {} bytes, not {mss}",
                SEGMENT_SIZES.start(),
                SEGMENT_SIZES.end()
            )),
            _ => Ok(()),
        }
    }

    /// A socket with these options, which accepted connections inherit.
    pub(super) fn open(&self, address: SocketAddr) -> Result<Socket, TrafficError> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)
            .map_err(TrafficError::io("open a TCP socket"))?;
        socket
            .set_reuse_address(self.socket.port.is_some())
            .map_err(TrafficError::io("reuse a local port"))?;
        self.socket.apply(&socket, address)?;
        if let Some(name) = &self.congestion_control {
            socket
                .set_tcp_congestion(name.as_bytes())
                .map_err(|failure| unusable_congestion_control(name, &failure))?;
        }
        if let Some(mss) = self.mss {
            socket
                .set_tcp_mss(mss)
                .map_err(TrafficError::io(format!("use a segment size of {mss}")))?;
        }
        socket
            .set_tcp_nodelay(self.no_delay)
            .map_err(TrafficError::io("set TCP_NODELAY"))?;
        Ok(socket)
    }
}

fn unusable_congestion_control(name: &str, failure: &std::io::Error) -> TrafficError {
    let available = fs::read_to_string(CONGESTION_CONTROLS).unwrap_or_default();
    TrafficError::Invalid(format!(
        "the congestion control `{name}` can't be used here ({failure}); this kernel has: {}",
        available.split_whitespace().collect::<Vec<_>>().join(", ")
    ))
}

/// The congestion control that a socket uses.
pub(super) fn congestion_control(socket: &Socket) -> Result<String, TrafficError> {
    let name = socket
        .tcp_congestion()
        .map_err(TrafficError::io("read the congestion control"))?;
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Content, SocketOptions};
    use crate::socket::{Buffer, granted_buffer};
    use crate::tcp::information::information;

    fn options() -> TcpOptions {
        TcpOptions {
            write_bytes: 1,
            streams: 1,
            rate: None,
            messages: None,
            content: Content::Zeros,
            no_delay: true,
            congestion_control: Some("reno".into()),
            mss: Some(700),
            sample: SHORTEST_SAMPLE,
            socket: SocketOptions {
                dscp: Some(46),
                ttl: Some(9),
                buffer: Some(50_000),
                ..SocketOptions::default()
            },
        }
    }

    fn check(socket: &Socket) {
        assert!(socket.tcp_nodelay().unwrap());
        assert_eq!(congestion_control(socket).unwrap(), "reno");
        assert_eq!(socket.tos_v4().unwrap() >> 2, 46);
        assert_eq!(socket.ttl_v4().unwrap(), 9);
        assert_eq!(granted_buffer(socket, Buffer::Send).unwrap(), 50_000);
        assert_eq!(granted_buffer(socket, Buffer::Receive).unwrap(), 50_000);
        assert!(information(socket).unwrap().segment_bytes <= 700);
    }

    #[test]
    fn both_ends_of_a_connection_have_the_options() {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = options().open(address).unwrap();
        listener.bind(&address.into()).unwrap();
        listener.listen(1).unwrap();
        let bound = listener.local_addr().unwrap();
        let connecting = options().open(address).unwrap();
        connecting.connect(&bound).unwrap();
        check(&connecting);
        check(&listener.accept().unwrap().0);
    }
}
