//! The result in words and columns for a person.

use std::fmt::Write;

use tunnelbench_traffic::histogram::{Histogram, Unit};
use tunnelbench_traffic::outcome::{FlowReport, FlowSeries};

use crate::result::{Decoded, DecodedFlow, DecodedLog};
use crate::summary::Summary;

/// Writes everything, with the windows of each flow where `with_windows`.
pub(crate) fn print(decoded: &Decoded, with_windows: bool) -> String {
    let mut text = String::new();
    for log in &decoded.logs {
        print_log(&mut text, log);
        for flow in &log.flows {
            print_flow(&mut text, flow, with_windows);
        }
    }
    let flows: usize = decoded.logs.iter().map(|log| log.flows.len()).sum();
    if flows != 1 {
        let mut rows = vec![row("Number of flows", flows.to_string(), "")];
        rows.extend(summary(&decoded.total));
        section(&mut text, "All flows together", &rows);
    }
    text
}

fn print_log(text: &mut String, log: &DecodedLog) {
    line(
        text,
        &format!("{}: {} packets", log.path.display(), log.records),
    );
    if !log.complete {
        line(
            text,
            "The log has no end: its run was killed, and its last packets are missing.",
        );
    }
    if log.dropped_records > 0 {
        line(
            text,
            &format!(
                "{} packets are missing in the log, because the disk was too slow for it.",
                log.dropped_records
            ),
        );
    }
    if let Some(clock) = log.clock {
        let uncertainty = milliseconds(clock.uncertainty as f64);
        line(
            text,
            &format!("The clocks of both ends are known to {uncertainty} ms; so is each delay."),
        );
    }
    text.push('\n');
}

fn print_flow(text: &mut String, flow: &DecodedFlow, with_windows: bool) {
    let name = flow
        .name
        .as_ref()
        .map_or_else(String::new, |name| format!(" ({name})"));
    section(
        text,
        &format!("Flow {}{name}", flow.flow),
        &summary(&flow.summary),
    );
    section(
        text,
        "Order, loss and jitter",
        &details(&flow.report, flow.sent),
    );
    section(text, "Distributions", &distributions(&flow.report));
    if with_windows {
        section(text, "Windows, by arrival", &windows(&flow.report.series));
    }
}

type Row = Vec<String>;

/// What ITGDec prints, by its names.
fn summary(summary: &Summary) -> Vec<Row> {
    let delay = |pick: fn(&crate::DelaySummary) -> f64| time(summary.delay.as_ref().map(pick));
    vec![
        row(
            "Total time",
            format!("{:.6}", summary.total_time as f64 / 1e9),
            "s",
        ),
        row("Total packets", summary.packets.to_string(), ""),
        row("Minimum delay", delay(|delay| delay.min), "ms"),
        row("Maximum delay", delay(|delay| delay.max), "ms"),
        row("Average delay", delay(|delay| delay.average), "ms"),
        row("Average jitter", time(summary.average_jitter), "ms"),
        row(
            "Delay standard deviation",
            delay(|delay| delay.deviation),
            "ms",
        ),
        row("Bytes received", summary.bytes.to_string(), ""),
        row(
            "Average bitrate",
            number(summary.average_bitrate.map(|rate| rate / 1e6), 6),
            "Mbit/s",
        ),
        row(
            "Average packet rate",
            number(summary.average_packet_rate, 3),
            "packets/s",
        ),
        row("Packets dropped", summary.dropped.to_string(), ""),
        row(
            "Packets dropped, share",
            number(summary.dropped_ratio.map(|ratio| ratio * 100.0), 4),
            "%",
        ),
        row(
            "Average loss-burst size",
            number(summary.average_loss_burst, 3),
            "packets",
        ),
    ]
}

fn details(report: &FlowReport, sent: Option<u64>) -> Vec<Row> {
    let sent = sent.map(|sent| row("Packets sent", sent.to_string(), ""));
    let share = |count: u64| {
        let of = report.measured.packets;
        number((of > 0).then(|| count as f64 * 100.0 / of as f64), 4)
    };
    let known = vec![
        row(
            "Longest loss burst",
            report.loss.longest.to_string(),
            "packets",
        ),
        row(
            "Loss burst ratio (ITU-T G.107)",
            number(report.loss.ratio, 3),
            "",
        ),
        row(
            "Duplicates (RFC 5560)",
            report.duplicates.to_string(),
            "packets",
        ),
        row(
            "Reordered (RFC 4737)",
            report.reordered.to_string(),
            "packets",
        ),
        row("Reordered, share", share(report.reordered), "%"),
        row(
            "Too late to be told from a copy",
            report.beyond_window.to_string(),
            "packets",
        ),
        row(
            "Longest gap between arrivals",
            milliseconds(report.longest_gap as f64),
            "ms",
        ),
        row("Jitter (RFC 3550), mean", time(report.jitter_mean), "ms"),
        row("Jitter (RFC 3550), last", time(report.jitter_last), "ms"),
        row(
            "IPDV (RFC 3393), mean",
            time(report.ipdv.as_ref().map(|ipdv| ipdv.mean)),
            "ms",
        ),
    ];
    sent.into_iter().chain(known).collect()
}

