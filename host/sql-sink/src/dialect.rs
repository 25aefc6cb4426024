//! Differences between the servers: how each writes names, types and statements, and what it tells of a table.
//!
//! A statement is made of words of this file and of quoted names. All values are bound.

use std::time::Duration;

use crawler_model::crawl::UnixMillis;
use crawler_sink::fields;

use crate::columns::{Column, ColumnType, Table, Upsert};
use crate::names::Identifier;

mod faults;
mod history;
mod looks;
mod marks;

/// Server, as far as its statements differ. MariaDB is a MySQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
    MySql,
}

impl Dialect {
    /// Returns a name between quotes. A name gets into a statement by this only, or as a text.
    pub(crate) fn quote(self, name: &str) -> String {
        let mark = match self {
            Self::Sqlite | Self::Postgres => "\"",
            Self::MySql => "`",
        };
        format!("{mark}{}{mark}", name.replace(mark, &mark.repeat(2)))
    }

    fn name(self, name: &Identifier) -> String {
        self.quote(name.as_str())
    }

    /// Returns true if the server takes two names for one.
    pub(crate) fn is_same(self, one: &str, other: &str) -> bool {
        match self {
            Self::Sqlite => one.eq_ignore_ascii_case(other),
            Self::Postgres => one == other,
            Self::MySql => one.to_lowercase() == other.to_lowercase(),
        }
    }

    /// Returns the number of fields that have a column. Further ones are in the column `_rest`: a row of all columns has to
    /// fit a page. PostgreSQL keeps values of up to 24 bytes in the row, so it reads and writes about 290 of them.
    pub(crate) fn max_fields(self) -> usize {
        match self {
            Self::Sqlite => 1_000,
            Self::Postgres => 250,
            Self::MySql => 150,
        }
    }

    /// Returns true if a column can be told to take NULL when it is there already.
    pub(crate) fn has_mutable_null(self) -> bool {
        self != Self::Sqlite
    }

    /// Returns the parameter of this number, counted from 1, for a column of this type.
    fn parameter(self, kind: ColumnType, n: usize) -> String {
        match (self, kind) {
            (Self::Postgres, ColumnType::Json) => format!("CAST(${n} AS jsonb)"),
            (Self::Postgres, ColumnType::Time) => format!("CAST(${n} AS timestamptz)"),
            (Self::Postgres, _) => format!("${n}"),
            (Self::Sqlite | Self::MySql, _) => "?".to_owned(),
        }
    }

    /// Returns a moment as the text that is bound for it.
    pub(crate) fn time(self, at: UnixMillis) -> String {
        let text = fields::time(at);
        match self {
            Self::Sqlite | Self::Postgres => text,
            // It refuses the letters of the format.
            Self::MySql => text.replace('T', " ").replace('Z', ""),
        }
    }

