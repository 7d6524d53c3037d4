//! The engine's jobs of one end of a session, side by side.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use tunnelbench_traffic::{Running, Stopper, TrafficError};

use crate::message::End;

/// Jobs under way. Dropping them stops them.
pub(crate) struct Jobs {
    stoppers: Vec<Stopper>,
    ended: Receiver<(usize, End)>,
    ends: Vec<Option<End>>,
}

impl Jobs {
    /// Waits for each job in a thread of its own; a flow may have none here.
    pub fn new(running: Vec<Option<Running>>) -> Self {
        let (sender, ended) = channel();
        let ends = running
            .iter()
            .map(|job| job.is_none().then_some(End::Nothing))
            .collect();
        let stoppers = running.iter().flatten().map(Running::stopper).collect();
        for (index, job) in running.into_iter().enumerate() {
            if let Some(job) = job {
                wait_for(index, job, sender.clone());
            }
        }
        Self {
            stoppers,
            ended,
            ends,
        }
    }

    /// Asks all jobs to end soon.
    pub fn stop(&self) {
        self.stoppers.iter().for_each(Stopper::stop);
    }

    /// Looks which jobs have ended; whether all have.
    pub fn have_ended(&mut self) -> bool {
        while let Ok((index, end)) = self.ended.try_recv() {
            self.ends[index] = Some(end);
        }
        self.ends.iter().all(Option::is_some)
    }

    /// The first failure so far.
    pub fn failure(&self) -> Option<&str> {
        self.ends.iter().flatten().find_map(End::failure)
    }

    /// What each job found out, in the order in which they were given; of one that has not ended, that it was stopped.
    pub fn finish(&mut self) -> Vec<End> {
        self.have_ended();
        let ends = std::mem::take(&mut self.ends).into_iter();
        ends.map(|end| end.unwrap_or_else(|| Err(TrafficError::Stopped).into()))
            .collect()
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.stop();
    }
}

fn wait_for(index: usize, job: Running, ended: Sender<(usize, End)>) {
    thread::spawn(move || {
        // Nobody listens any more where the session broke off.
        let _ = ended.send((index, job.finish().into()));
    });
}
