//! Items as a file of Parquet: groups of rows, column by column.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crawler_model::crawl::ItemRecord;
use crawler_schema::Shape;

use crate::encode::Contents;
use crate::table::{Cell, OWN, REST, Row, Table};

/// Program that a file names as its writer. It has no version, so that the same items give the same bytes in all of them.
const WRITER: &str = "crawler";

/// Group of rows that is written.
pub(crate) type Group<'a, W> = SerializedRowGroupWriter<'a, W>;

/// Largest number of values in a group of rows. A cell has 32 bytes, also if it is empty, so a group has 32 MiB of them at
/// most beside the items. Most files have one group.
const MAX_VALUES: usize = 1 << 20;

/// Returns the number of rows of a group in a file of this table.
pub(crate) fn rows_of_group(table: &Table) -> usize {
    MAX_VALUES / (table.fields.len() + OWN.len() + 1)
}

/// Returns the bytes of a file.
pub(crate) fn encode(contents: &Contents) -> Result<Vec<u8>, ParquetError> {
    let Contents {
        resource,
        table,
        records,
    } = contents;
    let mut file = writer(table, Vec::new())?;
    for records in records.chunks(rows_of_group(table)) {
        let mut group = file.next_row_group()?;
        write_group(&mut group, resource, table, records)?;
        group.close()?;
    }
    file.into_inner()
}

/// Returns the writer of a file with the columns of a table.
pub(crate) fn writer<W: Write + Send>(
    table: &Table,
    to: W,
) -> Result<SerializedFileWriter<W>, ParquetError> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(Default::default()))
        .set_created_by(WRITER.to_owned())
        .build();
    let schema = Arc::new(schema(table)?);
    SerializedFileWriter::new(to, schema, Arc::new(properties))
}

fn write_group<W: Write + Send>(
    group: &mut Group<'_, W>,
    resource: &str,
    table: &Table,
    records: &[ItemRecord],
) -> Result<(), ParquetError> {
    let rows: Vec<Row<'_>> = records.iter().map(|record| table.row(record)).collect();
    let texts = |text: fn(&ItemRecord) -> &str| -> Vec<ByteArray> {
        let texts = records.iter().map(|record| ByteArray::from(text(record)));
        texts.collect()
    };
    let numbers = |number: fn(&ItemRecord) -> u64| -> Vec<i64> {
        let numbers = records.iter().map(number);
        numbers
            .map(|number| i64::try_from(number).unwrap_or(i64::MAX))
            .collect()
    };
    let resources = vec![ByteArray::from(resource); records.len()];
    write::<ByteArrayType, _>(group, &texts(|record| &record.key.0), None)?;
    write::<ByteArrayType, _>(group, &resources, None)?;
    write::<ByteArrayType, _>(group, &texts(|record| &record.schema), None)?;
    write::<ByteArrayType, _>(group, &texts(|record| &record.url), None)?;
    write::<Int64Type, _>(group, &numbers(|record| record.run.0), None)?;
    write::<Int64Type, _>(group, &numbers(|record| record.fetched_at), None)?;
    for (place, (_, shape)) in table.fields.iter().enumerate() {
        let cells = rows.iter().map(|row| row.cells[place].as_ref());
        match shape {
            Shape::Boolean => write_some::<BoolType, _, _>(group, cells, boolean)?,
            Shape::Integer => write_some::<Int64Type, _, _>(group, cells, integer)?,
            Shape::Number => write_some::<DoubleType, _, _>(group, cells, number)?,
            Shape::Text | Shape::Any => write_some::<ByteArrayType, _, _>(group, cells, text)?,
        }
    }
    let rest = rows.iter().map(|row| row.rest.as_ref());
    write_some::<ByteArrayType, _, _>(group, rest, |rest: &String| Some(rest.as_str().into()))?;
    Ok(())
}

