"""What a load driver is, what it is asked and what it answers. Each load tool is one file beside this one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Literal, Protocol, TypeVar

import msgspec

from tunnelbench.errors import UserError

Transport = Literal["tcp", "udp", "icmp"]
InternetProtocol = Literal["ipv4", "ipv6"]
Direction = Literal["forward", "reverse"]
Pattern = Literal["stream", "request-response", "connect-request-response"]
"""What goes to and fro: a stream of data (over ICMP: of echo requests); one response for each request; the
same over a new TCP connection each time."""

SERIES_STEP_S = 0.1
"""Time between two samples of a series, seconds."""

OutcomeT_co = TypeVar("OutcomeT_co", covariant=True)
OutcomeT = TypeVar("OutcomeT")


class LoadError(UserError):
    """A trial that has no result; the message says why."""


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
class Workload:
    """The traffic of one trial. The client opens the connections; the direction says who sends."""

    transport: Transport
    ip: InternetProtocol
    pattern: Pattern = "stream"
    payload_bytes: int
    """Payload of each datagram or request; for a TCP stream the size of each write."""
    response_bytes: int | None = None
    """Size of each response; None for that of the request. A stream has none."""
    concurrency: int = 1
    """How many requests are under way at once. A stream has none."""
    rate: float | None
    """Payload bits per second; None for as fast as possible, which TCP and transactions always are. Over ICMP
    each probe then follows the reply to the last."""
    direction: Direction
    """`forward` has the client send, `reverse` the server. Echo requests and transactions are the client's,
    and so `forward`."""
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
    client_address: str
    """The client's own address, where the server sends datagrams in direction `reverse`."""


@dataclass(frozen=True, slots=True)
class LoadWarning:
    """A doubt about a trial's numbers, and what to do about it."""

    kind: str
    message: str
    advice: str


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


class TrafficNode(Protocol):
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
"""Told once in a trial: in how many seconds the measured window opens, and how many seconds it lasts."""


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

    def carries(self, transport: Transport, pattern: Pattern, direction: Direction) -> bool:
        """Whether it can make this kind of traffic."""
        ...

    async def measure(
        self, client: TrafficNode, server: TrafficNode, workload: Workload, window: WindowPlan
    ) -> Measurement:
        """Runs one trial, and says through `window` when its measured window lies.

        Raises LoadError, or the node's own error, where it has no result.
        """
        ...
