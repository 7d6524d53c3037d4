//! Makes a node on this kernel: own network, process, mount, host name and (without root) user namespaces,
//! with a Debian tree under a tmpfs overlay as its root.
//!
//! The agent becomes process 1 in there. When it ends, for whatever reason, the kernel ends every other
//! process of the node and takes the network, the mounts and the overlay away with the last one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::fcntl::OFlag;
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::Signal;
use nix::sys::stat::{Mode, SFlag, makedev, mknod, umask};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, Uid, chdir, fork, getuid, pipe, pivot_root, sethostname};

use crate::mounts::{DEVICES, add_terminals, mount_kind};

/// What a node on this kernel is made of.
pub struct Enclosure {
    /// The Debian tree, read only.
    pub root: PathBuf,
    /// The node's host name.
    pub host_name: String,
    /// Where the user namespace comes from.
    pub user_namespace: UserNamespace,
}

/// Whose identities the node has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum UserNamespace {
    /// The caller's own: for root.
    Inherited,
    /// A new one in which the caller is root.
    New,
    /// That of another node, so that links can join both.
    OfProcess(i32),
}

/// Where the agent's program stands inside every node.
pub const AGENT_PATH: &str = "/run/tunnelbench/tbnode";

/// Enters the namespaces. Returns in the new process 1; the calling process prints that one's number as
/// this machine knows it, waits for its end, and exits.
///
/// # Errors
/// What the kernel refused, in words.
pub fn enter(enclosure: &Enclosure) -> Result<(), String> {
    match enclosure.user_namespace {
        UserNamespace::Inherited => {}
        UserNamespace::New => new_user_namespace()?,
        UserNamespace::OfProcess(process) => join_user_namespace(process)?,
    }
    unshare(
        CloneFlags::CLONE_NEWNET
            | CloneFlags::CLONE_NEWPID
            | CloneFlags::CLONE_NEWNS
            | CloneFlags::CLONE_NEWUTS
            | CloneFlags::CLONE_NEWIPC,
    )
    .map_err(|error| {
        format!(
            "no namespaces of its own for {}: {error}",
            enclosure.host_name
        )
    })?;
    // SAFETY: the process has one thread, so the child may go on as usual.
    match unsafe { fork() }.map_err(|error| format!("no process: {error}"))? {
        ForkResult::Parent { child } => wait_for(child),
        ForkResult::Child => {
            nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(|error| error.to_string())?;
            build_root(&enclosure.root, &enclosure.host_name).map_err(|error| {
                format!(
                    "the root of {} could not be built: {error}",
                    enclosure.host_name
                )
            })
        }
    }
}

fn wait_for(child: Pid) -> ! {
    println!("{child}");
    let _ = io::stdout().flush();
    // Only process 1 may hold the stream to the orchestrator, or its end would go unnoticed.
    close_descriptors_from(3);
    let code = loop {
        match waitpid(child, None) {
            Ok(WaitStatus::Exited(_, code)) => break code,
            Ok(WaitStatus::Signaled(_, signal, _)) => break 128 + signal as i32,
            Ok(_) | Err(nix::errno::Errno::EINTR) => {}
            Err(_) => break 1,
        }
    };
    std::process::exit(code)
}

fn close_descriptors_from(first: u32) {
    // SAFETY: closes descriptors by number; the caller goes on to use none of them.
    unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) };
}

fn join_user_namespace(process: i32) -> Result<(), String> {
    let refused = |error: String| {
        format!("the user namespace of process {process} cannot be joined: {error}")
    };
    let namespace = File::open(format!("/proc/{process}/ns/user"))
        .map_err(|error| refused(error.to_string()))?;
    setns(&namespace, CloneFlags::CLONE_NEWUSER).map_err(|error| refused(error.to_string()))?;
    become_root().map_err(|error| refused(error.to_string()))
}

fn become_root() -> nix::Result<()> {
    nix::unistd::setresgid(0.into(), 0.into(), 0.into())?;
    nix::unistd::setresuid(Uid::from_raw(0), Uid::from_raw(0), Uid::from_raw(0))
}

/// A new user namespace: this user is root in it, and the user's subordinate identities, where there are
/// any, stand for all others. Identities are mapped from outside, by a child that stayed there.
fn new_user_namespace() -> Result<(), String> {
    let user = getuid();
    let (unshared_reader, unshared_writer) = pipe().map_err(|error| error.to_string())?;
    let target = nix::unistd::getpid();
    // SAFETY: the process has one thread, so the child may go on as usual.
    let mapper = match unsafe { fork() }.map_err(|error| error.to_string())? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            drop(unshared_writer);
            let _ = io::Read::read(&mut File::from(unshared_reader), &mut [0]);
            std::process::exit(i32::from(map_identities(target, user).is_err()))
        }
    };
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| {
        format!("this machine lets no ordinary user make a user namespace: {error}")
    })?;
    drop(unshared_writer);
    match waitpid(mapper, None) {
        Ok(WaitStatus::Exited(_, 0)) => become_root().map_err(|error| error.to_string()),
        other => Err(format!(
            "the identities of the user namespace could not be mapped: {other:?}"
        )),
    }
}

