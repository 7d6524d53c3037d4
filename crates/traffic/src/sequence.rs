//! Which datagrams are new, which are copies and which come out of order, in bounded memory.

/// How far behind the newest datagram a copy can still be told from a latecomer.
pub(crate) const WINDOW: u64 = 1 << 20;

/// What a datagram turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// New, and not below the next expected number.
    InOrder,
    /// New, and type-P-reordered: its number is below the next expected one (RFC 4737 section 3.3).
    Reordered,
    /// Seen before (RFC 5560).
    Duplicate,
    /// So far behind the newest that nobody remembers whether it came before.
    BeyondWindow,
}

/// Accounts for sequence numbers as they arrive: counted modulo 2^32 on the wire, without end here.
pub(crate) struct SequenceTracker {
    /// One above the highest number seen (NextExp of RFC 4737).
    next_expected: u64,
    /// A bit for each of the last [`WINDOW`] numbers, at its number modulo `WINDOW`.
    seen: Vec<u64>,
}

impl SequenceTracker {
    pub fn new() -> Self {
        Self {
            next_expected: 0,
            seen: vec![0; (WINDOW / 64) as usize],
        }
    }

    pub fn observe(&mut self, sequence: u32) -> Arrival {
        let Some(number) = self.unwrap(sequence) else {
            return Arrival::BeyondWindow;
        };
        if number >= self.next_expected {
            self.forget_up_to(number);
            self.mark(number);
            return Arrival::InOrder;
        }
        if self.next_expected - number > WINDOW {
            return Arrival::BeyondWindow;
        }
        if self.mark(number) {
            Arrival::Duplicate
        } else {
            Arrival::Reordered
        }
    }

    /// The number without end that is nearest to the next expected one; none where that would be negative.
    fn unwrap(&self, sequence: u32) -> Option<u64> {
        let ahead = sequence.wrapping_sub(self.next_expected as u32) as i32;
        self.next_expected.checked_add_signed(i64::from(ahead))
    }

    /// Moves the window so that it ends with `number`, clearing what the new places remember of older numbers.
    fn forget_up_to(&mut self, number: u64) {
        if number - self.next_expected >= WINDOW {
            self.seen.fill(0);
        } else {
            for forgotten in self.next_expected..=number {
                let (word, bit) = place(forgotten);
                self.seen[word] &= !bit;
            }
        }
        self.next_expected = number + 1;
    }

    /// Remembers `number`; true where it was remembered already.
    fn mark(&mut self, number: u64) -> bool {
        let (word, bit) = place(number);
        let known = self.seen[word] & bit != 0;
        self.seen[word] |= bit;
        known
    }
}

fn place(number: u64) -> (usize, u64) {
    let index = number % WINDOW;
    ((index / 64) as usize, 1 << (index % 64))
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
                return Arrival::Reordered;
            }
            self.next_expected = number + 1;
            Arrival::InOrder
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
                prop_assert_eq!(tracker.observe(number as u32), model.observe(number), "number {}", number);
            }
        }
    }

    #[test]
    fn numbers_go_on_past_32_bits() {
        let mut tracker = SequenceTracker::new();
        tracker.next_expected = u64::from(u32::MAX) - 1;
        let wrapped = [u32::MAX - 1, u32::MAX, 1, 0, 1, 2, u32::MAX]
            .map(|sequence| tracker.observe(sequence));
        use Arrival::{Duplicate, InOrder, Reordered};
        assert_eq!(
            wrapped,
            [
                InOrder, InOrder, InOrder, Reordered, Duplicate, InOrder, Duplicate
            ]
        );
        assert_eq!(tracker.next_expected, (1 << 32) + 3);
    }

    #[test]
    fn a_number_before_the_first_is_beyond_the_window() {
        assert_eq!(
            SequenceTracker::new().observe(u32::MAX),
            Arrival::BeyondWindow
        );
    }
}
