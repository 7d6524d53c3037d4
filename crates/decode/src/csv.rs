//! Every packet as a line of a CSV file (RFC 4180).

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tunnelbench_packet_log::Record;

use crate::error::DecodeError;

const HEADER: &str = "flow,sequence,intended_ns,sent_ns,received_ns,bytes\r\n";

/// A CSV file that is being written.
pub(crate) struct CsvFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl CsvFile {
    pub fn create(path: &Path) -> Result<Self, DecodeError> {
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(path);
        let file = file.map_err(output(path))?;
        let mut csv = Self {
            path: path.to_owned(),
            file: BufWriter::with_capacity(1 << 16, file),
        };
        csv.file
            .write_all(HEADER.as_bytes())
            .map_err(output(path))?;
        Ok(csv)
    }

    /// Times are ns since the epoch; one that is not known is empty.
    pub fn add(&mut self, record: &Record) -> Result<(), DecodeError> {
        let Record {
            flow,
            sequence,
            intended,
            sent,
            received,
            bytes,
        } = *record;
        write!(
            self.file,
            "{flow},{sequence},{intended},{},{},{bytes}\r\n",
            Cell(sent),
            Cell(received)
        )
        .map_err(output(&self.path))
    }

    pub fn finish(mut self) -> Result<(), DecodeError> {
        self.file.flush().map_err(output(&self.path))
    }
}

struct Cell(Option<i64>);

impl std::fmt::Display for Cell {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |value| value.fmt(formatter))
    }
}

fn output(path: &Path) -> impl FnOnce(io::Error) -> DecodeError {
    let path = path.to_owned();
    move |source| DecodeError::Output { path, source }
}
