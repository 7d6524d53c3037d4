//! How a sender ends a stream, so that the receiver misses nothing of it and the next trial sees nothing of it.

use std::net::Shutdown;
use std::thread;
use std::time::{Duration, Instant};

use socket2::Socket;

use crate::tcp::information::is_delivered;

/// How long an end waits for the other to hang up, or for what is under way to arrive.
pub(super) const HANG_UP: Duration = Duration::from_millis(500);

/// By how much the other end's clock may be behind: no end of a stream is seen there before the measured window's.
const CLOCKS_APART: Duration = Duration::from_millis(50);

/// How often a sender looks whether all has arrived.
const LOOK: Duration = Duration::from_millis(2);

/// Says that there is no more, and waits until all has arrived.
pub(super) fn hear_out(socket: &Socket) {
    thread::sleep(CLOCKS_APART);
    // Fails where the connection has ended, which is as good.
    let _ = socket.shutdown(Shutdown::Write);
    let deadline = Instant::now() + HANG_UP;
    while !is_delivered(socket).unwrap_or(true) && Instant::now() < deadline {
        thread::sleep(LOOK);
    }
}
