//! Decodes small logs whose figures are known.

use std::fs;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;
use tunnelbench_decode::{DecodeError, Decoded, Selection, decode};
use tunnelbench_packet_log::{LogHead, LogSchedule, LogWriter, Record};

const START: i64 = 1_700_000_000_000_000_000;
const MILLISECOND: i64 = 1_000_000;

/// One second is measured, with half a second before and after.
fn head(start_at: i64) -> LogHead {
    LogHead {
        version: "1".into(),
        schedule: LogSchedule {
            start_at,
            warm_up: 500_000_000,
            measure: 1_000_000_000,
            cool_down: 500_000_000,
        },
        flows: [(1, "voice".to_owned())].into(),
        clock: None,
    }
}

/// The packet that is due `due` ms after the start and arrives `delay` ms later.
fn packet(flow: u16, sequence: u64, due: i64, delay: i64) -> Record {
    let intended = START + due * MILLISECOND;
    Record {
        flow,
        sequence,
        intended,
        sent: None,
        received: Some(intended + delay * MILLISECOND),
        bytes: 100,
    }
}

fn write(directory: &TempDir, name: &str, start_at: i64, records: &[Record]) -> PathBuf {
    let path = directory.path().join(name);
    let mut writer = LogWriter::create(&path, &head(start_at)).unwrap();
    records.iter().for_each(|record| writer.record(*record));
    assert_eq!(writer.finish().unwrap().dropped, 0);
    path
}

fn decoded(log: &Path) -> Decoded {
    decode(&[log.to_owned()], &[], &Selection::default()).unwrap()
}

/// Sequence 0 is warm-up; of 1 to 6 two are lost in a row, one comes twice, and 5 overtakes 4.
fn lossy() -> Vec<Record> {
    vec![
        packet(1, 0, 400, 1),
        packet(1, 1, 500, 10),
        packet(1, 5, 900, 10),
        packet(1, 4, 800, 130),
        packet(1, 4, 800, 140),
        packet(1, 6, 1_000, 30),
    ]
}

#[test]
fn the_figures_of_itgdec_are_those_of_the_measured_window() {
    let directory = tempfile::tempdir().unwrap();
    let decoded = decoded(&write(&directory, "log.parquet", START, &lossy()));
    let [flow] = &decoded.logs[0].flows[..] else {
        panic!("one flow")
    };
    assert_eq!(
        (flow.flow, flow.name.as_deref(), flow.sent),
        (1, Some("voice"), None)
    );
    let summary = &flow.summary;
    assert_eq!(
        (summary.packets, summary.bytes, summary.dropped),
        (4, 400, 2)
    );
    assert_eq!(summary.dropped_ratio, Some(2.0 / 6.0));
    assert_eq!(summary.average_loss_burst, Some(2.0));
    // From 510 to 1030 ms.
    assert_eq!(summary.total_time, 520_000_000);
    assert!((summary.average_bitrate.unwrap() - 3_200.0 / 0.52).abs() < 1e-6);
    assert!((summary.average_packet_rate.unwrap() - 4.0 / 0.52).abs() < 1e-9);
    let delay = summary.delay.unwrap();
    assert_eq!((delay.min, delay.max, delay.average), (10e6, 130e6, 45e6));
    // Of 10, 10, 130 and 30 ms.
    assert!(
        (delay.deviation - 2_475.0_f64.sqrt() * 1e6).abs() < 1.0,
        "{}",
        delay.deviation
    );
    // Neighbours in the sequence: 4 and 5, 5 and 6.
    assert_eq!(summary.average_jitter, Some((120e6 + 20e6) / 2.0));
    assert_eq!((flow.report.duplicates, flow.report.reordered), (1, 1));
    assert_eq!(&decoded.total, summary);
}

#[test]
fn warm_up_counts_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let log = write(&directory, "log.parquet", START, &lossy());
    let selection = Selection {
        all: true,
        ..Selection::default()
    };
    let decoded = decode(&[log], &[], &selection).unwrap();
    assert_eq!((decoded.total.packets, decoded.total.dropped), (5, 2));
}

#[test]
fn the_senders_log_tells_what_was_sent_also_after_the_last_arrival() {
    let directory = tempfile::tempdir().unwrap();
    let log = write(&directory, "received.parquet", START, &lossy());
    // The sender's clock is an hour ahead.
    let ahead = 3_600_000 * MILLISECOND;
    let departures: Vec<_> = (0..8_u64)
        .map(|sequence| {
            let intended = START + ahead + (400 + sequence as i64 * 100) * MILLISECOND;
            Record {
                flow: 1,
                sequence,
                intended,
                sent: Some(intended + MILLISECOND),
                received: None,
                bytes: 100,
            }
        })
        .collect();
    let sent = write(&directory, "sent.parquet", START + ahead, &departures);
    let csv = directory.path().join("packets.csv");
    let selection = Selection {
        csv: Some(csv.clone()),
        ..Selection::default()
    };
    let decoded = decode(&[log], &[sent], &selection).unwrap();
    assert_eq!(decoded.logs[0].flows[0].sent, Some(7));
    assert_eq!((decoded.total.packets, decoded.total.dropped), (4, 3));
    let text = fs::read_to_string(csv).unwrap();
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(lines.len(), 6 + 2);
    assert_eq!(
        lines[0],
        "flow,sequence,intended_ns,sent_ns,received_ns,bytes"
    );
    let due = START + 500 * MILLISECOND;
    assert_eq!(
        lines[2],
        format!(
            "1,1,{due},{},{},100",
            due + MILLISECOND,
            due + 10 * MILLISECOND
        )
    );
}

