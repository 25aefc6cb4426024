//! Tables as the items of a kind need them: columns of the sink, and a column for each field of the schema.

use crawler_model::plugin::Schema;
use crawler_schema::Shape;
use crawler_sink::fields::{self, Field};

use crate::connection::Value;
use crate::dialect::Dialect;
use crate::history;
use crate::names::{Identifier, TableTemplate};

/// Type of a column, which each server has a name for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    Boolean,
    Integer,
    Number,
    Text,
    /// JSON as its text.
    Json,
    /// Moment, in milliseconds, in UTC.
    Time,
    /// Short ASCII text that is compared byte by byte.
    Key,
}

/// Column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: Identifier,
    pub(crate) kind: ColumnType,
    pub(crate) is_nullable: bool,
}

impl Column {
    pub(crate) fn own(name: &'static str, kind: ColumnType) -> Self {
        Self {
            name: Identifier::own(name),
            kind,
            is_nullable: false,
        }
    }

    pub(crate) fn nullable(self) -> Self {
        Self {
            is_nullable: true,
            ..self
        }
    }
}

/// Meaning of a row whose key is in the table already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upsert {
    /// The newer version of the row wins, whichever is written last.
    Newer,
    /// The first row stays.
    First,
}

/// Table with the columns that one kind of rows fills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: Identifier,
    /// Columns of the sink first, then those of fields.
    pub(crate) columns: Vec<Column>,
    /// Number of columns of the sink.
    pub(crate) n_own: usize,
    pub(crate) upsert: Upsert,
    /// Column that tells rows apart.
    pub(crate) key: &'static str,
    /// Further column with an index.
    pub(crate) indexed: &'static str,
}

/// Kind of items: its table, and the fields that columns take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) table: Table,
    /// Fields of the columns behind those of the sink, in their order.
    pub(crate) fields: Vec<String>,
    /// Fields that identify a row. If there are none, the key of the item does.
    pub(crate) key: Vec<String>,
    /// Table of the versions of items, if the sink keeps them.
    pub(crate) history: Option<Table>,
}

impl Kind {
    /// Returns the kind of items that a schema describes. Without a schema, or with one that declares no fields, all
    /// fields are in the column `_rest`.
    pub(crate) fn new(
        dialect: Dialect,
        template: &TableTemplate,
        resource: &str,
        name: &str,
        schema: Option<&Schema>,
        key: Vec<String>,
    ) -> Self {
        let declared = schema.map(fields::declared).unwrap_or_default();
        let mut columns = own_columns();
        let n_own = columns.len();
        let mut fields = Vec::new();
        for (field, name) in Identifier::of_fields(declared.keys().map(String::as_str))
            .into_iter()
            .take(dialect.max_fields())
        {
            let Field { shape, is_optional } = declared[field];
            columns.push(Column {
                name,
                kind: match shape {
                    Shape::Boolean => ColumnType::Boolean,
                    Shape::Integer => ColumnType::Integer,
                    Shape::Number => ColumnType::Number,
                    Shape::Text => ColumnType::Text,
                    Shape::Any => ColumnType::Json,
                },
                // Another kind of rows in the same table lacks the column.
                is_nullable: is_optional || template.is_shared() || !dialect.has_mutable_null(),
            });
            fields.push(field.to_owned());
        }
        Self {
            table: Table {
                name: template.name(resource, name),
                columns,
                n_own,
                upsert: Upsert::Newer,
                key: "_key",
                indexed: "_url",
            },
            fields,
            key,
            history: None,
        }
    }

    /// Returns the names of its tables.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Identifier> {
        let tables = [Some(&self.table), self.history.as_ref()];
        tables.into_iter().flatten().map(|table| &table.name)
    }

    /// Returns the kind with a table of the versions of its items.
    pub(crate) fn with_history(self) -> Self {
        let history = Some(history::table(&self.table));
        Self { history, ..self }
    }

    /// Lets columns take NULL that have none among these values of a row, such as those of an item of an earlier version
    /// of the plugin. Returns true if a column did not take it until now.
    pub(crate) fn allow_nulls(&mut self, values: &[Value]) -> bool {
        let mut has_changed = false;
        let fields = self.table.columns.iter_mut().zip(values);
        for (column, value) in fields.skip(self.table.n_own) {
            if value.is_null() && !column.is_nullable {
                column.is_nullable = true;
                has_changed = true;
            }
        }
        if has_changed && self.history.is_some() {
            self.history = Some(history::table(&self.table));
        }
        has_changed
    }
}

