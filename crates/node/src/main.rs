//! `tbnode`: the agent that runs on every node of a lab, and the traffic engine on its own between two machines.

mod agent;
mod capture;
mod counters;
mod enclosure;
mod frame;
mod guest;
mod mounts;
mod network;
mod outbox;
mod packet;
mod process;
mod protocol;
mod window;
mod wiring;

use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tunnelbench_standalone::StandaloneError;
use tunnelbench_standalone::command::{KeyArguments, ReceiveArguments, SendArguments};

use crate::enclosure::{Enclosure, UserNamespace};

/// The traffic engine of tunnelbench between two machines, and its agent on the nodes of labs.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure the way to a machine where `receive` runs.
    Send(Box<SendArguments>),
    /// Take part in the measurements of `send` on other machines, within limits.
    Receive(ReceiveArguments),
    /// Make a key for `receive` and `send`.
    Key(KeyArguments),
    /// Print the statistics of packet logs.
    Decode(tunnelbench_decode::Arguments),
    #[command(flatten)]
    Node(NodeCommand),
}

/// What the orchestrator of a lab runs.
#[derive(Subcommand)]
enum NodeCommand {
    /// Serve on an open descriptor where this process stands.
    Serve {
        /// The descriptor of the byte stream to the orchestrator.
        #[arg(long)]
        stream: i32,
    },
    /// Become process 1 of new namespaces, and serve there.
    Enclose {
        /// The descriptor of the byte stream to the orchestrator.
        #[arg(long)]
        stream: i32,
        /// The image's root tree.
        #[arg(long)]
        root: PathBuf,
        /// The node's name.
        #[arg(long)]
        host_name: String,
        /// A new user namespace in which the caller is root.
        #[arg(long, conflicts_with = "user_namespace_of")]
        new_user_namespace: bool,
        /// The user namespace of a process that is a node already.
        #[arg(long)]
        user_namespace_of: Option<i32>,
    },
    /// Be process 1 of a User Mode Linux kernel, and serve on its serial line.
    Guest {
        /// The node's name.
        host_name: String,
        /// User Mode Linux adds words of its own to those meant for process 1; they say nothing here.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        ignored: Vec<String>,
    },
    /// Join two nodes by a pair of virtual Ethernet links.
    Wire {
        /// `PROCESS:INTERFACE` of one end.
        left: wiring::End,
        /// `PROCESS:INTERFACE` of the other.
        right: wiring::End,
        /// Enter the nodes' user namespace first.
        #[arg(long)]
        enter_user_namespace: bool,
    },
}

fn main() -> ExitCode {
    match run(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("tbnode: {failure}");
            failure.exit_code()
        }
    }
}

fn run(command: Command) -> Result<(), StandaloneError> {
    match command {
        Command::Send(arguments) => arguments.run(),
        Command::Receive(arguments) => arguments.run(),
        Command::Key(arguments) => arguments.run(),
        Command::Decode(arguments) => {
            tunnelbench_decode::run(&arguments).map_err(StandaloneError::Failed)
        }
        Command::Node(command) => serve_lab(command).map_err(StandaloneError::Failed),
    }
}

fn serve_lab(command: NodeCommand) -> Result<(), String> {
    match command {
        NodeCommand::Serve { stream } => serve(descriptor(stream)?, None),
        NodeCommand::Enclose {
            stream,
            root,
            host_name,
            new_user_namespace,
            user_namespace_of,
        } => {
            let stream = descriptor(stream)?;
            enclosure::enter(&Enclosure {
                root,
                host_name,
                user_namespace: match user_namespace_of {
                    Some(process) => UserNamespace::OfProcess(process),
                    None if new_user_namespace => UserNamespace::New,
                    None => UserNamespace::Inherited,
                },
            })?;
            serve(stream, None)
        }
        NodeCommand::Guest {
            host_name,
            ignored: _,
        } => {
            let stream = guest::set_up(&host_name);
            if let Err(message) = stream.and_then(|line| serve(line, Some(window::LINE_WINDOW))) {
                eprintln!("tbnode: {message}");
            }
            guest::power_off()
        }
        NodeCommand::Wire {
            left,
            right,
            enter_user_namespace,
        } => wiring::join(&left, &right, enter_user_namespace),
    }
}

fn serve(stream: File, window: Option<u32>) -> Result<(), String> {
    keep_descriptors_from_programs();
    agent::serve(stream, window)
        .map_err(|error| format!("the stream to the orchestrator broke: {error}"))
}

fn descriptor(number: i32) -> Result<File, String> {
    // SAFETY: only asks for the flags of a descriptor number, which may be closed: then it fails.
    if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
        return Err(format!("descriptor {number} is not open"));
    }
    // SAFETY: the descriptor is open, was handed down for this use, and nothing else owns it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(number) }))
}

/// Programs inherit only the descriptors that their request names.
fn keep_descriptors_from_programs() {
    const CLOSE_RANGE_CLOEXEC: u32 = 4;
    // SAFETY: only sets a flag on the descriptors that are open.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, CLOSE_RANGE_CLOEXEC) };
}
