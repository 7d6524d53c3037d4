//! The order of a conversation as the receiver sees it, without sockets and clocks.

use std::time::Duration;

use crate::message::{Refusal, Request, Why};
use crate::offer::Offer;

/// The farthest ahead that a start may lie.
const LONGEST_LEAD: Duration = Duration::from_secs(30);

/// Where the conversation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing was said yet.
    Greeting,
    /// The ends know each other.
    Open,
    /// An offer was taken; its flows meet.
    Accepted,
    /// The jobs run.
    Running,
    /// The results are out.
    Over,
}

impl Phase {
    /// How long the phase may take, or while the jobs run, how long the client may be silent.
    pub fn patience(self) -> Duration {
        match self {
            Self::Greeting => Duration::from_secs(5),
            Self::Open => Duration::from_secs(20),
            Self::Accepted => Duration::from_secs(20),
            Self::Running => Duration::from_secs(30),
            Self::Over => Duration::from_secs(20),
        }
    }
}

/// What a message asks for.
#[derive(Debug, PartialEq)]
pub(crate) enum Act {
    Greet,
    TellTime { sent: i64 },
    Consider(Offer),
    Begin { lead: Duration },
    Cut,
}

/// Follows a conversation and refuses what comes out of turn.
#[derive(Debug)]
pub(crate) struct Dialogue {
    phase: Phase,
}

impl Dialogue {
    pub fn new() -> Self {
        Self {
            phase: Phase::Greeting,
        }
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The jobs have ended and their results are out.
    pub fn over(&mut self) {
        self.phase = Phase::Over;
    }

    /// Takes the client's next message.
    ///
    /// # Errors
    /// What ends the conversation.
    pub fn take(&mut self, request: Request) -> Result<Act, Refusal> {
        let (next, act) = match (self.phase, request) {
            (Phase::Greeting, Request::Hello(hello)) => {
                hello.check()?;
                (Phase::Open, Act::Greet)
            }
            (Phase::Greeting, _) => return Err(out_of_turn()),
            (phase, Request::Clock { sent }) => (phase, Act::TellTime { sent }),
            (Phase::Open, Request::Offer { offer }) => (Phase::Accepted, Act::Consider(offer)),
            (Phase::Accepted, Request::Start { lead }) => {
                let lead = Duration::from_nanos(lead);
                if lead > LONGEST_LEAD {
                    return Err(Refusal::new(
                        Why::Invalid,
                        "a start lies at most 30 s ahead",
                    ));
                }
                (Phase::Running, Act::Begin { lead })
            }
            // Results may have crossed the wish to end early.
            (phase @ (Phase::Running | Phase::Over), Request::Cut) => (phase, Act::Cut),
            _ => return Err(out_of_turn()),
        };
        self.phase = next;
        Ok(act)
    }
}

fn out_of_turn() -> Refusal {
    Refusal::new(Why::Invalid, "a message came out of turn")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::{Hello, VERSION};

    fn offer() -> Offer {
        Offer {
            warm_up: 0,
            measure: 1,
            step: 1,
            flows: Vec::new(),
        }
    }

    fn request() -> impl Strategy<Value = Request> {
        prop_oneof![
            any::<u16>().prop_map(|version| Request::Hello(Hello {
                version,
                ..Hello::own()
            })),
            Just(Request::Hello(Hello::own())),
            any::<i64>().prop_map(|sent| Request::Clock { sent }),
            Just(Request::Offer { offer: offer() }),
            any::<u64>().prop_map(|lead| Request::Start { lead }),
            Just(Request::Start { lead: 1 }),
            Just(Request::Cut),
        ]
    }

    #[test]
    fn a_conversation_takes_its_course() {
        let mut dialogue = Dialogue::new();
        let mut take = |request| dialogue.take(request).unwrap();
        assert!(matches!(take(Request::Hello(Hello::own())), Act::Greet));
        assert_eq!(take(Request::Clock { sent: 5 }), Act::TellTime { sent: 5 });
        assert_eq!(
            take(Request::Offer { offer: offer() }),
            Act::Consider(offer())
        );
        assert!(matches!(
            take(Request::Start { lead: 7 }),
            Act::Begin { .. }
        ));
        assert_eq!(take(Request::Cut), Act::Cut);
        assert_eq!(dialogue.phase(), Phase::Running);
    }

    #[test]
    fn another_version_is_refused_by_name() {
        let hello = Hello {
            version: VERSION + 1,
            tool: "9.9".into(),
            clock: String::new(),
        };
        let refusal = Dialogue::new().take(Request::Hello(hello)).unwrap_err();
        assert_eq!(refusal.why, Why::Version);
        assert!(refusal.reason.contains("9.9"), "{}", refusal.reason);
    }

    proptest! {
        #[test]
        fn jobs_begin_only_after_a_hello_and_an_accepted_offer(
            requests in prop::collection::vec(request(), 0..12),
        ) {
            let mut dialogue = Dialogue::new();
            let mut greeted = false;
            let mut offers = 0;
            for request in requests {
                match dialogue.take(request) {
                    Ok(Act::Greet) => greeted = true,
                    Ok(Act::Consider(_)) => offers += 1,
                    Ok(Act::Begin { .. }) => prop_assert!(greeted && offers == 1),
                    Ok(_) => prop_assert!(greeted),
                    Err(_) => break,
                }
                prop_assert!(offers <= 1);
            }
        }
    }
}
