//! Tables on the server: made, looked at, and changed as far as no row can lose anything by it.
//!
//! A table that is not there is made. A field without a column gets one. A column that the sink has made without NULL, and
//! that items do not fill any more, takes NULL. Everything else, such as a column of somebody else that has to have a value,
//! is refused with a statement that a person may run; the items wait until the table fits.

use crate::columns::Table;
use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::trouble::{Cause, Trouble};

/// Largest number of looks at a table, with changes between them.
const LOOKS_MAX: usize = 4;

/// Table as the server describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Found {
    columns: Vec<FoundColumn>,
    /// True if each key can be there once.
    has_key: bool,
    /// Names that an index of a table that is not there cannot have.
    taken: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FoundColumn {
    name: String,
    kind: String,
    /// Type with its length and collation.
    whole_kind: String,
    /// True if a row has to give a value.
    is_required: bool,
    /// True if the sink has made it for a field.
    is_ours: bool,
    /// True if the sink itself has made it take no NULL, and may change that.
    has_our_demand: bool,
}

/// Makes sure that rows can be written to a table. Returns the columns of fields that items no longer have.
pub(crate) async fn prepare(
    connection: &mut Connection,
    dialect: Dialect,
    table: &Table,
) -> Result<Vec<String>, Trouble> {
    let failed = |error| Trouble::of(dialect.cause_of_change(&error), error);
    for _ in 0..LOOKS_MAX {
        let found = look(connection, dialect, table).await.map_err(failed)?;
        let statements = match found.columns.is_empty() {
            true => dialect.create(table, &found.taken),
            false => changes(dialect, table, &found)
                .map_err(|refusal| Trouble::told(Cause::Refused, refusal))?,
        };
        if statements.is_empty() {
            return Ok(stale(dialect, table, found));
        }
        // A table never stays without its index. MySQL commits each statement, and makes both by one.
        connection.run(dialect.begin()).await.map_err(failed)?;
        for statement in &statements {
            connection.run(statement).await.map_err(failed)?;
        }
        connection.run("COMMIT").await.map_err(failed)?;
        let (table, changes) = (table.name.as_str(), statements.join("; "));
        tracing::info!(table, changes, "a table of items was changed");
    }
    Err(Trouble::told(
        Cause::Refused,
        format!(
            "table {} does not keep the columns that were added to it; somebody else changes it",
            table.name.as_str()
        ),
    ))
}

async fn look(
    connection: &mut Connection,
    dialect: Dialect,
    table: &Table,
) -> Result<Found, sqlx::Error> {
    let (looks, name) = (dialect.looks(table), dialect.looked_at(table));
    for statement in dialect.forget_marks(table) {
        connection.run(&statement).await?;
    }
    let rows = connection.rows(looks.columns, &[&name]).await?;
    let columns = rows.into_iter().map(|row| {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        let mut cell = || cells.next().unwrap_or_default();
        FoundColumn {
            name: cell(),
            kind: cell(),
            whole_kind: cell(),
            is_required: cell() == "true",
            is_ours: cell() == "true",
            has_our_demand: cell() == "true",
        }
    });
    let columns: Vec<FoundColumn> = columns.collect();
    let keys = connection.rows(&looks.keys, &[&name]).await?;
    let taken = match looks.taken.filter(|_| columns.is_empty()) {
        Some(sql) => connection.rows(sql, &[]).await?,
        None => Vec::new(),
    };
    Ok(Found {
        columns,
        has_key: !keys.is_empty(),
        taken: taken.into_iter().flatten().flatten().collect(),
    })
}

/// Returns the columns of the sink that no field fills. A newer version of a row empties them: their values are those of an
/// earlier one.
fn stale(dialect: Dialect, table: &Table, found: Found) -> Vec<String> {
    let is_filled = |name: &str| {
        let mut columns = table.columns.iter();
        columns.any(|column| dialect.is_same(column.name.as_str(), name))
    };
    let ours = found.columns.into_iter().filter(|column| column.is_ours);
    let names = ours.map(|column| column.name);
    names.filter(|name| !is_filled(name)).collect()
}

