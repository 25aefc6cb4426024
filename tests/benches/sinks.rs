//! Sinks beside one that takes no item: pages per second on the same book shop, as a share of those without items.
//!
//! ```text
//! tests/run bench sinks
//! CRAWLER_BIN=PROGRAM cargo bench -p crawler-tests --bench sinks
//! ```
//!
//! nginx serves the shop: lists of 100 books, and a page for each book, which gives one item. A crawl is measured from the
//! start of its process to its end, at which the sink has all items. The sink that takes none costs what the outbox costs.
//! The sinks take turns; the first round warms up and is not counted. SQLite and PostgreSQL write to the disk before they
//! answer. PostgreSQL shares the processors with the crawl, so it does worse here than on a machine of its own. All data
//! roots and items stay until the end: some hundreds of MB for each crawl.
//! Settings, with their defaults:
//!
//! ```text
//! CRAWLER_SINKS_BOOKS=100000   books of the shop
//! CRAWLER_SINKS_ROUNDS=3       rounds that are counted
//! ```

#![expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crawler_tests::nginx::Server;
use crawler_tests::peers::{median, order};
use crawler_tests::postgres::Postgres;
use crawler_tests::process::{Home, Process};
use crawler_tests::{guests, is_benchmark, number};

/// Number of books that one list leads to.
const BOOKS_OF_A_LIST: u64 = 100;
/// Time that one crawl may take.
const DEADLINE: Duration = Duration::from_secs(1_200);
/// Sinks, the first of which takes no item: their names, and their tables of the config file. `FOLDER` stands for a folder
/// of the crawl, and `ROUND` for a word that each round has for itself.
const SINKS: [(&str, &str); 5] = [
    ("none", "url = \"file://FOLDER\"\nonly = [\"kind=nothing\"]"),
    ("JSON lines", "url = \"file://FOLDER\""),
    ("SQLite", "url = \"sqlite://FOLDER/items.db\""),
    (
        "PostgreSQL",
        "url = \"POSTGRES\"\ntable = \"ROUND_{resource}_{kind}\"",
    ),
    ("Parquet", "url = \"file://FOLDER\"\nformat = \"parquet\""),
];

fn main() -> ExitCode {
    if !is_benchmark("sinks") {
        return ExitCode::SUCCESS;
    }
    let home = Home::new();
    let shop = home.path().join("shop");
    let n_books = number("CRAWLER_SINKS_BOOKS", 100_000);
    open_shop(&shop, n_books).expect("a shop can be written");
    let Some(server) = Server::start(&shop) else {
        return ExitCode::SUCCESS;
    };
    let database = Postgres::start_durable();
    let mut rates: [Vec<f64>; SINKS.len()] = Default::default();
    for round in 0..=number("CRAWLER_SINKS_ROUNDS", 3) {
        for at in order(SINKS.len(), round as usize) {
            let (name, table) = SINKS[at];
            let table = match &database {
                Some(database) => table.replace("POSTGRES", &database.url("postgres")),
                None if table.contains("POSTGRES") => continue,
                None => table.to_owned(),
            };
            let table = table.replace("ROUND", &format!("round{round}"));
            let folder = home.path().join(format!("{round}-{at}"));
            let took = crawl(&home, &folder, &server, &table, n_books);
            let rate = n_pages(n_books) as f64 / took.as_secs_f64();
            println!("round {round}, {name}: {rate:.0} pages/s");
            if round > 0 {
                rates[at].push(rate);
            }
        }
    }
    println!("\n| sink | pages/s | share of a crawl without items |\n|---|---|---|");
    let [without, ..] = &rates;
    for ((name, _), of_sink) in SINKS.iter().zip(&rates) {
        if !of_sink.is_empty() {
            let shares = of_sink.iter().zip(without).map(|(own, none)| own / none);
            let (rate, share) = (median(of_sink.iter().copied()), median(shares));
            println!("| {name} | {rate:.0} | {share:.2} |");
        }
    }
    ExitCode::SUCCESS
}

