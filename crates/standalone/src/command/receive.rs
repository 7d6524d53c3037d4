//! `tbnode receive`.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;

use crate::client::parse_bind;
use crate::command::{interruption, summary};
use crate::error::StandaloneError;
use crate::key::Trust;
use crate::limits::Limits;
use crate::quantity::{parse_bits, parse_duration};
use crate::server::{Event, House, Observer};

/// The arguments of `tbnode receive`.
#[derive(Args, Debug)]
pub struct ReceiveArguments {
    /// Where to listen: `0.0.0.0` or `[::]` for all addresses of this machine; port 5210 unless given.
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = parse_bind)]
    bind: SocketAddr,
    /// Take part only with who holds this key; `tbnode key > FILE` makes one.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    key_file: Option<PathBuf>,
    /// Take part with anybody who can reach the port.
    #[arg(long)]
    insecure: bool,
    /// The longest that a client may measure.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_duration)]
    longest: Duration,
    /// The most payload in each direction, such as `1Gbit`; without a key, at most 1Gbit is sent where nothing is given.
    #[arg(long, value_name = "RATE", value_parser = parse_bits)]
    highest_rate: Option<u64>,
    /// How many clients are served at once; more are told that the receiver is busy.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=32))]
    sessions: u16,
    /// End after one session.
    #[arg(long)]
    once: bool,
    /// Print one JSON object for each event instead of text.
    #[arg(long)]
    json: bool,
}

impl ReceiveArguments {
    /// Listens until interrupted.
    ///
    /// # Errors
    /// `Usage` for a key that is of no use, `Failed` where it cannot listen.
    pub fn run(&self) -> Result<(), StandaloneError> {
        let trust = Trust::choose(self.key_file.as_deref(), self.insecure)?;
        if trust == Trust::Anybody {
            eprintln!(
                "warning: with --insecure anybody who can reach the port can measure with this machine"
            );
        }
        let limits = Limits {
            longest: self.longest,
            highest_rate: self.highest_rate,
            keyed: trust != Trust::Anybody,
        };
        let observer: Observer = Box::new(if self.json { print_json } else { print_text });
        House::new(
            trust,
            limits,
            self.sessions.into(),
            self.once,
            interruption()?,
            observer,
        )
        .receive(self.bind)
    }
}

fn print_json(event: &Event<'_>) {
    let line = match event {
        Event::Listening(address) => json!({ "event": "listening", "address": address }),
        Event::Began { peer, offer } => json!({ "event": "began", "client": peer, "offer": offer }),
        Event::Ended { peer, flows } => {
            let flows: Vec<_> = flows.iter().map(crate::report::end).collect();
            json!({ "event": "ended", "client": peer, "flows": flows })
        }
        Event::Failed { peer, reason } => {
            json!({ "event": "failed", "client": peer, "reason": reason })
        }
    };
    say(&line.to_string());
}

fn print_text(event: &Event<'_>) {
    match event {
        Event::Listening(address) => say(&format!("listening on {address}; Ctrl-C ends")),
        Event::Began { peer, offer } => say(&format!("{peer}: {}", summary::offer(offer))),
        Event::Ended { peer, flows } => {
            flows
                .iter()
                .for_each(|flow| say(&format!("{peer}: {}", summary::own_end(flow))));
        }
        Event::Failed { peer, reason } => say(&format!("{peer}: {reason}")),
    }
}

/// One line; who does not listen any more misses it.
fn say(line: &str) {
    let mut output = io::stdout().lock();
    let _ = writeln!(output, "{line}").and_then(|()| output.flush());
}
