//! Whole jobs against each other over the loopback interface.

mod common;
mod echo;
mod icmp;
mod socks;
mod tcp;
mod transaction;
mod udp;
mod udp_send;
