//! The columns of one row group while they are read side by side.

use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, RowGroupReader};

use crate::columns::Optional;
use crate::record::Record;

/// Where each column has been read up to.
pub(crate) struct RowGroup {
    flow: Required<Int32Type>,
    sequence: Required<Int64Type>,
    intended: Required<Int64Type>,
    sent: WithHoles,
    received: WithHoles,
    bytes: Required<Int32Type>,
}

struct Required<T: DataType> {
    column: ColumnReaderImpl<T>,
    values: Vec<T::T>,
}

struct WithHoles {
    column: ColumnReaderImpl<Int64Type>,
    read: Optional,
}

impl RowGroup {
    pub fn open<R: FileReader>(file: &R, index: usize) -> Result<Self> {
        let group = file.get_row_group(index)?;
        Ok(Self {
            flow: Required::open(&*group, 0)?,
            sequence: Required::open(&*group, 1)?,
            intended: Required::open(&*group, 2)?,
            sent: WithHoles::open(&*group, 3)?,
            received: WithHoles::open(&*group, 4)?,
            bytes: Required::open(&*group, 5)?,
        })
    }

    /// Adds up to `limit` further rows to `records`; none at the end of the row group.
    pub fn read(&mut self, records: &mut Vec<Record>, limit: usize) -> Result<()> {
        let rows = self.flow.read(limit)?;
        let others = [
            self.sequence.read(limit)?,
            self.intended.read(limit)?,
            self.sent.read(limit)?,
            self.received.read(limit)?,
            self.bytes.read(limit)?,
        ];
        if others.iter().any(|other| *other != rows) {
            return Err(ParquetError::General(
                "its columns are not equally long".into(),
            ));
        }
        let mut sent = self.sent.rows();
        let mut received = self.received.rows();
        records.extend((0..rows).map(|row| Record {
            flow: self.flow.values[row] as u16,
            sequence: self.sequence.values[row] as u64,
            intended: self.intended.values[row],
            sent: sent.next().flatten(),
            received: received.next().flatten(),
            bytes: self.bytes.values[row] as u32,
        }));
        Ok(())
    }
}

impl<T: DataType> Required<T> {
    fn open(group: &dyn RowGroupReader, index: usize) -> Result<Self> {
        let column = get_typed_column_reader(group.get_column_reader(index)?);
        Ok(Self {
            column,
            values: Vec::new(),
        })
    }

    fn read(&mut self, limit: usize) -> Result<usize> {
        self.values.clear();
        let (rows, _, _) = self
            .column
            .read_records(limit, None, None, &mut self.values)?;
        Ok(rows)
    }
}

impl WithHoles {
    fn open(group: &dyn RowGroupReader, index: usize) -> Result<Self> {
        let column = get_typed_column_reader(group.get_column_reader(index)?);
        Ok(Self {
            column,
            read: Optional::default(),
        })
    }

    fn read(&mut self, limit: usize) -> Result<usize> {
        self.read.clear();
        let Optional { values, levels } = &mut self.read;
        let (rows, _, _) = self
            .column
            .read_records(limit, Some(levels), None, values)?;
        Ok(rows)
    }

    fn rows(&self) -> impl Iterator<Item = Option<i64>> {
        let mut values = self.read.values.iter().copied();
        self.read
            .levels
            .iter()
            .map(move |level| if *level > 0 { values.next() } else { None })
    }
}
