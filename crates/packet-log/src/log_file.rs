//! The file: whole row groups, and after them at all times a footer, so that a killed run leaves a readable file.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::mem;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::file::metadata::{
    FileMetaData, ParquetMetaData, ParquetMetaDataReader, ParquetMetaDataWriter,
};
use parquet::file::writer::SerializedFileWriter;

use crate::columns::Columns;
use crate::error::LogError;
use crate::head::{Clock, LogHead, Metadata};
use crate::schema;

const OWNER_ONLY: u32 = 0o600;

/// A log that is being written.
///
/// A row group is written in one piece with a new footer, over the old footer.
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    /// Gathers row groups until they are put on the disk, and knows all earlier ones.
    groups: SerializedFileWriter<Vec<u8>>,
    /// Where the row groups on the disk end and the footer starts.
    end: u64,
    footer: Vec<u8>,
    metadata: Metadata,
}

impl LogFile {
    /// Starts a log that only its owner can read; a file that is there is replaced.
    pub fn create(path: &Path, head: LogHead) -> Result<Self, LogError> {
        let create = || {
            let mut options = OpenOptions::new();
            options
                .write(true)
                .create(true)
                .truncate(true)
                .mode(OWNER_ONLY);
            let file = options.open(path)?;
            file.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
            Ok(file)
        };
        let file = create().map_err(LogError::io(path, "created"))?;
        let groups =
            SerializedFileWriter::new(Vec::new(), schema::schema(), schema::properties().into())
                .map_err(LogError::parquet(path, "created"))?;
        let metadata = Metadata {
            head,
            dropped: 0,
            complete: false,
        };
        let mut log = Self {
            path: path.to_owned(),
            file,
            groups,
            end: 0,
            footer: Vec::new(),
            metadata,
        };
        log.put(0)?;
        Ok(log)
    }

    /// Adds a row group. Where this fails, the file still has all earlier ones, and nothing more can be added.
    pub fn append(&mut self, columns: &Columns, dropped: u64) -> Result<(), LogError> {
        columns
            .write(&mut self.groups)
            .map_err(LogError::parquet(&self.path, "written"))?;
        // A footer grows with the number of row groups: in a long log it waits for as much data as it is long.
        if self.gathered()?.len() < self.footer.len() {
            return Ok(());
        }
        self.put(dropped)
    }

    /// Completes the log; gives its size in bytes.
    pub fn finish(mut self, dropped: u64) -> Result<u64, LogError> {
        self.metadata.complete = true;
        self.put(dropped)?;
        Ok(self.end + self.footer.len() as u64)
    }

    /// Puts on the disk what was gathered.
    pub fn put(&mut self, dropped: u64) -> Result<(), LogError> {
        self.metadata.dropped = dropped;
        let footer = self.new_footer()?;
        let mut data = mem::take(self.gathered()?);
        let footer_at = self.end + data.len() as u64;
        data.extend_from_slice(&footer);
        if let Err(error) = replace_end(&self.file, self.end, &data) {
            // Best effort: the error that counts is the first.
            let _ = replace_end(&self.file, self.end, &self.footer);
            return Err(LogError::io(&self.path, "written")(error));
        }
        self.end = footer_at;
        self.footer = footer;
        // The buffer is used again.
        data.clear();
        *self.groups.inner_mut() = data;
        Ok(())
    }

    fn gathered(&mut self) -> Result<&mut Vec<u8>, LogError> {
        self.groups
            .flush()
            .map_err(LogError::io(&self.path, "written"))?;
        Ok(self.groups.inner_mut())
    }

    fn new_footer(&self) -> Result<Vec<u8>, LogError> {
        let row_groups = self.groups.flushed_row_groups().to_vec();
        let properties = self.groups.properties();
        let file = FileMetaData::new(
            properties.writer_version().as_num(),
            row_groups.iter().map(|group| group.num_rows()).sum(),
            Some(properties.created_by().to_owned()),
            Some(self.metadata.to_key_values()),
            Arc::new(self.groups.schema_descr().clone()),
            None,
        );
        footer(&self.path, &ParquetMetaData::new(file, row_groups))
    }
}

/// Writes into a finished log how the clocks relate, which is known only after the run.
///
/// # Errors
/// [`LogError::Malformed`] where `path` is no packet log, [`LogError::Io`] where it can't be read or written.
pub fn note_clock(path: &Path, clock: Clock) -> Result<(), LogError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(LogError::io(path, "opened"))?;
    let length = file.metadata().map_err(LogError::io(path, "read"))?.len();
    let mut reader = ParquetMetaDataReader::new();
    reader
        .try_parse(&file)
        .map_err(LogError::parquet(path, "read"))?;
    let old_size = reader.metadata_size().unwrap_or_default() as u64;
    let old = reader.finish().map_err(LogError::parquet(path, "read"))?;
    let mut metadata = metadata(path, &old)?;
    metadata.head.clock = Some(clock);
    let described = old.file_metadata();
    let file_metadata = FileMetaData::new(
        described.version(),
        described.num_rows(),
        described.created_by().map(str::to_owned),
        Some(metadata.to_key_values()),
        described.schema_descr_ptr(),
        described.column_orders().cloned(),
    );
    let footer = footer(
        path,
        &ParquetMetaData::new(file_metadata, old.row_groups().to_vec()),
    )?;
    replace_end(&file, length.saturating_sub(old_size), &footer)
        .map_err(LogError::io(path, "written"))
}

/// What a log says about itself.
pub(crate) fn metadata(path: &Path, file: &ParquetMetaData) -> Result<Metadata, LogError> {
    let pairs = file.file_metadata().key_value_metadata();
    Metadata::from_key_values(pairs.map_or(&[], Vec::as_slice))
        .map_err(|reason| LogError::malformed(path, &reason))
}

fn footer(path: &Path, metadata: &ParquetMetaData) -> Result<Vec<u8>, LogError> {
    let mut footer = Vec::new();
    ParquetMetaDataWriter::new(&mut footer, metadata)
        .finish()
        .map_err(LogError::parquet(path, "written"))?;
    Ok(footer)
}

fn replace_end(file: &File, at: u64, end: &[u8]) -> io::Result<()> {
    file.write_all_at(end, at)?;
    file.set_len(at + end.len() as u64)
}
