//! What a log says about itself, as key-value metadata of the file.

use std::collections::BTreeMap;

use parquet::file::metadata::KeyValue;
use serde::{Deserialize, Serialize};

/// The key of the head; its value is JSON.
const HEAD: &str = "tunnelbench.head";
/// The key of the number of records that were dropped because the disk was too slow.
const DROPPED: &str = "tunnelbench.dropped";
/// The key that says whether the log was finished: a run that was killed leaves it at `false`.
const COMPLETE: &str = "tunnelbench.complete";

/// What must be known to read a log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHead {
    /// The version of the program that wrote it.
    pub version: String,
    /// When was sent and what of it is measured, in the clock of the node that wrote the log.
    pub schedule: LogSchedule,
    /// The name of each flow.
    pub flows: BTreeMap<u16, String>,
    /// How the sender's clock relates to the receiver's; none where both are the same clock or nobody knows.
    pub clock: Option<Clock>,
}

/// The time plan of a run, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSchedule {
    /// When sending starts: ns of CLOCK_REALTIME.
    pub start_at: i64,
    /// Sending before the measured window.
    pub warm_up: u64,
    /// The measured window.
    pub measure: u64,
    /// Sending after the measured window.
    pub cool_down: u64,
}

/// How two clocks relate, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Receiver's clock minus sender's; the log's times contain it already.
    pub offset: i64,
    /// By how much `offset` may be wrong in either direction.
    pub uncertainty: u64,
}

/// The head, and how the writing went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub head: LogHead,
    pub dropped: u64,
    pub complete: bool,
}

impl Metadata {
    pub fn to_key_values(&self) -> Vec<KeyValue> {
        let head = serde_json::to_string(&self.head).expect("a head has only string keys");
        vec![
            KeyValue::new(HEAD.to_owned(), head),
            KeyValue::new(DROPPED.to_owned(), self.dropped.to_string()),
            KeyValue::new(COMPLETE.to_owned(), self.complete.to_string()),
        ]
    }

    /// Says what is missing or wrong.
    pub fn from_key_values(pairs: &[KeyValue]) -> Result<Self, String> {
        let value = |key: &str| {
            let pair = pairs.iter().find(|pair| pair.key == key);
            pair.and_then(|pair| pair.value.as_deref())
                .ok_or_else(|| format!("its metadata has no {key}"))
        };
        let wrong = |key: &'static str| {
            move |error: &dyn std::fmt::Display| format!("its {key} is wrong: {error}")
        };
        Ok(Self {
            head: serde_json::from_str(value(HEAD)?).map_err(|error| wrong(HEAD)(&error))?,
            dropped: value(DROPPED)?
                .parse()
                .map_err(|error: std::num::ParseIntError| wrong(DROPPED)(&error))?,
            complete: value(COMPLETE)?
                .parse()
                .map_err(|error: std::str::ParseBoolError| wrong(COMPLETE)(&error))?,
        })
    }
}
