"""The jobs of the traffic engine and their outcomes, as they are on the wire.

They mirror `crates/traffic/src/job` and `outcome`, file by file, field by field and in their order; golden
files that both sides read keep them alike. Durations are integers in nanoseconds, rates and byte counts are
of payload.
"""

from __future__ import annotations

from tunnelbench.lab.traffic.common import (
    Content,
    Histogram,
    Pattern,
    Random,
    Schedule,
    Series,
    SocketOptions,
    Tally,
    Zeros,
)
from tunnelbench.lab.traffic.echo import (
    Echoed,
    EchoProbe,
    EchoServe,
    Probed,
    Protocol,
)
from tunnelbench.lab.traffic.flow import FlowReport
from tunnelbench.lab.traffic.tcp import (
    DEFAULT_CONNECT_TIMEOUT,
    Side,
    TcpConnect,
    TcpConnected,
    TcpFlow,
    TcpInformation,
    TcpListen,
    TcpListened,
    TcpOptions,
    TcpReceived,
    TcpSent,
)
from tunnelbench.lab.traffic.udp import (
    DEFAULT_LINGER,
    BitsPerSecond,
    MaximumRate,
    PacketsPerSecond,
    Rate,
    Timestamps,
    UdpReceive,
    UdpReceived,
    UdpSend,
    UdpSent,
)

Job = UdpSend | UdpReceive | TcpConnect | TcpListen | EchoServe | EchoProbe

Outcome = UdpSent | UdpReceived | TcpConnected | TcpListened | Echoed | Probed

__all__ = [
    "DEFAULT_CONNECT_TIMEOUT",
    "DEFAULT_LINGER",
    "BitsPerSecond",
    "Content",
    "EchoProbe",
    "EchoServe",
    "Echoed",
    "FlowReport",
    "Histogram",
    "Job",
    "MaximumRate",
    "Outcome",
    "PacketsPerSecond",
    "Pattern",
    "Probed",
    "Protocol",
    "Random",
    "Rate",
    "Schedule",
    "Series",
    "Side",
    "SocketOptions",
    "Tally",
    "TcpConnect",
    "TcpConnected",
    "TcpFlow",
    "TcpInformation",
    "TcpListen",
    "TcpListened",
    "TcpOptions",
    "TcpReceived",
    "TcpSent",
    "Timestamps",
    "UdpReceive",
    "UdpReceived",
    "UdpSend",
    "UdpSent",
    "Zeros",
]
