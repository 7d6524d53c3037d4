//! What the engine can be asked to do. All durations are in nanoseconds, all rates count payload.

mod content;
mod echo;
mod socket_options;
mod tcp;
mod transaction;
mod udp_receive;
mod udp_send;

use serde::{Deserialize, Serialize};

pub use content::Content;
pub use echo::{EchoDestination, EchoProbe, EchoServe, ProbePlan, Protocol};
pub use socket_options::SocketOptions;
pub use tcp::{Messages, Side, TcpConnect, TcpListen, TcpOptions};
pub use transaction::{Transaction, TransactionRun, TransactionServe};
pub use udp_receive::{Timestamps, UdpReceive};
pub use udp_send::{SendMode, UdpSend};

/// One thing to do, as it comes over the wire: a map whose `kind` names the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Job {
    /// Send UDP datagrams on a schedule.
    UdpSend(UdpSend),
    /// Receive them and account for each.
    UdpReceive(UdpReceive),
    /// Open TCP connections, then send or receive.
    TcpConnect(TcpConnect),
    /// Accept TCP connections, then send or receive.
    TcpListen(TcpListen),
    /// Send back whatever the first source sends.
    EchoServe(EchoServe),
    /// Send probes and time their replies.
    EchoProbe(EchoProbe),
    /// Answer requests.
    TransactionServe(TransactionServe),
    /// Send requests and time the responses.
    TransactionRun(TransactionRun),
}

/// Addresses as text (`10.0.0.1:5201`, `[fd00::1]:5201`, `fd00::1`) in every encoding.
pub(crate) mod text {
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// What an address of this kind is called in a complaint.
    pub trait Address: Display + FromStr {
        const NAME: &str;
    }

    impl Address for std::net::SocketAddr {
        const NAME: &str = "an IP address and port";
    }

    impl Address for std::net::IpAddr {
        const NAME: &str = "an IP address";
    }

    pub fn serialize<A: Address, S: Serializer>(
        address: &A,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(address)
    }

    pub fn deserialize<'de, A: Address, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<A, D::Error> {
        parse(&String::deserialize(deserializer)?)
    }

    fn parse<A: Address, E: Error>(text: &str) -> Result<A, E> {
        text.parse()
            .map_err(|_| E::custom(format!("`{text}` is not {}", A::NAME)))
    }

    /// The same of an address that may be missing.
    pub mod optional {
        use super::*;

        pub fn serialize<A: Address, S: Serializer>(
            address: &Option<A>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            match address {
                Some(address) => serializer.collect_str(address),
                None => serializer.serialize_none(),
            }
        }

        pub fn deserialize<'de, A: Address, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<A>, D::Error> {
            let text = Option::<String>::deserialize(deserializer)?;
            text.as_deref().map(parse).transpose()
        }
    }
}
