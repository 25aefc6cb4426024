//! A crawl whose items go to the data root, to tables of PostgreSQL, MariaDB and SQLite, and to files of Parquet, all at
//! once, while the program and the servers are killed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crawler_tests::closure::{Closure, Plan, Visit};
use crawler_tests::http::block_on;
use crawler_tests::mariadb::MariaDb;
use crawler_tests::postgres::Postgres;
use crawler_tests::process::{Home, Process};
use crawler_tests::python::python;
use crawler_tests::random::Random;
use crawler_tests::up::Up;
use crawler_tests::{PATIENCE, guests, until};
use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};
use sqlx::postgres::PgConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Row as _};

const N_PAGES: usize = 5_000;
/// Number of requests between two kills. All kills together come before the crawl can be over.
const BETWEEN: usize = 80;
/// Number of items that SQLite gets while a server is away.
const MEANWHILE: usize = 20;
/// Deadline of the crawl, with a program that was built without optimisation on a busy machine.
const DEADLINE: Duration = Duration::from_secs(600);
/// The independent reader of Parquet.
const PACKAGES: [&str; 1] = ["duckdb==2.0.1"];

/// Program that prints the rows of a folder of Parquet as JSON.
const READ: &str = "
import duckdb, json, sys
found = duckdb.sql(f\"SELECT url, depth, state FROM read_parquet('{sys.argv[1]}/**/*.parquet')\").fetchall()
for url, depth, state in found:
    print(json.dumps({'url': url, 'depth': depth, 'state': state}))
";

/// Returns the only column of all rows that a query finds.
macro_rules! texts {
    ($options:expr, $sql:expr) => {
        block_on(async {
            let options = $options;
            let mut connection = options.connect().await.expect("the database is there");
            let found = sqlx::query($sql).fetch_all(&mut connection).await;
            let found = found.expect("the table is there");
            let texts = found.iter().map(|row| row.get::<String, usize>(0));
            texts.collect::<Vec<String>>()
        })
    };
}

/// A server that is killed.
#[derive(Clone, Copy)]
enum Server {
    Postgres,
    MariaDb,
}

/// Sinks of the crawl besides the data root.
struct Sinks {
    postgres: Postgres,
    /// `None` if it is not installed.
    mariadb: Option<MariaDb>,
    sqlite: PathBuf,
    lake: PathBuf,
    /// Reader of Parquet. `None` if it cannot be installed.
    python: Option<PathBuf>,
}

impl Sinks {
    /// Starts the servers and makes the folders. If PostgreSQL is not installed, it says so and returns `None`.
    fn start(folder: &Path) -> Option<Self> {
        let sinks = Self {
            postgres: Postgres::start()?,
            mariadb: MariaDb::start(),
            sqlite: folder.join("tables/items.db"),
            lake: folder.join("lake"),
            python: python(folder, "duckdb", &PACKAGES),
        };
        for folder in [folder.join("tables"), sinks.lake.clone()] {
            std::fs::create_dir(folder).expect("the home is new");
        }
        if let Some(mariadb) = &sinks.mariadb {
            let made = block_on(async {
                let mut connection = in_mariadb(mariadb, "mysql").connect().await?;
                let make = sqlx::query("CREATE DATABASE items");
                make.execute(&mut connection).await
            });
            made.expect("the server is new");
        }
        Some(sinks)
    }

    fn names(&self) -> Vec<&'static str> {
        let mariadb = self.mariadb.as_ref().map(|_| "mariadb");
        let others = ["postgres", "sqlite", "lake"];
        others.into_iter().chain(mariadb).collect()
    }

    /// Returns the config file that declares them.
    fn config(&self) -> String {
        let table = |name: &str, url: &str, more: &str| {
            format!("[sink.{name}]\nurl = {url:?}\nmax-wait = \"200ms\"\n{more}\n")
        };
        let of_server = "timeout = \"5s\"";
        let mariadb = self.mariadb.as_ref();
        let mariadb =
            mariadb.map(|server| table("mariadb", &server.url("root", "items"), of_server));
        [
            table("postgres", &self.postgres.url("postgres"), of_server),
            mariadb.unwrap_or_default(),
            table("sqlite", &format!("sqlite://{}", self.sqlite.display()), ""),
            table(
                "lake",
                &format!("file://{}", self.lake.display()),
                "format = \"parquet\"",
            ),
        ]
        .concat()
    }

    /// Kills a server, and starts it again once the program has told of it and SQLite has got further items.
    fn kill(&self, server: Server, up: &Up) {
        let n_lines = up.process.stderr().len();
        let n_rows = until("rows of another sink", PATIENCE, || self.n_rows());
        let why = match (server, &self.mariadb) {
            (Server::Postgres, _) => {
                self.postgres.kill();
                "cannot write items to postgres://"
            }
            (Server::MariaDb, Some(mariadb)) => {
                mariadb.kill();
                "cannot write items to mysql://"
            }
            (Server::MariaDb, None) => return,
        };
        until("word of the sink", PATIENCE, || {
            let lines = up.process.stderr_from(n_lines);
            lines.iter().any(|line| line.contains(why)).then_some(())
        });
        until("rows of another sink meanwhile", PATIENCE, || {
            (self.n_rows()? >= n_rows + MEANWHILE).then_some(())
        });
        match (server, &self.mariadb) {
            (Server::MariaDb, Some(mariadb)) => mariadb.restart(),
            _ => self.postgres.restart(),
        }
    }

    /// Returns the number of rows that SQLite has; `None` while it cannot be asked.
    fn n_rows(&self) -> Option<usize> {
        block_on(async {
            let options = SqliteConnectOptions::new().filename(&self.sqlite);
            let mut connection = options.connect().await.ok()?;
            let count = sqlx::query("SELECT COUNT(*) FROM web_visit");
            let row = count.fetch_one(&mut connection).await.ok()?;
            usize::try_from(row.get::<i64, usize>(0)).ok()
        })
    }

    /// Returns all items of each sink that can be read, in their order.
    fn items(&self) -> Vec<(&'static str, Vec<Visit>)> {
        let read = |texts: Vec<String>| sorted(&texts.join("\n"));
        let in_postgres: PgConnectOptions =
            self.postgres.url("postgres").parse().expect("it is a URL");
        let in_postgres = texts!(
            in_postgres,
            "SELECT json_build_object('url', url, 'depth', depth, 'state', state)::text FROM web_visit"
        );
        let in_sqlite = texts!(
            SqliteConnectOptions::new().filename(&self.sqlite),
            "SELECT json_object('url', url, 'depth', depth, 'state', state) FROM web_visit"
        );
        let mut items = vec![
            ("PostgreSQL", read(in_postgres)),
            ("SQLite", read(in_sqlite)),
        ];
        if let Some(mariadb) = &self.mariadb {
            let in_mariadb = texts!(
                in_mariadb(mariadb, "items"),
                "SELECT JSON_OBJECT('url', url, 'depth', depth, 'state', state) FROM web_visit"
            );
            items.push(("MariaDB", read(in_mariadb)));
        }
        if let Some(python) = &self.python {
            let mut command = Command::new(python);
            command.args(["-c", READ]).arg(&self.lake);
            let ended = Process::start(&mut command).wait(PATIENCE);
            assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            items.push(("Parquet", sorted(&ended.stdout)));
        }
        items
    }
}

