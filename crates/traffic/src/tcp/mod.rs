//! Traffic over TCP connections.

mod bulk;
mod ending;
mod flow;
mod information;
mod message;
mod message_send;
mod open;
mod options;
mod receive;
mod sampling;
mod send;
mod welcome;

pub(crate) use open::{connect, listen};