fn map_identities(target: Pid, user: Uid) -> io::Result<()> {
    let group = nix::unistd::getgid();
    let name = nix::unistd::User::from_uid(user)
        .ok()
        .flatten()
        .map_or_else(|| user.to_string(), |entry| entry.name);
    let ranges = (
        subordinate_range("/etc/subuid", &name, user.as_raw()),
        subordinate_range("/etc/subgid", &name, user.as_raw()),
    );
    if let (Some(users), Some(groups)) = ranges
        && map_with("newuidmap", target, user.as_raw(), users)
        && map_with("newgidmap", target, group.as_raw(), groups)
    {
        return Ok(());
    }
    fs::write(format!("/proc/{target}/setgroups"), "deny")?;
    fs::write(format!("/proc/{target}/gid_map"), format!("0 {group} 1"))?;
    fs::write(format!("/proc/{target}/uid_map"), format!("0 {user} 1"))
}

fn map_with(program: &str, target: Pid, own: u32, (first, count): (u32, u32)) -> bool {
    Command::new(program)
        .args([target.to_string(), "0".into(), own.to_string(), "1".into()])
        .args(["1".into(), first.to_string(), count.to_string()])
        .status()
        .is_ok_and(|status| status.success())
}

/// The first range of subordinate identities that a file grants a user, by name or number (subuid(5)).
fn subordinate_range(file: &str, name: &str, number: u32) -> Option<(u32, u32)> {
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let owner = fields.next()?;
        let range = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (owner == name || owner == number.to_string()).then_some(range)
    })
}

fn open_path(path: &Path) -> io::Result<OwnedFd> {
    nix::fcntl::open(path, OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty()).map_err(|error| {
        io::Error::new(
            io::Error::from(error).kind(),
            format!("{}: {error}", path.display()),
        )
    })
}

fn build_root(image: &Path, host_name: &str) -> io::Result<()> {
    // Opened in this mount namespace, because mounts cannot borrow from another one, and before anything
    // is mounted over it.
    let image = open_path(image)?;
    let agent = open_path(&fs::read_link("/proc/self/exe")?)?;
    mount(
        none(),
        "/",
        none(),
        MsFlags::MS_REC | MsFlags::MS_PRIVATE,
        none(),
    )?;
    let stage = Path::new("/tmp");
    mount_kind("tmpfs", stage, "mode=0755")?;
    for directory in ["upper", "work", "root"] {
        fs::create_dir(stage.join(directory))?;
    }
    let root = stage.join("root");
    let layers = format!(
        "lowerdir=/proc/self/fd/{},upperdir=/tmp/upper,workdir=/tmp/work",
        image.as_raw_fd()
    );
    // In a user namespace only the kind of extended attributes that users may write will do.
    mount_kind("overlay", &root, &format!("{layers},userxattr"))
        .or_else(|_| mount_kind("overlay", &root, &layers))?;

    for (kind, directory, options) in [
        ("proc", "proc", ""),
        ("sysfs", "sys", ""),
        ("tmpfs", "dev", "mode=0755"),
        ("tmpfs", "run", "mode=0755"),
        ("tmpfs", "tmp", "mode=1777"),
    ] {
        fs::create_dir_all(root.join(directory))?;
        mount_kind(kind, &root.join(directory), options)?;
    }
    add_devices(&root.join("dev"))?;
    let agent_copy = root.join(AGENT_PATH.trim_start_matches('/'));
    if let Some(parent) = agent_copy.parent() {
        fs::create_dir_all(parent)?;
    }
    File::create(&agent_copy)?;
    bind(
        Path::new(&format!("/proc/self/fd/{}", agent.as_raw_fd())),
        &agent_copy,
    )?;

    let old = root.join("mnt");
    fs::create_dir_all(&old)?;
    pivot_root(&root, &old)?;
    chdir("/")?;
    umount2("/mnt", MntFlags::MNT_DETACH)?;
    sethostname(host_name)?;
    Ok(())
}

/// Devices are made where this may be done, and borrowed from the machine where not.
fn add_devices(directory: &Path) -> io::Result<()> {
    fs::create_dir(directory.join("net"))?;
    umask(Mode::empty());
    for (name, major, minor) in DEVICES {
        let target = directory.join(name);
        let mode = Mode::from_bits_truncate(0o666);
        if mknod(&target, SFlag::S_IFCHR, mode, makedev(major, minor)).is_ok()
            && File::open(&target).is_ok_or_absent()
        {
            continue;
        }
        let source = Path::new("/dev").join(name);
        if source.exists() {
            let _ = fs::remove_file(&target);
            File::create(&target)?;
            bind(&source, &target)?;
        }
    }
    umask(Mode::from_bits_truncate(0o022));
    add_terminals(directory)
}

fn bind(source: &Path, target: &Path) -> io::Result<()> {
    mount(Some(source), target, none(), MsFlags::MS_BIND, none()).map_err(|error| {
        io::Error::new(
            io::Error::from(error).kind(),
            format!("{}: {error}", target.display()),
        )
    })
}

fn none() -> Option<&'static str> {
    None
}

trait OkOrAbsent {
    /// Whether the device opened, or its driver is absent: a user namespace refuses with "permission denied".
    fn is_ok_or_absent(&self) -> bool;
}

impl OkOrAbsent for io::Result<File> {
    fn is_ok_or_absent(&self) -> bool {
        match self {
            Ok(_) => true,
            Err(error) => error.kind() != io::ErrorKind::PermissionDenied,
        }
    }
}
