//! Joins two nodes on this kernel by a link, from outside of both.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::str::FromStr;

use nix::sched::{CloneFlags, setns};

use crate::network::add_virtual_ethernet;

/// One end of a link: a process in the node, and the interface's name there.
#[derive(Clone)]
pub struct End {
    process: i32,
    interface: String,
}

impl FromStr for End {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("{text} is not PROCESS:INTERFACE");
        let (process, interface) = text.split_once(':').ok_or_else(wrong)?;
        Ok(Self {
            process: process.parse().map_err(|_| wrong())?,
            interface: interface.into(),
        })
    }
}

/// Makes the link.
///
/// # Errors
/// A namespace cannot be entered, or the kernel refused the link.
pub fn join(left: &End, right: &End, enter_user_namespace: bool) -> Result<(), String> {
    let here = namespace(left.process, "net")?;
    let there = namespace(right.process, "net")?;
    if enter_user_namespace {
        enter(&namespace(left.process, "user")?, CloneFlags::CLONE_NEWUSER)?;
    }
    enter(&here, CloneFlags::CLONE_NEWNET)?;
    add_virtual_ethernet(&left.interface, there.as_raw_fd(), &right.interface)
}

fn namespace(process: i32, kind: &str) -> Result<File, String> {
    let path = format!("/proc/{process}/ns/{kind}");
    File::open(&path).map_err(|error| format!("{path} cannot be opened: {error}"))
}

fn enter(namespace: &File, kind: CloneFlags) -> Result<(), String> {
    setns(namespace, kind).map_err(|error| format!("a namespace cannot be entered: {error}"))
}
