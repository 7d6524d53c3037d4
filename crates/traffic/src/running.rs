//! A job under way.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use crate::error::TrafficError;
use crate::outcome::{Outcome, Tally};

/// What a job under way and those who look after it tell each other. It is the flag that asks the job to end soon.
#[derive(Debug, Default)]
pub(crate) struct Control {
    stop: AtomicBool,
    contents_itself: AtomicBool,
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Control {
    /// Whether an end before that of the measured window is as good as any.
    pub fn contents_itself(&self) -> bool {
        self.contents_itself.load(Ordering::Relaxed)
    }

    /// Tells what a thread of the job received since it told last.
    pub fn received(&self, packets: u64, bytes: u64) {
        self.packets.fetch_add(packets, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Deref for Control {
    type Target = AtomicBool;

    fn deref(&self) -> &AtomicBool {
        &self.stop
    }
}

/// Looks after a job from anywhere, also while another thread waits in [`Running::finish`].
#[derive(Clone, Debug)]
pub struct Stopper(Arc<Control>);

impl Stopper {
    /// Asks the job to end soon; returns at once. Before the end of the measured window the job has no result then,
    /// unless it is to content itself, while an echo server always has.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// From now on an end before that of the measured window, be it by [`Stopper::stop`] or because the other end hung
    /// up, leaves the job with what it has counted until then. Rates in its outcome are still those of the whole window.
    pub fn content_itself(&self) {
        self.0.contents_itself.store(true, Ordering::Relaxed);
    }

    /// What the job has received so far, in all phases: datagrams, replies or responses, and payload; nothing where it
    /// only sends.
    #[must_use]
    pub fn received(&self) -> Tally {
        Tally {
            packets: self.0.packets.load(Ordering::Relaxed),
            bytes: self.0.bytes.load(Ordering::Relaxed),
        }
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
        work: impl FnOnce(&Control) -> Result<Outcome, TrafficError> + Send + 'static,
    ) -> Result<Self, TrafficError> {
        let control = Arc::new(Control::default());
        let shared = Arc::clone(&control);
        let thread = thread::Builder::new()
            .name(name.into())
            .spawn(move || work(&shared))
            .map_err(TrafficError::io("start a thread"))?;
        Ok(Self {
            bound,
            stopper: Stopper(control),
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
