//! Watches one interface: counts packets by protocol and direction, and searches every byte for markers.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use memchr::memmem::Finder;
use nix::errno::Errno;
use nix::net::if_::if_nametoindex;
use serde_bytes::ByteBuf;

use crate::packet::Protocol;
use crate::protocol::{CaptureReport, FlowCount, KeptPacket};

const ANY_PROTOCOL: u16 = libc::ETH_P_ALL as u16;
const LONGEST_FRAME: usize = 1 << 16;
const SOCKET_BUFFER: libc::c_int = 8 << 20;
const WAKE_UP_EVERY: libc::timeval = libc::timeval {
    tv_sec: 0,
    tv_usec: 20_000,
};

/// A capture under way.
pub struct Capture {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<CaptureReport>,
}

impl Capture {
    /// Starts to watch; packets that pass after the return are seen. Keeps the first `keep` packets.
    ///
    /// # Errors
    /// There is no such interface, or this node may not look at packets.
    pub fn start(interface: &str, markers: &[ByteBuf], keep: u16) -> Result<Self, String> {
        let socket =
            open(interface).map_err(|error| format!("{interface} cannot be watched: {error}"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut watch = Watch {
            markers: markers
                .iter()
                .map(|marker| Finder::new(&marker[..]).into_owned())
                .collect(),
            keep: usize::from(keep),
            flows: BTreeMap::new(),
            first: Vec::new(),
        };
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut buffer = vec![0; LONGEST_FRAME];
            // The request to stop is obeyed only once the socket is empty: what passed before it counts.
            while let Some((length, outgoing)) = receive(&socket, &mut buffer, &stopped) {
                watch.see(&buffer[..length], outgoing);
            }
            watch.report(dropped(&socket))
        });
        Ok(Self { stop, thread })
    }

    /// Stops, and gives what was seen.
    ///
    /// # Errors
    /// The capture itself broke.
    pub fn finish(self) -> Result<CaptureReport, String> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| "the capture broke".into())
    }
}

struct Watch {
    markers: Vec<Finder<'static>>,
    keep: usize,
    flows: BTreeMap<(Protocol, bool), Flow>,
    first: Vec<KeptPacket>,
}

struct Flow {
    packets: u64,
    bytes: u64,
    marked: Vec<u64>,
    byte_counts: Box<[u64; 256]>,
}

impl Watch {
    fn see(&mut self, frame: &[u8], outgoing: bool) {
        let (protocol, payload) = Protocol::of(frame);
        let flow = self
            .flows
            .entry((protocol, outgoing))
            .or_insert_with(|| Flow {
                packets: 0,
                bytes: 0,
                marked: vec![0; self.markers.len()],
                byte_counts: Box::new([0; 256]),
            });
        flow.packets += 1;
        flow.bytes += frame.len() as u64;
        for (marker, count) in self.markers.iter().zip(&mut flow.marked) {
            *count += u64::from(marker.find(frame).is_some());
        }
        for byte in &frame[payload..] {
            flow.byte_counts[usize::from(*byte)] += 1;
        }
        if self.first.len() < self.keep {
            self.first.push(KeptPacket {
                protocol: protocol.to_string(),
                outgoing,
                length: frame.len() as u64,
                data: ByteBuf::from(frame),
            });
        }
    }

    fn report(self, dropped: u64) -> CaptureReport {
        let flows = self
            .flows
            .into_iter()
            .map(|((protocol, outgoing), flow)| FlowCount {
                protocol: protocol.to_string(),
                outgoing,
                packets: flow.packets,
                bytes: flow.bytes,
                marked: flow.marked,
                entropy: entropy(&flow.byte_counts),
            });
        CaptureReport {
            flows: flows.collect(),
            dropped,
            first: self.first,
        }
    }
}

/// Shannon entropy of a byte distribution, bits per byte (Shannon 1948).
fn entropy(counts: &[u64; 256]) -> f64 {
    let total: u64 = counts.iter().sum();
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| *count as f64 / total as f64)
        .map(|share| -share * share.log2())
        .sum()
}

