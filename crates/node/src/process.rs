//! Programs: start, feed, signal, and reap them, orphans included, as process 1 must.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::pty::{OpenptyResult, Winsize, openpty};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, setsid};
use serde_bytes::ByteBuf;

use crate::outbox::Outbox;
use crate::protocol::{Event, NewFile, Spawn, TerminalSize};
use crate::window::Credit;

const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Every program that this agent started and has not yet reported as ended.
#[derive(Clone)]
pub struct Processes {
    shared: Arc<Shared>,
    outbox: Outbox,
}

struct Shared {
    table: Mutex<Table>,
    child_started: Condvar,
}

#[derive(Default)]
struct Table {
    last: u32,
    running: HashMap<u32, Running>,
    /// Of programs whose output is still open, whether they run or not.
    credits: HashMap<u32, Arc<Credit>>,
}

struct Running {
    pid: Pid,
    input: Option<File>,
    terminal: Option<OwnedFd>,
}

impl Processes {
    /// Starts the thread that reaps.
    pub fn new(outbox: Outbox) -> Self {
        let processes = Self {
            shared: Arc::new(Shared {
                table: Mutex::default(),
                child_started: Condvar::new(),
            }),
            outbox,
        };
        let reaper = processes.clone();
        thread::spawn(move || reaper.reap_for_ever());
        processes
    }

    /// Starts a program and returns its number; its output and end are reported as events.
    ///
    /// # Errors
    /// What is wrong with the request, or why the kernel refused.
    pub fn spawn(&self, request: &Spawn) -> Result<u32, String> {
        let Some(program) = request.arguments.first() else {
            return Err("a program to start needs at least its name".into());
        };
        for file in &request.files {
            write_file(file)?;
        }
        let mut command = Command::new(program);
        command
            .args(&request.arguments[1..])
            .env_clear()
            .env("PATH", SEARCH_PATH)
            .env("HOME", "/root")
            .env("LANG", "C.UTF-8")
            .envs(&request.environment);
        let pair = match request.terminal {
            Some(size) => Some(open_terminal(&mut command, size)?),
            None => {
                use_pipes(&mut command, request);
                None
            }
        };
        prepare_child(&mut command, request);

        // The reaper takes the same lock before it reaps, so it cannot meet a child that is not in the table.
        let mut table = self.table();
        let mut child = command
            .spawn()
            .map_err(|error| format!("{program} could not be started: {error}"))?;
        drop(command);
        table.last += 1;
        let number = table.last;
        let pid = Pid::from_raw(child.id() as i32);
        let mut outputs: Vec<(bool, File)> = Vec::new();
        outputs.extend(
            child
                .stdout
                .take()
                .map(|pipe| (false, OwnedFd::from(pipe).into())),
        );
        outputs.extend(
            child
                .stderr
                .take()
                .map(|pipe| (true, OwnedFd::from(pipe).into())),
        );
        let mut input: Option<File> = child.stdin.take().map(|pipe| OwnedFd::from(pipe).into());
        let mut terminal = None;
        if let Some(master) = pair {
            let duplicate = || master.try_clone().map_err(|error| error.to_string());
            outputs.push((false, duplicate()?.into()));
            input = Some(duplicate()?.into());
            terminal = Some(master);
        }
        if !request.input.is_empty() {
            feed(&mut input, request.input.clone(), request.keep_input);
        }
        table.running.insert(
            number,
            Running {
                pid,
                input,
                terminal,
            },
        );
        self.shared.child_started.notify_one();
        let credit = request.output_window.map(Credit::new).map(Arc::new);
        if let Some(credit) = &credit {
            table.credits.insert(number, Arc::clone(credit));
        }
        drop(table);
        self.stream_output(number, outputs, request.output_limit, credit);
        Ok(number)
    }

