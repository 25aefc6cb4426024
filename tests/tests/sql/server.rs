//! Servers of the tests, each with an empty database, and sinks that write to it.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use crawler_model::crawl::{ItemKey, ItemRecord};
use crawler_model::id::{ResourceId, Run};
use crawler_model::plugin::Schema;
use crawler_model::resource::ShardId;
use crawler_sink::{Delivery, Sink as _, SinkError, Written};
use crawler_sql_sink::{SqlSettings, SqlSink, SqlSinks, Target};
use crawler_tests::mariadb::MariaDb;
use crawler_tests::postgres::Postgres;
use crawler_tests::tmpfs::Tmpfs;
use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{
    AssertSqlSafe, ConnectOptions as _, MySqlConnection, PgConnection, Row as _, SqliteConnection,
};
use tempfile::TempDir;

/// Password of the user of MariaDB whose rights are those of a sink.
const PASSWORD: &str = "secret'\"";

/// A server with an empty database.
pub(crate) struct Server {
    pub(crate) engine: Engine,
    database: String,
    folder: TempDir,
    pub(crate) settings: SqlSettings,
}

#[derive(Clone)]
pub(crate) enum Engine {
    Sqlite,
    Postgres(Arc<Postgres>),
    MariaDb(Arc<MariaDb>),
}

/// Connection of the test itself.
pub(crate) enum Link {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
    MariaDb(MySqlConnection),
}

/// Runs a statement on each kind of link, whose database has the given name within.
macro_rules! on_each {
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
            Link::MariaDb($connection) => {
                type $database = sqlx::MySql;
                $do
            }
        }
    };
}

/// Returns a server that other tests use as well, as long as one of them does.
fn shared<S>(running: &Mutex<Weak<S>>, start: impl FnOnce() -> Option<S>) -> Option<Arc<S>> {
    let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(server) = running.upgrade() {
        return Some(server);
    }
    let server = Arc::new(start()?);
    *running = Arc::downgrade(&server);
    Some(server)
}

impl Server {
    /// Returns all kinds of servers.
    pub(crate) async fn all() -> Vec<Self> {
        static POSTGRES: Mutex<Weak<Postgres>> = Mutex::new(Weak::new());
        static MARIADB: Mutex<Weak<MariaDb>> = Mutex::new(Weak::new());
        let postgres = shared(&POSTGRES, Postgres::start).map(Engine::Postgres);
        let mariadb = shared(&MARIADB, MariaDb::start).map(Engine::MariaDb);
        let mut servers = Vec::new();
        for engine in [Some(Engine::Sqlite), postgres, mariadb]
            .into_iter()
            .flatten()
        {
            servers.push(Self::new(engine).await);
        }
        servers
    }

    /// Returns servers that no other test uses, so that they may be killed.
    pub(crate) async fn own() -> Vec<Self> {
        let postgres = Postgres::start().map(|server| Engine::Postgres(Arc::new(server)));
        let mariadb = MariaDb::start().map(|server| Engine::MariaDb(Arc::new(server)));
        let mut servers = Vec::new();
        for engine in [postgres, mariadb].into_iter().flatten() {
            servers.push(Self::new(engine).await);
        }
        servers
    }

    pub(crate) async fn new(engine: Engine) -> Self {
        static N_DATABASES: AtomicU32 = AtomicU32::new(0);
        let n = N_DATABASES.fetch_add(1, Ordering::Relaxed);
        let mut server = Self {
            database: String::new(),
            folder: tempfile::tempdir().expect("there is a temporary folder"),
            settings: SqlSettings {
                timeout: Duration::from_secs(20),
                ..SqlSettings::default()
            },
            engine,
        };
        let database = format!("items{n}");
        match &server.engine {
            Engine::Sqlite => {}
            Engine::Postgres(_) => {
                server.database = "postgres".to_owned();
                server.run(&format!("CREATE DATABASE {database}")).await;
            }
            Engine::MariaDb(_) => {
                server.database = "mysql".to_owned();
                server.run(&format!("CREATE DATABASE {database}")).await;
                let user = "crawler@localhost";
                let password = PASSWORD.replace('\'', "''");
                server
                    .run(&format!(
                        "CREATE USER IF NOT EXISTS {user} IDENTIFIED BY '{password}'"
                    ))
                    .await;
                server
                    .run(&format!("GRANT ALL ON {database}.* TO {user}"))
                    .await;
            }
        }
        server.database = database;
        server
    }

