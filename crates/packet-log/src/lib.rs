//! The packet log: every packet of a run as a row of a Parquet file, written and read in bounded memory.
//!
//! [`LogWriter`] takes [`Record`]s from the thread that measures and never makes it wait; [`LogReader`] streams them
//! back. The file is plain Parquet, so that polars, pyarrow and DuckDB read it too.

mod columns;
mod error;
mod head;
mod log_file;
mod reader;
mod record;
mod row_group;
mod schema;
mod writer;

pub use error::LogError;
pub use head::{Clock, LogHead, LogSchedule};
pub use log_file::note_clock;
pub use reader::LogReader;
pub use record::Record;
pub use writer::{LogWriter, Written};