fn distributions(report: &FlowReport) -> Vec<Row> {
    let headings = [
        "", "least", "median", "90 %", "99 %", "99.9 %", "most", "mean",
    ];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    let ipdv = report.ipdv.as_ref().map(|ipdv| &ipdv.absolute);
    for (name, histogram) in [
        ("Delay (RFC 7679), ms", report.delay.as_ref()),
        ("IPDV without sign (RFC 3393), ms", ipdv),
        ("PDV (RFC 5481), ms", report.pdv.as_ref()),
        (
            "Reordering extent (RFC 4737), packets",
            report.reordering_extent.as_ref(),
        ),
        (
            "Late time offset (RFC 4737), ms",
            report.late_time_offset.as_ref(),
        ),
    ] {
        rows.extend(histogram.map(|histogram| distribution(name, histogram)));
    }
    rows
}

fn distribution(name: &str, histogram: &Histogram) -> Row {
    let Histogram {
        min,
        p50,
        p90,
        p99,
        p999,
        max,
        mean,
        ..
    } = *histogram;
    let show = |value: f64| match histogram.unit {
        Unit::Nanoseconds => milliseconds(value),
        Unit::Packets => format!("{value:.1}"),
    };
    let values = [min, p50, p90, p99, p999, max].map(|value| show(value as f64));
    [name.to_owned()]
        .into_iter()
        .chain(values)
        .chain([show(mean)])
        .collect()
}

fn windows(series: &FlowSeries) -> Vec<Row> {
    let headings = [
        "from, s",
        "packets",
        "Mbit/s",
        "lost",
        "least delay, ms",
        "mean delay, ms",
        "most delay, ms",
        "jitter, ms",
    ];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    let seconds = series.step as f64 / 1e9;
    rows.extend((0..series.packets.len()).map(|index| {
        vec![
            format!("{:.6}", index as f64 * seconds),
            series.packets[index].to_string(),
            format!("{:.6}", series.bytes[index] as f64 * 8.0 / 1e6 / seconds),
            series.lost[index].to_string(),
            time(series.delay_min[index].map(|delay| delay as f64)),
            time(series.delay_mean[index]),
            time(series.delay_max[index].map(|delay| delay as f64)),
            time(series.jitter[index]),
        ]
    }));
    rows
}

fn row(name: &str, value: String, unit: &str) -> Row {
    vec![name.to_owned(), value, unit.to_owned()]
}

fn time(nanoseconds: Option<f64>) -> String {
    nanoseconds.map_or_else(|| "-".into(), milliseconds)
}

fn milliseconds(nanoseconds: f64) -> String {
    format!("{:.6}", nanoseconds / 1e6)
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.digits$}"))
}

/// A heading and under it the rows, in columns: words to the left, numbers to the right.
fn section(text: &mut String, heading: &str, rows: &[Row]) {
    line(text, heading);
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate();
        let aligned: Vec<String> = cells
            .map(|(column, (cell, width))| {
                let is_word = column == 0 || (columns == 3 && column == 2);
                if is_word {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            })
            .collect();
        line(text, &format!("  {}", aligned.join("  ").trim_end()));
    }
    text.push('\n');
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to memory does not fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let mut text = String::new();
        let rows = [
            row("short", "1".into(), "ms"),
            row("rather long", "1000.5".into(), "packets/s"),
            row("none", "-".into(), ""),
        ];
        section(&mut text, "Heading", &rows);
        let expected = [
            "Heading",
            "  short             1  ms",
            "  rather long  1000.5  packets/s",
            "  none              -",
            "",
            "",
        ];
        assert_eq!(text.split('\n').collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_not_known_is_a_dash() {
        let summary = Summary::default();
        let rows = super::summary(&summary);
        let value = |name: &str| {
            rows.iter()
                .find(|row| row[0] == name)
                .map(|row| row[1].as_str())
        };
        assert_eq!(value("Average delay"), Some("-"));
        assert_eq!(value("Average bitrate"), Some("-"));
        assert_eq!(value("Total packets"), Some("0"));
    }
}
