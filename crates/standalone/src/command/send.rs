//! `tbnode send`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use crate::client::{self, Ask, Family, Findings, Progress, split};
use crate::command::flows::FlowArguments;
use crate::command::{interruption, summary};
use crate::error::StandaloneError;
use crate::key::Trust;
use crate::offer::Offer;
use crate::quantity::parse_duration;
use crate::report::report;

/// The arguments of `tbnode send`.
#[derive(Args, Debug)]
pub struct SendArguments {
    /// The machine where `tbnode receive` runs; port 5210 unless given.
    #[arg(value_name = "HOST[:PORT]", value_parser = split)]
    host: (String, u16),
    #[command(flatten)]
    flows: FlowArguments,
    /// How long to measure.
    #[arg(long, value_name = "S", default_value = "10", value_parser = parse_duration)]
    seconds: Duration,
    /// How long to send before the measured time.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    warm_up: Duration,
    /// Length of a step of the time series.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = parse_duration)]
    step: Duration,
    /// The local address to send from.
    #[arg(long, value_name = "ADDR")]
    source: Option<IpAddr>,
    /// The key that the receiver holds too.
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    key_file: Option<PathBuf>,
    /// Go without authentication.
    #[arg(long)]
    insecure: bool,
    /// Use IPv4.
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Use IPv6.
    #[arg(short = '6', long)]
    ipv6: bool,
    /// Log every packet that this end sends, or with --reverse receives, into this Parquet file (UDP).
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Print one JSON object with everything instead of text.
    #[arg(long)]
    json: bool,
}

impl SendArguments {
    /// Measures, and prints what came out.
    ///
    /// # Errors
    /// `Usage` for options that make no sense together, `Refused` by the receiver, `Interrupted` after printing what
    /// there was, `Failed` for all else.
    pub fn run(&self) -> Result<(), StandaloneError> {
        let ask = self.ask()?;
        if ask.trust == Trust::Anybody {
            eprintln!(
                "warning: with --insecure nobody knows whether the other end is who it should be"
            );
        }
        let interrupt = interruption()?;
        let mut observer = |progress: &Progress| {
            if !self.json {
                eprintln!("{}", summary::progress(progress));
            }
        };
        let findings = client::run(&ask, &mut observer, &interrupt)?;
        let report = report(&findings, self.asked());
        if self.json {
            println!("{}", serde_json::to_string(&report).unwrap_or_default());
        } else {
            print!("{}", summary::full(&report));
        }
        complete(&findings)
    }

    fn ask(&self) -> Result<Ask, StandaloneError> {
        let (host, port) = self.host.clone();
        Ok(Ask {
            host,
            port,
            family: match (self.ipv4, self.ipv6) {
                (true, _) => Family::V4,
                (_, true) => Family::V6,
                _ => Family::Any,
            },
            source: self.source,
            trust: Trust::choose(self.key_file.as_deref(), self.insecure)?,
            offer: Offer {
                warm_up: self.warm_up.as_nanos() as u64,
                measure: self.seconds.as_nanos() as u64,
                step: self.step.as_nanos() as u64,
                flows: self.flows.flows()?,
            },
            log: self.log.clone(),
        })
    }

    /// Every option as it was taken, without the key.
    fn asked(&self) -> Value {
        let mut asked = self.flows.asked();
        let own = json!({
            "host": self.host.0,
            "port": self.host.1,
            "seconds": self.seconds.as_secs_f64(),
            "warm_up": self.warm_up.as_secs_f64(),
            "step": self.step.as_secs_f64(),
            "source": self.source,
            "log": self.log,
            "authenticated": self.key_file.is_some(),
            "ipv4": self.ipv4,
            "ipv6": self.ipv6,
        });
        if let (Value::Object(all), Value::Object(own)) = (&mut asked, own) {
            all.extend(own);
        }
        asked
    }
}

/// A report is printed in any case; the exit code says whether it is whole.
fn complete(findings: &Findings) -> Result<(), StandaloneError> {
    if findings.cut.is_some() {
        return Err(StandaloneError::Interrupted);
    }
    for (client, server) in &findings.flows {
        if let Some(failure) = client.failure() {
            return Err(StandaloneError::failed(failure));
        }
        if let Some(failure) = server.failure() {
            return Err(StandaloneError::failed(format!("the receiver: {failure}")));
        }
    }
    Ok(())
}
