//! Traffic over TCP connections.

mod flow;
mod information;
mod open;
mod options;
mod pace;
mod receive;
mod sampling;
mod send;
mod wakeups;
mod welcome;

pub(crate) use open::{connect, listen};