/// Returns the columns of a file.
pub(crate) fn schema(table: &Table) -> Result<Type, ParquetError> {
    let column = |name: &str, physical, logical, repetition| {
        let column = Type::primitive_type_builder(name, physical)
            .with_logical_type(logical)
            .with_repetition(repetition);
        column.build().map(Arc::new)
    };
    let mut columns = Vec::new();
    for name in OWN {
        let (physical, logical) = match name {
            "_run" => (Physical::INT64, None),
            "_at" => {
                let time = LogicalType::timestamp(true, TimeUnit::MILLIS);
                (Physical::INT64, Some(time))
            }
            _ => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        columns.push(column(name, physical, logical, Repetition::REQUIRED)?);
    }
    let text = || (Physical::BYTE_ARRAY, Some(LogicalType::String));
    for (name, shape) in &table.fields {
        let (physical, logical) = match shape {
            Shape::Boolean => (Physical::BOOLEAN, None),
            Shape::Integer => (Physical::INT64, None),
            Shape::Number => (Physical::DOUBLE, None),
            Shape::Text | Shape::Any => text(),
        };
        columns.push(column(name, physical, logical, Repetition::OPTIONAL)?);
    }
    let (physical, logical) = text();
    columns.push(column(REST, physical, logical, Repetition::OPTIONAL)?);
    Type::group_type_builder("item")
        .with_fields(columns)
        .build()
}

/// Writes the next column. `levels` has a 1 for each row with a value, and a 0 for each other one.
pub(crate) fn write<T: DataType, W: Write + Send>(
    group: &mut Group<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        let why = "the schema has fewer columns than the rows";
        return Err(ParquetError::General(why.to_owned()));
    };
    column.typed::<T>().write_batch(values, levels, None)?;
    column.close()
}

/// Writes the next column, in which rows may have no value.
fn write_some<'v, T: DataType, V: 'v, W: Write + Send>(
    group: &mut Group<'_, W>,
    values: impl Iterator<Item = Option<&'v V>>,
    value_of: fn(&V) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let mut given = Vec::new();
    let mut levels = Vec::new();
    for value in values {
        let value = value.and_then(value_of);
        levels.push(i16::from(value.is_some()));
        given.extend(value);
    }
    write::<T, _>(group, &given, Some(&levels))
}

fn boolean(cell: &Cell<'_>) -> Option<bool> {
    match cell {
        Cell::Boolean(is_true) => Some(*is_true),
        _ => None,
    }
}

fn integer(cell: &Cell<'_>) -> Option<i64> {
    match cell {
        Cell::Integer(number) => Some(*number),
        _ => None,
    }
}

fn number(cell: &Cell<'_>) -> Option<f64> {
    match cell {
        Cell::Number(number, _) => Some(*number),
        _ => None,
    }
}

fn text(cell: &Cell<'_>) -> Option<ByteArray> {
    match cell {
        Cell::Text(text) => Some(text.as_str().into()),
        Cell::Json(json) => Some((*json).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;

    use super::*;
    use crate::encode::tests::contents;
    use crate::table::tests::table;

    /// Returns the names and values of all rows.
    fn read(items: &[&str]) -> Vec<Vec<(String, Field)>> {
        let bytes = encode(&contents(items)).unwrap();
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let rows = file.get_row_iter(None).unwrap().map(|row| {
            let row = row.unwrap();
            let cells = row.get_column_iter();
            cells
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        });
        rows.collect()
    }

    #[test]
    fn a_file_has_its_columns_and_a_row_for_each_item() {
        let rows = read(&[
            r#"{"a":true,"b":-3,"c":1.5,"d":"\u00e9","e":[1],"z":1}"#,
            "{}",
        ]);
        let text = |text: &str| Field::Str(text.to_owned());
        let expected = [
            ("_key", text("key-1")),
            ("_resource", text("team/books")),
            ("_kind", text("thing")),
            ("_url", text("http://a.test/1")),
            ("_run", Field::Long(1)),
            ("_at", Field::TimestampMillis(1_795_881_600_123)),
            ("a", Field::Bool(true)),
            ("b", Field::Long(-3)),
            ("c", Field::Double(1.5)),
            ("d", text("é")),
            ("e", text("[1]")),
            ("_rest", text(r#"{"z":1}"#)),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(rows[0], expected);
        let without = &rows[1][OWN.len()..];
        assert!(without.iter().all(|(_, value)| *value == Field::Null));
        assert_eq!(rows.len(), 2);
    }

    #[test]
    fn rows_of_a_wide_table_are_in_groups_of_bounded_size() {
        let fields: Vec<String> = (0..1_000).map(|n| format!("\"f{n}\":{{}}")).collect();
        let wide = table(&format!("{{\"properties\":{{{}}}}}", fields.join(",")));
        let contents = Contents {
            table: wide,
            ..contents(&[r#"{"f9":1}"#; 1_500])
        };
        let bytes = encode(&contents).unwrap();
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let groups = file.metadata().row_groups().iter();
        let rows: Vec<i64> = groups.map(|group| group.num_rows()).collect();
        assert_eq!(rows, [1_041, 459]);
        assert_eq!(file.get_row_iter(None).unwrap().count(), 1_500);
    }

    #[test]
    fn long_items_are_whole() {
        let long = "x".repeat(4 << 20);
        let item = format!(r#"{{"d":"{long}"}}"#);
        let rows = read(&[&item, "{}"]);
        let expected = ("d".to_owned(), Field::Str(long));
        assert!(rows[0].contains(&expected));
    }
}
