//! The feed of changes in sinks: a shop is edited between five runs, and the program is killed in each. The table that is
//! rebuilt from the lines, and from the rows of changes, is the shop, and the history has the shop at the end of each run.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crawler_tests::http::block_on;
use crawler_tests::process::Home;
use crawler_tests::random::Random;
use crawler_tests::up::Up;
use crawler_tests::web::{Asked, Site, Web};
use crawler_tests::{PATIENCE, guests, until};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Row as _};

const N_RUNS: u64 = 5;
/// Number of edits before each run, so that there are 1 000.
const N_EDITS: usize = 200;
/// Numbers that books may have.
const N_BOOKS: u64 = 400;
const N_SHELVES: u64 = 10;
const N_KILLS: usize = 2;
/// Number of requests before a kill. All kills of a run together come before it can be over.
const BETWEEN: usize = 40;
/// Delay before each answer.
const PACE: Duration = Duration::from_millis(10);
/// Deadline of a run, with a program that was built without optimisation on a busy machine.
const DEADLINE: Duration = Duration::from_secs(300);

/// Prices of the books, by their keys.
type Prices = BTreeMap<String, u64>;

/// Shop that the site shows as it is at the moment.
#[derive(Clone, Default)]
struct Shop(Arc<Mutex<Prices>>);

impl Shop {
    fn prices(&self) -> Prices {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Puts a book into the shop, takes one out, or gives it another price.
    fn edit(&self, random: &mut Random) {
        let (book, price) = (
            format!("book-{:03}", random.below(N_BOOKS)),
            random.below(1_000),
        );
        let is_out = random.below(4) == 0;
        let mut prices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match prices.contains_key(&book) && is_out {
            true => prices.remove(&book),
            false => prices.insert(book, price),
        };
    }

    /// Opens its site: shelves that list books, and a page for each book, whose address has the price.
    fn open(&self) -> Web {
        let shelves = (0..N_SHELVES).map(
            |shelf| json!({"url": format!("/shelf/{shelf}"), "state": format!("shelf-{shelf}")}),
        );
        let shelves = Value::from(shelves.collect::<Vec<Value>>()).to_string();
        let shop = self.clone();
        let shelf = move |asked: Asked| {
            let prices = shop.prices();
            let books = prices
                .iter()
                .filter(|(book, _)| shelf_of(book) == asked.path);
            let books = books.map(|(book, price)| {
                json!({"url": format!("/book/{book}/{price}"), "rule": "leaf", "state": book})
            });
            let page = Value::from(books.collect::<Vec<Value>>()).to_string();
            async move {
                tokio::time::sleep(PACE).await;
                page
            }
        };
        let book = |_asked: Asked| async {
            tokio::time::sleep(PACE).await;
            "a book"
        };
        let site = Site::new().page("/", shelves);
        site.handle("/shelf/*", shelf)
            .handle("/book/*", book)
            .open()
    }
}

fn shelf_of(book: &str) -> String {
    let number: u64 = book.trim_start_matches("book-").parse().expect("a number");
    format!("/shelf/{}", number % N_SHELVES)
}

/// A change, as a sink got it.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    run: u64,
    number: u64,
    change: String,
    key: String,
    /// Price before, if there was one.
    old: Option<u64>,
    /// Price from then on, if there is one.
    new: Option<u64>,
}

impl Told {
    fn of(run: u64, record: &Value) -> Self {
        let text = |name: &str| record[name].as_str().expect("it is a text").to_owned();
        Self {
            run,
            number: record["number"].as_u64().expect("it is a number"),
            change: text("change"),
            key: text("key"),
            old: price_of(&record["old"]),
            new: price_of(&record["item"]),
        }
    }
}

/// Returns the price in the address of a book, if the item is one.
fn price_of(item: &Value) -> Option<u64> {
    let (_, price) = item["url"].as_str()?.rsplit_once('/')?;
    price.parse().ok()
}