    /// Writes to a program's standard input and closes it where asked.
    ///
    /// # Errors
    /// The program is gone, or no longer reads.
    pub fn input(&self, process: u32, data: &[u8], close: bool) -> Result<(), String> {
        let mut input = {
            let mut table = self.table();
            let running = running(&mut table, process)?;
            let Some(input) = &running.input else {
                return Err(format!("program {process} has no open standard input"));
            };
            let duplicate = input.try_clone().map_err(|error| error.to_string())?;
            if close {
                running.input = None;
            }
            duplicate
        };
        input
            .write_all(data)
            .map_err(|error| format!("program {process} does not read: {error}"))
    }

    /// Lets as many more bytes of a program's output be reported; does nothing where all have been.
    pub fn take_output(&self, process: u32, bytes: u64) {
        if let Some(credit) = self.table().credits.get(&process) {
            credit.give(bytes);
        }
    }

    /// Signals the program's process group.
    ///
    /// # Errors
    /// The program is gone, or the number is no signal.
    pub fn signal(&self, process: u32, signal: i32) -> Result<(), String> {
        let signal = Signal::try_from(signal).map_err(|_| format!("{signal} is not a signal"))?;
        let mut table = self.table();
        let pid = running(&mut table, process)?.pid;
        nix::sys::signal::killpg(pid, signal)
            .map_err(|error| format!("program {process} could not be signalled: {error}"))
    }

    /// Sets the size of the program's terminal.
    ///
    /// # Errors
    /// The program is gone or has no terminal.
    pub fn resize(&self, process: u32, rows: u16, columns: u16) -> Result<(), String> {
        let mut table = self.table();
        let Some(terminal) = &running(&mut table, process)?.terminal else {
            return Err(format!("program {process} has no terminal"));
        };
        let size = window_size(TerminalSize { rows, columns });
        // SAFETY: TIOCSWINSZ reads one `winsize`, which lives through the call.
        let status = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &size) };
        Errno::result(status)
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn stream_output(
        &self,
        process: u32,
        outputs: Vec<(bool, File)>,
        limit: Option<u64>,
        credit: Option<Arc<Credit>>,
    ) {
        let processes = self.clone();
        thread::spawn(move || {
            let readers: Vec<_> = outputs
                .into_iter()
                .map(|(error_stream, source)| {
                    let outbox = processes.outbox.clone();
                    let credit = credit.clone();
                    let report = move |data: &[u8]| {
                        outbox.report(Event::Output {
                            process,
                            error_stream,
                            data: ByteBuf::from(data),
                        });
                    };
                    thread::spawn(move || forward(report, source, limit, credit.as_deref()))
                })
                .collect();
            for reader in readers {
                let _ = reader.join();
            }
            processes.table().credits.remove(&process);
            processes.outbox.report(Event::OutputClosed { process });
        });
    }

    fn reap_for_ever(&self) {
        loop {
            let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
            match waitid(Id::All, peek) {
                Ok(WaitStatus::Exited(pid, _) | WaitStatus::Signaled(pid, ..)) => self.reap(pid),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => self.wait_for_a_child(),
            }
        }
    }

    fn reap(&self, pid: Pid) {
        let mut table = self.table();
        // The standard library may have reaped a child whose program could not be executed.
        let Ok(status) = waitpid(pid, Some(WaitPidFlag::WNOHANG)) else {
            return;
        };
        let Some(process) = table
            .running
            .iter()
            .find_map(|(number, running)| (running.pid == pid).then_some(*number))
        else {
            return;
        };
        table.running.remove(&process);
        drop(table);
        let (code, signal) = match status {
            WaitStatus::Exited(_, code) => (Some(code), None),
            WaitStatus::Signaled(_, signal, _) => (None, Some(signal as i32)),
            _ => return,
        };
        self.outbox.report(Event::Exited {
            process,
            code,
            signal,
        });
    }

    fn wait_for_a_child(&self) {
        let table = self.table();
        let _ = self
            .shared
            .child_started
            .wait_timeout(table, std::time::Duration::from_millis(200));
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.shared
            .table
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes a file whole under its final mode, making its parents.
///
/// # Errors
/// Names the path and what the kernel said.
pub fn write_file(file: &NewFile) -> Result<(), String> {
    let path = Path::new(&file.path);
    let write = || -> io::Result<()> {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        let mut opened = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(file.mode)
            .open(path)?;
        // Pseudo-files refuse a change of mode, and need none.
        if opened.metadata()?.permissions().mode() & 0o7777 != file.mode
            && opened.metadata()?.is_file()
        {
            let _ = opened.set_permissions(fs::Permissions::from_mode(file.mode));
        }
        opened.write_all(&file.data)
    };
    write().map_err(|error| format!("{} could not be written: {error}", file.path))
}

fn running(table: &mut Table, process: u32) -> Result<&mut Running, String> {
    table
        .running
        .get_mut(&process)
        .ok_or_else(|| format!("program {process} is not running"))
}

fn use_pipes(command: &mut Command, request: &Spawn) {
    let input = if request.keep_input || !request.input.is_empty() {
        Stdio::piped()
    } else {
        Stdio::null()
    };
    command
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
}

fn open_terminal(command: &mut Command, size: TerminalSize) -> Result<OwnedFd, String> {
    let OpenptyResult { master, slave } = openpty(&window_size(size), None)
        .map_err(|error| format!("no terminal could be opened: {error}"))?;
    let duplicate = || slave.try_clone().map_err(|error| error.to_string());
    command
        .stdin(duplicate()?)
        .stdout(duplicate()?)
        .stderr(slave);
    fcntl(&master, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC)).map_err(|error| error.to_string())?;
    Ok(master)
}