/// Returns the statements that make a table fit, or the reason why none can.
fn changes(dialect: Dialect, table: &Table, found: &Found) -> Result<Vec<String>, String> {
    let name = table.name.as_str();
    let find = |wanted: &str| {
        let mut columns = found.columns.iter();
        columns.find(|column| dialect.is_same(&column.name, wanted))
    };
    let (own, _) = table.columns.split_at(table.n_own);
    if let Some(missing) = own.iter().find(|c| find(c.name.as_str()).is_none()) {
        return Err(format!(
            "table {name} was there and is not one of this sink: it has no column {}; rename it, or give the sink another template of tables",
            missing.name.as_str()
        ));
    }
    if !found.has_key {
        return Err(format!(
            "table {name} has no unique index on the key of its rows, so copies would stay; run: {}",
            dialect.mend_key(table)
        ));
    }
    let mut statements = Vec::new();
    for column in &table.columns {
        let Some(there) = find(column.name.as_str()) else {
            statements.extend(dialect.add_column(table, column));
            continue;
        };
        if !dialect.accepts(column.kind, &there.kind) {
            return Err(format!(
                "column {} of table {name} is {}, and items have another type there; run: {}",
                there.name,
                there.whole_kind,
                dialect.mend(table, column)
            ));
        }
        if there.is_required && column.is_nullable {
            statements.push(allow_null(dialect, table, there)?);
        }
    }
    for column in found.columns.iter().filter(|column| column.is_required) {
        let mut ours = table.columns.iter();
        if !ours.any(|ours| dialect.is_same(ours.name.as_str(), &column.name)) {
            statements.push(allow_null(dialect, table, column)?);
        }
    }
    Ok(statements)
}