/// Applies the changes of a run to a table, which has to be as each of them says that it was.
fn apply(table: &mut Prices, changes: &[Told]) {
    for told in changes.iter().filter(|told| told.key.starts_with("book-")) {
        let before = table.get(&told.key).copied();
        assert_eq!(before, told.old, "{told:?}");
        match (told.change.as_str(), told.new) {
            ("added" | "changed", Some(price)) => table.insert(told.key.clone(), price),
            ("removed", None) => table.remove(&told.key),
            _ => panic!("{told:?}"),
        };
    }
}

/// Checks that each run has its changes once and in order, and that they lead from one state of the shop to the next.
fn check(changes: &[Told], shops: &[Prices]) {
    let mut table = Prices::new();
    for (run, shop) in (1..).zip(shops) {
        let of_run: Vec<Told> = changes
            .iter()
            .filter(|told| told.run == run)
            .cloned()
            .collect();
        let numbers: Vec<u64> = of_run.iter().map(|told| told.number).collect();
        let expected: Vec<u64> = (0..of_run.len() as u64).collect();
        assert_eq!(numbers, expected, "run {run}");
        apply(&mut table, &of_run);
        assert_eq!(&table, shop, "run {run}");
    }
}

/// Returns the line files of a sink in the order in which they were written.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: BTreeSet<(u64, u64, PathBuf)> = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the folder is there") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.file_stem().and_then(|name| name.to_str());
            let numbers = name.and_then(|name| name.split_once('-'));
            let (epoch, n) = numbers.expect("a file is EPOCH-N.jsonl");
            let number = |text: &str| text.parse::<u64>().expect("it is a number");
            found.insert((number(epoch), number(n), path));
        }
    }
    found.into_iter().map(|(_, _, path)| path).collect()
}

/// Returns the changes in line files, each of which is there once.
fn in_lines(folder: &Path) -> Vec<Told> {
    let mut keys = BTreeSet::new();
    let mut changes = Vec::new();
    for file in files(folder) {
        let text = std::fs::read_to_string(&file).expect("the file can be read");
        for line in text.lines() {
            let record: Value = serde_json::from_str(line).expect("each line is JSON");
            assert!(keys.insert(record["key"].to_string()), "twice: {line}");
            let run = record["run"].as_u64().expect("it is a number");
            changes.push(Told::of(run, &record["item"]));
        }
    }
    changes
}

/// Returns the results of a query, whose columns are texts.
fn ask(file: &Path, sql: &str) -> Vec<Vec<String>> {
    block_on(async {
        let options = SqliteConnectOptions::new().filename(file);
        let mut connection = options.connect().await.expect("the file is a database");
        let query = sqlx::query::<sqlx::Sqlite>(AssertSqlSafe(sql));
        let found = query.fetch_all(&mut connection).await;
        let found = found.unwrap_or_else(|e| panic!("{sql}: {e}"));
        let rows = found.iter().map(|row| {
            let cells = 0..row.len();
            cells.map(|n| row.get::<String, usize>(n)).collect()
        });
        rows.collect()
    })
}

/// Returns the changes in the table of a database.
fn in_rows(file: &Path) -> Vec<Told> {
    let sql = "SELECT CAST(_run AS TEXT), json_object('change', change, 'number', number, 'key', key, 'old', json(COALESCE(old, 'null')), 'item', json(COALESCE(item, 'null'))) FROM web_visit_changes ORDER BY _run, number";
    let rows = ask(file, sql).into_iter();
    let told = rows.map(|row| {
        let record: Value = serde_json::from_str(&row[1]).expect("it is JSON");
        Told::of(row[0].parse().expect("it is a number"), &record)
    });
    told.collect()
}

/// Returns the time of the last change so far.
fn last_change(file: &Path) -> String {
    let sql = "SELECT MAX(MAX(_valid_from), MAX(COALESCE(_valid_to, ''))) FROM web_visit_history";
    ask(file, sql)[0][0].clone()
}

