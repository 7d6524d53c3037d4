//! Streams a log's records back.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use parquet::file::reader::{FileReader, SerializedFileReader};

use crate::error::LogError;
use crate::head::{LogHead, Metadata};
use crate::log_file;
use crate::record::Record;
use crate::row_group::RowGroup;
use crate::schema;

/// Rows read at once.
const BATCH: usize = 1 << 16;

/// Reads a log from its start to its end, in bounded memory.
pub struct LogReader {
    path: PathBuf,
    file: SerializedFileReader<File>,
    metadata: Metadata,
    rows: u64,
    next_group: usize,
    group: Option<RowGroup>,
}

impl LogReader {
    /// Opens a log, also one whose run was killed.
    ///
    /// # Errors
    /// [`LogError::Io`] where the file can't be read, [`LogError::Malformed`] where it is no packet log or was cut off.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let file = File::open(path).map_err(LogError::io(path, "opened"))?;
        let (file, metadata) = guarded(path, || {
            let file = SerializedFileReader::new(file).map_err(LogError::parquet(path, "read"))?;
            schema::check(file.metadata().file_metadata().schema_descr())
                .map_err(|reason| LogError::malformed(path, &reason))?;
            let metadata = log_file::metadata(path, file.metadata())?;
            Ok((file, metadata))
        })?;
        let rows = file
            .metadata()
            .row_groups()
            .iter()
            .map(|group| group.num_rows().max(0) as u64);
        let rows = rows.fold(0, u64::saturating_add);
        Ok(Self {
            path: path.to_owned(),
            file,
            metadata,
            rows,
            next_group: 0,
            group: None,
        })
    }

    /// What the log says about its run.
    pub fn head(&self) -> &LogHead {
        &self.metadata.head
    }

    /// How many records the log has.
    pub fn records(&self) -> u64 {
        self.rows
    }

    /// How many records are missing because the disk was too slow.
    pub fn dropped(&self) -> u64 {
        self.metadata.dropped
    }

    /// Whether the log was finished; one of a killed run lacks its last records.
    pub fn is_complete(&self) -> bool {
        self.metadata.complete
    }

    /// Replaces what `batch` holds by the next records; false at the end of the log.
    ///
    /// # Errors
    /// [`LogError::Malformed`] where the file is damaged here, [`LogError::Io`] where it can't be read.
    pub fn read(&mut self, batch: &mut Vec<Record>) -> Result<bool, LogError> {
        batch.clear();
        loop {
            if let Some(group) = &mut self.group {
                let path = &self.path;
                guarded(path, || {
                    group
                        .read(batch, BATCH)
                        .map_err(LogError::parquet(path, "read"))
                })?;
                if !batch.is_empty() {
                    return Ok(true);
                }
            }
            if self.next_group == self.file.num_row_groups() {
                self.group = None;
                return Ok(false);
            }
            let (path, file, index) = (&self.path, &self.file, self.next_group);
            self.group = Some(guarded(path, || {
                RowGroup::open(file, index).map_err(LogError::parquet(path, "read"))
            })?);
            self.next_group += 1;
        }
    }
}

/// The parquet library panics on some damaged files.
fn guarded<T>(path: &Path, read: impl FnOnce() -> Result<T, LogError>) -> Result<T, LogError> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(LogError::malformed(path, "its contents make no sense")))
}
