//! The probes that a reply may still come to: the memory of a prober, however long it runs.

use std::collections::VecDeque;

/// Probes by their number, each kept until its time limit, so that further copies of its reply can be told.
pub(crate) struct Outstanding {
    timeout: i64,
    /// Number of the first in `probes`.
    first: u64,
    probes: VecDeque<Probe>,
    waiting: usize,
    /// One more than the highest number that was answered.
    next_expected: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Departure {
    /// When the probe should have left, ns since the start.
    pub intended: i64,
    /// When it did.
    pub real: i64,
}

struct Probe {
    departure: Departure,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Answered,
    Refused,
}

/// What a reply is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The first to this probe.
    First {
        departure: Departure,
        /// A probe sent later was answered before.
        reordered: bool,
    },
    /// A further one.
    Duplicate { departure: Departure },
    /// Came after the time limit, for the first time or again.
    Late,
    /// To no probe of ours.
    Foreign,
}

impl Outstanding {
    /// `timeout` is how long a reply may take, ns.
    pub fn new(timeout: i64) -> Self {
        Self {
            timeout,
            first: 0,
            probes: VecDeque::new(),
            waiting: 0,
            next_expected: 0,
        }
    }

    /// The number of the next probe, modulo 2^32.
    pub fn next_sequence(&self) -> u32 {
        (self.first + self.probes.len() as u64) as u32
    }

    /// How many probes may still be answered.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    /// Until when replies to what was sent last are waited for, ns since the start.
    pub fn last_given_up(&self) -> Option<i64> {
        self.probes
            .back()
            .map(|probe| probe.departure.real + self.timeout)
    }

    /// Notes that the next probe left.
    pub fn departed(&mut self, departure: Departure) {
        self.waiting += 1;
        self.probes.push_back(Probe {
            departure,
            state: State::Waiting,
        });
    }

    /// Notes a reply to the probe `sequence`, which says when that should have left, that came at `arrived`.
    pub fn reply(&mut self, sequence: u32, intended: i64, arrived: i64) -> Reply {
        let place = sequence.wrapping_sub(self.first as u32);
        let number = self.first + u64::from(place);
        let Some(probe) = self.probes.get_mut(place as usize) else {
            let before = (self.first as u32).wrapping_sub(sequence);
            let was_ours = (1..=u32::MAX / 2).contains(&before) && u64::from(before) <= self.first;
            return if was_ours {
                Reply::Late
            } else {
                Reply::Foreign
            };
        };
        let departure = probe.departure;
        if departure.intended != intended {
            return Reply::Foreign;
        }
        if arrived - departure.real > self.timeout {
            return Reply::Late;
        }
        if probe.state == State::Answered {
            return Reply::Duplicate { departure };
        }
        self.waiting -= usize::from(probe.state == State::Waiting);
        probe.state = State::Answered;
        let reordered = number < self.next_expected;
        self.next_expected = self.next_expected.max(number + 1);
        Reply::First {
            departure,
            reordered,
        }
    }

    /// Notes that the newest probe whose number ends in `sequence` will not be answered; none where no such probe waits.
    pub fn refused(&mut self, sequence: u16) -> Option<Departure> {
        let newest = self.next_sequence().wrapping_sub(1);
        let back = usize::from((newest as u16).wrapping_sub(sequence));
        let place = self.probes.len().checked_sub(back + 1)?;
        let probe = &mut self.probes[place];
        if probe.state != State::Waiting {
            return None;
        }
        probe.state = State::Refused;
        self.waiting -= 1;
        Some(probe.departure)
    }

    /// Gives up what left longer than the time limit ago.
    pub fn expire(&mut self, now: i64) {
        while let Some(probe) = self.probes.front() {
            if now - probe.departure.real <= self.timeout {
                return;
            }
            self.waiting -= usize::from(probe.state == State::Waiting);
            self.first += 1;
            self.probes.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    fn at(time: i64) -> Departure {
        Departure {
            intended: time,
            real: time,
        }
    }

    fn with_departures(times: impl IntoIterator<Item = i64>) -> Outstanding {
        let mut outstanding = Outstanding::new(100);
        times
            .into_iter()
            .for_each(|time| outstanding.departed(at(time)));
        outstanding
    }

    #[test]
    fn replies_are_told_apart() {
        let mut outstanding = with_departures([0, 10, 20]);
        let first = |time, reordered| Reply::First {
            departure: at(time),
            reordered,
        };
        assert_eq!(outstanding.reply(1, 10, 15), first(10, false));
        assert_eq!(outstanding.reply(0, 0, 16), first(0, true));
        let duplicate = Reply::Duplicate { departure: at(10) };
        assert_eq!(outstanding.reply(1, 10, 17), duplicate);
        assert_eq!(outstanding.reply(2, 21, 30), Reply::Foreign);
        assert_eq!(outstanding.reply(2, 20, 121), Reply::Late);
        assert_eq!(outstanding.reply(3, 30, 40), Reply::Foreign);
        assert_eq!(outstanding.waiting(), 1);
        outstanding.expire(121);
        assert_eq!(outstanding.waiting(), 0);
        assert_eq!(outstanding.reply(2, 20, 122), Reply::Late);
        assert_eq!(outstanding.next_sequence(), 3);
    }

    #[test]
    fn a_refused_probe_is_not_waited_for_and_may_yet_be_answered() {
        let mut outstanding = with_departures([0, 10]);
        assert_eq!(outstanding.refused(7), None);
        assert_eq!(outstanding.refused(0), Some(at(0)));
        assert_eq!(outstanding.refused(0), None);
        assert_eq!(outstanding.waiting(), 1);
        assert!(matches!(outstanding.reply(0, 0, 20), Reply::First { .. }));
        assert_eq!(outstanding.waiting(), 1);
    }

    #[test]
    fn only_what_is_within_the_time_limit_is_kept() {
        let mut outstanding = Outstanding::new(100);
        for time in 0..1_000_000 {
            outstanding.departed(at(time));
            outstanding.expire(time);
        }
        assert_eq!(outstanding.probes.len(), 101);
        assert_eq!(outstanding.next_sequence(), 1_000_000);
    }

    proptest! {
        #[test]
        fn every_probe_is_answered_at_most_once(replies in prop::collection::vec((0_u32..60, 0_i64..300), 0..200)) {
            let mut outstanding = with_departures((0..50).map(|number| number * 3));
            let mut replies = replies;
            replies.sort_by_key(|(_, arrived)| *arrived);
            let mut answered = HashSet::new();
            for (sequence, arrived) in replies {
                outstanding.expire(arrived);
                let departed = i64::from(sequence) * 3;
                let in_time = sequence < 50 && arrived <= departed + 100;
                match outstanding.reply(sequence, departed, arrived) {
                    Reply::First { departure, .. } => {
                        prop_assert_eq!(departure, at(departed));
                        prop_assert!(in_time && answered.insert(sequence));
                    }
                    Reply::Duplicate { .. } => prop_assert!(in_time && answered.contains(&sequence)),
                    Reply::Late => prop_assert!(sequence < 50 && !in_time),
                    Reply::Foreign => prop_assert!(sequence >= 50),
                }
            }
            outstanding.expire(1_000);
            prop_assert_eq!(outstanding.waiting(), 0);
        }
    }
}
