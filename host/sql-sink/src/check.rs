//! Check of a database before any resource uses it: whether tables can be made there, and rows written.
//!
//! Nothing stays behind. SQLite and PostgreSQL make a table and write a row in a transaction that is rolled back. MySQL
//! would commit the table, so it is asked for statements that fail, because their table is not there or would have two
//! columns of one name. It looks at the rights of the user before that. A file of SQLite that is not there yet is not
//! made either: another one is, beside it, and removed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::value::RawValue;
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;

use crawler_model::crawl::{ItemKey, ItemRecord};
use crawler_model::id::{ResourceId, Run};

use crate::columns::Kind;
use crate::connection::{Connection, Value};
use crate::dialect::Dialect;
use crate::names::TableTemplate;
use crate::rows::{Resource, Row};
use crate::target::{Server, Target};
use crate::trouble::{Cause, Trouble};

/// Tries whether tables can be made and rows written. Returns what a first write would create beside tables.
pub(crate) async fn try_out(target: &Target, timeout: Duration) -> Result<Vec<String>, Trouble> {
    let Server::Sqlite(path, _) = &target.server else {
        return try_in_time(target, timeout).await.map(|()| Vec::new());
    };
    // If nobody can tell, SQLite will.
    let is_there = tokio::fs::try_exists(path).await.unwrap_or(true);
    if is_there {
        let target = as_it_is(path, false);
        return try_in_time(&target, timeout).await.map(|()| Vec::new());
    }
    let name = format!(".crawler-check-{}.db", std::process::id());
    let beside = Beside(path.with_file_name(name));
    let tried = try_in_time(&as_it_is(&beside.0, true), timeout).await;
    tried.map(|()| vec![format!("the file {}", path.display())])
}

/// File that a check makes. It is removed when the check ends, or is given up.
struct Beside(PathBuf);

impl Drop for Beside {
    fn drop(&mut self) {
        let mut journal = self.0.clone().into_os_string();
        journal.push("-journal");
        for file in [self.0.as_path(), Path::new(&journal)] {
            match std::fs::remove_file(file) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => {
                    let file = file.display();
                    tracing::warn!(%file, %error, "the file of a check stays behind; remove it");
                }
            }
        }
    }
}

/// Returns the database in a file, whose form is not changed when it is opened.
fn as_it_is(path: &Path, create: bool) -> Target {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(create)
        .disable_statement_logging();
    Target::of_file(path, options)
}

async fn try_in_time(target: &Target, timeout: Duration) -> Result<(), Trouble> {
    let tried = tokio::time::timeout(timeout, try_once(target, timeout));
    tried.await.unwrap_or_else(|_elapsed| {
        Err(Trouble::told(
            Cause::Slow,
            format!("the server gave no answer within {timeout:?}"),
        ))
    })
}

async fn try_once(target: &Target, timeout: Duration) -> Result<(), Trouble> {
    let dialect = target.dialect();
    let failed = |error| Trouble::of(dialect.cause(&error), error);
    let mut connection = Connection::open(target, timeout).await.map_err(failed)?;
    let tried = match dialect {
        Dialect::Sqlite | Dialect::Postgres => make_and_roll_back(&mut connection, dialect).await,
        Dialect::MySql => ask_for_rights(&mut connection, dialect).await,
    };
    match tried {
        Ok(()) => connection.close().await.map_err(failed),
        // The server rolls back when the connection is gone.
        Err(error) => Err(failed(error)),
    }
}

async fn make_and_roll_back(
    connection: &mut Connection,
    dialect: Dialect,
) -> Result<(), sqlx::Error> {
    let template: TableTemplate = table().parse().expect("the text has no braces");
    let kind = Kind::new(dialect, &template, "", "check", None, Vec::new());
    let row = row(dialect, &kind);
    connection.run(dialect.begin()).await?;
    for statement in dialect.create(&kind.table, &[]) {
        connection.run(&statement).await?;
    }
    let values: Vec<&Value> = row.values.iter().collect();
    let insert = dialect.insert(&kind.table, &[], 1);
    connection.execute(&insert, &values).await?;
    connection.run("ROLLBACK").await
}

/// Asks for all that a sink does, of a table that is not there.
async fn ask_for_rights(connection: &mut Connection, dialect: Dialect) -> Result<(), sqlx::Error> {
    let (table, key) = (dialect.quote(&table()), dialect.quote("_key"));
    for statement in [
        format!("CREATE TABLE {table} ({key} INT, {key} INT)"),
        format!("ALTER TABLE {table} ADD COLUMN {key} INT"),
        format!("SELECT {key} FROM {table}"),
        format!("INSERT INTO {table} ({key}) VALUES (1) ON DUPLICATE KEY UPDATE {key} = {key}"),
    ] {
        match connection.run(&statement).await {
            Err(error) if dialect.cause(&error) != Cause::Changed => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Name of a table that nobody has.
fn table() -> String {
    format!("crawler_check_{}", std::process::id())
}

fn row(dialect: Dialect, kind: &Kind) -> Row {
    let resource = Resource {
        id: ResourceId(0),
        name: "check".to_owned(),
    };
    let record = ItemRecord {
        key: ItemKey("check".to_owned()),
        url: String::new(),
        rule: "check".to_owned(),
        schema: "check".to_owned(),
        run: Run(0),
        fetched_at: 0,
        item: RawValue::from_string("{}".to_owned()).expect("an empty object is JSON"),
        change: None,
    };
    Row::new(dialect, &resource, kind, &record, 0).expect("an empty object is a row")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_check_that_is_given_up_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let beside = Beside(folder.path().join("check.db"));
        let check = async {
            for name in ["check.db", "check.db-journal"] {
                std::fs::write(folder.path().join(name), "").unwrap();
            }
            let _beside = beside;
            std::future::pending::<()>().await;
        };
        let given_up = tokio::time::timeout(Duration::ZERO, check).await;
        assert!(given_up.is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
