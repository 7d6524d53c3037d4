//! What carries probes, whatever the protocol.

use std::io::{self, ErrorKind};
use std::os::fd::BorrowedFd;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::datagram::Header;
use crate::job::Timestamps;

/// Replies that one system call may take.
pub(crate) const BATCH: usize = 32;

/// A way to whoever sends probes back.
pub(crate) trait Channel {
    /// Makes the channel ready to send, if it is not.
    fn connect(&mut self) -> io::Result<()>;
    /// Sends one probe.
    fn send(&mut self, probe: &[u8]) -> io::Result<()>;
    /// Waits at most `limit` ns and hands over all that has come by then.
    fn receive(&mut self, limit: u64, news: &mut dyn FnMut(News)) -> io::Result<()>;
    /// Has the next [`Self::connect`] begin anew.
    fn renew(&mut self) {}
    /// Where the times of arrival come from.
    fn timestamps(&self) -> Timestamps;
}

/// What came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A probe.
    Reply {
        header: Header,
        /// CLOCK_REALTIME in ns, where the kernel noted it.
        arrived: Option<i64>,
    },
    /// An ICMP error about the newest probe whose number ends in these bits.
    Refused { sequence: u16 },
}

/// Waits at most `limit` ns; what there is then, to read or as an error.
pub(crate) fn wait(descriptor: BorrowedFd<'_>, limit: u64) -> io::Result<PollFlags> {
    let mut readable = [PollFd::from_borrowed_fd(descriptor, PollFlags::IN)];
    let limit = Timespec {
        tv_sec: (limit / 1_000_000_000) as i64,
        tv_nsec: (limit % 1_000_000_000) as i64,
    };
    match poll(&mut readable, Some(&limit)) {
        Ok(_) => Ok(readable[0].revents()),
        Err(rustix::io::Errno::INTR) => Ok(PollFlags::empty()),
        Err(failure) => Err(failure.into()),
    }
}

/// Nothing to read for now.
pub(crate) fn is_waiting(failure: &io::Error) -> bool {
    matches!(
        failure.kind(),
        ErrorKind::WouldBlock | ErrorKind::Interrupted
    )
}
