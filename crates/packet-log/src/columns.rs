//! A row group's worth of records by column, on its way into the file.

use std::io::Write;

use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use crate::record::Record;

/// Rows by column.
#[derive(Default)]
pub(crate) struct Columns {
    flow: Vec<i32>,
    sequence: Vec<i64>,
    intended: Vec<i64>,
    sent: Optional,
    received: Optional,
    bytes: Vec<i32>,
}

/// A column with holes: Parquet has the values that are there, and for each row whether it has one.
#[derive(Default)]
pub(crate) struct Optional {
    pub values: Vec<i64>,
    pub levels: Vec<i16>,
}

impl Optional {
    fn push(&mut self, value: Option<i64>) {
        self.levels.push(i16::from(value.is_some()));
        self.values.extend(value);
    }

    pub fn clear(&mut self) {
        self.values.clear();
        self.levels.clear();
    }
}

impl Columns {
    pub fn rows(&self) -> usize {
        self.flow.len()
    }

    pub fn extend(&mut self, records: &[Record]) {
        for record in records {
            self.flow.push(record.flow.into());
            // The bits of the unsigned number; the logical type says so.
            self.sequence.push(record.sequence as i64);
            self.intended.push(record.intended);
            self.sent.push(record.sent);
            self.received.push(record.received);
            self.bytes.push(record.bytes as i32);
        }
    }

    pub fn clear(&mut self) {
        self.flow.clear();
        self.sequence.clear();
        self.intended.clear();
        self.sent.clear();
        self.received.clear();
        self.bytes.clear();
    }

    /// Writes all rows as one row group.
    pub fn write<W: Write + Send>(&self, file: &mut SerializedFileWriter<W>) -> Result<()> {
        let mut group = file.next_row_group()?;
        write_column::<Int32Type, W>(&mut group, &self.flow, None)?;
        write_column::<Int64Type, W>(&mut group, &self.sequence, None)?;
        write_column::<Int64Type, W>(&mut group, &self.intended, None)?;
        write_column::<Int64Type, W>(&mut group, &self.sent.values, Some(&self.sent.levels))?;
        write_column::<Int64Type, W>(
            &mut group,
            &self.received.values,
            Some(&self.received.levels),
        )?;
        write_column::<Int32Type, W>(&mut group, &self.bytes, None)?;
        group.close().map(drop)
    }
}

fn write_column<T: DataType, W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<()> {
    let mut column = group
        .next_column()?
        .expect("the schema has as many columns");
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}
