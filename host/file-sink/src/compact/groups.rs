//! Rows of several files of Parquet as one, in groups of rows as the sink writes them.
//!
//! Rows are read column by column, as many as a group of the output still takes. A group has 32 MiB of values, as far as its
//! inputs tell, so small groups become one, and memory stays bounded.

use std::fs::File;

use parquet::basic::{LogicalType, Type as Physical};
use parquet::column::reader::ColumnReader;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{SchemaDescriptor, Type};

use crawler_schema::Shape;

use super::merge::{Head, MergeError, Output};
use crate::columns::{self, Group};
use crate::table::{OWN, REST, Table};

/// Size in bytes of the values at which a group is written.
const MAX_GROUP_BYTES: u64 = 32 << 20;
/// Largest size in bytes of the values of a group that is read. The sink and compactions write smaller ones.
const MAX_READ_BYTES: u64 = 1 << 30;

/// Output, and the rows of its next group.
pub(super) struct Groups {
    output: SerializedFileWriter<Output>,
    columns: Vec<Column>,
    /// Number of rows that wait for the group.
    n_rows: usize,
    /// Estimated size of their values.
    n_bytes: u64,
    max_rows: usize,
}

/// Rows of one column.
struct Column {
    name: String,
    values: Values,
    /// A 1 for each row with a value, and a 0 for each other one; empty if each row has one.
    levels: Vec<i16>,
}

enum Values {
    Boolean(Vec<bool>),
    Integer(Vec<i64>),
    Number(Vec<f64>),
    Text(Vec<ByteArray>),
}

/// Returns the head of a file.
pub(super) fn head(file: File) -> Result<Head, MergeError> {
    let file = SerializedFileReader::new(file)?;
    let table = table_of(file.metadata().file_metadata().schema_descr())?;
    if file.num_row_groups() == 0 {
        return Err("it has no rows".into());
    }
    let kind = OWN.iter().position(|name| *name == "_kind");
    let kind = kind.expect("the sink has this column");
    let mut kinds = Values::Text(Vec::new());
    let mut reader = file.get_row_group(0)?.get_column_reader(kind)?;
    read(&mut reader, 1, &mut kinds, &mut Vec::new())?;
    match kinds {
        Values::Text(kinds) if kinds.len() == 1 => Ok(Head {
            kind: kinds[0].as_utf8()?.to_owned(),
            table,
        }),
        _ => Err("it has no rows".into()),
    }
}

/// Returns the columns of fields of a file, if its columns are such as the sink writes.
fn table_of(found: &SchemaDescriptor) -> Result<Table, MergeError> {
    let found = found.root_schema().get_fields();
    let n_fields = found.len().saturating_sub(OWN.len() + 1);
    let fields = found.iter().skip(OWN.len()).take(n_fields).map(|column| {
        let is_primitive = column.is_primitive();
        let shape = match is_primitive.then(|| column.get_physical_type()) {
            Some(Physical::BOOLEAN) => Shape::Boolean,
            Some(Physical::INT64) => Shape::Integer,
            Some(Physical::DOUBLE) => Shape::Number,
            _ => Shape::Text,
        };
        (column.name().to_owned(), shape)
    });
    let table = Table {
        fields: fields.collect(),
    };
    let expected = columns::schema(&table)?;
    let expected = expected.get_fields();
    let mut pairs = found.iter().zip(expected);
    match found.len() == expected.len() && pairs.all(|(one, other)| is_same(one, other)) {
        true => Ok(table),
        false => Err("its columns are not those of the sink".into()),
    }
}

fn is_same(one: &Type, other: &Type) -> bool {
    let properties = |column: &Type| {
        let info = column.get_basic_info();
        let logical: Option<LogicalType> = info.logical_type_ref().cloned();
        (info.name().to_owned(), info.repetition(), logical)
    };
    let is_primitive = one.is_primitive() && other.is_primitive();
    is_primitive
        && one.get_physical_type() == other.get_physical_type()
        && properties(one) == properties(other)
}

impl Groups {
    pub(super) fn new(table: &Table, output: Output) -> Result<Self, MergeError> {
        let column = |name: &str, values| Column {
            name: name.to_owned(),
            values,
            levels: Vec::new(),
        };
        let own = OWN.iter().map(|name| match *name {
            "_run" | "_at" => column(name, Values::Integer(Vec::new())),
            _ => column(name, Values::Text(Vec::new())),
        });
        let fields = table.fields.iter().map(|(name, shape)| {
            let values = match shape {
                Shape::Boolean => Values::Boolean(Vec::new()),
                Shape::Integer => Values::Integer(Vec::new()),
                Shape::Number => Values::Number(Vec::new()),
                Shape::Text | Shape::Any => Values::Text(Vec::new()),
            };
            column(name.as_str(), values)
        });
        let rest = column(REST, Values::Text(Vec::new()));
        Ok(Self {
            columns: own.chain(fields).chain([rest]).collect(),
            output: columns::writer(table, output)?,
            n_rows: 0,
            n_bytes: 0,
            max_rows: columns::rows_of_group(table),
        })
    }

