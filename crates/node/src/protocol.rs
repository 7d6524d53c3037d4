//! The messages between the orchestrator and the agent: MessagePack maps in frames of their own.
//!
//! The orchestrator sends [`Call`]s; the agent answers each with one [`Answer`] that carries the call's
//! number, and in between reports [`Event`]s of programs and traffic that it runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tunnelbench_traffic as traffic;

/// A numbered request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Repeated in the answer.
    pub id: u32,
    /// What to do.
    pub request: Request,
}

/// Everything that can be asked of a node.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Who and where the agent is.
    Identify {},
    /// This node's realtime clock.
    ReadClock {},
    /// Start a program.
    Spawn(Spawn),
    /// Feed a program's standard input, and close it where `close` is set.
    Input {
        process: u32,
        data: ByteBuf,
        close: bool,
    },
    /// So many bytes of a program's output have been used, so as many more may be reported.
    TakeOutput { process: u32, bytes: u64 },
    /// Signal a program's whole process group.
    Signal { process: u32, signal: i32 },
    /// Tell a program's terminal its new size.
    Resize {
        process: u32,
        rows: u16,
        columns: u16,
    },
    /// Read a file from `offset` on, at most `limit` bytes of it.
    ReadFile {
        path: String,
        offset: u64,
        limit: u64,
    },
    /// Remove a file.
    RemoveFile { path: String },
    /// Write a file whole, with parents made as needed.
    WriteFile(NewFile),
    /// Change links, addresses and routes, in order.
    ConfigureNetwork { operations: Vec<NetworkOperation> },
    /// Processor time.
    ReadCounters {},
    /// What has passed the interfaces: quick, since traffic is about to start or has just ended.
    ReadInterfaces {},
    /// Count what passes an interface, and search it for markers.
    StartCapture {
        interface: String,
        markers: Vec<ByteBuf>,
        keep: u16,
    },
    /// Stop a capture and give what it saw.
    StopCapture { capture: u32 },
    /// Send or receive measured traffic.
    StartTraffic { job: Box<traffic::Job> },
    /// End measured traffic early; its outcome still arrives as an event.
    StopTraffic { traffic: u32 },
    /// End everything on this node.
    PowerOff {},
}

/// A program to start.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spawn {
    pub arguments: Vec<String>,
    /// Added to the agent's own small environment.
    pub environment: BTreeMap<String, String>,
    /// Written before the program starts.
    pub files: Vec<NewFile>,
    /// Given on standard input, which is closed after it unless `keep_input` is set.
    pub input: ByteBuf,
    pub keep_input: bool,
    /// Bytes of output reported per program; the rest is read and dropped. None reports all.
    pub output_limit: Option<u64>,
    /// Bytes of output reported before the orchestrator has taken some; then the program waits.
    pub output_window: Option<u64>,
    /// Run on a pseudo-terminal of this size instead of pipes.
    pub terminal: Option<TerminalSize>,
    /// File descriptors of the agent that the program inherits under the same numbers.
    pub descriptors: Vec<i32>,
    /// Processors the program may run on; empty leaves that to the kernel.
    pub processors: Vec<usize>,
}

/// A terminal's size in characters.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TerminalSize {
    pub rows: u16,
    pub columns: u16,
}

/// A file to write.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewFile {
    pub path: String,
    pub data: ByteBuf,
    pub mode: u32,
}

/// One change to the node's network.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum NetworkOperation {
    /// Rename, size, address and raise or lower a link. Offloads are switched off on request.
    SetLink {
        interface: String,
        up: Option<bool>,
        mtu: Option<u32>,
        hardware_address: Option<String>,
        new_name: Option<String>,
        disable_offloads: bool,
    },
    /// Add an address with its prefix length; IPv6 addresses skip duplicate address detection.
    AddAddress { interface: String, address: String },
    /// Add a route to a prefix through a gateway, an interface, or both.
    AddRoute {
        destination: String,
        gateway: Option<String>,
        interface: Option<String>,
        /// The address that traffic over this route comes from by default.
        source: Option<String>,
    },
    /// Remove a link.
    RemoveLink { interface: String },
    /// Write a kernel setting, such as `net/ipv4/ip_forward`.
    SetSysctl { name: String, value: String },
}

