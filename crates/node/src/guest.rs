//! Makes a node of a kernel: the agent as process 1 of a User Mode Linux, which it sets up and powers off.
//!
//! The kernel's root is the root of the node on the host that its process runs in. That one is already a
//! throw-away overlay, so files may be written; what belongs to this kernel alone is mounted anew.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use nix::fcntl::{OFlag, open};
use nix::sys::reboot::{RebootMode, reboot};
use nix::sys::stat::{Mode, SFlag, makedev, mknod, umask};
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};

use crate::mounts::{DEVICES, add_terminals, mount_kind};

/// What only a kernel of its own has, beside the devices of every node.
const OWN_DEVICES: [(&str, u64, u64); 3] =
    [("console", 5, 1), ("ttyS0", 4, 64), ("crypto", 10, 60)];

/// Mounts what a system needs, and opens the serial line to the orchestrator as a raw byte stream.
///
/// # Errors
/// What could not be set up.
pub fn set_up(host_name: &str) -> Result<File, String> {
    let steps = || -> io::Result<File> {
        for (kind, directory, options) in [
            ("proc", "/proc", ""),
            ("sysfs", "/sys", ""),
            ("tmpfs", "/dev", "mode=0755"),
            ("tmpfs", "/run", "mode=0755"),
            ("tmpfs", "/tmp", "mode=1777"),
        ] {
            mount_kind(kind, Path::new(directory), options)?;
        }
        add_devices(Path::new("/dev"))?;
        nix::unistd::sethostname(host_name)?;
        raw_serial_line().map_err(io::Error::from)
    };
    steps().map_err(|error| format!("the kernel of {host_name} could not be set up: {error}"))
}

/// Ends this kernel, and with it its process on the host.
pub fn power_off() -> ! {
    let _ = reboot(RebootMode::RB_POWER_OFF);
    std::process::exit(0)
}

fn add_devices(directory: &Path) -> io::Result<()> {
    fs::create_dir(directory.join("net"))?;
    umask(Mode::empty());
    for (name, major, minor) in DEVICES.into_iter().chain(OWN_DEVICES) {
        let mode = Mode::from_bits_truncate(0o666);
        mknod(
            &directory.join(name),
            SFlag::S_IFCHR,
            mode,
            makedev(major, minor),
        )?;
    }
    umask(Mode::from_bits_truncate(0o022));
    add_terminals(directory)
}

fn raw_serial_line() -> nix::Result<File> {
    let line: OwnedFd = open(
        "/dev/ttyS0",
        OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC,
        Mode::empty(),
    )?;
    let mut settings = tcgetattr(&line)?;
    cfmakeraw(&mut settings);
    tcsetattr(&line, SetArg::TCSANOW, &settings)?;
    Ok(File::from(line))
}