fn allow_null(dialect: Dialect, table: &Table, column: &FoundColumn) -> Result<String, String> {
    let FoundColumn {
        name, whole_kind, ..
    } = column;
    let statement = dialect.allow_null(table, name, whole_kind, column.is_ours);
    let table = table.name.as_str();
    let refusal =
        format!("column {name} of table {table} has to have a value, and items may have none");
    match statement {
        Some(statement) if column.has_our_demand => Ok(statement),
        Some(statement) => Err(format!("{refusal}; run: {statement}")),
        None => Err(format!(
            "{refusal}; SQLite cannot change that: rename the table, and the sink makes another one"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::columns::Kind;
    use crate::columns::tests::schema;
    use crate::target::Target;

    const ALL: [Dialect; 3] = [Dialect::Sqlite, Dialect::Postgres, Dialect::MySql];

    fn table(dialect: Dialect, properties: &str) -> Table {
        let template = "{resource}_{kind}".parse().unwrap();
        let schema = schema(&format!(r#"{{"properties":{{{properties}}}}}"#));
        Kind::new(dialect, &template, "books", "book", Some(&schema), vec![]).table
    }

    /// Returns what a server tells of a table that the sink has made.
    fn found(dialect: Dialect, table: &Table) -> Found {
        let columns = table.columns.iter().map(|column| {
            let known = [
                "boolean",
                "tinyint",
                "integer",
                "bigint",
                "real",
                "double",
                "double precision",
            ];
            let others = [
                "text",
                "json text",
                "json",
                "timestamp with time zone",
                "datetime",
                "varchar",
            ];
            let mut kinds = known.into_iter().chain(others);
            let kind = kinds
                .find(|kind| dialect.accepts(column.kind, kind))
                .unwrap();
            FoundColumn {
                name: column.name.as_str().to_owned(),
                kind: kind.to_owned(),
                whole_kind: kind.to_owned(),
                is_required: !column.is_nullable,
                is_ours: !column.name.as_str().starts_with('_'),
                has_our_demand: dialect != Dialect::Sqlite && !column.is_nullable,
            }
        });
        Found {
            columns: columns.collect(),
            has_key: true,
            taken: Vec::new(),
        }
    }

    const TITLE: &str = r#""title":{"type":"string"}"#;
    const BOTH: &str = r#""price":{"type":"number"},"title":{"type":"string"}"#;

    #[tokio::test]
    async fn a_server_tells_of_the_table_that_was_made() {
        let folder = tempfile::tempdir().unwrap();
        let target = Target::parse("sqlite:items.db", None, folder.path()).unwrap();
        let opened = Connection::open(&target, Duration::from_secs(5)).await;
        let mut connection = opened.unwrap();
        let dialect = Dialect::Sqlite;
        let table = table(dialect, BOTH);
        let nothing = look(&mut connection, dialect, &table).await.unwrap();
        assert_eq!(nothing, Found::default());
        let stale = prepare(&mut connection, dialect, &table).await.unwrap();
        assert_eq!(stale, [""; 0]);
        let mut seen = look(&mut connection, dialect, &table).await.unwrap();
        for column in &mut seen.columns {
            column.kind = column.kind.to_lowercase();
            column.whole_kind = column.whole_kind.to_lowercase();
        }
        assert_eq!(seen, found(dialect, &table));
    }

    #[test]
    fn a_table_that_fits_is_left_alone() {
        for dialect in ALL {
            let table = table(dialect, BOTH);
            let found = found(dialect, &table);
            assert_eq!(changes(dialect, &table, &found), Ok(vec![]));
        }
    }

    #[test]
    fn a_field_without_a_column_gets_one() {
        for dialect in ALL {
            let found = found(dialect, &table(dialect, TITLE));
            let statements = changes(dialect, &table(dialect, BOTH), &found).unwrap();
            // MySQL alone marks the column where it is defined.
            let n_expected = if dialect == Dialect::MySql { 1 } else { 2 };
            assert_eq!(statements.len(), n_expected, "{statements:?}");
            assert!(statements[0].contains("ADD COLUMN"), "{statements:?}");
            assert!(!statements[0].contains("NOT NULL"), "{statements:?}");
        }
    }

    #[test]
    fn a_column_that_no_field_fills_takes_null() {
        for dialect in [Dialect::Postgres, Dialect::MySql] {
            let table = table(dialect, TITLE);
            let mut found = found(dialect, &table);
            for (name, kind) in [("title", "text"), ("gone", "bigint")] {
                found.columns.retain(|column| column.name != name);
                found.columns.push(FoundColumn {
                    name: name.to_owned(),
                    kind: kind.to_owned(),
                    whole_kind: kind.to_owned(),
                    is_required: true,
                    is_ours: true,
                    has_our_demand: true,
                });
            }
            let statements = changes(dialect, &table, &found).unwrap();
            assert_eq!(statements.len(), 2, "{statements:?}");
            assert_eq!(stale(dialect, &table, found), ["gone"]);
            assert!(
                statements
                    .iter()
                    .all(|statement| statement.contains("NULL"))
            );
        }
    }

    #[test]
    fn a_column_of_somebody_else_is_not_changed() {
        for dialect in ALL {
            let table = table(dialect, TITLE);
            let mut found = found(dialect, &table);
            found.columns.push(FoundColumn {
                name: "mine".to_owned(),
                kind: "bigint".to_owned(),
                whole_kind: "bigint".to_owned(),
                is_required: true,
                is_ours: false,
                has_our_demand: false,
            });
            let refusal = changes(dialect, &table, &found).unwrap_err();
            let why = "column mine of table books_book has to have a value";
            assert!(refusal.starts_with(why), "{refusal}");
            assert_eq!(refusal.contains("run: ALTER"), dialect != Dialect::Sqlite);
            // It does not become one of the sink by the statement.
            assert!(!refusal.contains("'crawler"), "{refusal}");
            assert_eq!(stale(dialect, &table, found), [""; 0]);
        }
    }

    #[test]
    fn a_demand_of_somebody_else_for_a_value_is_kept() {
        for dialect in [Dialect::Postgres, Dialect::MySql] {
            let table = table(dialect, TITLE);
            let mut found = found(dialect, &table);
            let title = found.columns.last_mut().unwrap();
            title.is_required = true;
            title.whole_kind = "text COLLATE x".to_owned();
            let refusal = changes(dialect, &table, &found).unwrap_err();
            let why = "column title of table books_book has to have a value";
            assert!(refusal.starts_with(why), "{refusal}");
            // The column is one of the sink before and after.
            assert!(refusal.contains("'crawler'"), "{refusal}");
            let is_mysql = dialect == Dialect::MySql;
            assert_eq!(refusal.contains("text COLLATE x NULL"), is_mysql);
        }
    }

    #[test]
    fn a_change_of_type_is_refused_with_a_statement() {
        for dialect in ALL {
            let found = found(dialect, &table(dialect, r#""title":{"type":"integer"}"#));
            let refusal = changes(dialect, &table(dialect, TITLE), &found).unwrap_err();
            assert!(refusal.contains("run: ALTER TABLE "), "{refusal}");
            assert!(
                refusal.starts_with("column title of table books_book is"),
                "{refusal}"
            );
        }
    }

    #[test]
    fn a_table_of_somebody_else_is_refused() {
        for dialect in ALL {
            let table = table(dialect, TITLE);
            let mut found = found(dialect, &table);
            found.columns.retain(|column| column.name != "_item");
            let refusal = changes(dialect, &table, &found).unwrap_err();
            assert!(
                refusal.contains("it has no column _item; rename it"),
                "{refusal}"
            );
        }
    }

    #[test]
    fn a_key_that_is_not_unique_is_refused() {
        for dialect in ALL {
            let table = table(dialect, TITLE);
            let mut found = found(dialect, &table);
            found.has_key = false;
            let refusal = changes(dialect, &table, &found).unwrap_err();
            assert!(refusal.contains("run: CREATE UNIQUE INDEX"), "{refusal}");
        }
    }

    #[test]
    fn names_are_compared_as_the_server_does() {
        for dialect in ALL {
            let found = found(dialect, &table(dialect, r#""Title":{"type":"string"}"#));
            let statements = changes(dialect, &table(dialect, TITLE), &found).unwrap();
            assert_eq!(statements.is_empty(), dialect != Dialect::Postgres);
            assert_eq!(dialect.is_same("Ä", "ä"), dialect == Dialect::MySql);
        }
    }
}
