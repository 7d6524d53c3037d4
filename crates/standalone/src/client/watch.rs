//! Looks after a session from its start to its results.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tunnelbench_traffic::outcome::Tally;

use crate::client::conversation::{Conversation, FEW_EXCHANGES, MANY_EXCHANGES};
use crate::clock::{self, Reading};
use crate::error::StandaloneError;
use crate::jobs::Jobs;
use crate::message::{Answer, End, Request};

/// Between two readings of the clocks while traffic runs.
const READ_CLOCKS: Duration = Duration::from_secs(2);

const TICK: Duration = Duration::from_millis(20);

/// When each end stopped sending, ns since the start of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// This end.
    pub client: i64,
    /// The receiver.
    pub server: i64,
}

/// What all flows brought to both ends since the last report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// ns since the start of the schedule.
    pub at: i64,
    /// How long ago the last report was, ns.
    pub since: i64,
    /// Datagrams, replies or responses, and payload.
    pub received: Tally,
}

pub(super) struct Watch<'a> {
    conversation: Conversation,
    jobs: Jobs,
    start_at: i64,
    readings: Vec<Reading>,
    next_reading: Instant,
    observer: &'a mut dyn FnMut(&Progress),
    reported: Progress,
    asked_to_cut: bool,
    cut: Option<Cut>,
}

impl<'a> Watch<'a> {
    pub fn new(
        conversation: Conversation,
        jobs: Jobs,
        start_at: i64,
        before: Reading,
        observer: &'a mut dyn FnMut(&Progress),
    ) -> Self {
        Self {
            conversation,
            jobs,
            start_at,
            readings: vec![before],
            next_reading: Instant::now() + READ_CLOCKS,
            observer,
            reported: Progress {
                at: 0,
                since: 0,
                received: Tally::default(),
            },
            asked_to_cut: false,
            cut: None,
        }
    }

    /// Waits for the end of this end's jobs and for the receiver's results, which it returns.
    pub fn until_the_end(
        &mut self,
        latest: Instant,
        interrupt: &AtomicBool,
    ) -> Result<Vec<End>, StandaloneError> {
        let mut theirs = None;
        loop {
            let have_ended = self.jobs.have_ended();
            if let Some(failure) = self.jobs.failure()
                && theirs.is_none()
                && !self.asked_to_cut
            {
                return Err(StandaloneError::failed(failure));
            }
            if have_ended && let Some(theirs) = theirs.take() {
                return Ok(theirs);
            }
            if Instant::now() > latest {
                return Err(StandaloneError::failed("the receiver told no results"));
            }
            if interrupt.load(Ordering::Relaxed) {
                self.ask_to_cut()?;
            }
            if Instant::now() >= self.next_reading {
                self.next_reading += READ_CLOCKS;
                self.readings
                    .push(self.conversation.read_clocks(FEW_EXCHANGES)?);
            }
            match self.conversation.look(Instant::now() + TICK)? {
                Some(Answer::Results { flows }) => theirs = Some(flows),
                Some(Answer::Progress { received }) => self.report(&received),
                Some(Answer::Cut { at }) if self.asked_to_cut && self.cut.is_none() => {
                    self.jobs.cut_short();
                    let client = clock::now().saturating_sub(self.start_at);
                    self.cut = Some(Cut { client, server: at });
                }
                // The receiver wants to end.
                Some(Answer::Cut { .. }) => self.ask_to_cut()?,
                Some(_) | None => {}
            }
        }
    }

    fn ask_to_cut(&mut self) -> Result<(), StandaloneError> {
        if self.asked_to_cut {
            return Ok(());
        }
        self.asked_to_cut = true;
        // Before the receiver hangs up.
        self.jobs.content_themselves();
        self.conversation.ask(&Request::Cut)
    }

    fn report(&mut self, theirs: &[Tally]) {
        let own = self.jobs.received();
        let all = theirs.iter().chain(&own);
        let received = all.fold(Tally::default(), |sum, flow| Tally {
            packets: sum.packets.saturating_add(flow.packets),
            bytes: sum.bytes.saturating_add(flow.bytes),
        });
        let at = clock::now().saturating_sub(self.start_at);
        if at <= self.reported.at {
            return;
        }
        (self.observer)(&Progress {
            at,
            since: at - self.reported.at,
            received: Tally {
                packets: received
                    .packets
                    .saturating_sub(self.reported.received.packets),
                bytes: received.bytes.saturating_sub(self.reported.received.bytes),
            },
        });
        self.reported = Progress {
            at,
            since: 0,
            received,
        };
    }

    /// When each end stopped sending, where the session was ended early.
    pub fn cut(&self) -> Option<Cut> {
        self.cut
    }

    /// What this end's jobs found out; reads the clocks once more.
    pub fn finish(mut self) -> Result<(Vec<End>, Conversation, Vec<Reading>), StandaloneError> {
        self.readings
            .push(self.conversation.read_clocks(MANY_EXCHANGES)?);
        Ok((self.jobs.finish(), self.conversation, self.readings))
    }
}