fn in_mariadb(server: &MariaDb, database: &str) -> MySqlConnectOptions {
    let url = server.url("root", database);
    let options: MySqlConnectOptions = url.parse().expect("it is a URL");
    options.ssl_mode(MySqlSslMode::Disabled)
}

#[test]
fn s26_kills_of_program_and_servers_lose_and_double_no_row() {
    let home = Home::new();
    let Some(sinks) = Sinks::start(home.path()) else {
        return;
    };
    let mut random = Random::new("crawl into databases and files");
    let closure = Closure::open(Plan {
        n_pages: N_PAGES,
        seed: random.below(1 << 32),
        max_depth: 40,
        pace: Duration::from_millis(50),
    });
    home.write("crawler.toml", &sinks.config());
    for name in sinks.names() {
        home.ok(["sink", "check", name]);
    }
    let mut up = Up::start(&home, &[]);
    let puppet = guests::guest("puppet").display().to_string();
    up.ok(["plugin", "push", &puppet]);
    let add = [
        "resource",
        "add",
        "web",
        "--plugin=puppet",
        "--concurrency=8",
    ];
    let sink = format!("--sink=lines,{}", sinks.names().join(","));
    let add = add.map(str::to_owned).into_iter().chain([sink]);
    up.ok(add.chain(closure.arguments()));

    // Without a server it is the program that is killed.
    let (postgres, mariadb) = (Some(Server::Postgres), Some(Server::MariaDb));
    for server in [None, postgres, None, mariadb, postgres, None] {
        let target = closure.n_asked() + BETWEEN;
        assert!(closure.wait_for(target, PATIENCE), "the crawl halts");
        match server {
            Some(server) => sinks.kill(server, &up),
            None => {
                up.process.kill();
                closure.begin_life();
                up = Up::start(&home, &[]);
            }
        }
    }

    up.finished("web", DEADLINE);
    let in_lines = sorted(&up.ok(["items", "web"]));
    up.stop();
    let known: Vec<Visit> = closure.items().into_iter().collect();
    assert_eq!(in_lines, known);
    for (name, items) in sinks.items() {
        assert_eq!(items, known, "{name}");
    }
}

/// Returns the items of these lines, in their order.
fn sorted(lines: &str) -> Vec<Visit> {
    let mut items = Visit::read(lines);
    items.sort();
    items
}
