//! The commands `key`, `receive` and `send` of `tbnode`.

mod flows;
mod key;
mod kinds;
mod receive;
mod send;
mod summary;

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::error::StandaloneError;

pub use key::KeyArguments;
pub use receive::ReceiveArguments;
pub use send::SendArguments;

/// A second Ctrl-C this long after the first is meant; sooner, it is the same one that came over two ways.
const AGAIN: Duration = Duration::from_millis(500);

/// Set by the first Ctrl-C; the second ends the program at once.
fn interruption() -> Result<Arc<AtomicBool>, StandaloneError> {
    let flag = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(|failure| {
        StandaloneError::failed(format!("cannot take notice of Ctrl-C: {failure}"))
    })?;
    let shared = Arc::clone(&flag);
    thread::spawn(move || {
        let mut first = None;
        for _ in signals.forever() {
            if first.get_or_insert_with(Instant::now).elapsed() >= AGAIN {
                process::exit(130);
            }
            shared.store(true, Ordering::Relaxed);
        }
    });
    Ok(flag)
}
