//! The one way out: every thread of the agent sends its messages through here.

use std::fs::File;
use std::sync::{Arc, Mutex, PoisonError};

use crate::frame;
use crate::protocol::{Answer, Event, Message};

/// A shared, ordered sender of messages.
#[derive(Clone)]
pub struct Outbox(Arc<Mutex<File>>);

impl Outbox {
    /// Sends on `stream`.
    pub fn new(stream: File) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// Answers call `id`, or a call that could not be read where there is none.
    pub fn answer(&self, id: Option<u32>, answer: Answer) {
        self.send(&Message::Answer { id, answer });
    }

    /// Reports an event.
    pub fn report(&self, event: Event) {
        self.send(&Message::Event { event });
    }

    fn send(&self, message: &Message) {
        let encoded = match rmp_serde::to_vec_named(message) {
            Ok(encoded) => encoded,
            Err(error) => {
                eprintln!("tbnode: a message could not be encoded: {error}");
                return;
            }
        };
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A stream that takes no more bytes is closed, which the reading side notices and acts on.
        if let Err(error) = frame::write(&mut *stream, &encoded) {
            eprintln!("tbnode: a message could not be sent: {error}");
        }
    }
}
