//! Tests with SQLite: what a reader of the tables sees, whatever happened to the file and to the writers.

use std::path::{Path, PathBuf};

use crawler_model::id::{ResourceId, Run};
use crawler_model::resource::ShardId;
use crawler_process::telemetry;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};
use tempfile::TempDir;

use super::*;
use crate::columns::tests::schema;
use crate::connection::Connection;
use crate::rows::tests::record;
use crate::target::Server;

mod history;

const BOOK: &str = r#"{"properties":{"title":{"type":"string"},"price":{"type":"number"}}}"#;

/// Folder with a database, and sinks that write to it.
struct Bench {
    folder: TempDir,
    settings: SqlSettings,
}

impl Bench {
    /// Returns a bench whose writes are in time on a machine with much to do.
    fn new() -> Self {
        Self::with_timeout(Duration::from_secs(20))
    }

    /// Returns a bench for a test that waits until this time is over.
    fn with_timeout(timeout: Duration) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            settings: SqlSettings {
                timeout,
                ..SqlSettings::default()
            },
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("items.db")
    }

    fn target(&self) -> Target {
        Target::parse("sqlite:items.db", None, self.folder.path()).unwrap()
    }

    /// Opens the sink of resource 7 with this schema of the kind `thing`.
    fn sink(&self, json_schema: &str) -> SqlSink {
        self.sink_of(self.target(), 7, "books", json_schema)
    }

    fn sink_of(&self, target: Target, id: u64, name: &str, json_schema: &str) -> SqlSink {
        let sinks = SqlSinks::new(target, self.settings.clone()).unwrap();
        sinks.sink(&delivery(id, name, json_schema))
    }

    /// Opens a sink whose connections have a further pragma.
    fn sink_with(&self, pragma: &'static str, value: &'static str) -> SqlSink {
        let mut target = self.target();
        if let Server::Sqlite(_, options) = &mut target.server {
            **options = (**options).clone().pragma(pragma, value);
        }
        self.sink_of(target, 7, "books", BOOK)
    }

    async fn connect(&self) -> SqliteConnection {
        let options = SqliteConnectOptions::new().filename(self.path());
        options.create_if_missing(true).connect().await.unwrap()
    }

    async fn run(&self, sql: &str) {
        let mut connection = self.connect().await;
        let sql = sqlx::raw_sql(AssertSqlSafe(sql));
        sql.execute(&mut connection).await.unwrap();
    }

    /// Returns the results of a query, one text for each row.
    async fn ask(&self, sql: &str) -> Vec<String> {
        let mut connection = self.connect().await;
        let query = sqlx::query::<sqlx::Sqlite>(AssertSqlSafe(sql));
        let rows = query.fetch_all(&mut connection).await.unwrap();
        let texts = rows.iter().map(|row| {
            let cells = (0..row.len()).map(|n| {
                let cell: Option<String> = row.try_get_unchecked(n).unwrap();
                cell.unwrap_or_else(|| "NULL".to_owned())
            });
            cells.collect::<Vec<_>>().join("|")
        });
        texts.collect()
    }
}