/// What the agent sends back.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Message {
    /// The answer to one call; `id` is absent where the call could not even be read.
    Answer { id: Option<u32>, answer: Answer },
    /// Something that happened.
    Event { event: Event },
}

/// The answer to one request.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer {
    Done {},
    Error {
        message: String,
    },
    Identity {
        version: String,
        kernel: String,
        kernel_version: String,
        machine: String,
        processor: String,
        process_id: u32,
    },
    Clock {
        nanoseconds: i64,
    },
    Spawned {
        process: u32,
    },
    Contents {
        data: ByteBuf,
        truncated: bool,
    },
    Counters(Counters),
    Interfaces {
        interfaces: BTreeMap<String, InterfaceCounters>,
    },
    CaptureStarted {
        capture: u32,
    },
    Captured(CaptureReport),
    TrafficStarted {
        traffic: u32,
        port: Option<u16>,
    },
    /// A traffic job was ready only so long after its start, nanoseconds.
    StartPassed {
        by: i64,
    },
}

/// What a program or a traffic job reports while the agent goes on answering.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The agent serves from now on. Bytes sent to it earlier may be lost in a line that is not yet set up.
    /// At most `window` bytes may be on their way to it that it has not reported as received, if there is one.
    Ready { window: Option<u32> },
    /// So many more bytes were read off the stream; only an agent with a window says so.
    Received { bytes: u32 },
    /// A piece of a program's output.
    Output {
        process: u32,
        error_stream: bool,
        data: ByteBuf,
    },
    /// Nobody holds the program's output any more.
    OutputClosed { process: u32 },
    /// The program ended: an exit code, or the signal that killed it.
    Exited {
        process: u32,
        code: Option<i32>,
        signal: Option<i32>,
    },
    /// A traffic job ended well.
    TrafficFinished {
        traffic: u32,
        outcome: Box<traffic::Outcome>,
    },
    /// A traffic job gave no result.
    TrafficFailed { traffic: u32, message: String },
}

/// Processor time of a node up to one moment.
#[derive(Debug, Serialize)]
pub struct Counters {
    /// Realtime clock at the reading, nanoseconds.
    pub clock: i64,
    /// All processes of this node, living and dead.
    pub processes: ProcessorTime,
    /// The whole kernel that the node runs on, with interrupts.
    pub kernel: KernelTime,
}

/// Traffic of one interface.
#[derive(Debug, Default, Serialize, PartialEq, Eq)]
pub struct InterfaceCounters {
    pub received_bytes: u64,
    pub received_packets: u64,
    pub received_dropped: u64,
    pub sent_bytes: u64,
    pub sent_packets: u64,
    pub sent_dropped: u64,
}

/// Processor seconds of processes.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq)]
pub struct ProcessorTime {
    pub user: f64,
    pub system: f64,
    /// Seconds that threads were ready to run and had no processor; None where the kernel does not count them.
    pub queued: Option<f64>,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

/// Processor seconds of a kernel.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq)]
pub struct KernelTime {
    pub user: f64,
    pub system: f64,
    pub softirq: f64,
    pub interrupt: f64,
    pub idle: f64,
    pub stolen: f64,
}

/// What a capture saw.
#[derive(Debug, Default, Serialize)]
pub struct CaptureReport {
    pub flows: Vec<FlowCount>,
    /// Packets that the kernel dropped before they could be looked at.
    pub dropped: u64,
    /// The first packets as they stood on the wire.
    pub first: Vec<KeptPacket>,
}

/// Packets of one protocol in one direction.
#[derive(Debug, Serialize)]
pub struct FlowCount {
    /// `ipv4 esp`, `ipv6 udp 1194`, `arp` and the like.
    pub protocol: String,
    pub outgoing: bool,
    pub packets: u64,
    pub bytes: u64,
    /// Packets in which each marker stood, in the order of the markers asked for.
    pub marked: Vec<u64>,
    /// Shannon entropy of the payload bytes seen, bits per byte.
    pub entropy: f64,
}

/// One packet as seen.
#[derive(Debug, Serialize)]
pub struct KeptPacket {
    pub protocol: String,
    pub outgoing: bool,
    pub length: u64,
    pub data: ByteBuf,
}
