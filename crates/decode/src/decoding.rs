//! Turns records into the account of each flow.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tunnelbench_packet_log::{LogReader, LogSchedule, Record};
use tunnelbench_traffic::{FlowAccount, LONGEST_JOB, MOST_STEPS, Observed, Schedule};

use crate::batches::Batches;
use crate::csv::CsvFile;
use crate::departures::Departures;
use crate::error::DecodeError;
use crate::result::{Decoded, DecodedFlow, DecodedLog};
use crate::summary::{Part, Summary};

/// The account of a flow takes about a megabyte.
const MOST_FLOWS: usize = 256;
/// A time farther from the start of the schedule is none, ns.
const FARTHEST: u64 = 24 * 3_600_000_000_000;
const DEFAULT_WINDOW: u64 = 100_000_000;

/// What of a log is decoded, and how.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Length of the windows in the series of each flow; 100 ms without.
    pub window: Option<Duration>,
    /// Only this flow.
    pub flow: Option<u16>,
    /// Count what was sent in warm-up and cool-down too, and not only in the measured window.
    pub all: bool,
    /// Export every packet that was selected.
    pub csv: Option<PathBuf>,
}

/// Decodes receivers' logs, each with the log of its sender where `sent` has one at its place.
///
/// # Errors
/// [`DecodeError`] says which log is unreadable or makes no sense, or where the export can't be written.
pub fn decode(
    logs: &[PathBuf],
    sent: &[PathBuf],
    selection: &Selection,
) -> Result<Decoded, DecodeError> {
    if !sent.is_empty() && sent.len() != logs.len() {
        return Err(DecodeError::Options(format!(
            "there are {} logs and {} of senders: give one sender's log for each, in the same order",
            logs.len(),
            sent.len()
        )));
    }
    if selection.csv.is_some() && logs.len() != 1 {
        return Err(DecodeError::Options(
            "only one log can be exported at a time".into(),
        ));
    }
    let mut decoded = Vec::new();
    let mut spans = Vec::new();
    for (index, log) in logs.iter().enumerate() {
        let (log, log_spans) =
            Decoder::open(log, sent.get(index).map(PathBuf::as_path), selection)?.run()?;
        decoded.push(log);
        spans.extend(log_spans);
    }
    let flows = decoded.iter().flat_map(|log| &log.flows);
    let parts: Vec<_> = flows
        .zip(&spans)
        .map(|(flow, span)| Part {
            report: &flow.report,
            span: *span,
            sent: flow.sent,
        })
        .collect();
    let total = Summary::of(&parts);
    Ok(Decoded {
        logs: decoded,
        total,
    })
}

/// First and last arrival of a flow, ns since the epoch.
type Span = Option<(i64, i64)>;

struct Decoder<'a> {
    path: &'a Path,
    log: DecodedLog,
    names: BTreeMap<u16, String>,
    batches: Batches,
    departures: Option<Departures>,
    csv: Option<CsvFile>,
    schedule: Schedule,
    window: u64,
    only: Option<u16>,
    flows: BTreeMap<u16, Flow>,
    departures_only: u64,
}

struct Flow {
    account: FlowAccount,
    span: Span,
}

impl<'a> Decoder<'a> {
    fn open(
        path: &'a Path,
        sent: Option<&Path>,
        selection: &Selection,
    ) -> Result<Self, DecodeError> {
        let reader = LogReader::open(path)?;
        let schedule = schedule(path, &reader, selection.all)?;
        let departures = sent
            .map(|path| open_departures(path, selection.all))
            .transpose()?;
        let head = reader.head().clone();
        Ok(Self {
            path,
            log: DecodedLog {
                path: path.to_owned(),
                version: head.version,
                records: reader.records(),
                dropped_records: reader.dropped(),
                complete: reader.is_complete(),
                schedule: head.schedule,
                clock: head.clock,
                flows: Vec::new(),
            },
            names: head.flows,
            batches: Batches::of(reader),
            departures,
            csv: selection.csv.as_deref().map(CsvFile::create).transpose()?,
            schedule,
            window: window(path, &schedule, selection.window)?,
            only: selection.flow,
            flows: BTreeMap::new(),
            departures_only: 0,
        })
    }

    fn run(mut self) -> Result<(DecodedLog, Vec<Span>), DecodeError> {
        let mut batch = Vec::new();
        while self.batches.take(&mut batch)? {
            for record in &batch {
                if self.only.is_none_or(|only| only == record.flow) {
                    self.account(record)?;
                }
            }
        }
        self.finish()
    }