fn own_columns() -> Vec<Column> {
    vec![
        Column::own("_key", ColumnType::Key),
        Column::own("_resource", ColumnType::Text),
        Column::own("_resource_id", ColumnType::Integer),
        Column::own("_kind", ColumnType::Text),
        Column::own("_url", ColumnType::Text),
        Column::own("_run", ColumnType::Integer),
        Column::own("_at", ColumnType::Time),
        Column::own("_item", ColumnType::Key),
        Column::own("_first_seen", ColumnType::Time),
        Column::own("_last_seen", ColumnType::Time),
        Column::own("_rest", ColumnType::Json).nullable(),
    ]
}

/// Returns the table of items that did not fit theirs.
pub(crate) fn rejects(name: Identifier) -> Table {
    let columns = vec![
        Column::own("_key", ColumnType::Key),
        Column::own("_resource", ColumnType::Text),
        Column::own("_resource_id", ColumnType::Integer),
        Column::own("_kind", ColumnType::Text),
        Column::own("_url", ColumnType::Text),
        Column::own("_run", ColumnType::Integer),
        Column::own("_at", ColumnType::Time),
        Column::own("_item", ColumnType::Key),
        Column::own("_table", ColumnType::Text),
        Column::own("_reason", ColumnType::Text),
        // As text, because the reason may be that it is no JSON to the server.
        Column::own("_json", ColumnType::Text),
    ];
    Table {
        name,
        n_own: columns.len(),
        columns,
        upsert: Upsert::First,
        key: "_key",
        indexed: "_url",
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn schema(json_schema: &str) -> Schema {
        Schema {
            name: "thing".to_owned(),
            json_schema: json_schema.to_owned(),
        }
    }

    fn kind(dialect: Dialect, template: &str, json_schema: &str) -> Kind {
        let template = template.parse().unwrap();
        let schema = schema(json_schema);
        Kind::new(dialect, &template, "books", "thing", Some(&schema), vec![])
    }

    const BOOK: &str = r#"{
        "required": ["title", "tags"],
        "properties": {"title": {"type": "string"}, "price": {"type": "number"}, "tags": {"type": "array"}}
    }"#;

    #[test]
    fn each_field_of_the_schema_is_a_column() {
        let book = kind(Dialect::Postgres, "{resource}_{kind}", BOOK);
        assert_eq!(book.table.name.as_str(), "books_thing");
        assert_eq!(book.fields, ["price", "tags", "title"]);
        let columns: Vec<_> = book.table.columns[book.table.n_own..]
            .iter()
            .map(|column| (column.name.as_str(), column.kind, column.is_nullable))
            .collect();
        assert_eq!(
            columns,
            [
                ("price", ColumnType::Number, true),
                ("tags", ColumnType::Json, false),
                ("title", ColumnType::Text, false),
            ]
        );
    }

    #[test]
    fn fields_of_shared_tables_may_be_null() {
        for (dialect, template) in [
            (Dialect::Postgres, "{kind}"),
            (Dialect::MySql, "{resource}"),
            (Dialect::Sqlite, "{resource}_{kind}"),
        ] {
            let book = kind(dialect, template, BOOK);
            let mut fields = book.table.columns[book.table.n_own..].iter();
            assert!(fields.all(|column| column.is_nullable), "{template}");
        }
    }

    #[test]
    fn a_kind_without_declared_fields_has_the_columns_of_the_sink() {
        for text in ["", "{}", "true", "not a schema"] {
            let thing = kind(Dialect::Sqlite, "{kind}", text);
            assert_eq!(thing.table.columns, own_columns(), "{text}");
        }
    }

    #[test]
    fn a_column_takes_null_once_a_row_has_none() {
        let mut book = kind(Dialect::Postgres, "{resource}_{kind}", BOOK);
        let mut values = vec![Value::Text(Some(String::new())); book.table.columns.len()];
        assert!(!book.allow_nulls(&values));
        let title = values.len() - 1;
        values[title] = Value::Text(None);
        assert!(book.allow_nulls(&values));
        assert!(book.table.columns[title].is_nullable);
        assert!(!book.table.columns[title - 1].is_nullable);
        assert!(!book.allow_nulls(&values));
    }

    #[test]
    fn fields_beyond_the_limit_have_no_column() {
        let n = Dialect::MySql.max_fields() + 1;
        let fields: Vec<String> = (0..n).map(|n| format!("\"f{n}\":{{}}")).collect();
        let text = format!("{{\"properties\":{{{}}}}}", fields.join(","));
        let wide = kind(Dialect::MySql, "{kind}", &text);
        assert_eq!(wide.fields.len(), n - 1);
    }
}
