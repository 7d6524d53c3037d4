//! Many datagrams in one system call.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use libc::{c_uint, iovec, mmsghdr};
use socket2::{SockAddr, Socket};

/// Room for a receive timestamp and for the size of what was put together.
const CONTROL_BYTES: usize = 64;

/// As large as the largest datagram, and a little more so that the starts of the buffers do not compete for the same
/// lines of the processor's cache.
const RECEIVE_STRIDE: usize = 65_536 + 192;

/// Bytes of an IPv6 socket address, the larger of the two kinds.
const ADDRESS_BYTES: usize = size_of::<libc::sockaddr_in6>();

/// Room for datagrams of any size.
pub(crate) struct ReceiveBatch {
    memory: Vec<u8>,
    sources: Vec<Source>,
    controls: Vec<Control>,
    vectors: Vec<iovec>,
    messages: Vec<mmsghdr>,
}

/// A socket address as the kernel wrote it, good for telling sources apart.
pub(crate) type Source = [u8; ADDRESS_BYTES];

/// What the kernel writes where `address` is the source.
pub(crate) fn source_of(address: SocketAddr) -> Source {
    let mut source = [0; ADDRESS_BYTES];
    source[..2].copy_from_slice(&SockAddr::from(address).family().to_ne_bytes());
    source[2..4].copy_from_slice(&address.port().to_be_bytes());
    match address {
        SocketAddr::V4(address) => source[4..8].copy_from_slice(&address.ip().octets()),
        SocketAddr::V6(address) => {
            source[8..24].copy_from_slice(&address.ip().octets());
            source[24..].copy_from_slice(&address.scope_id().to_ne_bytes());
        }
    }
    source
}

#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// One message of a batch: a datagram, or several of one source that the kernel put together (UDP_GRO).
pub(crate) struct Received<'a> {
    /// All of it.
    pub payload: &'a [u8],
    pub source: &'a Source,
    /// CLOCK_REALTIME in ns, where the kernel attached it.
    pub timestamp: Option<i64>,
    /// Size of each datagram but the last, where they were put together.
    segment: Option<usize>,
}

impl<'a> Received<'a> {
    /// Each of its datagrams.
    pub fn datagrams(&self) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let (payload, segment) = (
            self.payload,
            self.segment.unwrap_or(self.payload.len()).max(1),
        );
        // A datagram may be empty, and is one nevertheless.
        let count = payload.len().div_ceil(segment).max(1);
        (0..count).map(move |index| {
            let start = index * segment;
            &payload[start..(start + segment).min(payload.len())]
        })
    }
}

impl ReceiveBatch {
    pub fn new(largest: usize) -> Self {
        Self {
            memory: vec![0; largest * RECEIVE_STRIDE],
            sources: vec![[0; ADDRESS_BYTES]; largest],
            controls: vec![Control([0; CONTROL_BYTES]); largest],
            vectors: vec![
                iovec {
                    iov_base: std::ptr::null_mut(),
                    iov_len: RECEIVE_STRIDE
                };
                largest
            ],
            messages: vec![empty_message(); largest],
        }
    }

    pub fn capacity(&self) -> usize {
        self.messages.len()
    }

    /// Takes what is there without waiting; returns how many messages that are.
    pub fn receive(&mut self, socket: &Socket) -> io::Result<usize> {
        let buffers = self.memory.chunks_exact_mut(RECEIVE_STRIDE);
        let places = self.sources.iter_mut().zip(&mut self.controls).zip(buffers);
        for ((vector, message), ((source, control), buffer)) in
            self.vectors.iter_mut().zip(&mut self.messages).zip(places)
        {
            vector.iov_base = buffer.as_mut_ptr().cast();
            let header = &mut message.msg_hdr;
            header.msg_iov = vector;
            header.msg_iovlen = 1;
            header.msg_name = source.as_mut_ptr().cast();
            header.msg_namelen = ADDRESS_BYTES as libc::socklen_t;
            header.msg_control = control.0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_BYTES as _;
        }
        let count = self.messages.len() as c_uint;
        let messages = self.messages.as_mut_ptr();
        // SAFETY: all `count` messages point to buffers of the lengths they tell, which this value owns.
        let received = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                messages,
                count,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        };
        usize::try_from(received).map_err(|_| io::Error::last_os_error())
    }

    /// The message at `index` of what the last [`Self::receive`] took.
    pub fn received(&self, index: usize) -> Received<'_> {
        let message = &self.messages[index];
        let start = index * RECEIVE_STRIDE;
        let mut received = Received {
            payload: &self.memory[start..start + message.msg_len as usize],
            source: &self.sources[index],
            timestamp: None,
            segment: None,
        };
        read_controls(&message.msg_hdr, &mut received);
        received
    }
}

/// Takes what the kernel's control messages say: when the message came in, and what it was put together of.
fn read_controls(header: &libc::msghdr, received: &mut Received<'_>) {
    // SAFETY: the header is one that the kernel filled in, and its control buffer lives as long as the batch.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: as above; the macros return null or a whole and aligned message within the buffer.
    while let Some(message) = unsafe { control.as_ref() } {
        // SAFETY: as above; the data follows its header.
        let data = unsafe { libc::CMSG_DATA(control) };
        match (message.cmsg_level, message.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                // SAFETY: the data of this message is one timespec, which may not be aligned.
                let time = unsafe { data.cast::<libc::timespec>().read_unaligned() };
                received.timestamp = Some(time.tv_sec * 1_000_000_000 + time.tv_nsec);
            }
            (libc::SOL_UDP, libc::UDP_GRO) => {
                // SAFETY: the data of this message is one integer, which may not be aligned.
                let bytes = unsafe { data.cast::<libc::c_int>().read_unaligned() };
                received.segment = usize::try_from(bytes).ok().filter(|bytes| *bytes > 0);
            }
            _ => {}
        }
        // SAFETY: as above.
        control = unsafe { libc::CMSG_NXTHDR(header, control) };
    }
}

fn empty_message() -> mmsghdr {
    // SAFETY: null pointers and zero lengths are a valid message without any parts.
    unsafe { std::mem::zeroed() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(payload: &[u8], segment: Option<usize>) -> Vec<usize> {
        let received = Received {
            payload,
            source: &[0; ADDRESS_BYTES],
            timestamp: None,
            segment,
        };
        received.datagrams().map(<[u8]>::len).collect()
    }

    #[test]
    fn what_was_put_together_is_taken_apart() {
        assert_eq!(lengths(&[0; 100], None), [100]);
        assert_eq!(lengths(&[0; 100], Some(40)), [40, 40, 20]);
        assert_eq!(lengths(&[0; 80], Some(40)), [40, 40]);
        assert_eq!(lengths(&[0; 30], Some(40)), [30]);
    }

    #[test]
    fn an_empty_datagram_is_one() {
        assert_eq!(lengths(&[], None), [0]);
        assert_eq!(lengths(&[], Some(40)), [0]);
    }
}
