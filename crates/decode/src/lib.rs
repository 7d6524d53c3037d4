//! Decodes packet logs: the statistics of each flow and of all together, windows of any length, CSV.

mod arguments;
mod batches;
mod csv;
mod decoding;
mod departures;
mod duration;
mod error;
mod printing;
mod result;
mod summary;

pub use arguments::{Arguments, run};
pub use decoding::{Selection, decode};
pub use error::DecodeError;
pub use result::{Decoded, DecodedFlow, DecodedLog};
pub use summary::{DelaySummary, Summary};
