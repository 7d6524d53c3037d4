//! Requests and responses: who sends them, and who answers.
//!
//! A client introduces each of its connections, or sources of datagrams, with a hello that the server sends back. Ahead of
//! the request on a fresh connection the hello is not sent back, so that it costs no round trip.

mod client;
mod datagram_client;
mod datagram_service;
mod fresh_client;
mod hello;
mod limits;
mod patience;
mod serve;
mod stream;
mod stream_client;
mod stream_service;
mod tally;

pub(crate) use client::start as run;
pub(crate) use serve::start as serve;
