//! Probes in UDP datagrams.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::batch::{ReceiveBatch, Source, source_of};
use crate::datagram::Header;
use crate::echo::channel::{BATCH, Channel, News, is_waiting, wait};
use crate::error::TrafficError;
use crate::job::{SocketOptions, Timestamps};
use crate::socket::kernel_timestamps;

/// One socket that is not connected, so that the route and the source address may still change.
pub(crate) struct UdpChannel {
    socket: Socket,
    destination: SockAddr,
    source: Source,
    timestamps: Timestamps,
    batch: ReceiveBatch,
}

impl UdpChannel {
    pub fn open(destination: SocketAddr, options: SocketOptions) -> Result<Self, TrafficError> {
        let socket = Socket::new(Domain::for_address(destination), Type::DGRAM, None)
            .map_err(TrafficError::io("open a UDP socket"))?;
        options.apply(&socket, destination)?;
        socket
            .set_nonblocking(true)
            .map_err(TrafficError::io("set up a UDP socket"))?;
        Ok(Self {
            timestamps: kernel_timestamps(&socket),
            socket,
            destination: destination.into(),
            source: source_of(destination),
            batch: ReceiveBatch::new(BATCH),
        })
    }
}

impl Channel for UdpChannel {
    fn connect(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn send(&mut self, probe: &[u8]) -> io::Result<()> {
        self.socket.send_to(probe, &self.destination).map(|_| ())
    }

    fn receive(&mut self, limit: u64, news: &mut dyn FnMut(News)) -> io::Result<()> {
        if wait(self.socket.as_fd(), limit)?.is_empty() {
            return Ok(());
        }
        loop {
            let count = match self.batch.receive(&self.socket) {
                Ok(count) => count,
                Err(failure) if is_waiting(&failure) => return Ok(()),
                Err(failure) => return Err(failure),
            };
            for received in (0..count).map(|index| self.batch.received(index)) {
                if *received.source != self.source {
                    continue;
                }
                if let Some(header) = Header::parse(received.payload) {
                    news(News::Reply {
                        header,
                        arrived: received.timestamp,
                    });
                }
            }
            if count < BATCH {
                return Ok(());
            }
        }
    }

    fn timestamps(&self) -> Timestamps {
        self.timestamps
    }
}
