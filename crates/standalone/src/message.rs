//! What the two ends say on the control channel: MessagePack maps whose `kind` names the message.

use serde::{Deserialize, Serialize};
use tunnelbench_traffic::outcome::Tally;
use tunnelbench_traffic::{Outcome, TrafficError};

use crate::offer::Offer;

/// Changes whenever an end of the version before would not understand.
pub(crate) const VERSION: u16 = 1;

/// The longest message that a receiver takes from a client.
pub(crate) const LONGEST_REQUEST: usize = 1 << 20;

/// The longest message that a client takes from its receiver: results hold series and histograms.
pub(crate) const LONGEST_ANSWER: usize = 64 << 20;

/// Bytes of a rendezvous token.
pub(crate) const TOKEN_BYTES: usize = 16;

/// From the client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// The first message.
    Hello(Hello),
    /// Asks for the receiver's clock; at any time after the hello.
    Clock { sent: i64 },
    /// Asks for a session.
    Offer { offer: Offer },
    /// Begin after `lead` ns.
    Start { lead: u64 },
    /// End early.
    Cut,
}

/// From the receiver.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Answer {
    /// To the hello.
    Hello(Hello),
    /// To `clock`, with its `sent`.
    Clock {
        sent: i64,
        received: i64,
        answered: i64,
    },
    /// To `offer`: where each flow meets, and payload bits per second for those that asked for as much as they can get.
    Accepted {
        places: Vec<Place>,
        paces: Vec<Option<u64>>,
    },
    /// To `start`: when, in the receiver's CLOCK_REALTIME, and each flow's port.
    Started { start_at: i64, ports: Vec<u16> },
    /// Each second: what each flow brought here so far.
    Progress { received: Vec<Tally> },
    /// To `cut`: when this end stopped sending, ns since the start. Unasked, a wish to end early.
    Cut { at: i64 },
    /// What the receiver's end of each flow found out; the last message but answers to `clock`.
    Results { flows: Vec<End> },
    /// Instead of any of them: no session, and the end of the conversation.
    Refused(Refusal),
}

/// Who speaks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Hello {
    pub version: u16,
    /// The version of the program, for people.
    pub tool: String,
    /// See [`crate::clock::identity`].
    pub clock: String,
}

impl Hello {
    pub fn own() -> Self {
        Self {
            version: VERSION,
            tool: env!("CARGO_PKG_VERSION").into(),
            clock: crate::clock::identity(),
        }
    }

    /// Says what is wrong where the other end speaks another version.
    pub fn check(&self) -> Result<(), Refusal> {
        if self.version == VERSION {
            return Ok(());
        }
        Err(Refusal {
            why: Why::Version,
            reason: format!(
                "the two ends are tbnode {} and {}, which do not understand each other; install the same version on both",
                self.tool,
                env!("CARGO_PKG_VERSION")
            ),
        })
    }
}

/// Where the two ends of a flow meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    /// The secret of this flow's packets and connections.
    pub session: u64,
    /// Where UDP datagrams are to prove the client's address first; none for other transports.
    pub rendezvous: Option<Rendezvous>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rendezvous {
    pub port: u16,
    pub token: [u8; TOKEN_BYTES],
}

/// Why a receiver does not take part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refusal {
    /// For programs.
    pub why: Why,
    /// For people.
    pub reason: String,
}

/// The kinds of refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// As many sessions as the receiver takes are running.
    Busy,
    /// The offer is beyond the receiver's limits.
    Limit,
    /// The offer makes no sense, or the receiver cannot do it.
    Invalid,
    /// The ends speak different versions.
    Version,
    /// The receiver ends.
    Ending,
}

impl Refusal {
    pub(crate) fn new(why: Why, reason: impl Into<String>) -> Self {
        Self {
            why,
            reason: reason.into(),
        }
    }
}

/// One end of a flow: what its job found out, or why it could not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// Of a job that ended as it should.
    Outcome(Box<Outcome>),
    /// In words for people.
    Failure(String),
    /// The flow has no job here: the system answers echo requests by itself.
    Nothing,
}

impl From<Result<Outcome, TrafficError>> for End {
    fn from(end: Result<Outcome, TrafficError>) -> Self {
        match end {
            Ok(outcome) => Self::Outcome(Box::new(outcome)),
            Err(failure) => Self::Failure(failure.to_string()),
        }
    }
}

impl End {
    /// What the job found out; none where it failed or there is none.
    pub(crate) fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Outcome(outcome) => Some(outcome),
            Self::Failure(_) | Self::Nothing => None,
        }
    }

    /// Why it could not.
    pub(crate) fn failure(&self) -> Option<&str> {
        match self {
            Self::Failure(failure) => Some(failure),
            Self::Outcome(_) | Self::Nothing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answers() -> Vec<Answer> {
        vec![
            Answer::Hello(Hello::own()),
            Answer::Clock {
                sent: 1,
                received: 2,
                answered: 3,
            },
            Answer::Accepted {
                places: vec![Place {
                    session: 7,
                    rendezvous: Some(Rendezvous {
                        port: 5211,
                        token: [9; TOKEN_BYTES],
                    }),
                }],
                paces: vec![Some(1_000_000)],
            },
            Answer::Started {
                start_at: 5,
                ports: vec![5211],
            },
            Answer::Results {
                flows: vec![End::Nothing, End::Failure("no".into())],
            },
            Answer::Refused(Refusal::new(Why::Busy, "busy")),
        ]
    }

    #[test]
    fn messages_survive_the_encoding() {
        for answer in answers() {
            let bytes = rmp_serde::to_vec_named(&answer).unwrap();
            assert_eq!(rmp_serde::from_slice::<Answer>(&bytes).unwrap(), answer);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = rmp_serde::from_slice::<Request>(&bytes);
            let _ = rmp_serde::from_slice::<Answer>(&bytes);
        }

        #[test]
        fn damaged_messages_are_survived(
            number in 0_usize..6, place: prop::sample::Index, byte: u8, cut in 0_usize..5,
        ) {
            let mut bytes = rmp_serde::to_vec_named(&answers()[number]).unwrap();
            *place.get_mut(&mut bytes) = byte;
            bytes.truncate(bytes.len() - cut);
            let _ = rmp_serde::from_slice::<Request>(&bytes);
            let _ = rmp_serde::from_slice::<Answer>(&bytes);
        }
    }
}
