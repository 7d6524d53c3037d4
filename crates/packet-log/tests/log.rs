//! Writes logs and reads them back, whole, cut off and damaged.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use tempfile::TempDir;
use tunnelbench_packet_log::{
    Clock, LogError, LogHead, LogReader, LogSchedule, LogWriter, Record, note_clock,
};

/// More than are held in memory for one row group, and no more than may wait for a slow disk: none is dropped.
const OVER_A_ROW_GROUP: u64 = 264_000;

fn head() -> LogHead {
    LogHead {
        version: "1".into(),
        schedule: LogSchedule {
            start_at: 1_700_000_000_000_000_000,
            warm_up: 1,
            measure: 2,
            cool_down: 3,
        },
        flows: [(1, "voice".to_owned())].into(),
        clock: None,
    }
}

fn packet(sequence: u64) -> Record {
    let intended = 1_700_000_000_000_000_000 + sequence as i64 * 10_000;
    Record {
        flow: 1,
        sequence,
        intended,
        sent: (!sequence.is_multiple_of(3)).then_some(intended + 40),
        received: (!sequence.is_multiple_of(5))
            .then_some(intended + 70_000 + sequence as i64 % 777),
        bytes: 100 + (sequence % 9) as u32,
    }
}

fn directory() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn write(directory: &TempDir, records: &[Record]) -> PathBuf {
    let path = directory.path().join("log.parquet");
    let mut writer = LogWriter::create(&path, &head()).unwrap();
    records.iter().for_each(|record| writer.record(*record));
    let written = writer.finish().unwrap();
    assert_eq!(written.records + written.dropped, records.len() as u64);
    assert_eq!(written.bytes, fs::metadata(&path).unwrap().len());
    path
}

fn read(path: &Path) -> Result<Vec<Record>, LogError> {
    let mut reader = LogReader::open(path)?;
    let mut records = Vec::new();
    let mut batch = Vec::new();
    while reader.read(&mut batch)? {
        records.append(&mut batch);
    }
    Ok(records)
}

#[test]
fn several_row_groups_come_back_as_they_went_in() {
    let directory = directory();
    let path = directory.path().join("log.parquet");
    let mut writer = LogWriter::create(&path, &head()).unwrap();
    (0..OVER_A_ROW_GROUP).for_each(|sequence| writer.record(packet(sequence)));
    assert_eq!(writer.finish().unwrap().dropped, 0);
    let reader = LogReader::open(&path).unwrap();
    assert_eq!(reader.head(), &head());
    assert_eq!((reader.records(), reader.dropped()), (OVER_A_ROW_GROUP, 0));
    assert!(reader.is_complete());
    assert_eq!(
        read(&path).unwrap(),
        (0..OVER_A_ROW_GROUP).map(packet).collect::<Vec<_>>()
    );
}

