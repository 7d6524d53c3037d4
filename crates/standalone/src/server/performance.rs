//! The part of a session in which its jobs run.

use std::time::{Duration, Instant};

use crate::clock;
use crate::jobs::{Jobs, Started};
use crate::message::{Answer, End};

/// Between two reports on what was received so far.
const PROGRESS: Duration = Duration::from_secs(1);

/// How long a client has to agree when the receiver wants to end.
const AGREEMENT: Duration = Duration::from_secs(3);

pub(super) struct Performance {
    jobs: Jobs,
    start_at: i64,
    /// Flows without a job here go on until then.
    lasting_until: Instant,
    next_progress: Instant,
    /// When the jobs are cut short, whatever the client says.
    ultimatum: Option<Instant>,
}

impl Performance {
    /// `start_at` is in ns of CLOCK_REALTIME; the flows last for `lasting` from now on.
    pub fn new(started: Vec<Started>, start_at: i64, lasting: Duration) -> Self {
        let now = Instant::now();
        Self {
            jobs: Jobs::new(started),
            start_at,
            lasting_until: now + lasting,
            next_progress: now + PROGRESS,
            ultimatum: None,
        }
    }

    /// The client wants to end; tells when this end stopped sending.
    pub fn cut_short(&mut self) -> Answer {
        self.jobs.content_themselves();
        self.jobs.cut_short();
        self.lasting_until = Instant::now();
        Answer::Cut {
            at: clock::now().saturating_sub(self.start_at),
        }
    }

    /// The receiver wants to end; something to tell the client the first time.
    pub fn propose_to_end(&mut self) -> Option<Answer> {
        if let Some(ultimatum) = self.ultimatum {
            if Instant::now() >= ultimatum {
                self.cut_short();
            }
            return None;
        }
        self.jobs.content_themselves();
        self.ultimatum = Some(Instant::now() + AGREEMENT);
        Some(Answer::Cut {
            at: clock::now().saturating_sub(self.start_at),
        })
    }

    /// Something to tell the client once a second.
    pub fn progress(&mut self) -> Option<Answer> {
        if Instant::now() < self.next_progress {
            return None;
        }
        self.next_progress += PROGRESS;
        Some(Answer::Progress {
            received: self.jobs.received(),
        })
    }

    /// What the jobs found out, when it is over.
    pub fn end(&mut self) -> Option<Vec<End>> {
        let have_ended = self.jobs.have_ended();
        let is_over = Instant::now() >= self.lasting_until || self.jobs.failure().is_some();
        (have_ended && is_over).then(|| self.jobs.finish())
    }
}