fn delivery(id: u64, name: &str, json_schema: &str) -> Delivery {
    let spec = format!(r#"{{"name":"{name}","plugin":"books"}}"#);
    Delivery {
        sink: "db".parse().unwrap(),
        shard: ShardId::only(ResourceId(id)),
        cluster: "c1".to_owned(),
        run: Run(1),
        storage_epoch: 1,
        spec: serde_json::from_str(&spec).unwrap(),
        schemas: vec![schema(json_schema)],
        other_kinds: None,
        marks: Vec::new(),
    }
}

fn book(n: u64, title: &str) -> ItemRecord {
    let json = format!(
        r#"{{"title":{},"price":1.5}}"#,
        serde_json::to_string(title).unwrap()
    );
    record(&format!("key-{n}"), 1, n, &json)
}

#[track_caller]
fn waits(written: Result<Written, SinkError>, why: &str) {
    match written {
        Err(error @ SinkError::Retry { .. }) => {
            let text = error.to_string();
            assert!(text.contains(why), "{text}");
            assert!(text.starts_with("cannot write items to sqlite:"), "{text}");
        }
        other => panic!("{other:?} instead of {why}"),
    }
}

async fn write(sink: &mut SqlSink, items: &[ItemRecord]) {
    write_rejecting(0, sink, items).await;
}

/// Writes items of which so many do not fit.
async fn write_rejecting(n_rejected: u64, sink: &mut SqlSink, items: &[ItemRecord]) {
    let written = sink.write(0, items).await.unwrap();
    let all = Written::all(items, None);
    assert_eq!(written, Written { n_rejected, ..all });
}

#[tokio::test]
async fn each_item_is_a_row_with_what_is_known_of_it() {
    let bench = Bench::new();
    let mut sink = bench.sink(BOOK);
    write(
        &mut sink,
        &[record("key-1", 3, 7, r#"{"title":"a","more":[1]}"#)],
    )
    .await;
    let rows = bench
        .ask("SELECT _key, _resource, _kind, _url, CAST(_run AS TEXT), _at, _item, _first_seen, _last_seen, _rest, title, CAST(price AS TEXT), CAST(_resource_id AS TEXT) FROM books_thing")
        .await;
    let at = "1970-01-01T00:00:00.007Z";
    assert_eq!(
        rows,
        [format!(
            "key-1|books|thing|http://a.test/|3|{at}|key-1|{at}|{at}|{{\"more\":[1]}}|a|NULL|7"
        )]
    );
}

#[tokio::test]
async fn no_temporary_file_is_made() {
    let bench = Bench::new();
    let mut connection = Connection::open(&bench.target(), bench.settings.timeout)
        .await
        .unwrap();
    let sql = "SELECT CAST(temp_store AS TEXT) FROM pragma_temp_store";
    let rows = connection.rows(sql, &[]).await.unwrap();
    // In memory, whatever the library was built with.
    assert_eq!(rows, [[Some("2".to_owned())]]);
}

#[tokio::test]
async fn the_same_items_again_change_nothing() {
    let bench = Bench::new();
    let items: Vec<ItemRecord> = (1..=2_500).map(|n| book(n, "title")).collect();
    let mut sink = bench.sink(BOOK);
    let mut n_written = 0;
    while n_written < items.len() {
        let written = sink
            .write(n_written as u64, &items[n_written..])
            .await
            .unwrap();
        assert!(written.n_items <= 1_000);
        n_written += written.n_items as usize;
    }
    let all = "SELECT * FROM (SELECT _key, _at, _first_seen, _last_seen, title FROM books_thing ORDER BY _key)";
    let before = bench.ask(all).await;
    assert_eq!(before.len(), items.len());
    let mut other = bench.sink(BOOK);
    write(&mut other, &items[1_700..]).await;
    assert_eq!(bench.ask(all).await, before);
}

#[tokio::test]
async fn an_earlier_owner_does_not_overwrite_a_later_one() {
    let mut bench = Bench::new();
    bench
        .settings
        .keys
        .insert("thing".to_owned(), vec!["title".to_owned()]);
    let version = |run, at, price: u32| {
        let json = format!(r#"{{"title":"a","price":{price}}}"#);
        record(&format!("item-{run}-{at}"), run, at, &json)
    };
    let versions = [
        version(1, 10, 1),
        version(2, 5, 2),
        version(2, 20, 3),
        version(1, 30, 4),
    ];
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        for place in order {
            // Each owner has a sink of its own.
            write(
                &mut bench.sink(BOOK),
                std::slice::from_ref(&versions[place]),
            )
            .await;
        }
        let rows = bench
            .ask("SELECT CAST(price AS TEXT), CAST(_run AS TEXT), _item, _first_seen, _last_seen FROM books_thing")
            .await;
        let seen = "1970-01-01T00:00:00.005Z|1970-01-01T00:00:00.030Z";
        assert_eq!(rows, [format!("3.0|2|item-2-20|{seen}")], "{order:?}");
        bench.run("DROP TABLE books_thing").await;
    }
}

#[tokio::test]
async fn items_that_do_not_fit_are_kept_with_the_reason() {
    let bench = Bench::new();
    let mut sink = bench.sink(BOOK);
    let wrong = record("key-9", 1, 9, r#"{"title":["a"]}"#);
    let items = [book(1, "a"), wrong.clone(), book(2, "b")];
    write_rejecting(1, &mut sink, &items).await;
    write_rejecting(1, &mut sink, &[wrong]).await;
    assert_eq!(
        bench
            .ask("SELECT title FROM books_thing ORDER BY _key")
            .await,
        ["a", "b"]
    );
    let rejects = bench
        .ask("SELECT _item, _table, _json, _reason FROM crawler_rejects")
        .await;
    assert_eq!(
        rejects,
        [r#"key-9|books_thing|{"title":["a"]}|field "title" is ["a"], and its column takes text"#]
    );
}

#[tokio::test]
async fn rows_that_the_database_refuses_do_not_hold_up_the_others() {
    let bench = Bench::new();
    let mut sink = bench.sink(BOOK);
    write(&mut sink, &[book(0, "a")]).await;
    bench
        .run("CREATE UNIQUE INDEX one_title ON books_thing (title)")
        .await;
    let title = |n: u64| match n % 16 {
        0 => "a".to_owned(),
        _ => format!("title {n}"),
    };
    let items: Vec<ItemRecord> = (1..=64).map(|n| book(n, &title(n))).collect();
    write_rejecting(4, &mut sink, &items).await;
    let rows = bench
        .ask("SELECT CAST(COUNT(*) AS TEXT) FROM books_thing")
        .await;
    assert_eq!(rows, ["61"]);
    let rejects = bench
        .ask("SELECT _item FROM crawler_rejects ORDER BY _run, _at")
        .await;
    assert_eq!(rejects, ["key-16", "key-32", "key-48", "key-64"]);
    let reasons = bench
        .ask("SELECT DISTINCT _reason FROM crawler_rejects")
        .await;
    assert!(
        reasons[0].contains("UNIQUE constraint failed"),
        "{reasons:?}"
    );
}

#[tokio::test]
async fn a_constraint_at_the_end_of_a_transaction_rejects_one_row() {
    let bench = Bench::new();
    let mut sink = bench.sink(BOOK);
    write(&mut sink, &[book(0, "a")]).await;
    // A trigger that takes a part in the transaction, and a key that is looked at when it ends.
    bench
        .run(
            "CREATE TABLE shops (title TEXT PRIMARY KEY);
             CREATE TABLE sold (title TEXT REFERENCES shops (title) DEFERRABLE INITIALLY DEFERRED);
             INSERT INTO shops VALUES ('good');
             CREATE TRIGGER sells AFTER INSERT ON books_thing BEGIN INSERT INTO sold VALUES (NEW.title); END",
        )
        .await;
    let title = |n: u64| if n == 5 { "bad" } else { "good" };
    let items: Vec<ItemRecord> = (1..=9).map(|n| book(n, title(n))).collect();
    write_rejecting(1, &mut sink, &items).await;
    let rejects = "SELECT _item, _reason FROM crawler_rejects";
    assert_eq!(
        bench.ask(rejects).await,
        ["key-5|FOREIGN KEY constraint failed"]
    );
    let rows = bench
        .ask("SELECT CAST(COUNT(*) AS TEXT) FROM books_thing")
        .await;
    assert_eq!(rows, ["9"]);
}

#[tokio::test]
async fn a_value_that_a_trigger_demands_rejects_one_row() {
    let bench = Bench::new();
    let mut sink = bench.sink(BOOK);
    write(&mut sink, &[book(0, "a")]).await;
    bench
        .run(
            "CREATE TABLE sold (title TEXT NOT NULL);
             CREATE TRIGGER sells AFTER INSERT ON books_thing BEGIN INSERT INTO sold VALUES (NEW.title); END",
        )
        .await;
    let without_title = record("key-2", 1, 2, r#"{"price":1}"#);
    let items = [book(1, "b"), without_title, book(3, "c")];
    write_rejecting(1, &mut sink, &items).await;
    let rejects = "SELECT _item, _reason FROM crawler_rejects";
    let reason = "key-2|NOT NULL constraint failed: sold.title";
    assert_eq!(bench.ask(rejects).await, [reason]);
    assert_eq!(bench.ask("SELECT title FROM sold").await, ["b", "c"]);
}

#[tokio::test]
async fn a_version_that_does_not_fit_leaves_the_one_before() {
    let mut bench = Bench::new();
    bench
        .settings
        .keys
        .insert("thing".to_owned(), vec!["title".to_owned()]);
    let mut sink = bench.sink(BOOK);
    let version = |at: u64, price: u32| {
        let json = format!(r#"{{"title":"a","price":{price}}}"#);
        record(&format!("item-{at}"), 1, at, &json)
    };
    write(&mut sink, &[version(1, 1)]).await;
    bench
        .run(
            "CREATE TRIGGER cheap BEFORE UPDATE ON books_thing WHEN NEW.price > 3 \
             BEGIN SELECT RAISE(ABORT, 'too dear'); END",
        )
        .await;
    let items = [version(2, 2), version(3, 3), version(4, 4)];
    write_rejecting(1, &mut sink, &items).await;
    let rows = "SELECT _item, CAST(price AS TEXT), _last_seen FROM books_thing";
    let seen = "1970-01-01T00:00:00.003Z";
    assert_eq!(bench.ask(rows).await, [format!("item-3|3.0|{seen}")]);
    let rejects = "SELECT _item, _reason FROM crawler_rejects";
    assert_eq!(bench.ask(rejects).await, ["item-4|too dear"]);
}

#[tokio::test]
async fn a_resource_that_is_added_again_goes_on_with_its_rows() {
    let mut bench = Bench::new();
    bench
        .settings
        .keys
        .insert("thing".to_owned(), vec!["title".to_owned()]);
    let version = |run: u64, price: u32| {
        let json = format!(r#"{{"title":"a","price":{price}}}"#);
        record(&format!("item-{price}"), run, u64::from(price), &json)
    };
    write(&mut bench.sink(BOOK), &[version(5, 1)]).await;
    let mut later = bench.sink_of(bench.target(), 8, "books", BOOK);
    write(&mut later, &[version(1, 2)]).await;
    // The worker of the resource that was deleted has not noticed.
    write(&mut bench.sink(BOOK), &[version(6, 3)]).await;
    let rows = bench
        .ask("SELECT CAST(_resource_id AS TEXT), CAST(_run AS TEXT), CAST(price AS TEXT) FROM books_thing")
        .await;
    assert_eq!(rows, ["8|1|2.0"]);
}

#[tokio::test]
async fn fields_that_are_gone_are_empty_in_newer_versions() {
    let mut bench = Bench::new();
    bench
        .settings
        .keys
        .insert("thing".to_owned(), vec!["title".to_owned()]);
    write(&mut bench.sink(BOOK), &[book(1, "a"), book(2, "b")]).await;
    bench
        .run("ALTER TABLE books_thing ADD COLUMN mine TEXT DEFAULT NULL; UPDATE books_thing SET mine = 'kept'")
        .await;
    let mut shrunk = bench.sink(r#"{"properties":{"title":{"type":"string"}}}"#);
    write(&mut shrunk, &[record("key-3", 2, 9, r#"{"title":"a"}"#)]).await;
    let rows = bench
        .ask("SELECT title, CAST(price AS TEXT), mine FROM books_thing ORDER BY title")
        .await;
    assert_eq!(rows, ["a|NULL|kept", "b|1.5|kept"]);
}

#[tokio::test]
async fn a_column_with_another_name_keeps_its_values() {
    let mut bench = Bench::new();
    let key = vec!["price".to_owned()];
    bench.settings.keys.insert("thing".to_owned(), key);
    write(&mut bench.sink(BOOK), &[book(1, "a")]).await;
    // The statement that a change of type asks for.
    bench
        .run("ALTER TABLE books_thing RENAME COLUMN title TO title_old")
        .await;
    let changed = r#"{"properties":{"title":{"type":"integer"},"price":{"type":"number"}}}"#;
    let newer = record("key-2", 1, 2, r#"{"title":2,"price":1.5}"#);
    write(&mut bench.sink(changed), &[newer]).await;
    let rows = "SELECT title_old, CAST(title AS TEXT), _item FROM books_thing";
    assert_eq!(bench.ask(rows).await, ["a|2|key-2"]);
}

#[tokio::test]
async fn a_table_that_is_made_anew_has_no_marks_of_the_earlier_one() {
    let mut bench = Bench::new();
    let key = vec!["title".to_owned()];
    bench.settings.keys.insert("thing".to_owned(), key);
    write(&mut bench.sink(BOOK), &[book(1, "a")]).await;
    bench.run("ALTER TABLE books_thing RENAME TO old").await;
    let mut sink = bench.sink(r#"{"properties":{"title":{"type":"string"}}}"#);
    write(&mut sink, &[record("key-2", 1, 2, r#"{"title":"a"}"#)]).await;
    bench
        .run("ALTER TABLE books_thing ADD COLUMN price TEXT; UPDATE books_thing SET price = 'mine'")
        .await;
    let mut sink = bench.sink(r#"{"properties":{"title":{"type":"string"}}}"#);
    write(&mut sink, &[record("key-3", 1, 3, r#"{"title":"a"}"#)]).await;
    let rows = "SELECT price, _item FROM books_thing";
    assert_eq!(bench.ask(rows).await, ["mine|key-3"]);
}

#[tokio::test]
async fn a_column_that_takes_the_name_of_an_earlier_one_is_kept() {
    let mut bench = Bench::new();
    let key = vec!["title".to_owned()];
    bench.settings.keys.insert("thing".to_owned(), key);
    write(&mut bench.sink(BOOK), &[book(1, "a")]).await;
    bench
        .run("ALTER TABLE books_thing RENAME COLUMN price TO price_old")
        .await;
    let titles = r#"{"properties":{"title":{"type":"string"}}}"#;
    let version = |n: u64| record(&format!("key-{n}"), 1, n, r#"{"title":"a"}"#);
    write(&mut bench.sink(titles), &[version(2)]).await;
    bench
        .run("ALTER TABLE books_thing ADD COLUMN price TEXT; UPDATE books_thing SET price = 'mine'")
        .await;
    write(&mut bench.sink(titles), &[version(3)]).await;
    let rows = "SELECT CAST(price_old AS TEXT), price, _item FROM books_thing";
    assert_eq!(bench.ask(rows).await, ["1.5|mine|key-3"]);
}

#[tokio::test]
async fn a_version_that_comes_again_keeps_what_was_written() {
    let bench = Bench::new();
    write(&mut bench.sink(BOOK), &[book(1, "a")]).await;
    // The earlier owner of the shard knows an earlier schema.
    let mut late = bench.sink(r#"{"properties":{"title":{"type":"string"}}}"#);
    write(&mut late, &[book(1, "a")]).await;
    let rows = "SELECT title, CAST(price AS TEXT), _rest FROM books_thing";
    assert_eq!(bench.ask(rows).await, ["a|1.5|NULL"]);
}

#[tokio::test]
async fn a_server_that_is_too_slow_gets_half_of_the_items() {
    let bench = Bench::with_timeout(Duration::from_secs(2));
    let mut sink = bench.sink(BOOK);
    let items: Vec<ItemRecord> = (1..=8).map(|n| book(n, "a")).collect();
    write(&mut sink, &items[..1]).await;
    let mut other = bench.connect().await;
    let lock = sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await;
    lock.unwrap();
    waits(sink.write(0, &items).await, "in time");
    waits(sink.write(0, &items).await, "in time");
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    // A quarter of them, and more as soon as the server keeps up.
    assert_eq!(sink.write(0, &items).await.unwrap().n_items, 2);
    assert_eq!(sink.write(0, &items).await.unwrap().n_items, 8);
}

#[tokio::test]
async fn a_connection_that_is_silent_is_replaced_once() {
    let bench = Bench::with_timeout(Duration::from_secs(5));
    // The server does not tell that it waits for a lock.
    let mut sink = bench.sink_with("busy_timeout", "60000");
    let items: Vec<ItemRecord> = (1..=8).map(|n| book(n, "a")).collect();
    write(&mut sink, &items[..1]).await;
    let mut other = bench.connect().await;
    let lock = sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await;
    lock.unwrap();
    let unlock = async {
        // The second attempt is under way, and has most of its time left.
        tokio::time::sleep(bench.settings.timeout + Duration::from_secs(1)).await;
        sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    };
    let (written, ()) = tokio::join!(sink.write(0, &items), unlock);
    assert_eq!(written.unwrap().n_items, 8);
    // A fault of a sink is one line of the crawl's log, as long as its words stay the same.
    let lock = sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await;
    lock.unwrap();
    waits(
        sink.write(0, &items).await,
        "the database did not take items within 5s",
    );
}

#[tokio::test]
async fn others_have_the_connection_between_attempts() {
    let bench = Bench::new();
    let sinks = SqlSinks::new(bench.target(), bench.settings.clone()).unwrap();
    let mut one = sinks.sink(&delivery(7, "books", BOOK));
    let mut two = sinks.sink(&delivery(8, "others", BOOK));
    write(&mut one, &[book(1, "a")]).await;
    // The table that is not there may be made at any time.
    bench
        .run("CREATE TRIGGER t AFTER INSERT ON books_thing BEGIN INSERT INTO gone VALUES (1); END")
        .await;
    let items = [book(2, "b")];
    tokio::select! {
        biased;
        tried = one.write(0, &items) => panic!("{tried:?}: the other sink waits until it gives up"),
        () = write(&mut two, &items) => {}
    }
    waits(one.write(0, &items).await, "the table is being changed");
}

#[tokio::test]
async fn a_unique_index_of_more_than_the_key_is_not_enough() {
    let bench = Bench::new();
    write(&mut bench.sink(BOOK), &[book(1, "a")]).await;
    let made = bench
        .ask("SELECT sql FROM sqlite_schema WHERE name = 'books_thing'")
        .await;
    let key = r#", PRIMARY KEY ("_key")"#;
    assert!(made[0].contains(key), "{made:?}");
    let plain = made[0].replace(key, "");
    let with_index = |columns: &str| {
        format!(
            "DROP TABLE books_thing; {plain}; CREATE UNIQUE INDEX mine ON books_thing {columns}"
        )
    };
    for columns in [
        "(_key, title)",
        "(_key, lower(title))",
        "(lower(_key))",
        "(_key) WHERE title <> ''",
    ] {
        bench.run(&with_index(columns)).await;
        let refused = bench.sink(BOOK).write(0, &[book(1, "a")]).await;
        waits(refused, "no unique index on the key of its rows");
    }
    bench.run(&with_index("(_key)")).await;
    write(&mut bench.sink(BOOK), &[book(1, "a")]).await;
}

#[tokio::test]
async fn a_table_and_the_index_of_another_one_may_be_alike() {
    let mut bench = Bench::new();
    bench.settings.table = "{kind}".parse().unwrap();
    let mut sink = bench.sink(BOOK);
    let kinds = ["thing", "thing_url", "thing_key", "thing-url"];
    let items = kinds.map(|kind| ItemRecord {
        schema: kind.to_owned(),
        ..record(kind, 1, 7, "{}")
    });
    write(&mut sink, &items).await;
    let tables = bench
        .ask("SELECT COUNT(*) || '' FROM sqlite_schema WHERE type = 'table' AND name LIKE 'thing%'")
        .await;
    assert_eq!(tables, ["4"]);
}

#[tokio::test]
async fn columns_are_added_and_none_is_lost() {
    let bench = Bench::new();
    write(&mut bench.sink(BOOK), &[book(1, "a")]).await;
    let grown = r#"{"required":["isbn"],"properties":{"title":{"type":"string"},"isbn":{"type":"string"}}}"#;
    let item = record("key-2", 1, 2, r#"{"title":"b","isbn":"i"}"#);
    write(&mut bench.sink(grown), &[item]).await;
    write(&mut bench.sink(BOOK), &[book(3, "c")]).await;
    let rows = bench
        .ask("SELECT title, isbn, CAST(price AS TEXT) FROM books_thing ORDER BY _key")
        .await;
    assert_eq!(rows, ["a|NULL|1.5", "b|i|NULL", "c|NULL|1.5"]);
}

#[tokio::test]
async fn a_change_of_type_waits_for_the_statement_that_mends_it() {
    let bench = Bench::new();
    write(&mut bench.sink(BOOK), &[book(1, "a")]).await;
    let mut sink = bench.sink(r#"{"properties":{"title":{"type":"integer"}}}"#);
    let item = record("key-2", 1, 2, r#"{"title":2}"#);
    let refused = sink.write(0, std::slice::from_ref(&item)).await;
    let text = refused.as_ref().unwrap_err().to_string();
    let (_, statement) = text.split_once("run: ").unwrap();
    bench.run(statement).await;
    waits(refused, "column title of table books_thing is TEXT");
    write(&mut sink, &[item]).await;
    let rows = bench
        .ask("SELECT title_old, CAST(title AS TEXT) FROM books_thing ORDER BY _key")
        .await;
    assert_eq!(rows, ["a|NULL", "NULL|2"]);
}

#[tokio::test]
async fn a_table_of_somebody_else_is_left_alone() {
    let bench = Bench::new();
    bench
        .run("CREATE TABLE books_thing (id INTEGER PRIMARY KEY, title TEXT)")
        .await;
    let mut sink = bench.sink(BOOK);
    waits(
        sink.write(0, &[book(1, "a")]).await,
        "is not one of this sink",
    );
    bench.run("ALTER TABLE books_thing RENAME TO mine").await;
    write(&mut sink, &[book(1, "a")]).await;
    assert_eq!(bench.ask("SELECT title FROM books_thing").await, ["a"]);
    assert!(bench.ask("SELECT title FROM mine").await.is_empty());
}

#[tokio::test]
async fn a_table_of_another_sink_is_left_alone() {
    let mut bench = Bench::new();
    let first = OtherSink {
        table: "books_{kind}".parse().unwrap(),
        history: true,
    };
    bench.settings.others.insert("first".to_owned(), first);
    waits(
        bench.sink(BOOK).write(0, &[book(1, "a")]).await,
        "table books_thing is that of sink first for items of the kind \"thing\"",
    );
    // A kind that the plugin does not declare.
    let unknown = ItemRecord {
        schema: "other".to_owned(),
        ..record("key-1", 1, 1, "{}")
    };
    let undeclared = Delivery {
        schemas: Vec::new(),
        ..delivery(7, "books", BOOK)
    };
    let sinks = SqlSinks::new(bench.target(), bench.settings.clone()).unwrap();
    waits(
        sinks.sink(&undeclared).write(0, &[unknown]).await,
        "table books_other is that of sink first",
    );
    // Its table of versions.
    let settings = SqlSettings {
        table: "{resource}_{kind}_history".parse().unwrap(),
        ..bench.settings.clone()
    };
    let sinks = SqlSinks::new(bench.target(), settings).unwrap();
    let mut sink = sinks.sink(&delivery(7, "books", BOOK));
    waits(
        sink.write(0, &[book(1, "a")]).await,
        "table books_thing_history is that of sink first",
    );
    assert!(!bench.path().exists());
    // Another resource has other tables.
    let mut sink = bench.sink_of(bench.target(), 8, "shops", BOOK);
    write(&mut sink, &[book(1, "a")]).await;
}

/// The table of changes of one kind has the name of the table of another kind.
#[tokio::test]
async fn a_table_that_another_sink_has_for_another_kind_is_left_alone() {
    let mut bench = Bench::new();
    let first = OtherSink {
        table: SqlSettings::change_table(),
        history: false,
    };
    bench.settings.others.insert("first".to_owned(), first);
    let sinks = SqlSinks::new(bench.target(), bench.settings.clone()).unwrap();
    let changes = Schema {
        name: "thing_changes".to_owned(),
        ..schema(BOOK)
    };
    for schemas in [
        vec![schema(BOOK), changes.clone()],
        vec![changes, schema(BOOK)],
    ] {
        let both = Delivery {
            schemas,
            ..delivery(7, "books", BOOK)
        };
        waits(
            sinks.sink(&both).write(0, &[book(1, "a")]).await,
            "table books_thing_changes is that of sink first for items of the kind \"thing\"",
        );
    }
    let mut sink = sinks.sink(&delivery(7, "books", BOOK));
    write(&mut sink, &[book(1, "a")]).await;
}

#[tokio::test]
async fn kinds_that_are_not_declared_may_have_a_schema() {
    let bench = Bench::new();
    let removed = ItemRecord {
        schema: "other".to_owned(),
        ..record("key-1", 1, 1, r#"{"title":"a"}"#)
    };
    let alike = Delivery {
        schemas: Vec::new(),
        other_kinds: Some(schema(BOOK).json_schema),
        ..delivery(7, "books", BOOK)
    };
    let sinks = SqlSinks::new(bench.target(), bench.settings.clone()).unwrap();
    write(&mut sinks.sink(&alike), &[removed]).await;
    let titles = bench.ask("SELECT title FROM books_other").await;
    assert_eq!(titles, ["a"]);
}

#[tokio::test]
async fn a_table_that_was_renamed_keeps_its_index() {
    let bench = Bench::new();
    write(&mut bench.sink(BOOK), &[book(1, "a")]).await;
    for n in 1..=2 {
        bench
            .run(&format!("ALTER TABLE books_thing RENAME TO old_{n}"))
            .await;
        write(&mut bench.sink(BOOK), &[book(1, "a")]).await;
    }
    let tables = "SELECT tbl_name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY tbl_name";
    let expected = ["books_thing", "old_1", "old_2"];
    assert_eq!(bench.ask(tables).await, expected);
}

#[tokio::test]
async fn a_table_that_is_dropped_meanwhile_is_made_again() {
    let bench = Bench::new();
    let mut sink = bench.sink(BOOK);
    write(&mut sink, &[book(1, "a")]).await;
    bench.run("DROP TABLE books_thing").await;
    write(&mut sink, &[book(2, "b")]).await;
    assert_eq!(bench.ask("SELECT title FROM books_thing").await, ["b"]);
}

#[tokio::test]
async fn a_folder_that_is_away_is_waited_for() {
    let bench = Bench::new();
    let folder = bench.folder.path().join("later");
    let target = Target::parse("sqlite:later/items.db", None, bench.folder.path()).unwrap();
    let mut sink = bench.sink_of(target, 7, "books", BOOK);
    waits(sink.write(0, &[book(1, "a")]).await, "cannot be reached");
    std::fs::create_dir(&folder).unwrap();
    write(&mut sink, &[book(1, "a")]).await;
    assert!(folder.join("items.db").exists());
}

#[tokio::test]
async fn a_file_that_was_removed_is_made_again() {
    let bench = Bench::new();
    let mut sink = bench.sink(BOOK);
    write(&mut sink, &[book(1, "a")]).await;
    for file in std::fs::read_dir(bench.folder.path()).unwrap() {
        std::fs::remove_file(file.unwrap().path()).unwrap();
    }
    write(&mut sink, &[book(2, "b")]).await;
    assert_eq!(bench.ask("SELECT title FROM books_thing").await, ["b"]);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_alone() {
    let bench = Bench::new();
    let text = "not a database, but the notes of somebody. ".repeat(50);
    std::fs::write(bench.path(), &text).unwrap();
    waits(
        bench.sink(BOOK).write(0, &[book(1, "a")]).await,
        "reports an error",
    );
    assert_eq!(std::fs::read_to_string(bench.path()).unwrap(), text);
}

#[tokio::test]
async fn a_database_without_writes_or_room_is_named() {
    let bench = Bench::new();
    write(&mut bench.sink(BOOK), &[book(1, "a")]).await;
    let mut read_only = bench.sink_with("query_only", "1");
    waits(read_only.write(0, &[book(2, "b")]).await, "is read-only");
    let mut full = bench.sink_with("max_page_count", "1");
    let large = book(2, &"x".repeat(1 << 20));
    waits(
        full.write(0, std::slice::from_ref(&large)).await,
        "no room left",
    );
    assert_eq!(bench.ask("SELECT title FROM books_thing").await, ["a"]);
    write(&mut bench.sink(BOOK), &[large]).await;
}

#[tokio::test]
async fn a_lock_of_somebody_else_is_waited_for() {
    let bench = Bench::with_timeout(Duration::from_secs(2));
    let mut sink = bench.sink(BOOK);
    write(&mut sink, &[book(1, "a")]).await;
    let mut other = bench.connect().await;
    let lock = sqlx::raw_sql("BEGIN IMMEDIATE").execute(&mut other).await;
    lock.unwrap();
    waits(
        sink.write(0, &[book(2, "b")]).await,
        "does not answer in time",
    );
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    write(&mut sink, &[book(2, "b")]).await;
    assert_eq!(
        bench
            .ask("SELECT title FROM books_thing ORDER BY _key")
            .await,
        ["a", "b"]
    );
}

#[tokio::test]
async fn hostile_names_are_names_like_others() {
    let bench = Bench::new();
    let long = "n".repeat(200);
    let names = [
        "select",
        "a\"b",
        "x\"); DROP TABLE books_thing; --",
        "_key",
        "A",
        "a",
        long.as_str(),
        "",
    ];
    let fields = |value: &dyn Fn(usize) -> String| {
        let fields = names.iter().enumerate();
        let fields = fields.map(|(n, name)| format!("{}:{}", serde_json::json!(name), value(n)));
        fields.collect::<Vec<_>>().join(",")
    };
    let properties = fields(&|_| r#"{"type":"integer"}"#.to_owned());
    let item = fields(&|n| n.to_string());
    let mut sink = bench.sink(&format!(r#"{{"properties":{{{properties}}}}}"#));
    let mut hostile = record("key-1", 1, 7, &format!("{{{item}}}"));
    write(&mut sink, std::slice::from_ref(&hostile)).await;
    let columns = "SELECT name FROM pragma_table_info('books_thing') WHERE cid >= 11";
    let columns = bench.ask(columns).await;
    assert_eq!(columns.len(), names.len(), "{columns:?}");
    let sum = columns
        .iter()
        .map(|name| format!("\"{}\"", name.replace('"', "\"\"")));
    let sum = sum.collect::<Vec<_>>().join(" + ");
    let sum = bench
        .ask(&format!("SELECT CAST({sum} AS TEXT) FROM books_thing"))
        .await;
    assert_eq!(sum, ["28"]);
    // A kind that the plugin does not declare.
    hostile.schema = "order\"; DROP TABLE books_thing; --".to_owned();
    write(&mut sink, &[hostile]).await;
    let rest = bench
        .ask("SELECT name FROM sqlite_schema WHERE name LIKE 'books_order___drop_table_books_thing_____%' AND type = 'table'")
        .await;
    assert_eq!(rest.len(), 1, "{rest:?}");
    let rest = bench.ask(&format!("SELECT _rest FROM {}", rest[0])).await;
    assert_eq!(rest.len(), 1);
}

#[tokio::test]
async fn resources_may_share_a_table() {
    let mut bench = Bench::new();
    bench.settings.table = "all_{kind}".parse().unwrap();
    bench
        .settings
        .keys
        .insert("thing".to_owned(), vec!["title".to_owned()]);
    let mut one = bench.sink(r#"{"required":["title"],"properties":{"title":{"type":"string"}}}"#);
    let mut two = bench.sink_of(bench.target(), 8, "others", BOOK);
    write(&mut one, &[record("key-1", 5, 1, r#"{"title":"a"}"#)]).await;
    write(&mut two, &[book(2, "a")]).await;
    let rows = bench
        .ask("SELECT _resource, title, CAST(price AS TEXT) FROM all_thing ORDER BY _resource")
        .await;
    assert_eq!(rows, ["books|a|NULL", "others|a|1.5"]);
    let mut three = bench.sink_of(
        bench.target(),
        9,
        "third",
        r#"{"properties":{"title":{"type":"string"},"price":{"type":"string"}}}"#,
    );
    let refused = three
        .write(0, &[record("key-3", 1, 3, r#"{"title":"a","price":"1"}"#)])
        .await;
    waits(refused, "column price of table all_thing is REAL");
}

#[tokio::test]
async fn the_table_of_rejected_items_is_for_them_alone() {
    let bench = Bench::new();
    let mut sink = bench.sink_of(bench.target(), 7, "crawler", BOOK);
    let item = ItemRecord {
        schema: "rejects".to_owned(),
        ..record("key-1", 1, 7, "{}")
    };
    let wrong = record("key-2", 1, 7, r#"{"title":1}"#);
    write_rejecting(1, &mut sink, &[item, wrong]).await;
    let rejects = "SELECT _item FROM crawler_rejects";
    assert_eq!(bench.ask(rejects).await, ["key-2"]);
}

#[tokio::test]
async fn large_items_and_nul_bytes_are_stored() {
    let bench = Bench::new();
    let mut sink = bench.sink(BOOK);
    let text = "x".repeat(4 << 20);
    write(&mut sink, &[book(1, &text)]).await;
    write(&mut sink, &[book(2, "a\0b")]).await;
    let lengths = bench
        .ask("SELECT CAST(LENGTH(CAST(title AS BLOB)) AS TEXT) FROM books_thing ORDER BY _key");
    assert_eq!(lengths.await, [text.len().to_string(), "3".to_owned()]);
}

#[tokio::test]
async fn a_transaction_ends_at_its_bounds() {
    let mut bench = Bench::new();
    bench.settings.batch_items = 3;
    bench.settings.batch_bytes = 100;
    let mut sink = bench.sink(BOOK);
    let items: Vec<ItemRecord> = (1..=5).map(|n| book(n, "a")).collect();
    assert_eq!(sink.write(0, &items).await.unwrap().n_items, 3);
    let large: Vec<ItemRecord> = (1..=2).map(|n| book(n, &"x".repeat(200))).collect();
    assert_eq!(sink.write(0, &large).await.unwrap().n_items, 1);
    assert_eq!(sink.write(0, &[]).await.unwrap(), Written::default());
}

#[tokio::test]
async fn a_check_leaves_nothing_behind() {
    let bench = Bench::new();
    let sinks = || SqlSinks::new(bench.target(), bench.settings.clone()).unwrap();
    let files = || {
        let found = std::fs::read_dir(bench.folder.path()).unwrap();
        let mut names: Vec<_> = found.map(|file| file.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let created = sinks().check().await.unwrap().would_create;
    assert_eq!(created.len(), 3, "{created:?}");
    assert!(created[0].starts_with("the file /"), "{created:?}");
    assert!(created[1].ends_with("{resource}_{kind}"), "{created:?}");
    assert!(files().is_empty(), "{:?}", files());
    bench.run("CREATE TABLE t (a)").await;
    let before = files();
    let created = sinks().check().await.unwrap().would_create;
    assert_eq!(created.len(), 2, "{created:?}");
    assert_eq!(files(), before);
    assert_eq!(bench.ask("SELECT name FROM sqlite_schema").await, ["t"]);
    assert_eq!(bench.ask("PRAGMA journal_mode").await, ["delete"]);
}

#[tokio::test]
async fn a_check_of_what_takes_no_items_tells_why() {
    let bench = Bench::new();
    let refused = async |target: Target| {
        let sinks = SqlSinks::new(target, bench.settings.clone()).unwrap();
        let error = sinks.check().await.unwrap_err();
        telemetry::chain(&error)
    };
    let target = Target::parse("sqlite:gone/items.db", None, bench.folder.path()).unwrap();
    let why = refused(target).await;
    assert!(why.contains("unable to open database file"), "{why}");
    std::fs::write(bench.path(), "not a database, but notes. ".repeat(50)).unwrap();
    let why = refused(bench.target()).await;
    assert!(why.contains("file is not a database"), "{why}");
    let socket = bench
        .folder
        .path()
        .display()
        .to_string()
        .replace('/', "%2F");
    let url = format!("postgres://user:secret@{socket}/items");
    let why = refused(Target::parse(&url, None, Path::new("/")).unwrap()).await;
    assert!(why.contains("cannot be reached"), "{why}");
    assert!(!why.contains("secret"), "{why}");
}

#[test]
fn settings_out_of_range_are_refused_by_name() {
    type Change = fn(&mut SqlSettings);
    let target = || Target::parse("sqlite:items.db", None, Path::new("/data")).unwrap();
    let refused = |change: Change| {
        let mut settings = SqlSettings::default();
        change(&mut settings);
        let refused = SqlSinks::new(target(), settings).err();
        refused.map(|error| error.to_string()).unwrap_or_default()
    };
    let cases: [(Change, &str); 7] = [
        (|_| {}, ""),
        (|settings| settings.batch_items = 0, "batch-items is 0"),
        (|settings| settings.batch_bytes = 0, "batch-bytes is 0"),
        (|settings| settings.connections = 0, "connections is 0"),
        (
            |settings| settings.timeout = Duration::ZERO,
            "timeout is 0s; it goes from 1s to 10m",
        ),
        (
            |settings| settings.max_wait = Duration::from_secs(61),
            "max-wait is 1m 1s",
        ),
        (
            |settings| settings.batch_items = 10_001,
            "batch-items is 10001; it goes from 1 to 10000",
        ),
    ];
    for (change, text) in cases {
        let found = refused(change);
        assert_eq!(found.is_empty(), text.is_empty(), "{found}");
        assert!(found.starts_with(text), "{found}");
    }
}