#[test]
fn only_its_owner_can_read_a_log() {
    let directory = directory();
    let path = directory.path().join("log.parquet");
    fs::write(&path, "something older").unwrap();
    write(&directory, &[packet(1)]);
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn a_log_is_compact() {
    let directory = directory();
    let records: Vec<_> = (0..50_000).map(packet).collect();
    let size = fs::metadata(write(&directory, &records)).unwrap().len();
    assert!(size < 50_000 * 8, "{size} bytes");
}

#[test]
fn a_log_that_is_still_being_written_can_be_read_up_to_its_last_row_group() {
    let directory = directory();
    let path = directory.path().join("log.parquet");
    let mut writer = LogWriter::create(&path, &head()).unwrap();
    assert_eq!(read(&path).unwrap(), []);
    (0..OVER_A_ROW_GROUP).for_each(|sequence| writer.record(packet(sequence)));
    let give_up = Instant::now() + Duration::from_secs(60);
    // What a killed run leaves is what the file holds now.
    let copy = directory.path().join("copy.parquet");
    let reader = loop {
        fs::copy(&path, &copy).unwrap();
        match LogReader::open(&copy) {
            Ok(reader) if reader.records() > 0 => break reader,
            _ => assert!(Instant::now() < give_up, "no row group came"),
        }
        sleep(Duration::from_millis(20));
    };
    assert!(!reader.is_complete());
    let records = read(&copy).unwrap();
    assert_eq!(records[0], packet(0));
    assert_eq!(records.len() as u64, reader.records());
}

#[test]
fn a_writer_that_is_dropped_keeps_what_came_and_says_that_more_is_missing() {
    let directory = directory();
    let path = directory.path().join("log.parquet");
    let mut writer = LogWriter::create(&path, &head()).unwrap();
    (0..5_000).for_each(|sequence| writer.record(packet(sequence)));
    drop(writer);
    let give_up = Instant::now() + Duration::from_secs(60);
    while read(&path).is_ok_and(|records| records.is_empty()) {
        assert!(Instant::now() < give_up, "nothing was written");
        sleep(Duration::from_millis(20));
    }
    assert!(!LogReader::open(&path).unwrap().is_complete());
    assert_eq!(read(&path).unwrap()[0], packet(0));
}

#[test]
fn the_clock_can_be_noted_after_the_run() {
    let directory = directory();
    let records: Vec<_> = (0..5_000).map(packet).collect();
    let path = write(&directory, &records);
    let clock = Clock {
        offset: -5_000,
        uncertainty: 1_200,
    };
    note_clock(&path, clock).unwrap();
    note_clock(&path, clock).unwrap();
    let reader = LogReader::open(&path).unwrap();
    assert_eq!(reader.head().clock, Some(clock));
    assert!(reader.is_complete());
    assert_eq!(read(&path).unwrap(), records);
}

#[test]
fn errors_name_the_file() {
    let directory = directory();
    let missing = directory.path().join("missing.parquet");
    assert!(
        read(&missing)
            .unwrap_err()
            .to_string()
            .contains("missing.parquet")
    );
    let text = directory.path().join("text.txt");
    fs::write(&text, "no log at all, but long enough").unwrap();
    let message = read(&text).unwrap_err().to_string();
    assert!(
        message.contains("text.txt") && message.contains("no readable packet log"),
        "{message}"
    );
    assert!(LogWriter::create(&directory.path().join("no/such/place"), &head()).is_err());
}

fn record() -> impl Strategy<Value = Record> {
    (
        any::<u16>(),
        any::<u64>(),
        any::<i64>(),
        any::<Option<i64>>(),
        any::<Option<i64>>(),
        any::<u32>(),
    )
        .prop_map(|(flow, sequence, intended, sent, received, bytes)| Record {
            flow,
            sequence,
            intended,
            sent,
            received,
            bytes,
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_records_come_back(records in prop::collection::vec(record(), 0..2_000)) {
        let directory = directory();
        prop_assert_eq!(read(&write(&directory, &records)).unwrap(), records);
    }

    /// Whatever is in a file, reading it ends, with records or with an error.
    #[test]
    fn damaged_logs_are_errors(
        damages in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let directory = directory();
        let path = write(&directory, &(0..3_000).map(packet).collect::<Vec<_>>());
        let mut bytes = fs::read(&path).unwrap();
        for (place, byte) in damages {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        fs::write(&path, bytes).unwrap();
        match read(&path) {
            Ok(records) => prop_assert!(records.len() < 1_000_000),
            Err(error) => prop_assert!(error.to_string().contains("log.parquet")),
        }
    }

    /// The end of a file steers everything else, so it gets its own damages.
    #[test]
    fn damaged_footers_are_errors(
        damages in prop::collection::vec((0_usize..2_000, any::<u8>()), 1..6),
    ) {
        let directory = directory();
        let path = write(&directory, &(0..3_000).map(packet).collect::<Vec<_>>());
        let mut bytes = fs::read(&path).unwrap();
        for (place, byte) in damages {
            let place = bytes.len() - 1 - place.min(bytes.len() - 1);
            bytes[place] = byte;
        }
        fs::write(&path, bytes).unwrap();
        match read(&path) {
            Ok(records) => prop_assert!(records.len() < 1_000_000),
            Err(error) => prop_assert!(error.to_string().contains("log.parquet")),
        }
    }
}