fn n_pages(n_books: u64) -> u64 {
    n_books + n_books.div_ceil(BOOKS_OF_A_LIST)
}

/// Writes the pages of a shop, as the plugin `books` reads them.
fn open_shop(folder: &Path, n_books: u64) -> std::io::Result<()> {
    fs::create_dir_all(folder.join("catalogue"))?;
    fs::create_dir(folder.join("book"))?;
    let n_lists = n_books.div_ceil(BOOKS_OF_A_LIST);
    for list in 0..n_lists {
        let mut shelf = String::new();
        for book in list * BOOKS_OF_A_LIST..n_books.min((list + 1) * BOOKS_OF_A_LIST) {
            let link = format!("<a href=\"../book/{book}.html\">Book {book}</a>");
            let _infallible = writeln!(shelf, "<article class=\"book\"><h3>{link}</h3></article>");
            let path = folder.join(format!("book/{book}.html"));
            fs::write(path, page(&of_book(book)))?;
        }
        if list + 1 < n_lists {
            let next = list + 2;
            let _infallible = writeln!(
                shelf,
                "<ul><li class=\"next\"><a href=\"page-{next}.html\">next</a></li></ul>"
            );
        }
        let path = folder.join(format!("catalogue/page-{}.html", list + 1));
        fs::write(path, page(&shelf))?;
    }
    Ok(())
}

fn page(body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head><meta charset=\"utf-8\"><title>Shop</title></head>\n<body>\n{body}</body>\n</html>\n"
    )
}

fn of_book(n: u64) -> String {
    let description = "A day, and a life, and what the sea has to say about it. ".repeat(8);
    let (pounds, pence, stars, stock) = (n % 60 + 5, n % 100, n % 5 + 1, n % 20 + 1);
    format!(
        "<h1>Book {n}</h1>\n<p class=\"author\">Author {author}</p>\n<p class=\"price\">£{pounds}.{pence:02}</p>\n\
         <p class=\"stock\">In stock ({stock})</p>\n<p class=\"rating\" data-stars=\"{stars}\"></p>\n\
         <ul class=\"tags\"><li>fiction</li><li>sea</li></ul>\n<div id=\"description\"><p>{description}</p></div>\n",
        author = n % 977,
    )
}

/// Crawls the shop with a worker that has a new data root in a new folder, and returns the time that it took. The folder stays
/// until the end: ext4 looks at each file that was deleted within minutes before it makes another.
fn crawl(home: &Home, folder: &Path, server: &Server, sink: &str, n_books: u64) -> Duration {
    let items = folder.join("items");
    fs::create_dir_all(&items).expect("a folder can be made");
    let sink = sink.replace("FOLDER", &items.display().to_string());
    let start = server.base.join("catalogue/page-1.html");
    let config = format!(
        "[[plugin]]
path = {plugin:?}

[[resource]]
name = \"books\"
params = {{ start = {start:?} }}
concurrency = 64
delay = \"0s\"
max-depth = 100000
sink = [\"out\"]

[sink.out]
{sink}
",
        plugin = guests::guest("books"),
        start = start.expect("it is a path").as_str(),
    );
    let path = folder.join("crawler.toml");
    fs::write(&path, config).expect("a config can be written");
    let mut command = home.command(["worker", "--cluster=false", "--allow-networks=127.0.0.0/8"]);
    command.arg("--config").arg(&path);
    command.arg("--data").arg(folder.join("data"));
    let begun = Instant::now();
    let ended = Process::start(&mut command).wait(DEADLINE);
    let took = begun.elapsed();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let end = format!(" pages={} items={n_books}\n", n_pages(n_books));
    let is_whole = ended.stderr.contains(&end) && !ended.stderr.contains("rejected");
    assert!(is_whole, "{}", ended.stderr);
    took
}
