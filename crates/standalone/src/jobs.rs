//! The engine's jobs of one end of a session, side by side.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use tunnelbench_traffic::{Outcome, Running, Stopper, TrafficError};

/// Jobs under way. Dropping them stops them.
pub(crate) struct Jobs {
    stoppers: Vec<Stopper>,
    ended: Receiver<(usize, Result<Outcome, TrafficError>)>,
    ends: Vec<Option<Result<Outcome, TrafficError>>>,
}

impl Jobs {
    /// Waits for each job in a thread of its own.
    pub fn new(running: Vec<Running>) -> Self {
        let (sender, ended) = channel();
        let ends = running.iter().map(|_| None).collect();
        let stoppers = running.iter().map(Running::stopper).collect();
        for (index, job) in running.into_iter().enumerate() {
            wait_for(index, job, sender.clone());
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
    pub fn failure(&self) -> Option<&TrafficError> {
        self.ends
            .iter()
            .flatten()
            .find_map(|end| end.as_ref().err())
    }

    /// What each job found out, in the order in which they were given; of one that has not ended, that it was stopped.
    pub fn finish(mut self) -> Vec<Result<Outcome, TrafficError>> {
        self.have_ended();
        std::mem::take(&mut self.ends)
            .into_iter()
            .map(|end| end.unwrap_or(Err(TrafficError::Stopped)))
            .collect()
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        self.stop();
    }
}

fn wait_for(index: usize, job: Running, ended: Sender<(usize, Result<Outcome, TrafficError>)>) {
    let report = move || {
        // Nobody listens any more where the session broke off.
        let _ = ended.send((index, job.finish()));
    };
    thread::spawn(report);
}