    fn account(&mut self, record: &Record) -> Result<(), DecodeError> {
        let start = self.schedule.start_at;
        let sent = match &mut self.departures {
            Some(departures) => departures.of(record.flow, record.sequence)?,
            None => record.sent.map(|sent| sent.saturating_sub(start)),
        };
        if let Some(csv) = &mut self.csv {
            csv.add(&Record {
                sent: sent.map(|sent| sent.saturating_add(start)),
                ..*record
            })?;
        }
        let Some(received) = record.received else {
            self.departures_only += 1;
            return Ok(());
        };
        let observed = Observed {
            sequence: record.sequence as u32,
            intended: self.since_start(record, record.intended)?,
            sent,
            arrived: self.since_start(record, received)?,
            bytes: record.bytes.into(),
        };
        let measured = self.schedule.measures(observed.intended);
        let flow = self.flow(record.flow)?;
        flow.account.observe(&observed);
        if measured {
            let (first, last) = flow.span.unwrap_or((received, received));
            flow.span = Some((first.min(received), last.max(received)));
        }
        Ok(())
    }

    fn since_start(&self, record: &Record, time: i64) -> Result<i64, DecodeError> {
        let offset = time.saturating_sub(self.schedule.start_at);
        if offset.unsigned_abs() > FARTHEST {
            let Record { flow, sequence, .. } = record;
            let reason = format!(
                "packet {sequence} of flow {flow} is more than a day away from the schedule"
            );
            return Err(senseless(self.path, reason));
        }
        Ok(offset)
    }

    fn flow(&mut self, number: u16) -> Result<&mut Flow, DecodeError> {
        let known = self.flows.len();
        match self.flows.entry(number) {
            Entry::Occupied(flow) => Ok(flow.into_mut()),
            Entry::Vacant(_) if known == MOST_FLOWS => Err(senseless(
                self.path,
                format!("it has more than {MOST_FLOWS} flows; choose one with --flow"),
            )),
            Entry::Vacant(place) => {
                let account = FlowAccount::new(self.schedule, self.window);
                let account = account.map_err(|error| senseless(self.path, error.to_string()))?;
                Ok(place.insert(Flow {
                    account,
                    span: None,
                }))
            }
        }
    }

    fn finish(mut self) -> Result<(DecodedLog, Vec<Span>), DecodeError> {
        if self.flows.is_empty() && self.csv.is_none() {
            return Err(self.nothing());
        }
        if let Some(csv) = self.csv {
            csv.finish()?;
        }
        let sent = self.departures.map(Departures::measured).transpose()?;
        let mut spans = Vec::new();
        for (number, flow) in self.flows {
            let report = flow.account.finish();
            let sent = sent
                .as_ref()
                .map(|sent| sent.get(&number).copied().unwrap_or(0));
            spans.push(flow.span);
            self.log.flows.push(DecodedFlow {
                flow: number,
                name: self.names.remove(&number),
                sent,
                summary: Summary::of(&[Part {
                    report: &report,
                    span: flow.span,
                    sent,
                }]),
                report,
            });
        }
        Ok((self.log, spans))
    }

    fn nothing(&self) -> DecodeError {
        let reason = match self.only {
            _ if self.departures_only > 0 => {
                "it has departures only: give the receiver's log, and this one with --sent; or export it with --csv".into()
            }
            Some(flow) => format!("it has no packet of flow {flow}"),
            None => "it has no packet".into(),
        };
        senseless(self.path, reason)
    }
}

fn open_departures(path: &Path, all: bool) -> Result<Departures, DecodeError> {
    let reader = LogReader::open(path)?;
    let schedule = schedule(path, &reader, all)?;
    Ok(Departures::of_log(reader, schedule))
}

fn schedule(path: &Path, reader: &LogReader, all: bool) -> Result<Schedule, DecodeError> {
    let LogSchedule {
        start_at,
        warm_up,
        measure,
        cool_down,
    } = reader.head().schedule;
    let total = [warm_up, measure, cool_down]
        .into_iter()
        .try_fold(0_u64, u64::checked_add);
    match total {
        Some(total) if total > 0 && total <= LONGEST_JOB && all => Ok(Schedule {
            start_at,
            warm_up: 0,
            measure: total,
            cool_down: 0,
        }),
        Some(total) if measure > 0 && total <= LONGEST_JOB => Ok(Schedule {
            start_at,
            warm_up,
            measure,
            cool_down,
        }),
        _ => Err(senseless(
            path,
            "its schedule is empty or longer than an hour".into(),
        )),
    }
}

/// Windows of the length asked for, or the shortest from 100 ms on that the schedule allows.
fn window(path: &Path, schedule: &Schedule, asked: Option<Duration>) -> Result<u64, DecodeError> {
    let total = schedule.warm_up + schedule.measure + schedule.cool_down;
    let shortest = total.div_ceil(MOST_STEPS);
    match asked.map(|asked| asked.as_nanos() as u64) {
        Some(asked) if asked < shortest => Err(senseless(
            path,
            format!(
                "windows can't be shorter than {} ms in so long a run",
                shortest as f64 / 1e6
            ),
        )),
        Some(asked) => Ok(asked),
        None => Ok(shortest.max(DEFAULT_WINDOW)),
    }
}

fn senseless(path: &Path, reason: String) -> DecodeError {
    DecodeError::Senseless {
        path: path.to_owned(),
        reason,
    }
}
