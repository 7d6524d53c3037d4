//! What a log is in terms of Parquet: its columns, and how they are encoded.

use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::{ColumnPath, SchemaDescriptor, Type, TypePtr};

/// The columns in their order.
pub(crate) const NAMES: [&str; 6] = ["flow", "sequence", "intended", "sent", "received", "bytes"];

pub(crate) fn schema() -> TypePtr {
    let unsigned = |bit_width| LogicalType::integer(bit_width, false);
    // Not "adjusted to UTC": DuckDB would cut such times to microseconds.
    let time = LogicalType::timestamp(false, TimeUnit::NANOS);
    let types = [
        (Physical::INT32, unsigned(16), Repetition::REQUIRED),
        (Physical::INT64, unsigned(64), Repetition::REQUIRED),
        (Physical::INT64, time.clone(), Repetition::REQUIRED),
        (Physical::INT64, time.clone(), Repetition::OPTIONAL),
        (Physical::INT64, time, Repetition::OPTIONAL),
        (Physical::INT32, unsigned(32), Repetition::REQUIRED),
    ];
    let fields = NAMES
        .iter()
        .zip(types)
        .map(|(name, (physical, logical, repetition))| {
            let field = Type::primitive_type_builder(name, physical)
                .with_logical_type(Some(logical))
                .with_repetition(repetition)
                .build();
            Arc::new(field.expect("these types go together"))
        });
    let schema = Type::group_type_builder("packet")
        .with_fields(fields.collect())
        .build();
    Arc::new(schema.expect("a group of fields is a schema"))
}

/// Differences between neighbours are small, so they take few bits; flows and sizes have few values.
pub(crate) fn properties() -> WriterProperties {
    let repeating = ["flow", "bytes"].map(ColumnPath::from);
    let plain = WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by(concat!("tunnelbench ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_encoding(Encoding::DELTA_BINARY_PACKED)
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_column_statistics_enabled("intended".into(), EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    repeating
        .into_iter()
        .fold(plain, |properties, column| {
            properties.set_column_dictionary_enabled(column, true)
        })
        .build()
}

/// Says how a file's columns differ from a log's.
pub(crate) fn check(found: &SchemaDescriptor) -> Result<(), String> {
    let expected = SchemaDescriptor::new(schema());
    let describe = |descriptor: &SchemaDescriptor| -> Vec<_> {
        let columns = descriptor.columns().iter();
        columns
            .map(|column| {
                let levels = (column.max_def_level(), column.max_rep_level());
                (column.path().string(), column.physical_type(), levels)
            })
            .collect()
    };
    if describe(found) == describe(&expected) {
        return Ok(());
    }
    Err(format!("its columns are not {}", NAMES.join(", ")))
}
