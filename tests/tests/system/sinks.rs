//! Sinks that an operator declares: a crawl whose items go to the data root and to databases.

use std::collections::BTreeSet;
use std::path::Path;

use crawler_tests::process::Home;
use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Row as _};

use crate::server::{Server, block_on};
use crate::sites;

const N_PAGES: usize = 20;

const CONFIG: &str = "[sink.db]\nurl = 'sqlite:db/items.db'\n\n\
    [sink.few]\nurl = 'sqlite:db/few.db'\ntable = 'pages'\nfields = ['url=address']\n\
    keys = { visit = ['address'] }\n";

#[test]
fn a_declared_database_has_the_items_of_the_data_root() {
    let home = Home::new();
    home.write("crawler.toml", CONFIG);
    std::fs::create_dir(home.path().join("db")).expect("the home is new");
    let checked = home.ok(["sink", "check", "db"]);
    assert_eq!(
        checked,
        "sink db takes items: tables in sqlite:db/items.db\n\
         a crawl would create the file db/items.db\n\
         a crawl would create a table for each kind of items, {resource}_{kind}\n\
         a crawl would create a table for items that do not fit, crawler_rejects\n"
    );

    let web = sites::chain(N_PAGES).open();
    let server = Server::start_in(home, &[]);
    server.push("puppet", &[]);
    server.add("books", &web.url("/0"), &["--sink=lines,db,few"]);
    server.finished("books");
    let items = server.ok(&["items", "books", "--envelope"]);
    let known: Vec<[String; 4]> = items.lines().map(of_envelope).collect();
    assert_eq!(known.len(), N_PAGES);
    let known: BTreeSet<[String; 4]> = known.into_iter().collect();
    let folder = server.home.path().join("db");
    let columns = ["_item", "url", "CAST(depth AS TEXT)", "state"];
    let rows = rows(&folder.join("items.db"), columns, "books_visit");
    assert_eq!(rows.len(), N_PAGES);
    assert_eq!(rows.into_iter().collect::<BTreeSet<_>>(), known);
    let addresses = self::rows(&folder.join("few.db"), ["address"], "pages");
    let addresses: BTreeSet<String> = addresses.into_iter().map(|[address]| address).collect();
    let known = known.into_iter().map(|[_, url, _, _]| url);
    assert_eq!(addresses, known.collect());
}

#[test]
fn a_database_that_takes_no_items_is_named_by_a_check() {
    let home = Home::new();
    let config = "[sink.db]\nurl = 'postgres://ann@127.0.0.1:1/items'\npassword-file = 'secret'\n";
    home.write("crawler.toml", config);
    let check = || home.run(["sink", "check", "db"]);
    let ended = check();
    assert_eq!(ended.code, Some(1));
    let why = "sink db cannot be used: cannot read secret";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
    home.write("secret", "hunter2\n");
    let ended = check();
    assert_eq!(ended.code, Some(1));
    let why = "sink db takes no items: cannot write items to postgres://127.0.0.1:1/items: \
        the database cannot be reached or closed the connection";
    assert!(ended.stderr.contains(why), "{}", ended.stderr);
    let listed = home.ok(["sink", "list", "-o", "json"]);
    let shown = home.ok(["config", "show"]);
    assert!(shown.contains("password from secret"), "{shown}");
    for text in [ended.stderr, listed, shown] {
        assert!(!text.contains("hunter2"), "{text}");
        assert!(!text.contains("ann@"), "{text}");
    }
}

/// Returns key, URL, depth and state of a line with an item.
fn of_envelope(line: &str) -> [String; 4] {
    let record: Value = serde_json::from_str(line).expect("each line is JSON");
    let item = &record["item"];
    [&record["key"], &item["url"], &item["depth"], &item["state"]].map(|value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

/// Returns columns of all rows of a table, which are texts.
fn rows<const N: usize>(file: &Path, columns: [&str; N], table: &str) -> Vec<[String; N]> {
    block_on(async {
        let options = SqliteConnectOptions::new().filename(file);
        let mut connection = options.connect().await.expect("the file is a database");
        let sql = format!("SELECT {} FROM {table}", columns.join(", "));
        let found = sqlx::query::<sqlx::Sqlite>(sqlx::AssertSqlSafe(sql))
            .fetch_all(&mut connection)
            .await
            .expect("the table is there");
        let rows = found.iter();
        rows.map(|row| std::array::from_fn(|n| row.get::<String, usize>(n)))
            .collect()
    })
}