fn window_size(size: TerminalSize) -> Winsize {
    Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

fn prepare_child(command: &mut Command, request: &Spawn) {
    let descriptors = request.descriptors.clone();
    let has_terminal = request.terminal.is_some();
    let mut processors = CpuSet::new();
    for processor in &request.processors {
        // A processor beyond the set's size cannot exist, and the kernel refuses an empty set below.
        let _ = processors.set(*processor);
    }
    let pin = !request.processors.is_empty();
    let prepare = move || -> io::Result<()> {
        setsid()?;
        if has_terminal {
            // SAFETY: makes the terminal on descriptor 0 the controlling one; no memory is touched.
            Errno::result(unsafe { libc::ioctl(0, libc::TIOCSCTTY, 0) })?;
        }
        for descriptor in &descriptors {
            // SAFETY: only changes a flag of a descriptor number, which may be closed: then it fails.
            Errno::result(unsafe { libc::fcntl(*descriptor, libc::F_SETFD, 0) })?;
        }
        if pin {
            sched_setaffinity(Pid::from_raw(0), &processors)?;
        }
        sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
        Ok(())
    };
    // SAFETY: between fork and exec the closure makes only system calls.
    unsafe { command.pre_exec(prepare) };
}

fn feed(input: &mut Option<File>, data: ByteBuf, keep: bool) {
    let target = if keep {
        input.as_ref().and_then(|file| file.try_clone().ok())
    } else {
        input.take()
    };
    let Some(mut target) = target else { return };
    thread::spawn(move || {
        // A program that ends without reading its input says so by its exit status.
        let _ = target.write_all(&data);
    });
}

fn forward(report: impl Fn(&[u8]), mut source: File, limit: Option<u64>, credit: Option<&Credit>) {
    let mut buffer = vec![0; 32 << 10];
    let mut left = limit.unwrap_or(u64::MAX);
    loop {
        let length = match source.read(&mut buffer) {
            Ok(0) => return,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // A pseudo-terminal reports its end as an I/O error.
            Err(_) => return,
        };
        let shown = left.min(length as u64) as usize;
        left -= shown as u64;
        let mut rest = &buffer[..shown];
        while !rest.is_empty() {
            let piece = credit.map_or(rest.len(), |credit| credit.take(rest.len() as u64) as usize);
            report(&rest[..piece]);
            rest = &rest[piece..];
        }
    }
}
