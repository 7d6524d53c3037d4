//! The traffic engine between any two machines: a receiver that takes part in what clients ask, and the client.
//!
//! Both ends agree over an authenticated and encrypted control channel, see [`House`] and [`run`]. Traffic goes only
//! between the two ends of that channel.

mod channel;
mod client;
mod clock;
pub mod command;
mod error;
mod frames;
mod jobs;
mod key;
mod limits;
mod message;
mod offer;
mod plan;
mod quantity;
mod random;
mod rendezvous;
mod report;
mod secrecy;
mod server;

pub use error::StandaloneError;