    /// Puts the tables of an empty server that no other test uses on a small disk. Returns `None` if the test may not mount one.
    pub(crate) async fn on_disk(&self, size: &str) -> Option<Tmpfs> {
        match &self.engine {
            Engine::Sqlite => Tmpfs::mount(self.folder.path(), size),
            Engine::Postgres(server) => {
                let disk = server.disk(size)?;
                let place = disk.path().display();
                self.run(&format!("CREATE TABLESPACE disk LOCATION '{place}'"))
                    .await;
                let database = &self.database;
                self.run(&format!(
                    "ALTER DATABASE {database} SET default_tablespace = disk"
                ))
                .await;
                Some(disk)
            }
            Engine::MariaDb(server) => Tmpfs::mount(&server.folder(&self.database), size),
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self.engine {
            Engine::Sqlite => "SQLite",
            Engine::Postgres(_) => "PostgreSQL",
            Engine::MariaDb(_) => "MariaDB",
        }
    }

    fn target(&self) -> Target {
        let target = match &self.engine {
            Engine::Sqlite => Target::parse("sqlite:items.db", None, self.folder.path()),
            Engine::Postgres(server) => {
                Target::parse(&server.url(&self.database), None, Path::new("/"))
            }
            Engine::MariaDb(server) => {
                let url = server.url("crawler", &self.database);
                Target::parse(&url, Some(PASSWORD), Path::new("/"))
            }
        };
        target.unwrap_or_else(|e| panic!("{}: {e}", self.name()))
    }

    pub(crate) fn sinks(&self) -> SqlSinks {
        SqlSinks::new(self.target(), self.settings.clone()).expect("the settings are in range")
    }

    /// Returns sinks of users each of whom lacks a right that a sink needs.
    pub(crate) async fn sinks_with_few_rights(&self) -> Vec<SqlSinks> {
        let user = format!("few_{}", self.database);
        let mut sinks = Vec::new();
        match &self.engine {
            Engine::Sqlite => {}
            Engine::Postgres(server) => {
                self.run("REVOKE CREATE ON SCHEMA public FROM PUBLIC").await;
                self.run(&format!("CREATE ROLE {user} LOGIN")).await;
                let url = server.url(&self.database);
                let url = url.replace("//postgres@", &format!("//{user}@"));
                sinks.push(self.sinks_at(&url, None));
            }
            Engine::MariaDb(server) => {
                for (n, rights) in ["SELECT", "SELECT, CREATE, ALTER, UPDATE"]
                    .into_iter()
                    .enumerate()
                {
                    let user = format!("{user}_{n}");
                    self.run(&format!(
                        "CREATE USER {user}@localhost IDENTIFIED BY 'secret'"
                    ))
                    .await;
                    self.run(&format!(
                        "GRANT {rights} ON {}.* TO {user}@localhost",
                        self.database
                    ))
                    .await;
                    let url = server.url(&user, &self.database);
                    sinks.push(self.sinks_at(&url, Some("secret")));
                }
            }
        }
        sinks
    }

    fn sinks_at(&self, url: &str, password: Option<&str>) -> SqlSinks {
        let target = Target::parse(url, password, Path::new("/"));
        let target = target.unwrap_or_else(|e| panic!("{}: {e}", self.name()));
        SqlSinks::new(target, self.settings.clone()).expect("the settings are in range")
    }

    /// Opens the sink of the only shard of `books`, whose items have this schema.
    pub(crate) fn sink(&self, json_schema: &str) -> SqlSink {
        open(&self.sinks(), json_schema)
    }

    pub(crate) async fn connect(&self) -> Link {
        let connected = match &self.engine {
            Engine::Sqlite => {
                let options =
                    SqliteConnectOptions::new().filename(self.folder.path().join("items.db"));
                options.connect().await.map(Link::Sqlite)
            }
            Engine::Postgres(server) => {
                let options: PgConnectOptions =
                    server.url(&self.database).parse().expect("it is a URL");
                options.connect().await.map(Link::Postgres)
            }
            Engine::MariaDb(server) => {
                let options: MySqlConnectOptions = server
                    .url("root", &self.database)
                    .parse()
                    .expect("it is a URL");
                let options = options.ssl_mode(MySqlSslMode::Disabled);
                options.connect().await.map(Link::MariaDb)
            }
        };
        connected.unwrap_or_else(|e| panic!("{}: {e}", self.name()))
    }

    /// Runs statements on a connection of their own.
    pub(crate) async fn run(&self, sql: &str) {
        let ran = self.connect().await.run(sql).await;
        ran.unwrap_or_else(|e| panic!("{}: {sql}: {e}", self.name()));
    }

    /// Returns the results of a query, the cells of a row joined by `|`.
    pub(crate) async fn ask(&self, sql: &str) -> Vec<String> {
        let rows = self.connect().await.rows(sql).await;
        let rows = rows.into_iter();
        rows.map(|row| row.join("|")).collect()
    }

    /// Returns a name between quotes.
    pub(crate) fn quote(&self, name: &str) -> String {
        let mark = match self.engine {
            Engine::Sqlite | Engine::Postgres(_) => "\"",
            Engine::MariaDb(_) => "`",
        };
        format!("{mark}{}{mark}", name.replace(mark, &mark.repeat(2)))
    }

    /// Returns an expression for a column as text.
    pub(crate) fn text(&self, column: &str) -> String {
        let kind = match self.engine {
            Engine::Sqlite | Engine::Postgres(_) => "TEXT",
            Engine::MariaDb(_) => "CHAR",
        };
        format!("CAST({} AS {kind})", self.quote(column))
    }
}

impl Engine {
    /// Kills a server that no other test uses.
    pub(crate) fn kill(&self) {
        match self {
            Self::Sqlite => {}
            Self::Postgres(server) => server.kill(),
            Self::MariaDb(server) => server.kill(),
        }
    }

