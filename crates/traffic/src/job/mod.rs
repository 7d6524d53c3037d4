//! What the engine can be asked to do. All durations are in nanoseconds, all rates count payload.

mod content;
mod echo;
mod tcp;
mod udp_receive;
mod udp_send;

use serde::{Deserialize, Serialize};

pub use content::Content;
pub use echo::{EchoProbe, EchoServe, Protocol};
pub use tcp::{Side, TcpConnect, TcpListen, TcpOptions};
pub use udp_receive::{Timestamps, UdpReceive};
pub use udp_send::{Rate, UdpSend};

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
}

/// Socket addresses as text (`10.0.0.1:5201`, `[fd00::1]:5201`) in every encoding.
pub(crate) mod text {
    use std::net::SocketAddr;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(
        address: &SocketAddr,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(address)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse()
            .map_err(|_| D::Error::custom(format!("`{text}` is not an IP address and port")))
    }
}
