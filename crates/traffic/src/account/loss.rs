//! Runs of datagrams that never arrived, told by the numbers that are missing.

use crate::outcome::LossBursts;

/// Takes the numbers of a flow in their order, once it is certain which of them arrived.
pub(super) struct LossRuns {
    /// The lowest and the highest number of the datagrams that count; what is missing outside is nobody's loss.
    lowest: u64,
    highest: u64,
    run: u64,
    lost: u64,
    bursts: u64,
    longest: u64,
}

impl LossRuns {
    pub fn new() -> Self {
        Self {
            lowest: u64::MAX,
            highest: 0,
            run: 0,
            lost: 0,
            bursts: 0,
            longest: 0,
        }
    }

    /// Extends the range in which losses count to `number`, which has arrived.
    pub fn include(&mut self, number: u64) {
        self.lowest = self.lowest.min(number);
        self.highest = self.highest.max(number);
    }

    /// Takes the 64 numbers from `first`, with a bit for each that arrived, the lowest bit for the first.
    pub fn word(&mut self, first: u64, arrived: u64) {
        if first > self.highest || first + 63 < self.lowest {
            return;
        }
        let mut bits = arrived;
        let mut left = (self.highest - first + 1).min(64) as u32;
        if first < self.lowest {
            let skipped = (self.lowest - first) as u32;
            bits >>= skipped;
            left -= skipped;
        }
        while left > 0 {
            let arrived = bits.trailing_ones().min(left);
            if arrived > 0 {
                self.end_run();
            }
            left -= arrived;
            bits = bits.checked_shr(arrived).unwrap_or(0);
            let missing = bits.trailing_zeros().min(left);
            self.run += u64::from(missing);
            left -= missing;
            bits = bits.checked_shr(missing).unwrap_or(0);
        }
    }

    /// Takes the numbers from `first` up to and without `end`, none of which arrived.
    pub fn missing(&mut self, first: u64, end: u64) {
        let first = first.max(self.lowest);
        let end = end.min(self.highest + 1);
        self.run += end.saturating_sub(first);
    }

    fn end_run(&mut self) {
        if self.run > 0 {
            self.bursts += 1;
            self.lost += self.run;
            self.longest = self.longest.max(self.run);
            self.run = 0;
        }
    }

    /// What was lost, once all numbers have been taken.
    pub fn finish(&self) -> LossBursts {
        let expected = (self.highest + 1).saturating_sub(self.lowest);
        let mean = (self.bursts > 0).then(|| self.lost as f64 / self.bursts as f64);
        LossBursts {
            expected,
            lost: self.lost,
            bursts: self.bursts,
            mean,
            longest: self.longest,
            ratio: mean.map(|mean| mean * (1.0 - self.lost as f64 / expected as f64)),
        }
    }
}
