//! Traffic over TCP connections.

mod flow;
mod open;
mod receive;
mod send;

pub(crate) use open::{connect, listen};
