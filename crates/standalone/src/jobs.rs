//! The engine's jobs of one end of a session, side by side.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use tunnelbench_traffic::outcome::Tally;
use tunnelbench_traffic::{Running, Stopper, TrafficError};

use crate::message::End;

/// How long receivers go on when a session is cut short, for what is still on its way.
const STRAGGLERS: Duration = Duration::from_millis(500);

/// A job that was started, and whether it sends payload; none for a flow without a job at this end.
pub(crate) type Started = Option<(Running, bool)>;

/// Jobs under way. Dropping them stops them.
pub(crate) struct Jobs {
    watched: Vec<Option<Watched>>,
    ended: Receiver<(usize, End)>,
    ends: Vec<Option<End>>,
    /// When receivers stop, too.
    stop_all_at: Option<Instant>,
}

struct Watched {
    stopper: Stopper,
    sends: bool,
}

impl Jobs {
    /// Waits for each job in a thread of its own.
    pub fn new(started: Vec<Started>) -> Self {
        let (sender, ended) = channel();
        let ends = started
            .iter()
            .map(|job| job.is_none().then_some(End::Nothing))
            .collect();
        let watched = started
            .into_iter()
            .enumerate()
            .map(|(index, started)| {
                let (job, sends) = started?;
                let stopper = job.stopper();
                wait_for(index, job, sender.clone());
                Some(Watched { stopper, sends })
            })
            .collect();
        Self {
            watched,
            ended,
            ends,
            stop_all_at: None,
        }
    }

    /// Has all jobs content themselves with what they have when they are stopped or the other end hangs up.
    pub fn content_themselves(&self) {
        self.each(|job| job.stopper.content_itself());
    }

    /// Stops what sends, and a little later the rest.
    pub fn cut_short(&mut self) {
        self.each(|job| {
            if job.sends {
                job.stopper.stop();
            }
        });
        self.stop_all_at = Some(Instant::now() + STRAGGLERS);
    }

    /// Looks which jobs have ended; whether all have.
    pub fn have_ended(&mut self) -> bool {
        if self.stop_all_at.is_some_and(|at| Instant::now() >= at) {
            self.each(|job| job.stopper.stop());
        }
        while let Ok((index, end)) = self.ended.try_recv() {
            self.ends[index] = Some(end);
        }
        self.ends.iter().all(Option::is_some)
    }

    /// The first failure so far.
    pub fn failure(&self) -> Option<&str> {
        self.ends.iter().flatten().find_map(End::failure)
    }

    /// What each flow has received here so far.
    pub fn received(&self) -> Vec<Tally> {
        let received = |job: &Option<Watched>| {
            job.as_ref()
                .map_or_else(Tally::default, |job| job.stopper.received())
        };
        self.watched.iter().map(received).collect()
    }

    /// What each job found out, in the order in which they were given; of one that has not ended, that it was stopped.
    pub fn finish(&mut self) -> Vec<End> {
        self.have_ended();
        let ends = std::mem::take(&mut self.ends).into_iter();
        ends.map(|end| end.unwrap_or_else(|| Err(TrafficError::Stopped).into()))
            .collect()
    }

    fn each(&self, act: impl Fn(&Watched)) {
        self.watched.iter().flatten().for_each(act);
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.each(|job| job.stopper.stop());
    }
}

fn wait_for(index: usize, job: Running, ended: Sender<(usize, End)>) {
    thread::spawn(move || {
        // Nobody listens any more where the session broke off.
        let _ = ended.send((index, job.finish().into()));
    });
}
