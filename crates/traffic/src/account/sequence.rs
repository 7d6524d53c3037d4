//! Which datagrams are new, which are copies and which come out of order, in bounded memory.

use crate::account::loss::LossRuns;
use crate::outcome::LossBursts;

const WORDS: u64 = 1 << 14;

/// How far behind the newest datagram a copy can still be told from a latecomer.
pub(super) const WINDOW: u64 = (WORDS - 1) * 64;

/// What a datagram turned out to be, with its number as if numbers had no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// New, and `skipped` above the next expected number.
    InOrder { number: u64, skipped: u64 },
    /// New, and type-P-reordered: its number is below the next expected one (RFC 4737 section 3.3).
    Reordered { number: u64 },
    /// Seen before (RFC 5560).
    Duplicate,
    /// So far behind the newest that nobody remembers whether it came before.
    BeyondWindow,
}

/// Accounts for sequence numbers as they arrive: counted modulo 2^32 on the wire, without end here.
pub(super) struct SequenceTracker {
    /// One above the highest number seen (NextExp of RFC 4737).
    next_expected: u64,
    /// The word with the highest number seen, counted from that of number 0.
    newest: u64,
    /// A bit for each number of the last [`WORDS`] words, each word at its count modulo `WORDS`.
    seen: Vec<u64>,
    lost: LossRuns,
}

impl SequenceTracker {
    pub fn new() -> Self {
        Self {
            next_expected: 0,
            newest: 0,
            seen: vec![0; WORDS as usize],
            lost: LossRuns::new(),
        }
    }

    /// One above the highest number seen.
    pub fn next_expected(&self) -> u64 {
        self.next_expected
    }

    /// Whether `number` came within the window.
    pub fn contains(&self, number: u64) -> bool {
        let behind = self.next_expected.wrapping_sub(number);
        let (word, bit) = place(number);
        (1..=WINDOW).contains(&behind) && self.seen[word] & bit != 0
    }

    /// Takes the next arrival. What is missing between those with `is_measured` counts as lost in the end.
    pub fn observe(&mut self, sequence: u32, is_measured: bool) -> Arrival {
        let Some(number) = self.number(sequence) else {
            return Arrival::BeyondWindow;
        };
        if self.next_expected > number + WINDOW {
            return Arrival::BeyondWindow;
        }
        if number < self.next_expected && self.contains(number) {
            return Arrival::Duplicate;
        }
        if is_measured {
            self.lost.include(number);
        }
        if number / 64 > self.newest {
            self.advance(number / 64);
        }
        let (word, bit) = place(number);
        self.seen[word] |= bit;
        if number < self.next_expected {
            return Arrival::Reordered { number };
        }
        let skipped = number - self.next_expected;
        self.next_expected = number + 1;
        Arrival::InOrder { number, skipped }
    }

    /// The number without end that is nearest to the next expected one; none where that would be negative.
    pub fn number(&self, sequence: u32) -> Option<u64> {
        let ahead = sequence.wrapping_sub(self.next_expected as u32) as i32;
        self.next_expected.checked_add_signed(i64::from(ahead))
    }

    /// Makes `newest` the newest word, and lets go of those that fall out of the window.
    fn advance(&mut self, newest: u64) {
        let reused = (self.newest + 1)..=newest.min(self.newest + WORDS);
        for word in reused {
            let place = (word % WORDS) as usize;
            let seen = std::mem::take(&mut self.seen[place]);
            if let Some(old) = word.checked_sub(WORDS) {
                self.lost.word(old * 64, seen);
            }
        }
        let first_skipped = (self.newest + 1) * 64;
        self.newest = newest;
        self.lost.missing(first_skipped, self.oldest() * 64);
    }

    fn oldest(&self) -> u64 {
        (self.newest + 1).saturating_sub(WORDS)
    }

    /// What was lost.
    pub fn finish(mut self) -> LossBursts {
        for word in self.oldest()..=self.newest {
            self.lost
                .word(word * 64, self.seen[(word % WORDS) as usize]);
        }
        self.lost.finish()
    }
}

fn place(number: u64) -> (usize, u64) {
    ((number / 64 % WORDS) as usize, 1 << (number % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// The same by the book: remembers everything, counts without end.
    #[derive(Default)]
    struct Model {
        next_expected: u64,
        seen: HashSet<u64>,
    }

    impl Model {
        fn observe(&mut self, number: u64) -> Arrival {
            if number + WINDOW < self.next_expected {
                return Arrival::BeyondWindow;
            }
            if !self.seen.insert(number) {
                return Arrival::Duplicate;
            }
            if number < self.next_expected {
                return Arrival::Reordered { number };
            }
            let skipped = number - self.next_expected;
            self.next_expected = number + 1;
            Arrival::InOrder { number, skipped }
        }
    }

    /// Small steps with copies and latecomers, and now and then a leap over the window.
    fn numbers() -> impl Strategy<Value = Vec<u64>> {
        let step = prop_oneof![
            8 => -20_i64..30,
            1 => -(WINDOW as i64) - 5..WINDOW as i64 + 5,
            1 => 0..3 * WINDOW as i64,
        ];
        prop::collection::vec(step, 1..200).prop_map(|steps| {
            let walk = steps.iter().scan(0_i64, |at, step| {
                *at = (*at + step).max(0);
                Some(*at as u64)
            });
            walk.collect()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn agrees_with_a_model_that_remembers_everything(numbers in numbers()) {
            let mut tracker = SequenceTracker::new();
            let mut model = Model::default();
            for number in numbers {
                prop_assert_eq!(tracker.observe(number as u32, true), model.observe(number), "number {}", number);
            }
        }
    }

    #[test]
    fn numbers_go_on_past_32_bits() {
        let mut tracker = SequenceTracker::new();
        let half = (1_u32 << 31) - 1;
        for sequence in [half, half * 2, u32::MAX] {
            tracker.observe(sequence, true);
        }
        assert_eq!(tracker.next_expected(), 1 << 32);
        let wrapped = [1, 0, 1, u32::MAX].map(|sequence| tracker.observe(sequence, true));
        use Arrival::{Duplicate, InOrder, Reordered};
        let first = InOrder {
            number: (1 << 32) + 1,
            skipped: 1,
        };
        let second = Reordered { number: 1 << 32 };
        assert_eq!(wrapped, [first, second, Duplicate, Duplicate]);
    }

    #[test]
    fn a_number_before_the_first_is_beyond_the_window() {
        assert_eq!(
            SequenceTracker::new().observe(u32::MAX, true),
            Arrival::BeyondWindow
        );
    }
}
