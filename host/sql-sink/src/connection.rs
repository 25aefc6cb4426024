//! Connection to one of the servers: the calls that the sink makes, whichever server it is.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::{
    AssertSqlSafe, ConnectOptions as _, Connection as _, Error, Executor, MySqlConnection,
    PgConnection, Row as _, SqliteConnection,
};

use crate::dialect::Dialect;
use crate::target::{Server, Target};

/// Value of a parameter. Times and JSON are texts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Boolean(Option<bool>),
    Integer(Option<i64>),
    Number(Option<f64>),
    Text(Option<String>),
}

impl Value {
    pub(crate) fn is_null(&self) -> bool {
        matches!(
            self,
            Self::Boolean(None) | Self::Integer(None) | Self::Number(None) | Self::Text(None)
        )
    }

    /// Number of bytes that it takes on the way to the server.
    pub(crate) fn n_bytes(&self) -> u64 {
        match self {
            Self::Text(Some(text)) => text.len() as u64 + 9,
            Self::Boolean(_) | Self::Integer(_) | Self::Number(_) | Self::Text(None) => 9,
        }
    }
}

/// Open connection.
pub(crate) struct Connection {
    link: Link,
    /// File that SQLite has open.
    file: Option<OpenFile>,
    /// Largest size of a statement with its values, in bytes.
    pub(crate) max_statement: u64,
}

enum Link {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
    MySql(MySqlConnection),
}

/// File, and what it was when it was opened.
struct OpenFile {
    path: PathBuf,
    place: Option<(u64, u64)>,
}

/// Does the same with each kind of connection, whose database has the given name within.
macro_rules! with_each {
    ($link:expr, $database:ident, $connection:ident => $do:expr) => {
        match $link {
            Link::Sqlite($connection) => {
                type $database = sqlx::Sqlite;
                $do
            }
            Link::Postgres($connection) => {
                type $database = sqlx::Postgres;
                $do
            }
            Link::MySql($connection) => {
                type $database = sqlx::MySql;
                $do
            }
        }
    };
}

impl Connection {
    /// Opens a connection. Each statement on it ends within `timeout`, as far as the server can see to that.
    pub(crate) async fn open(target: &Target, timeout: Duration) -> Result<Self, Error> {
        let mut file = None;
        // The futures are large.
        let link = match &target.server {
            Server::Sqlite(path, options) => {
                let options = (**options).clone().busy_timeout(timeout / 2);
                let opened = Box::pin(options.connect()).await?;
                file = Some(OpenFile {
                    path: path.clone(),
                    place: place_of(path).await,
                });
                Link::Sqlite(opened)
            }
            Server::Postgres(options) => Link::Postgres(Box::pin(options.connect()).await?),
            Server::MySql(options) => Link::MySql(Box::pin(options.connect()).await?),
        };
        let mut connection = Self {
            link,
            file,
            max_statement: u64::MAX,
        };
        let dialect = target.dialect();
        if let Some(sql) = dialect.session(timeout) {
            connection.run(&sql).await?;
        }
        if dialect == Dialect::MySql {
            let sql = "SELECT CAST(@@max_allowed_packet AS CHAR)";
            let rows = connection.rows(sql, &[]).await?;
            let cell = rows.into_iter().flatten().next().flatten();
            connection.max_statement = cell
                .and_then(|text| text.parse().ok())
                .ok_or(Error::RowNotFound)?;
        }
        Ok(connection)
    }

    /// Closes the connection, and waits until that is done.
    pub(crate) async fn close(self) -> Result<(), Error> {
        match self.link {
            Link::Sqlite(connection) => connection.close().await,
            Link::Postgres(connection) => connection.close().await,
            Link::MySql(connection) => connection.close().await,
        }
    }

    /// Runs statements without parameters and results. They are made of words of the sink and of quoted names.
    pub(crate) async fn run(&mut self, sql: &str) -> Result<(), Error> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql));
        match &mut self.link {
            Link::Sqlite(connection) => Executor::execute(&mut *connection, sql).await.map(drop),
            Link::Postgres(connection) => Executor::execute(&mut *connection, sql).await.map(drop),
            Link::MySql(connection) => Executor::execute(&mut *connection, sql).await.map(drop),
        }
    }

    /// Runs a statement with these parameters.
    pub(crate) async fn execute(&mut self, sql: &str, values: &[&Value]) -> Result<(), Error> {
        with_each!(&mut self.link, Db, connection => {
            // The text depends on the number of rows, so the server need not keep it.
            let mut query = sqlx::query::<Db>(AssertSqlSafe(sql)).persistent(false);
            for value in values {
                query = match value {
                    Value::Boolean(value) => query.bind(*value),
                    Value::Integer(value) => query.bind(*value),
                    Value::Number(value) => query.bind(*value),
                    Value::Text(value) => query.bind(value.as_deref()),
                };
            }
            Executor::execute(&mut *connection, query).await.map(drop)
        })
    }

    /// Returns the rows of a query whose parameters and results are texts.
    pub(crate) async fn rows(
        &mut self,
        sql: &str,
        texts: &[&str],
    ) -> Result<Vec<Vec<Option<String>>>, Error> {
        with_each!(&mut self.link, Db, connection => {
            let mut query = sqlx::query::<Db>(AssertSqlSafe(sql)).persistent(false);
            for text in texts {
                query = query.bind(*text);
            }
            let found = Executor::fetch_all(&mut *connection, query).await?;
            let mut rows = Vec::with_capacity(found.len());
            for row in &found {
                let mut cells = Vec::with_capacity(row.len());
                for n in 0..row.len() {
                    // The statement has cast it to text, whatever the server calls it.
                    cells.push(row.try_get_unchecked::<Option<String>, usize>(n)?);
                }
                rows.push(cells);
            }
            Ok(rows)
        })
    }

    /// Returns false if the file of SQLite was removed or replaced since it was opened: nobody would read what is
    /// written to it.
    pub(crate) async fn is_in_place(&mut self) -> bool {
        match &self.file {
            Some(file) => file.place.is_some() && place_of(&file.path).await == file.place,
            None => true,
        }
    }
}

/// Returns device and number of a file, or `None` if it is not there.
async fn place_of(path: &Path) -> Option<(u64, u64)> {
    let metadata = tokio::fs::metadata(path).await.ok()?;
    Some((metadata.dev(), metadata.ino()))
}