    /// Starts a server that was killed.
    pub(crate) fn restart(&self) {
        match self {
            Self::Sqlite => {}
            Self::Postgres(server) => server.restart(),
            Self::MariaDb(server) => server.restart(),
        }
    }
}

impl Link {
    pub(crate) async fn run(&mut self, sql: &str) -> Result<(), sqlx::Error> {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql));
        match self {
            Self::Sqlite(connection) => sql.execute(&mut *connection).await.map(drop),
            Self::Postgres(connection) => sql.execute(&mut *connection).await.map(drop),
            Self::MariaDb(connection) => sql.execute(&mut *connection).await.map(drop),
        }
    }

    /// Returns the cells of a query as texts, `NULL` for those without a value.
    pub(crate) async fn rows(&mut self, sql: &str) -> Vec<Vec<String>> {
        on_each!(self, Db, connection => {
            let found = sqlx::query::<Db>(AssertSqlSafe(sql)).fetch_all(&mut *connection).await;
            let found = found.unwrap_or_else(|e| panic!("{sql}: {e}"));
            let rows = found.iter().map(|row| {
                let cells = (0..row.len()).map(|n| {
                    let cell: Option<String> = row.try_get_unchecked(n).expect("the cell is text");
                    cell.unwrap_or_else(|| "NULL".to_owned())
                });
                cells.collect()
            });
            rows.collect()
        })
    }
}

/// Returns the sink of the only shard of `books`, whose items have this schema.
pub(crate) fn open(sinks: &SqlSinks, json_schema: &str) -> SqlSink {
    let schema = Schema {
        name: "thing".to_owned(),
        json_schema: json_schema.to_owned(),
    };
    let spec = r#"{"name":"books","plugin":"books"}"#;
    let delivery = Delivery {
        sink: "db".parse().expect("it is a name"),
        shard: ShardId::only(ResourceId(7)),
        cluster: "c1".to_owned(),
        run: Run(1),
        storage_epoch: 1,
        spec: serde_json::from_str(spec).expect("it is a spec"),
        schemas: vec![schema],
        other_kinds: None,
        marks: Vec::new(),
    };
    sinks.sink(&delivery)
}

/// Returns an item of the kind `thing`, fetched at `n` in the first run.
pub(crate) fn item(n: u64, json: &str) -> ItemRecord {
    ItemRecord {
        key: ItemKey(format!("key-{n:06}")),
        url: format!("http://a.test/{n}"),
        rule: "page".to_owned(),
        schema: "thing".to_owned(),
        run: Run(1),
        fetched_at: n,
        item: serde_json::value::RawValue::from_string(json.to_owned()).expect("an item is JSON"),
        change: None,
    }
}

/// Checks that a sink has taken all items.
#[track_caller]
pub(crate) fn all_written(written: Result<Written, SinkError>, n_items: usize) {
    match written {
        Ok(written) => assert_eq!(written.n_items, n_items as u64),
        Err(error) => panic!("{}", crawler_process::telemetry::chain(&error)),
    }
}

/// Writes items, all of which the sink must take at once.
pub(crate) async fn write(sink: &mut SqlSink, items: &[ItemRecord]) {
    all_written(sink.write(0, items).await, items.len());
}

/// Writes items, which the sink must keep for a reason whose message contains `why`. Returns the message.
pub(crate) async fn wait_for(sink: &mut SqlSink, items: &[ItemRecord], why: &str) -> String {
    match sink.write(0, items).await {
        Err(error @ SinkError::Retry { .. }) => {
            let text = crawler_process::telemetry::chain(&error);
            assert!(text.contains(why), "{text} instead of {why}");
            error.to_string()
        }
        other => panic!("{other:?} instead of {why}"),
    }
}
