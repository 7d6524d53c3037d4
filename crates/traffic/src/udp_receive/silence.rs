//! When the last datagram has come: in a silence that is longer than any before.

/// What part of the longest wait a silence must exceed all earlier ones by.
const LONGER: i64 = 16;

/// The silences of a flow, ns since the start of its schedule.
///
/// They count from the start of the schedule on, so that what a path delays all datagrams by is one of them.
#[derive(Debug, Default)]
pub(super) struct Silence {
    since: i64,
    longest: i64,
}

impl Silence {
    /// Something arrived.
    pub fn broken(&mut self, now: i64) {
        self.longest = self.longest.max(now - self.since);
        self.since = now;
    }

    /// Whether nothing more is to be waited for after the `end` of the schedule, `longest_wait` after it at the latest.
    pub fn is_final(&self, now: i64, end: i64, longest_wait: i64) -> bool {
        let usual = self.longest.max(end - self.since);
        now >= end + longest_wait || now >= self.since.max(end) + usual + longest_wait / LONGER
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const END: i64 = 1_000;
    const LONGEST_WAIT: i64 = 160;

    fn silence(arrivals: impl IntoIterator<Item = i64>) -> Silence {
        let mut silence = Silence::default();
        arrivals
            .into_iter()
            .for_each(|arrival| silence.broken(arrival));
        silence
    }

    fn first_final(silence: &Silence) -> i64 {
        (0..)
            .find(|now| silence.is_final(*now, END, LONGEST_WAIT))
            .unwrap()
    }

    #[test]
    fn a_steady_flow_is_over_soon_after_its_end() {
        assert_eq!(first_final(&silence((5..=END).step_by(5))), END + 5 + 10);
    }

    #[test]
    fn a_path_that_delays_all_is_waited_for() {
        let delayed = silence((80..=END).step_by(5));
        assert!(!delayed.is_final(END + 80, END, LONGEST_WAIT));
    }

    #[test]
    fn a_flow_that_stalls_at_the_end_gets_as_long_again() {
        let stalled = silence((5..=END - 70).step_by(5));
        assert_eq!(first_final(&stalled), END + 70 + 10);
    }

    #[test]
    fn who_is_late_begins_a_new_silence() {
        let late = silence((5..=END + 40).step_by(5));
        assert_eq!(first_final(&late), END + 40 + 5 + 10);
    }

    proptest! {
        #[test]
        fn the_end_is_after_the_schedule_and_before_the_longest_wait_is_over(
            mut arrivals in prop::collection::vec(0..END + LONGEST_WAIT, 0..50)
        ) {
            arrivals.sort_unstable();
            let silence = silence(arrivals);
            prop_assert!(!silence.is_final(END, END, LONGEST_WAIT));
            prop_assert!(silence.is_final(END + LONGEST_WAIT, END, LONGEST_WAIT));
        }
    }
}
