//! Packet-level processes: when datagrams depart and how long they are, drawn from distributions with a seed.
//!
//! Pure: nothing here reads a clock or touches a socket, and the same seed gives the same packets on every machine.

mod departures;
mod distribution;
mod generator;
mod located;
mod plan;
mod profile;
mod sampler;
pub mod script;
mod sizes;
mod timetable;
mod transport;

pub use departures::{Departures, HIGHEST_RATE};
pub use distribution::Distribution;
pub use located::TextError;
pub use plan::{Plan, Planned};
pub use profile::{Profile, profile, profiles};
pub use sampler::Sampler;
pub use sizes::{SizeSampler, Sizes};
pub use timetable::Timetable;
pub use transport::Transport;