#[test]
fn flows_are_told_apart_and_summed_up() {
    let directory = tempfile::tempdir().unwrap();
    let records: Vec<_> = (0..5)
        .flat_map(|index| {
            [1_u16, 2].map(|flow| packet(flow, index, 500 + index as i64, flow.into()))
        })
        .collect();
    let log = write(&directory, "log.parquet", START, &records);
    let both = decoded(&log);
    assert_eq!(
        both.logs[0]
            .flows
            .iter()
            .map(|flow| flow.flow)
            .collect::<Vec<_>>(),
        [1, 2]
    );
    assert_eq!(both.total.packets, 10);
    let delay = both.total.delay.unwrap();
    assert_eq!((delay.min, delay.max, delay.average), (1e6, 2e6, 1.5e6));
    assert!((delay.deviation - 0.5e6).abs() < 1.0);
    let selection = Selection {
        flow: Some(2),
        ..Selection::default()
    };
    let second = decode(from_ref(&log), &[], &selection).unwrap();
    assert_eq!((second.logs[0].flows.len(), second.total.packets), (1, 5));
    let twice = decode(&[log.clone(), log], &[], &Selection::default()).unwrap();
    assert_eq!(twice.total.packets, 20);
}

#[test]
fn windows_have_the_length_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let log = write(&directory, "log.parquet", START, &lossy());
    let window = Some(Duration::from_millis(500));
    let decoded = decode(
        &[log],
        &[],
        &Selection {
            window,
            ..Selection::default()
        },
    )
    .unwrap();
    let series = &decoded.logs[0].flows[0].report.series;
    assert_eq!(
        (series.step, series.packets.as_slice()),
        (500_000_000, &[1, 3, 1, 0][..])
    );
    assert_eq!(series.bytes, [100, 300, 100, 0]);
    assert_eq!(series.lost.iter().sum::<i64>(), 2);
}

#[test]
fn what_makes_no_sense_is_said_with_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let log = write(&directory, "log.parquet", START, &lossy());
    let message = |logs: &[PathBuf], sent: &[PathBuf], selection: &Selection| match decode(
        logs, sent, selection,
    ) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("this was decoded"),
    };
    let default = Selection::default();
    let missing = directory.path().join("missing.parquet");
    assert!(message(&[missing], &[], &default).contains("missing.parquet"));
    let departures = write(
        &directory,
        "sent.parquet",
        START,
        &[Record {
            received: None,
            ..packet(1, 0, 600, 0)
        }],
    );
    assert!(
        message(from_ref(&departures), &[], &default)
            .contains("sent.parquet: it has departures only")
    );
    let empty = write(&directory, "empty.parquet", START, &[]);
    assert!(message(&[empty], &[], &default).contains("empty.parquet: it has no packet"));
    assert!(
        message(&[log.clone(), log.clone()], &[departures], &default)
            .contains("2 logs and 1 of senders")
    );
    let other = Selection {
        flow: Some(7),
        ..Selection::default()
    };
    assert!(message(from_ref(&log), &[], &other).contains("no packet of flow 7"));
    let short = Selection {
        window: Some(Duration::from_nanos(10)),
        ..Selection::default()
    };
    let broken = write(
        &directory,
        "broken.parquet",
        START,
        &[Record {
            received: Some(0),
            ..packet(1, 9, 600, 0)
        }],
    );
    assert!(
        message(&[broken], &[], &default).contains("packet 9 of flow 1 is more than a day away")
    );
    assert!(message(&[log], &[], &short).contains("windows can't be shorter"));
}

#[test]
fn so_many_flows_that_memory_would_not_do_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let records: Vec<_> = (0..300).map(|flow| packet(flow, 0, 600, 1)).collect();
    let log = write(&directory, "log.parquet", START, &records);
    let refused = decode(&[log], &[], &Selection::default());
    assert!(matches!(refused, Err(DecodeError::Senseless { .. })));
}

fn any_record() -> impl Strategy<Value = Record> {
    let time = prop_oneof![
        any::<i64>(),
        (0_i64..3_000_000_000).prop_map(|offset| START + offset)
    ];
    let times = (
        time.clone(),
        prop::option::of(time.clone()),
        prop::option::of(time),
    );
    (0_u16..3, any::<u64>(), 0_u64..500, times, any::<u32>()).prop_map(
        |(flow, far, near, (intended, sent, received), bytes)| Record {
            flow,
            sequence: if bytes % 5 == 0 { far } else { near },
            intended,
            sent,
            received,
            bytes,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    /// Whatever numbers a log holds, decoding it ends.
    #[test]
    fn any_records_are_decoded(records in prop::collection::vec(any_record(), 1..300)) {
        let directory = tempfile::tempdir().unwrap();
        let log = write(&directory, "log.parquet", START, &records);
        let sent = [log.clone()];
        for sent in [&[][..], &sent[..]] {
            if let Ok(decoded) = decode(from_ref(&log), sent, &Selection::default()) {
                let arrived = records.iter().filter(|record| record.received.is_some()).count();
                prop_assert!(decoded.total.packets as usize <= arrived);
            }
        }
    }
}