/// Returns the books that were valid at a moment.
fn valid_at(file: &Path, at: &str) -> Prices {
    let sql = format!(
        "SELECT _natural_key, url FROM web_visit_history WHERE _natural_key LIKE 'book-%' AND _valid_from <= '{at}' AND (_valid_to IS NULL OR _valid_to > '{at}')"
    );
    let rows = ask(file, &sql);
    let n_rows = rows.len();
    let books = rows.into_iter().map(|row| {
        let price = price_of(&json!({"url": row[1]}));
        (row[0].clone(), price.expect("an address has a price"))
    });
    let books: Prices = books.collect();
    assert_eq!(books.len(), n_rows, "an item has one valid version at {at}");
    books
}

#[test]
fn a_table_rebuilt_from_the_feed_is_the_shop_whatever_is_killed() {
    let mut random = Random::new("feed of changes");
    let shop = Shop::default();
    let web = shop.open();
    let home = Home::new();
    let [lines, db] = ["lines", "db"].map(|name| {
        let folder = home.path().join(name);
        std::fs::create_dir(&folder).expect("the home is new");
        folder
    });
    let config = format!(
        "[sink.feed]\nurl = \"file://{}\"\nwhat = \"changes\"\n\n\
         [sink.db]\nurl = \"sqlite:db/shop.db\"\nkeys = {{ visit = [\"state\"] }}\nhistory = true\nmax-wait = \"200ms\"\n\n\
         [sink.db-changes]\nurl = \"sqlite:db/shop.db\"\nwhat = \"changes\"\nmax-wait = \"200ms\"\n",
        lines.display()
    );
    home.write("crawler.toml", &config);
    let file = db.join("shop.db");
    let mut up = Up::start(&home, &[]);
    let puppet = guests::guest("puppet").display().to_string();
    up.ok(["plugin", "push", &puppet]);
    let refused = up.cli(["resource", "add", "web", "--plugin=puppet", "--sink=feed"]);
    assert!(
        refused.stderr.contains("needs changes"),
        "{}",
        refused.stderr
    );

    let (mut shops, mut ends) = (Vec::new(), Vec::new());
    for run in 1..=N_RUNS {
        (0..N_EDITS).for_each(|_| shop.edit(&mut random));
        let n_before = web.log().len();
        match run {
            1 => {
                let start = format!("--param=start={}", web.url("/"));
                let sinks = "--sink=lines,feed,db,db-changes";
                let add = ["resource", "add", "web", "--plugin=puppet", &start, sinks];
                up.ok(add.into_iter().chain(["--changes=30", "--concurrency=4"]))
            }
            _ => up.ok(["resource", "restart", "web"]),
        };
        for n in 1..=N_KILLS {
            let target = n_before + n * BETWEEN;
            until("more requests", PATIENCE, || {
                (web.log().len() >= target).then_some(())
            });
            up.process.kill();
            up = Up::start(&home, &[]);
        }
        up.finished("web", DEADLINE);
        shops.push(shop.prices());
        ends.push(last_change(&file));
    }

    let from_lines = in_lines(&lines);
    check(&from_lines, &shops);
    assert_eq!(in_rows(&file), from_lines);
    for (end, shop) in ends.iter().zip(&shops) {
        assert_eq!(&valid_at(&file, end), shop, "at {end}");
    }
    // It is the feed that the command line shows.
    for run in 1..=N_RUNS {
        let listed = up.ok(["items", "web", "--changes", &format!("--run={run}")]);
        let of_run = from_lines.iter().filter(|told| told.run == run);
        let keys: Vec<&str> = of_run.map(|told| told.key.as_str()).collect();
        let listed = listed.lines().map(|line| {
            let change: Value = serde_json::from_str(line).expect("each line is JSON");
            change["key"].as_str().expect("it is a text").to_owned()
        });
        assert_eq!(listed.collect::<Vec<String>>(), keys, "run {run}");
    }
    up.stop();
}
