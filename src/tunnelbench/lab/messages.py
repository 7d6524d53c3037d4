"""The messages between the orchestrator and the node agent, as typed structures.

They mirror `crates/node/src/protocol.rs`: MessagePack maps, each call numbered and answered once, with events
of programs and traffic in between.
"""

from __future__ import annotations

import msgspec


class NewFile(msgspec.Struct, frozen=True):
    """A file to write on a node; `mode` is its permission bits."""

    path: str
    data: bytes
    mode: int = 0o644


class TerminalSize(msgspec.Struct, frozen=True):
    """A terminal's size in characters."""

    rows: int
    columns: int


class Identify(msgspec.Struct, frozen=True, tag_field="type", tag="identify"):
    """Asks who and where the agent is."""


class ReadClock(msgspec.Struct, frozen=True, tag_field="type", tag="read_clock"):
    """Asks for the node's realtime clock."""


class Spawn(msgspec.Struct, frozen=True, tag_field="type", tag="spawn"):
    """Starts a program; see the fields of the agent's `Spawn`."""

    arguments: list[str]
    environment: dict[str, str] = {}
    files: list[NewFile] = []
    input: bytes = b""
    keep_input: bool = False
    output_limit: int | None = 1 << 20
    output_window: int | None = None
    terminal: TerminalSize | None = None
    descriptors: list[int] = []
    processors: list[int] = []


class Input(msgspec.Struct, frozen=True, tag_field="type", tag="input"):
    """Feeds a program's standard input."""

    process: int
    data: bytes
    close: bool


class TakeOutput(msgspec.Struct, frozen=True, tag_field="type", tag="take_output"):
    """Lets as many more bytes of a program's output be reported."""

    process: int
    bytes: int


class SignalProgram(msgspec.Struct, frozen=True, tag_field="type", tag="signal"):
    """Signals a program's process group."""

    process: int
    signal: int


class Resize(msgspec.Struct, frozen=True, tag_field="type", tag="resize"):
    """Tells a program's terminal its size."""

    process: int
    rows: int
    columns: int


class ReadFile(msgspec.Struct, frozen=True, tag_field="type", tag="read_file"):
    """Reads at most `limit` bytes of a file, from `offset` on."""

    path: str
    limit: int
    offset: int = 0


class RemoveFile(msgspec.Struct, frozen=True, tag_field="type", tag="remove_file"):
    """Removes a file."""

    path: str


class WriteFile(NewFile, frozen=True, tag_field="type", tag="write_file"):
    """Writes a file whole, with its parents."""


class SetLink(msgspec.Struct, frozen=True, tag_field="type", tag="set_link"):
    """Changes a link; what is None stays."""

    interface: str
    up: bool | None = None
    mtu: int | None = None
    hardware_address: str | None = None
    new_name: str | None = None
    disable_offloads: bool = False


class AddAddress(msgspec.Struct, frozen=True, tag_field="type", tag="add_address"):
    """Adds an address with its prefix length to an interface."""

    interface: str
    address: str


class AddRoute(msgspec.Struct, frozen=True, tag_field="type", tag="add_route"):
    """Adds or replaces a route; `source` is the address that traffic over it comes from by default."""

    destination: str
    gateway: str | None = None
    interface: str | None = None
    source: str | None = None


class RemoveLink(msgspec.Struct, frozen=True, tag_field="type", tag="remove_link"):
    """Removes a link."""

    interface: str


class SetSysctl(msgspec.Struct, frozen=True, tag_field="type", tag="set_sysctl"):
    """Writes a kernel setting, named by its path below `/proc/sys`."""

    name: str
    value: str


NetworkOperation = SetLink | AddAddress | AddRoute | RemoveLink | SetSysctl


class ConfigureNetwork(msgspec.Struct, frozen=True, tag_field="type", tag="configure_network"):
    """Changes the network, in order, up to the first operation that fails."""

    operations: list[NetworkOperation]


class ReadCounters(msgspec.Struct, frozen=True, tag_field="type", tag="read_counters"):
    """Asks for processor time."""


class ReadInterfaces(msgspec.Struct, frozen=True, tag_field="type", tag="read_interfaces"):
    """Asks what has passed the interfaces."""


class StartCapture(msgspec.Struct, frozen=True, tag_field="type", tag="start_capture"):
    """Watches an interface, searches for markers, keeps the first packets."""

    interface: str
    markers: list[bytes]
    keep: int


class StopCapture(msgspec.Struct, frozen=True, tag_field="type", tag="stop_capture"):
    """Ends a capture."""

    capture: int


class StartTraffic(msgspec.Struct, frozen=True, tag_field="type", tag="start_traffic"):
    """Starts a traffic job, given as the load describes it."""

    job: msgspec.Raw


class StopTraffic(msgspec.Struct, frozen=True, tag_field="type", tag="stop_traffic"):
    """Ends a traffic job early."""

    traffic: int


class PowerOff(msgspec.Struct, frozen=True, tag_field="type", tag="power_off"):
    """Ends the node."""


Request = (
    Identify
    | ReadClock
    | Spawn
    | Input
    | TakeOutput
    | SignalProgram
    | Resize
    | ReadFile
    | RemoveFile
    | WriteFile
    | ConfigureNetwork
    | ReadCounters
    | ReadInterfaces
    | StartCapture
    | StopCapture
    | StartTraffic
    | StopTraffic
    | PowerOff
)


