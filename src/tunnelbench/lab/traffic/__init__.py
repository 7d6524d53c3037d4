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
from tunnelbench.lab.traffic.process import (
    BitsPerSecond,
    Bursts,
    Cauchy,
    Choice,
    Constant,
    Departures,
    Distribution,
    Exponential,
    Gamma,
    Listed,
    MaximumRate,
    Mixture,
    Normal,
    PacketsPerSecond,
    Pareto,
    Poisson,
    Process,
    Sizes,
    Student,
    Talk,
    Uniform,
    Weibull,
)
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
    "Bursts",
    "Cauchy",
    "Choice",
    "Constant",
    "Content",
    "Departures",
    "Distribution",
    "EchoProbe",
    "EchoServe",
    "Echoed",
    "Exponential",
    "FlowReport",
    "Gamma",
    "Histogram",
    "Job",
    "Listed",
    "MaximumRate",
    "Mixture",
    "Normal",
    "Outcome",
    "PacketsPerSecond",
    "Pareto",
    "Pattern",
    "Poisson",
    "Probed",
    "Process",
    "Protocol",
    "Random",
    "Rate",
    "Schedule",
    "Series",
    "Side",
    "Sizes",
    "SocketOptions",
    "Student",
    "Talk",
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
    "Uniform",
    "Weibull",
    "Zeros",
]