    /// Returns the name of a type.
    fn type_name(self, kind: ColumnType) -> &'static str {
        match (self, kind) {
            (_, ColumnType::Boolean) => "BOOLEAN",
            (Self::Sqlite, ColumnType::Integer) => "INTEGER",
            (_, ColumnType::Integer) => "BIGINT",
            (Self::Sqlite, ColumnType::Number) => "REAL",
            (Self::Postgres, ColumnType::Number) => "DOUBLE PRECISION",
            (Self::MySql, ColumnType::Number) => "DOUBLE",
            (Self::MySql, ColumnType::Text) => "LONGTEXT",
            (_, ColumnType::Text) => "TEXT",
            // The second word keeps SQLite from storing texts of digits as numbers.
            (Self::Sqlite, ColumnType::Json) => "JSON TEXT",
            (Self::Postgres, ColumnType::Json) => "JSONB",
            (Self::MySql, ColumnType::Json) => "JSON",
            (Self::Sqlite, ColumnType::Time | ColumnType::Key) => "TEXT",
            (Self::Postgres, ColumnType::Time) => "TIMESTAMPTZ",
            (Self::MySql, ColumnType::Time) => "DATETIME(3)",
            (Self::Postgres, ColumnType::Key) => "TEXT COLLATE \"C\"",
            (Self::MySql, ColumnType::Key) => "VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin",
        }
    }

    /// Returns name and type of a column, as a table is made of. The end marks the column as one of the sink, if the
    /// server can keep that there.
    fn definition(self, column: &Column) -> String {
        let null = if column.is_nullable { "" } else { " NOT NULL" };
        let mark = match self {
            Self::Sqlite | Self::Postgres => String::new(),
            Self::MySql => {
                // MariaDB has no type of its own for JSON, so the comment tells.
                let is_json = column.kind == ColumnType::Json;
                let json = if is_json { " json" } else { "" };
                let required = if column.is_nullable { "" } else { " required" };
                format!(" COMMENT 'crawler{json}{required}'")
            }
        };
        let kind = self.type_name(column.kind);
        format!("{} {kind}{null}{mark}", self.name(&column.name))
    }

    /// Returns the statements that make a table, with indices on its key and on the other column that has one. They belong
    /// into one transaction. `taken` are names of indices, which SQLite has once in a database.
    pub(crate) fn create(self, table: &Table, taken: &[String]) -> Vec<String> {
        let (name, indexed) = (self.name(&table.name), self.quote(table.indexed));
        let mut parts: Vec<String> = table.columns.iter().map(|c| self.definition(c)).collect();
        parts.push(format!("PRIMARY KEY ({})", self.quote(table.key)));
        let purpose = table.indexed.trim_start_matches('_');
        let index = self.name(&table.name.index(purpose, taken));
        let if_absent = "IF NOT EXISTS ";
        let (if_absent, inside, behind, after) = match self {
            Self::Sqlite => {
                let after = format!("CREATE INDEX {if_absent}{index} ON {name} ({indexed})");
                (if_absent, None, "", Some(after))
            }
            // It chooses names that are free. If another worker has made the table, nothing else may be done here, because
            // the table would get a second index. Entries of another kind of index may be too large for their page, as a
            // URL has up to 8 KiB.
            Self::Postgres => {
                let after = format!("CREATE INDEX ON {name} USING hash ({indexed})");
                ("", None, "", Some(after))
            }
            Self::MySql => (
                if_absent,
                Some(format!("KEY {index} ({indexed}{})", prefix(table))),
                " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin ROW_FORMAT=DYNAMIC",
                None,
            ),
        };
        parts.extend(inside);
        let parts = parts.join(", ");
        let create = format!("CREATE TABLE {if_absent}{name} ({parts}){behind}");
        let fields = table.columns[table.n_own..].iter();
        let marks = fields.filter_map(|column| self.mark(table, column));
        let made = [create].into_iter().chain(after);
        made.chain(self.forget_marks(table)).chain(marks).collect()
    }

    /// Returns the statements that add a column to a table with rows.
    pub(crate) fn add_column(self, table: &Table, column: &Column) -> Vec<String> {
        let nullable = Column {
            is_nullable: true,
            ..column.clone()
        };
        let (name, definition) = (self.name(&table.name), self.definition(&nullable));
        let add = format!("ALTER TABLE {name} ADD COLUMN {definition}");
        let mark = self.mark(table, &nullable);
        [add].into_iter().chain(mark).collect()
    }

    /// Returns a statement that a person may run to give a column the type that items need.
    pub(crate) fn mend(self, table: &Table, column: &Column) -> String {
        let (name, kind) = (self.name(&column.name), self.type_name(column.kind));
        let table = self.name(&table.name);
        match (self, column.kind) {
            // The column is added anew under its name.
            (Self::Sqlite, _) => {
                let old = self.quote(&format!("{}_old", column.name.as_str()));
                format!("ALTER TABLE {table} RENAME COLUMN {name} TO {old}")
            }
            (Self::Postgres, ColumnType::Json) => {
                format!(
                    "ALTER TABLE {table} ALTER COLUMN {name} TYPE {kind} USING to_jsonb({name})"
                )
            }
            (Self::Postgres, _) => format!(
                "ALTER TABLE {table} ALTER COLUMN {name} TYPE {kind} USING CAST(CAST({name} AS text) AS {})",
                kind.split(" COLLATE").next().unwrap_or(kind)
            ),
            (Self::MySql, _) => {
                // Rows may have no value, whatever the schema says now.
                let definition = self.definition(&Column {
                    is_nullable: true,
                    ..column.clone()
                });
                format!("ALTER TABLE {table} MODIFY COLUMN {definition}")
            }
        }
    }

    /// Returns a statement that a person may run to make the key of a table unique.
    pub(crate) fn mend_key(self, table: &Table) -> String {
        let index = match self {
            Self::Postgres => String::new(),
            Self::Sqlite | Self::MySql => {
                let purpose = table.key.trim_start_matches('_');
                self.name(&table.name.index(purpose, &[])) + " "
            }
        };
        let (table, key) = (self.name(&table.name), self.quote(table.key));
        format!("CREATE UNIQUE INDEX {index}ON {table} ({key})")
    }

    /// Returns the statement that writes rows. `stale` are columns of fields that the items no longer have.
    pub(crate) fn insert(self, table: &Table, stale: &[String], n_rows: usize) -> String {
        let names: Vec<String> = table.columns.iter().map(|c| self.name(&c.name)).collect();
        let (into, names) = (self.name(&table.name), names.join(", "));
        let alias = match self {
            Self::Sqlite | Self::Postgres => " AS stored",
            Self::MySql => "",
        };
        let mut sql = format!("INSERT INTO {into}{alias} ({names}) VALUES ");
        let mut n = 0;
        for row in 0..n_rows {
            sql.push_str(if row == 0 { "(" } else { ", (" });
            for (place, column) in table.columns.iter().enumerate() {
                n += 1;
                sql.push_str(if place == 0 { "" } else { ", " });
                sql.push_str(&self.parameter(column.kind, n));
            }
            sql.push(')');
        }
        sql.push_str(&self.on_conflict(table, stale));
        sql
    }

    fn on_conflict(self, table: &Table, stale: &[String]) -> String {
        let key = self.quote(table.key);
        let mut set = match table.upsert {
            Upsert::First => Vec::new(),
            Upsert::Newer => self.assignments(table, stale),
        };
        match self {
            Self::Sqlite | Self::Postgres if set.is_empty() => {
                format!(" ON CONFLICT ({key}) DO NOTHING")
            }
            Self::Sqlite | Self::Postgres => {
                format!(" ON CONFLICT ({key}) DO UPDATE SET {}", set.join(", "))
            }
            Self::MySql => {
                // MySQL also comes here for a row that has another key, and the same value in a unique index of
                // somebody else. Nothing may happen to that row, so the key is given a value that no column holds.
                set.insert(
                    0,
                    format!("{key} = IF({key} = VALUES({key}), {key}, REPEAT('x', 70000))"),
                );
                format!(" ON DUPLICATE KEY UPDATE {}", set.join(", "))
            }
        }
    }

    /// Returns what becomes of the columns of a row that is there. The row of the later resource, run, time and item wins,
    /// so that the same rows lead to the same table in every order; the times at which a row was seen only grow apart. A
    /// version that is there stays as it was first written: an earlier owner may know another schema.
    fn assignments(self, table: &Table, stale: &[String]) -> Vec<String> {
        let stored = |name: &str| match self {
            Self::Sqlite | Self::Postgres => format!("stored.{}", self.quote(name)),
            Self::MySql => self.quote(name),
        };
        let given = |name: &str| match self {
            Self::Sqlite | Self::Postgres => format!("excluded.{}", self.quote(name)),
            Self::MySql => format!("VALUES({})", self.quote(name)),
        };
        let version = ["_resource_id", "_run", "_at", "_item"];
        let row = |of: &dyn Fn(&str) -> String| version.map(of).join(", ");
        let newer = format!("({}) > ({})", row(&given), row(&stored));
        let (least, greatest) = match self {
            Self::Sqlite => ("min", "max"),
            Self::Postgres | Self::MySql => ("LEAST", "GREATEST"),
        };
        let mut names: Vec<&str> = table.columns.iter().map(|c| c.name.as_str()).collect();
        names.retain(|name| *name != "_key");
        // MySQL compares with values that an earlier assignment of the statement has changed. In this order the
        // comparison has the same result until the value that decides is assigned, and those behind it are the same.
        names.sort_by_key(|name| match *name {
            "_item" => 1,
            "_at" => 2,
            "_run" => 3,
            "_resource_id" => 4,
            _ => 0,
        });
        let emptied = stale.iter().map(|name| {
            let old = stored(name);
            format!(
                "{} = CASE WHEN {newer} THEN NULL ELSE {old} END",
                self.quote(name)
            )
        });
        let assignments = names.into_iter().map(|name| {
            let (old, new) = (stored(name), given(name));
            let value = match name {
                "_first_seen" => format!("{least}({old}, {new})"),
                "_last_seen" => format!("{greatest}({old}, {new})"),
                _ => format!("CASE WHEN {newer} THEN {new} ELSE {old} END"),
            };
            format!("{} = {value}", self.quote(name))
        });
        emptied.chain(assignments).collect()
    }

    /// Returns the statement that begins a transaction that writes.
    pub(crate) fn begin(self) -> &'static str {
        match self {
            // A transaction that becomes one later may find that another one was quicker.
            Self::Sqlite => "BEGIN IMMEDIATE",
            Self::Postgres | Self::MySql => "BEGIN",
        }
    }

    /// Returns the statement with which a session begins.
    pub(crate) fn session(self, timeout: Duration) -> Option<String> {
        let millis = timeout.as_millis().max(2);
        match self {
            Self::Sqlite => None,
            // A transaction is on the disk when it is committed. Stronger settings than that stay.
            Self::Postgres => Some(format!(
                "SET statement_timeout = {millis}; SET lock_timeout = {}; SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
                millis / 2
            )),
            // Without the mode, values that do not fit are cut off. Elsewhere the timeout has whole seconds.
            Self::MySql => {
                let seconds = timeout.as_secs().div_ceil(2).max(1);
                Some(format!(
                    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', SESSION innodb_lock_wait_timeout = {seconds}, SESSION lock_wait_timeout = {seconds}"
                ))
            }
        }
    }
}

/// Returns how much of the indexed column MySQL keeps in the index: a URL may be too long for it.
fn prefix(table: &Table) -> &'static str {
    let mut columns = table.columns.iter();
    let indexed = columns.find(|column| column.name.as_str() == table.indexed);
    match indexed.map(|column| column.kind) {
        Some(ColumnType::Text) => "(255)",
        _ => "",
    }
}

#[cfg(test)]
mod tests;
