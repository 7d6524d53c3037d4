//! Both ends' findings as one report: what `--json` prints.

mod doubts;
mod ends;
mod figures;
mod plain;
mod times;

use serde::Serialize;
use serde_json::{Value, json};

pub(crate) use figures::Figures;
pub(crate) use times::{Delay, Times};

use crate::client::Findings;
use crate::message::End;
use crate::offer::{Direction, Flow};
use crate::quantity::bits_per_second;
use doubts::doubts;
use ends::Ends;
use plain::plain;
use times::Apart;

/// The whole of it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub tool: &'static str,
    pub version: &'static str,
    pub receiver_version: String,
    pub receiver: String,
    /// Every option, as it was taken.
    pub asked: Value,
    /// ns since 1970, of this machine's clock.
    pub started_at: i64,
    pub measured_seconds: f64,
    pub interrupted: bool,
    /// What casts doubt on the figures.
    pub warnings: Vec<String>,
    #[serde(flatten)]
    pub total: Figures,
    pub clock: ClockReport,
    pub flows: Vec<FlowReport>,
}

/// How far the clocks are apart.
#[derive(Debug, Serialize)]
pub(crate) struct ClockReport {
    pub shared: bool,
    /// Receiver minus client in the middle of the measured window, ns.
    pub offset: i64,
    pub uncertainty: u64,
    pub drift_ppm: Option<f64>,
    pub readings: Value,
}

/// One flow, by itself.
#[derive(Debug, Serialize)]
pub(crate) struct FlowReport {
    pub name: Option<String>,
    pub direction: Direction,
    pub offer: Value,
    pub warnings: Vec<String>,
    #[serde(flatten)]
    pub figures: Figures,
    pub client: Value,
    pub server: Value,
}

/// Puts the report together.
pub(crate) fn report(findings: &Findings, asked: Value) -> Report {
    let measure = findings.cut.map_or(findings.offer.measure, |cut| {
        let cut = cut.client.saturating_sub(findings.offer.warm_up as i64);
        findings.offer.measure.min(cut.max(0) as u64)
    });
    let from = findings
        .start_at
        .saturating_add(findings.offer.warm_up as i64);
    let to = from.saturating_add(measure as i64);
    let apart = Apart::between(&findings.clocks, findings.applied_offset, from, to);
    let flows: Vec<FlowReport> = findings
        .offer
        .flows
        .iter()
        .zip(&findings.flows)
        .zip(&findings.paces)
        .map(|((flow, (client, server)), pace)| {
            let measure = measured(flow, findings);
            let ends = Ends {
                flow,
                client,
                server,
                measure,
            };
            let figures = ends.figures(apart);
            FlowReport {
                name: flow.name.clone(),
                direction: flow.direction,
                offer: plain(&flow.traffic),
                warnings: pace
                    .map(limited)
                    .into_iter()
                    .chain(doubts(&ends, &figures))
                    .collect(),
                figures,
                client: end(client),
                server: end(server),
            }
        })
        .collect();
    Report {
        tool: "tbnode",
        version: env!("CARGO_PKG_VERSION"),
        receiver_version: findings.receivers_version.clone(),
        receiver: findings.receiver.to_string(),
        asked,
        started_at: findings.start_at,
        measured_seconds: measure as f64 / 1e9,
        interrupted: findings.cut.is_some(),
        total: figures::total(&flows),
        warnings: flows
            .iter()
            .flat_map(|flow| flow.warnings.clone())
            .collect(),
        clock: ClockReport {
            shared: findings.clocks.shared,
            offset: apart.truly.offset,
            uncertainty: apart.truly.uncertainty,
            drift_ppm: findings.clocks.drift(),
            readings: json!(findings.clocks.readings),
        },
        flows,
    }
}

fn limited(pace: u64) -> String {
    format!(
        "the receiver limits this flow to {}; `tbnode receive --highest-rate` sets the limit",
        bits_per_second(pace as f64)
    )
}

/// How long a flow was measured, ns; at least 1, so that rates are numbers.
fn measured(flow: &Flow, findings: &Findings) -> u64 {
    let whole = flow.measure(findings.offer.measure);
    let Some(cut) = findings.cut else {
        return whole;
    };
    let at = match flow.direction {
        Direction::Forward => cut.client,
        Direction::Reverse => cut.server,
        Direction::Both => cut.client.min(cut.server),
    };
    let opened = findings.offer.warm_up.saturating_add(flow.delay);
    whole
        .min(u64::try_from(at).unwrap_or(0).saturating_sub(opened))
        .max(1)
}

/// What one end found out, in full.
pub(crate) fn end(end: &End) -> Value {
    match end {
        End::Outcome(outcome) => plain(outcome.as_ref()),
        End::Failure(failure) => json!({ "failure": failure }),
        End::Nothing => Value::Null,
    }
}