    /// Appends the rows of a file.
    pub(super) fn append(&mut self, file: File) -> Result<(), MergeError> {
        let file = SerializedFileReader::new(file)?;
        let table = table_of(file.metadata().file_metadata().schema_descr())?;
        let fields = table.fields.iter().map(|(name, _)| name.as_str());
        let names: Vec<&str> = OWN.into_iter().chain(fields).chain([REST]).collect();
        let place = |name: &str| names.iter().position(|own| *own == name);
        let columns = self.columns.iter();
        let places: Vec<Option<usize>> =
            columns.map(|column| place(column.name.as_str())).collect();
        for n in 0..file.num_row_groups() {
            let group = file.get_row_group(n)?;
            let (n_rows, row_bytes) = size_of(group.metadata())?;
            let readers = places.iter().map(|place| {
                let reader = place.map(|place| group.get_column_reader(place));
                reader.transpose()
            });
            let mut readers: Vec<Option<ColumnReader>> = readers.collect::<Result<_, _>>()?;
            let mut n_left = n_rows;
            while n_left > 0 {
                let n_read = self.n_free(row_bytes).min(n_left);
                self.read(&mut readers, n_read)?;
                self.n_rows += n_read;
                self.n_bytes += row_bytes * n_read as u64;
                n_left -= n_read;
                if self.n_rows >= self.max_rows || self.n_bytes >= MAX_GROUP_BYTES {
                    self.write_group()?;
                }
            }
        }
        Ok(())
    }

    /// Returns the number of rows of this size that the group still takes; at least one.
    fn n_free(&self, row_bytes: u64) -> usize {
        let n_bytes = MAX_GROUP_BYTES.saturating_sub(self.n_bytes);
        let n_rows = usize::try_from(n_bytes / row_bytes.max(1)).unwrap_or(usize::MAX);
        n_rows.min(self.max_rows - self.n_rows).max(1)
    }

    /// Reads rows from the columns of a file. A column that it lacks has no value in any of them.
    fn read(&mut self, readers: &mut [Option<ColumnReader>], n: usize) -> Result<(), ParquetError> {
        for (column, reader) in self.columns.iter_mut().zip(readers) {
            match reader {
                Some(reader) => read(reader, n, &mut column.values, &mut column.levels)?,
                None => column.levels.resize(column.levels.len() + n, 0),
            }
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.output.next_row_group()?;
        for column in &mut self.columns {
            column.write(&mut group)?;
        }
        group.close()?;
        (self.n_rows, self.n_bytes) = (0, 0);
        Ok(())
    }

    /// Writes the last group, and returns the output.
    pub(super) fn finish(mut self) -> Result<Output, MergeError> {
        if self.n_rows > 0 {
            self.write_group()?;
        }
        Ok(self.output.into_inner()?)
    }
}

impl Column {
    /// Writes the rows, and forgets them.
    fn write(&mut self, group: &mut Group<'_, Output>) -> Result<(), ParquetError> {
        let levels = Some(&self.levels[..]).filter(|levels| !levels.is_empty());
        match &mut self.values {
            Values::Boolean(values) => {
                columns::write::<BoolType, _>(group, values, levels)?;
                values.clear();
            }
            Values::Integer(values) => {
                columns::write::<Int64Type, _>(group, values, levels)?;
                values.clear();
            }
            Values::Number(values) => {
                columns::write::<DoubleType, _>(group, values, levels)?;
                values.clear();
            }
            Values::Text(values) => {
                columns::write::<ByteArrayType, _>(group, values, levels)?;
                values.clear();
            }
        }
        self.levels.clear();
        Ok(())
    }
}

/// Reads the next rows of a column.
fn read(
    reader: &mut ColumnReader,
    n: usize,
    values: &mut Values,
    levels: &mut Vec<i16>,
) -> Result<(), ParquetError> {
    let (n_read, _, _) = match (reader, values) {
        (ColumnReader::BoolColumnReader(reader), Values::Boolean(values)) => {
            reader.read_records(n, Some(levels), None, values)?
        }
        (ColumnReader::Int64ColumnReader(reader), Values::Integer(values)) => {
            reader.read_records(n, Some(levels), None, values)?
        }
        (ColumnReader::DoubleColumnReader(reader), Values::Number(values)) => {
            reader.read_records(n, Some(levels), None, values)?
        }
        (ColumnReader::ByteArrayColumnReader(reader), Values::Text(values)) => {
            reader.read_records(n, Some(levels), None, values)?
        }
        _ => {
            let why = "a column has another type than in the head of the file";
            return Err(ParquetError::General(why.to_owned()));
        }
    };
    match n_read == n {
        true => Ok(()),
        false => Err(ParquetError::EOF("a column ends too early".to_owned())),
    }
}

/// Returns the number of rows of a group, and the size in bytes of one of them.
fn size_of(group: &RowGroupMetaData) -> Result<(usize, u64), MergeError> {
    let n_rows = usize::try_from(group.num_rows())?;
    let n_bytes = u64::try_from(group.total_byte_size())?;
    match n_bytes <= MAX_READ_BYTES {
        true => Ok((n_rows, n_bytes / n_rows.max(1) as u64)),
        false => Err(format!(
            "a group of rows has {n_bytes} bytes; at most {MAX_READ_BYTES} are read"
        )
        .into()),
    }
}
