//! Starts the program and reads what it says.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tbnode");

/// `tbnode receive` on a port of its own; killed when dropped.
pub struct Receiver {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
    address: String,
}

impl Receiver {
    pub fn start(bind: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(PROGRAM)
            .args(["receive", "--json", "--bind", bind])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let listening = event(&mut output);
        assert_eq!(listening["event"], "listening");
        let address = listening["address"].as_str().unwrap().to_owned();
        Self {
            child,
            output,
            address,
        }
    }

    /// Where it listens, as a client on this machine reaches it.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn port(&self) -> &str {
        self.address.rsplit_once(':').unwrap().1
    }

    /// The next thing it tells.
    pub fn event(&mut self) -> Value {
        event(&mut self.output)
    }

    /// What Ctrl-C does.
    pub fn interrupt(&self) {
        interrupt(&self.child);
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn event(output: &mut impl BufRead) -> Value {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|_| panic!("no event: `{line}`"))
}

/// How a command ended.
pub struct Outcome {
    pub code: i32,
    pub output: String,
    pub errors: String,
}

/// Runs `tbnode send`.
pub fn send(arguments: &[&str]) -> Outcome {
    finish(spawn(arguments))
}

/// Starts `tbnode send`.
pub fn spawn(arguments: &[&str]) -> Child {
    let mut command = Command::new(PROGRAM);
    command.arg("send").args(arguments);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs `tbnode send` and interrupts it a while after its session with this receiver began.
pub fn interrupted(arguments: &[&str], receiver: &mut Receiver) -> Outcome {
    let child = spawn(arguments);
    while receiver.event()["event"] != "began" {}
    std::thread::sleep(std::time::Duration::from_secs(2));
    interrupt(&child);
    finish(child)
}

fn interrupt(child: &Child) {
    let process = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(process, nix::sys::signal::Signal::SIGINT).unwrap();
}

/// Waits for the end of `tbnode send`.
pub fn finish(child: Child) -> Outcome {
    let output = child.wait_with_output().unwrap();
    Outcome {
        code: output.status.code().unwrap_or(-1),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `tbnode send --json` and reads its report.
pub fn measure(arguments: &[&str]) -> Value {
    let outcome = send(&[arguments, &["--json"]].concat());
    assert_eq!(outcome.code, 0, "{}", outcome.errors);
    serde_json::from_str(&outcome.output).unwrap()
}

/// A file with a new key; removed when dropped.
pub struct KeyFile(String);

impl KeyFile {
    pub fn path(&self) -> &str {
        &self.0
    }
}

impl Drop for KeyFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What `tbnode key > FILE` makes.
pub fn key_file(name: &str) -> KeyFile {
    let path = std::env::temp_dir().join(format!("tbnode-{}-{name}.key", std::process::id()));
    let file = File::create(&path).unwrap();
    assert!(
        Command::new(PROGRAM)
            .arg("key")
            .stdout(file)
            .status()
            .unwrap()
            .success()
    );
    KeyFile(path.to_str().unwrap().into())
}
