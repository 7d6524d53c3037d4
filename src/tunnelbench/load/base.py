"""What a load driver is, what it is asked and what it answers. Each load tool is one file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import msgspec

from tunnelbench.errors import UserError
from tunnelbench.lab.traffic import Content
from tunnelbench.study.model import Socket
from tunnelbench.study.quantity import Rate
from tunnelbench.study.vocabulary import Direction, InternetProtocol, Sending, Transport

Pattern = Literal["stream", "request-response", "connect-request-response"]
"""What goes to and fro: a stream of data (over ICMP: of echo requests); one response for each request; the
same over a new TCP connection each time."""
LogEnd = Literal["sender", "receiver", "sender-reverse", "receiver-reverse"]
"""Which end wrote a packet log; those of the second direction where there are two."""

SERIES_STEP_S = 0.1
"""Time between two samples of a series, seconds."""

OutcomeT_co = TypeVar("OutcomeT_co", covariant=True)
OutcomeT = TypeVar("OutcomeT")


class LoadError(UserError):
    """A trial that has no result; the message says why."""


class NothingArrivedError(LoadError):
    """A trial of which no datagram arrived."""

    def __init__(self, datagrams: int, offered: float) -> None:
        """So many were sent, at `offered` Mbit/s of payload."""
        super().__init__(f"none of {datagrams} datagrams arrived")
        self.offered = offered


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An IP address and a port."""

    address: str
    port: int
    """0 leaves the choice to whoever listens."""

    def __str__(self) -> str:
        is_ipv6 = ip_address(self.address).version == 6
        return f"[{self.address}]:{self.port}" if is_ipv6 else f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What is sent, in which way."""

    transport: Transport
    ip: InternetProtocol
    pattern: Pattern = "stream"
    profile: str = "constant"
    """How a stream is shaped: `constant` for one size at one rate, or a profile of `load.profiles`."""
    payload_bytes: int | None
    """Payload of each datagram or request; for a TCP stream the size of each write. None where a profile has
    sizes of its own."""
    response_bytes: int | None = None
    """Size of each response; None for that of the request. A stream has none."""
    concurrency: int = 1
    """How many requests are under way at once. A stream has none."""
    rate: Rate | None
    """How fast datagrams or echo requests are sent; `max` has each echo request follow the reply to the last.
    None for TCP, transactions, and where a profile has departures of its own."""
    direction: Direction = "forward"
    """`forward` has the client send, `reverse` the server. Echo requests and transactions are begun by the
    client."""
    streams: int = 1
    """TCP connections side by side."""
    content: Content | None = None
    """What payload is made of; None leaves it to the load."""
    sending: Sending | None = None
    """How datagrams are handed to the system; None leaves it to the load."""
    congestion_control: str | None = None
    """Of TCP; None for the system's own."""
    socket: Socket = field(default_factory=Socket)
    """How sockets are set."""
    seed: int = 0
    """Of what is random in a profile: the same seed sends the same packets."""

    @property
    def payload(self) -> int:
        """`payload_bytes`, for a load that has no profiles with sizes of their own."""
        if self.payload_bytes is None:
            raise ValueError(f"packets of the profile {self.profile} differ in size")
        return self.payload_bytes

    @property
    def bits_per_second(self) -> int | None:
        """The rate in bits of payload per second; None for as fast as possible."""
        return None if self.rate is None else self.rate.bits_per_second(self.payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload(Traffic):
    """The traffic of one trial: when and where. The client opens the connections."""

    warm_up_s: float
    """Traffic before the measured window, seconds."""
    measure_s: float
    """The measured window, seconds."""
    cool_down_s: float
    """Traffic after the measured window, seconds."""
    server: Endpoint
    """Where the server listens."""
    connect: Endpoint
    """Where the client reaches the server: another place where the port is forwarded. Port 0 means the port
    that the server got."""
    proxy: Endpoint | None = None
    """The SOCKS 5 proxy that the client asks to connect there; for loads that speak it, over TCP."""
    client_address: str
    """The client's own address, where the server sends datagrams in direction `reverse`."""
    together: bool = False
    """Whether other traffic starts at the same time, so that this can't begin later by itself."""
    packet_log: bool = False
    """Whether a load that can is to log every datagram at both ends."""


@dataclass(frozen=True, slots=True)
class LoadWarning:
    """A doubt about a trial's numbers, and what to do about it."""

    kind: str
    message: str
    advice: str


class FileSource(Protocol):
    """A node, as far as it has files."""

    async def fetch_file(self, path: str, target: Path) -> int:
        """Moves a file of the node to `target`; returns its size."""
        ...


@dataclass(frozen=True, slots=True)
class NodeFile:
    """A file that a trial left on a node."""

    node: FileSource
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What one trial found out."""

    delivered_bytes: int | None = None
    """Payload that arrived in the whole trial, with warm-up and cool-down; None where the tool can't tell."""
    delivered_packets: int | None = None
    """Datagrams that arrived in the whole trial; None for TCP, and where the tool can't tell."""
    metrics: Mapping[str, float]
    """Metric name to value, in the metric's unit; what the tool can't measure is absent."""
    histograms: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Name (`latency`, `ipdv`, `pdv`, `departure_error`) to a distribution in ns, in HdrHistogram's
    compressed V2 form."""
    series: Mapping[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]])
    """Metric name to its samples, `SERIES_STEP_S` apart, from the start of warm-up to the end."""
    warnings: Sequence[LoadWarning] = ()
    packet_logs: Mapping[LogEnd, NodeFile] = field(default_factory=dict[LogEnd, NodeFile])
    """Every datagram as the sender and the receiver logged it, where that was asked for."""


class TrafficHandle(Protocol[OutcomeT_co]):
    """A job of the traffic engine under way on a node."""

    @property
    def bound_port(self) -> int | None:
        """The port on which a listener or receiver listens."""
        ...

    async def outcome(self, timeout: float) -> OutcomeT_co:
        """Waits for the end; raises an exception that says why where there is no outcome."""
        ...

    async def stop(self) -> None:
        """Ends the job early; without effect where it has ended."""
        ...


class Completed(Protocol):
    """How a program ended."""

    @property
    def status(self) -> int:
        """Exit status; negative for a signal."""
        ...

    @property
    def stdout(self) -> bytes:
        """Standard output."""
        ...

    @property
    def stderr(self) -> bytes:
        """Standard error."""
        ...


class Process(Protocol):
    """A program that runs on a node."""

    async def line(self, pattern: str, timeout: float) -> str:
        """Waits for a line of output in which the regular expression is found, and returns it."""
        ...

    async def stop(self) -> Completed:
        """Ends the program, if it has not ended; gives what it printed."""
        ...


class TrafficNode(FileSource, Protocol):
    """What a load driver needs of a node."""

    async def start_traffic(
        self, job: msgspec.Struct, outcome_type: type[OutcomeT]
    ) -> TrafficHandle[OutcomeT]:
        """Starts a job of the traffic engine (`tunnelbench.lab.traffic`)."""
        ...

    async def run(self, *arguments: str, timeout: float, check: bool = True) -> Completed:
        """Runs a program to its end; with `check`, another status than 0 raises."""
        ...

    async def spawn(self, *arguments: str) -> Process:
        """Starts a program."""
        ...

    async def clock(self) -> int:
        """The node's CLOCK_REALTIME, ns."""
        ...


WindowPlan = Callable[[float, float], None]
"""Told in how many seconds the measured window opens, and how many seconds it lasts; once more where a start
was missed."""


class LoadDriver(Protocol):
    """A load tool. Its module offers one as `DRIVER`."""

    @property
    def name(self) -> str:
        """The name in studies and on the command line."""
        ...

    @property
    def title(self) -> str:
        """The name for readers."""
        ...

    @property
    def measures(self) -> frozenset[str]:
        """Names of the metrics that it can measure."""
        ...

    @property
    def programs(self) -> frozenset[str]:
        """The programs that it runs, which the image must have."""
        ...

    @property
    def chooses(self) -> frozenset[str]:
        """Of `content` and `sending` those that it does as it is told."""
        ...

    @property
    def speaks_socks(self) -> bool:
        """Whether its client can ask a SOCKS 5 proxy to connect (RFC 1928)."""
        ...

    @property
    def keeps_time(self) -> bool:
        """Whether it sends exactly when it is to, warm-up and cool-down included."""
        ...

    def refusal(self, traffic: Traffic) -> str | None:
        """Why it can't make this traffic; None where it can."""
        ...

    async def measure(
        self, client: TrafficNode, server: TrafficNode, workload: Workload, window: WindowPlan
    ) -> Measurement:
        """Runs one trial, and says through `window` when its measured window lies.

        Raises LoadError, or the node's own error, where it has no result.
        """
        ...
