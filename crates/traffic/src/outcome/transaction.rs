//! What the ends of transactions did.

use serde::{Deserialize, Serialize};

use crate::histogram::Histogram;
use crate::outcome::RoundTripSeries;

/// What a server of transactions did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TransactionsServed {
    /// Requests answered, in all phases; more than the client's transactions where requests came twice.
    pub responses: u64,
    /// Connections of this job, or sources of its datagrams.
    pub connections: u64,
    /// Connections and datagrams that were not of this job and got no answer.
    pub foreign: u64,
    /// Processor time in the measured window, all threads, ns.
    pub processor: u64,
}

/// What a client of transactions saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transacted {
    /// Transactions completed in the measured window.
    pub transactions: u64,
    /// Attempts that failed in the measured window, each followed by another at the same transaction: fresh connections
    /// that did not come about or broke, requests over UDP without a response in time.
    pub failures: u64,
    /// From the beginning of a transaction, with the connection where it is fresh, to the last byte of its response;
    /// with all attempts at it.
    pub round_trip: Option<Histogram>,
    /// Time until a fresh connection was established; none without fresh connections.
    pub connect: Option<Histogram>,
    /// The transactions of all phases, each counted where it began and where it was completed.
    pub series: RoundTripSeries,
    /// Transactions completed in all phases.
    pub total: u64,
    /// Processor time in the measured window, all threads, ns.
    pub processor: u64,
}
