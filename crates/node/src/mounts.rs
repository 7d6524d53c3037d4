//! What namespace nodes and kernels mount alike.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use nix::mount::{MsFlags, mount};

/// The devices of every node: name, major and minor number (Linux allocated devices list).
pub const DEVICES: [(&str, u64, u64); 8] = [
    ("null", 1, 3),
    ("zero", 1, 5),
    ("full", 1, 7),
    ("random", 1, 8),
    ("urandom", 1, 9),
    ("tty", 5, 0),
    ("ppp", 108, 0),
    ("net/tun", 10, 200),
];

/// Mounts a file system that needs no source.
pub fn mount_kind(kind: &str, target: &Path, options: &str) -> io::Result<()> {
    let data = (!options.is_empty()).then_some(options);
    mount(Some(kind), target, Some(kind), MsFlags::empty(), data).map_err(|error| {
        io::Error::new(
            io::Error::from(error).kind(),
            format!("{kind} on {}: {error}", target.display()),
        )
    })
}

/// Pseudo-terminals, shared memory, and the names that programs expect in `/dev` beside the devices.
pub fn add_terminals(directory: &Path) -> io::Result<()> {
    fs::create_dir(directory.join("pts"))?;
    fs::create_dir(directory.join("shm"))?;
    mount_kind(
        "devpts",
        &directory.join("pts"),
        "newinstance,ptmxmode=0666,mode=0620",
    )?;
    mount_kind("tmpfs", &directory.join("shm"), "mode=1777")?;
    for (name, target) in [
        ("ptmx", "pts/ptmx"),
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlink(target, directory.join(name))?;
    }
    Ok(())
}
