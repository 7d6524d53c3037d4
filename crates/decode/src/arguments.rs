//! The command `tbnode decode`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::decoding::{Selection, decode};
use crate::duration;
use crate::printing;

/// What `tbnode decode` takes.
#[derive(Debug, Args)]
pub struct Arguments {
    /// Packet logs that a receiver wrote.
    #[arg(required = true, value_name = "FILE")]
    logs: Vec<PathBuf>,
    /// The sender's log of the same run: tells exactly when each packet left and how many did. One for each FILE.
    #[arg(long, value_name = "SENDER_LOG")]
    sent: Vec<PathBuf>,
    /// Show a table of windows of this length, such as `100ms` or `1s`.
    #[arg(long, value_name = "LENGTH", value_parser = duration::parse)]
    window: Option<Duration>,
    /// Print everything as JSON; times are ns, distributions also as base64 of HdrHistogram's compressed encoding.
    #[arg(long)]
    json: bool,
    /// Write every packet into this CSV file too.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Only this flow.
    #[arg(long, value_name = "N")]
    flow: Option<u16>,
    /// Count warm-up and cool-down too, and not only what was sent in the measured window.
    #[arg(long)]
    all: bool,
}

/// Decodes and prints.
///
/// # Errors
/// What is wrong and with which file, in one sentence.
pub fn run(arguments: &Arguments) -> Result<(), String> {
    let selection = Selection {
        window: arguments.window,
        flow: arguments.flow,
        all: arguments.all,
        csv: arguments.csv.clone(),
    };
    let decoded =
        decode(&arguments.logs, &arguments.sent, &selection).map_err(|error| error.to_string())?;
    let text = if arguments.json {
        serde_json::to_string_pretty(&decoded)
            .map_err(|error| format!("the result can't be JSON: {error}"))?
            + "\n"
    } else {
        printing::print(&decoded, arguments.window.is_some())
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        // Whoever reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| format!("the result can't be printed: {error}")),
    }
}