fn open(interface: &str) -> Result<OwnedFd, Errno> {
    let index = if_nametoindex(interface)?;
    // SAFETY: creates a descriptor, which the next line takes into ownership.
    let descriptor = Errno::result(unsafe {
        libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0)
    })?;
    // SAFETY: the descriptor was opened above and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &WAKE_UP_EVERY)?;
    set_option(
        &socket,
        libc::SOL_SOCKET,
        libc::SO_RCVBUFFORCE,
        &SOCKET_BUFFER,
    )
    .or_else(|_| set_option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &SOCKET_BUFFER))?;
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: ANY_PROTOCOL.to_be(),
        sll_ifindex: index as i32,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    // SAFETY: the address is a `sockaddr_ll` and its size is given.
    let status = unsafe {
        libc::bind(
            socket.as_raw_fd(),
            std::ptr::from_ref(&address).cast(),
            size_of::<libc::sockaddr_ll>() as u32,
        )
    };
    Errno::result(status)?;
    Ok(socket)
}

fn set_option<T>(socket: &OwnedFd, level: i32, name: i32, value: &T) -> Result<(), Errno> {
    // SAFETY: the option's value and its size belong together.
    let status = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as u32,
        )
    };
    Errno::result(status).map(drop)
}

/// The next frame's length and direction; None once a stop was asked for and nothing waits.
fn receive(socket: &OwnedFd, buffer: &mut [u8], stop: &AtomicBool) -> Option<(usize, bool)> {
    loop {
        // SAFETY: an all-zero `sockaddr_ll` is a valid value.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut address_length = size_of::<libc::sockaddr_ll>() as u32;
        let flags = if stop.load(Ordering::Relaxed) {
            libc::MSG_DONTWAIT
        } else {
            0
        };
        // SAFETY: buffer and address are writable for the lengths given.
        let length = unsafe {
            libc::recvfrom(
                socket.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                flags,
                std::ptr::from_mut(&mut address).cast(),
                &mut address_length,
            )
        };
        if length >= 0 {
            return Some((
                length as usize,
                address.sll_pkttype == libc::PACKET_OUTGOING,
            ));
        }
        let error = io::Error::last_os_error();
        match error.kind() {
            io::ErrorKind::Interrupted => {}
            io::ErrorKind::WouldBlock if flags == 0 => {}
            _ => return None,
        }
    }
}

fn dropped(socket: &OwnedFd) -> u64 {
    let mut statistics = libc::tpacket_stats {
        tp_packets: 0,
        tp_drops: 0,
    };
    let mut length = size_of::<libc::tpacket_stats>() as u32;
    // SAFETY: the kernel writes at most `length` bytes into `statistics`.
    let status = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_STATISTICS,
            std::ptr::from_mut(&mut statistics).cast(),
            &mut length,
        )
    };
    if status == 0 {
        u64::from(statistics.tp_drops)
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropy_of_constants_is_zero_and_of_all_bytes_alike_is_eight() {
        let mut counts = [0; 256];
        counts[7] = 100;
        assert!(entropy(&counts).abs() < 1e-12);
        assert!((entropy(&[3; 256]) - 8.0).abs() < 1e-12);
        assert!(entropy(&[0; 256]).abs() < 1e-12);
    }

    #[test]
    fn markers_are_counted_by_packet_and_direction() {
        let mut watch = Watch {
            markers: vec![
                Finder::new(b"marker").into_owned(),
                Finder::new(b"other").into_owned(),
            ],
            keep: 1,
            flows: BTreeMap::new(),
            first: Vec::new(),
        };
        let mut frame = vec![0; 12];
        frame.extend([0x08, 0x06]);
        frame.extend(b"a marker and a marker");
        watch.see(&frame, true);
        watch.see(&frame, false);
        let report = watch.report(0);
        assert_eq!(report.flows.len(), 2);
        assert!(report.flows.iter().all(|flow| flow.marked == [1, 0]));
        assert_eq!(report.first.len(), 1);
    }
}
