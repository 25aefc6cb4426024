//! History: a second table of each kind of items, with a row for each version of an item.
//!
//! The resource tells what has changed of its items. A changed item, and one that is added or removed, ends the version that
//! was valid; unless it is removed, it begins another one. Items that are as they were change nothing here. Both happen in
//! the transaction that has the row of the item, so that no crash comes between them.
//!
//! Versions are numbered by resource, run and number of the change. A version that is there stays, and only earlier ones are
//! ended by a later one. So the same items may be written again, by an earlier owner of the shard too, and the table is the same
//! afterwards.

use crawler_model::changes::ToldChange;
use crawler_model::crawl::ItemRecord;
use crawler_sink::digest::digest;

use crate::columns::{Column, ColumnType, Table, Upsert};
use crate::connection::Value;
use crate::dialect::Dialect;
use crate::rows::{Resource, Row, integer_of, text, without_nul};

/// End of the names of tables of versions.
pub(crate) const SUFFIX: &str = "_history";
/// Number of characters of an item's key at the end of the number of a version.
const KEY_PART: usize = 16;

/// Version of an item, or its end.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    /// Key of the item in all runs.
    pub(crate) key: Value,
    /// Number of the version, which grows from one to the next of an item.
    pub(crate) version: Value,
    /// Time from which on it is valid, and the one before is not.
    pub(crate) at: Value,
    /// Row of the version. `None` if the item is removed.
    pub(crate) row: Option<Box<Row>>,
}

impl Version {
    /// Returns the version that an added or changed item begins. `rest` and `cells` are those of the row of the item, whose place in its
    /// batch is `place`.
    pub(crate) fn of(
        dialect: Dialect,
        resource: &Resource,
        record: &ItemRecord,
        told: &ToldChange,
        (rest, cells): (&Value, &[Value]),
        place: usize,
    ) -> Self {
        let ends = Self::end(dialect, resource, record, told);
        let mut values = vec![
            ends.version.clone(),
            ends.key.clone(),
            text(without_nul(&told.key)),
            text(resource.name.clone()),
            integer_of(resource.id.0),
            text(without_nul(&record.schema)),
            text(without_nul(&record.url)),
            integer_of(record.run.0),
            text(record.key.0.clone()),
            ends.at.clone(),
            Value::Text(None),
            rest.clone(),
        ];
        values.extend_from_slice(cells);
        let row = Row {
            values,
            key: key_of(resource, record, told),
            item: place,
            version: None,
        };
        Self {
            row: Some(Box::new(row)),
            ..ends
        }
    }

    /// Returns the end of a removed item.
    pub(crate) fn end(
        dialect: Dialect,
        resource: &Resource,
        record: &ItemRecord,
        told: &ToldChange,
    ) -> Self {
        let key = key_of(resource, record, told);
        let version = format!(
            "{:016x}{:016x}{:016x}{}",
            resource.id.0,
            record.run.0,
            told.number,
            &key[..KEY_PART]
        );
        Self {
            key: text(key),
            version: text(version),
            at: text(dialect.time(record.fetched_at)),
            row: None,
        }
    }

    /// Returns the key of the item, by which versions of one item are told from those of another.
    pub(crate) fn key(&self) -> &str {
        match &self.key {
            Value::Text(Some(key)) => key,
            _ => "",
        }
    }
}

/// Returns the key of an item in all runs of the resource, and in those of a later resource with its name.
fn key_of(resource: &Resource, record: &ItemRecord, told: &ToldChange) -> String {
    digest([&*resource.name, &*record.schema, &*told.key])
}

/// Returns the table of the versions of items, whose own table has these columns.
pub(crate) fn table(items: &Table) -> Table {
    let mut columns = vec![
        Column::own("_version", ColumnType::Key),
        Column::own("_key", ColumnType::Key),
        Column::own("_natural_key", ColumnType::Text),
        Column::own("_resource", ColumnType::Text),
        Column::own("_resource_id", ColumnType::Integer),
        Column::own("_kind", ColumnType::Text),
        Column::own("_url", ColumnType::Text),
        Column::own("_run", ColumnType::Integer),
        Column::own("_item", ColumnType::Key),
        Column::own("_valid_from", ColumnType::Time),
        Column::own("_valid_to", ColumnType::Time).nullable(),
        Column::own("_rest", ColumnType::Json).nullable(),
    ];
    let n_own = columns.len();
    columns.extend_from_slice(&items.columns[items.n_own..]);
    Table {
        name: items.name.with(SUFFIX),
        columns,
        n_own,
        upsert: Upsert::First,
        key: "_version",
        indexed: "_key",
    }
}