class Call(msgspec.Struct, frozen=True):
    """A numbered request."""

    id: int
    request: Request


class Done(msgspec.Struct, frozen=True, tag_field="type", tag="done"):
    """The request was carried out."""


class Error(msgspec.Struct, frozen=True, tag_field="type", tag="error"):
    """The request was refused, and why."""

    message: str


class Identity(msgspec.Struct, frozen=True, tag_field="type", tag="identity"):
    """Who and where an agent is: its version, its kernel, its processor."""

    version: str
    kernel: str
    kernel_version: str
    machine: str
    processor: str
    process_id: int


class Clock(msgspec.Struct, frozen=True, tag_field="type", tag="clock"):
    """Nanoseconds since the epoch by the node's realtime clock."""

    nanoseconds: int


class Spawned(msgspec.Struct, frozen=True, tag_field="type", tag="spawned"):
    """The number of a started program."""

    process: int


class Contents(msgspec.Struct, frozen=True, tag_field="type", tag="contents"):
    """A file's contents, cut at the limit where `truncated`."""

    data: bytes
    truncated: bool


class InterfaceCounters(msgspec.Struct, frozen=True):
    """Traffic of one interface since it was made."""

    received_bytes: int
    received_packets: int
    received_dropped: int
    sent_bytes: int
    sent_packets: int
    sent_dropped: int


class ProcessorTime(msgspec.Struct, frozen=True):
    """Processor seconds and context switches of all processes of a node."""

    user: float
    system: float
    voluntary_switches: int
    involuntary_switches: int
    queued: float | None = None
    """Seconds that threads were ready and had no processor; None where the kernel does not count them."""


class KernelTime(msgspec.Struct, frozen=True):
    """Processor seconds of a whole kernel."""

    user: float
    system: float
    softirq: float
    interrupt: float
    idle: float
    stolen: float


class Counters(msgspec.Struct, frozen=True, tag_field="type", tag="counters"):
    """Processor time of a node up to one moment; `clock` in nanoseconds since the epoch."""

    clock: int
    processes: ProcessorTime
    kernel: KernelTime


class Interfaces(msgspec.Struct, frozen=True, tag_field="type", tag="interfaces"):
    """What has passed each interface of a node."""

    interfaces: dict[str, InterfaceCounters]


class CaptureStarted(msgspec.Struct, frozen=True, tag_field="type", tag="capture_started"):
    """The number of a capture that watches from now on."""

    capture: int


class FlowCount(msgspec.Struct, frozen=True):
    """Packets of one protocol in one direction, and in how many of them each marker stood."""

    protocol: str
    outgoing: bool
    packets: int
    bytes: int
    marked: list[int]
    entropy: float


class KeptPacket(msgspec.Struct, frozen=True):
    """One packet as it stood on the wire."""

    protocol: str
    outgoing: bool
    length: int
    data: bytes


class CaptureReport(msgspec.Struct, frozen=True, tag_field="type", tag="captured"):
    """What a capture saw."""

    flows: list[FlowCount]
    dropped: int
    first: list[KeptPacket]


class TrafficStarted(msgspec.Struct, frozen=True, tag_field="type", tag="traffic_started"):
    """The number of a traffic job, and the port it listens on if it does."""

    traffic: int
    port: int | None


class StartPassed(msgspec.Struct, frozen=True, tag_field="type", tag="start_passed"):
    """A traffic job was ready only so many nanoseconds after its start, and was not started."""

    by: int


Answer = (
    Done
    | Error
    | Identity
    | Clock
    | Spawned
    | Contents
    | Counters
    | Interfaces
    | CaptureStarted
    | CaptureReport
    | TrafficStarted
    | StartPassed
)


class Ready(msgspec.Struct, frozen=True, tag_field="type", tag="ready"):
    """The agent serves from now on; with a window, so many bytes may be sent that it has not yet read."""

    window: int | None = None


class Received(msgspec.Struct, frozen=True, tag_field="type", tag="received"):
    """An agent with a window has read so many more bytes."""

    bytes: int


class Output(msgspec.Struct, frozen=True, tag_field="type", tag="output"):
    """A piece of a program's output."""

    process: int
    error_stream: bool
    data: bytes


class OutputClosed(msgspec.Struct, frozen=True, tag_field="type", tag="output_closed"):
    """Nobody holds a program's output any more."""

    process: int


class Exited(msgspec.Struct, frozen=True, tag_field="type", tag="exited"):
    """A program ended, by itself or by a signal."""

    process: int
    code: int | None
    signal: int | None


class TrafficFinished(msgspec.Struct, frozen=True, tag_field="type", tag="traffic_finished"):
    """A traffic job's outcome, in the load's terms."""

    traffic: int
    outcome: msgspec.Raw


class TrafficFailed(msgspec.Struct, frozen=True, tag_field="type", tag="traffic_failed"):
    """A traffic job gave no result, and why."""

    traffic: int
    message: str


Event = Ready | Output | OutputClosed | Exited | TrafficFinished | TrafficFailed


class Incoming(msgspec.Struct, frozen=True):
    """Anything an agent sends: an answer to a call, or an event."""

    id: int | None = None
    answer: Answer | None = None
    event: Event | Received | None = None
