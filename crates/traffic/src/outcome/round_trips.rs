//! Round trips over time.

use serde::{Deserialize, Serialize};

/// Round trips in equal steps from the start of the schedule, or of a job without one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTripSeries {
    /// Length of a step, ns.
    pub step: u64,
    /// How many began in each step.
    pub begun: Vec<u64>,
    /// How many were completed.
    pub completed: Vec<u64>,
    /// The shortest of those, ns; none where there is none.
    pub shortest: Vec<Option<u64>>,
    /// Their mean, ns.
    pub mean: Vec<Option<f64>>,
    /// The longest, ns.
    pub longest: Vec<Option<u64>>,
}
