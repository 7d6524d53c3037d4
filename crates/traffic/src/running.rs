//! A job under way.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use crate::error::TrafficError;
use crate::outcome::Outcome;

/// Stops a job from anywhere, also while another thread waits in [`Running::finish`].
#[derive(Clone, Debug)]
pub struct Stopper(Arc<AtomicBool>);

impl Stopper {
    /// Asks the job to end soon; returns at once. Before the end of the measured window the job has no result then,
    /// while an echo server always has.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A job under way. Dropping it stops the job without waiting for its end.
#[derive(Debug)]
pub struct Running {
    bound: Option<SocketAddr>,
    stopper: Stopper,
    thread: Option<JoinHandle<Result<Outcome, TrafficError>>>,
}

impl Running {
    /// Starts `work` in a thread of its own; it ends soon after the flag that it gets is set.
    pub(crate) fn spawn(
        name: &str,
        bound: Option<SocketAddr>,
        work: impl FnOnce(&AtomicBool) -> Result<Outcome, TrafficError> + Send + 'static,
    ) -> Result<Self, TrafficError> {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name(name.into())
            .spawn(move || work(&flag))
            .map_err(TrafficError::io("start a thread"))?;
        Ok(Self {
            bound,
            stopper: Stopper(stop),
            thread: Some(thread),
        })
    }

    /// Where a listener or receiver listens: with the port that the system chose if 0 was asked for.
    #[must_use]
    pub fn bound(&self) -> Option<SocketAddr> {
        self.bound
    }

    /// What stops the job once `finish` has taken it.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// The same as [`Stopper::stop`].
    pub fn stop(&self) {
        self.stopper.stop();
    }

    /// Waits for the end of the job.
    ///
    /// # Errors
    /// Whatever kept the job from a result that can be trusted.
    pub fn finish(mut self) -> Result<Outcome, TrafficError> {
        let Some(thread) = self.thread.take() else {
            return Err(TrafficError::Defect("the job has no thread".into()));
        };
        thread
            .join()
            .unwrap_or_else(|panic| Err(TrafficError::Defect(panic_text(panic.as_ref()))))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
        .to_owned()
}
