//! The commands `key`, `receive` and `send` of `tbnode`.

mod flows;
mod key;
mod receive;
mod send;
mod summary;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::error::StandaloneError;

pub use key::KeyArguments;
pub use receive::ReceiveArguments;
pub use send::SendArguments;

/// Set by the first Ctrl-C; the second ends the program at once.
fn interruption() -> Result<Arc<AtomicBool>, StandaloneError> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .map_err(|failure| {
                StandaloneError::failed(format!("cannot take notice of Ctrl-C: {failure}"))
            })?;
    }
    Ok(flag)
}
