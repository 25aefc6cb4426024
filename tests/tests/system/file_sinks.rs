//! Sinks of files in partitions, read by programs that know nothing of the crawler: pyarrow and DuckDB.

use std::collections::BTreeSet;
use std::process::Command;

use crawler_tests::PATIENCE;
use crawler_tests::process::{Home, Process};
use crawler_tests::python::python;
use serde_json::Value;

use crate::server::Server;
use crate::sites;

/// The independent readers.
const PACKAGES: [&str; 2] = ["duckdb==2.0.1", "pyarrow==26.0.1"];
const N_PAGES: usize = 20;

/// Program that prints the rows of the folders `lake` and `sheets` as each reader finds them, and the type of a column.
const READ: &str = "
import duckdb, json, sys
import pyarrow.dataset as dataset

def show(rows):
    print(json.dumps([['' if value is None else str(value) for value in row] for row in rows]))

lake, sheets = sys.argv[1:]
columns = ['_key', 'url', 'depth', 'state']
table = dataset.dataset(lake, format='parquet', partitioning='hive').to_table()
print(table.schema.field('_at').type)
show([row[column] for column in columns] for row in table.to_pylist())
for source in (
    f\"read_parquet('{lake}/**/*.parquet', hive_partitioning=true)\",
    f\"read_csv('{sheets}/**/*.csv', header=true, all_varchar=true)\",
):
    show(duckdb.sql(f\"SELECT {', '.join(columns)} FROM {source}\").fetchall())
dates = duckdb.sql(f\"SELECT DISTINCT dt FROM read_parquet('{lake}/**/*.parquet', hive_partitioning=true)\")
print(len(dates.fetchall()) > 0)
";

#[test]
fn independent_readers_find_each_item_once() {
    let home = Home::new();
    let Some(python) = python(home.path(), "duckdb", &PACKAGES) else {
        return;
    };
    let [lake, sheets] = ["lake", "sheets"].map(|name| {
        let folder = home.path().join(name);
        std::fs::create_dir(&folder).expect("the home is new");
        folder.display().to_string()
    });
    let config = format!(
        "[sink.lake]\nurl = 'file://{lake}'\nformat = 'parquet'\n\n\
         [sink.sheets]\nurl = 'file://{sheets}'\nformat = 'csv'\npartition = '{{kind}}'\nmax-wait = '0s'\n"
    );
    home.write("crawler.toml", &config);
    let checked = home.ok(["sink", "check", "lake"]);
    assert_eq!(
        checked,
        format!(
            "sink lake takes items: parquet in {lake}\n\
             a crawl would create files of parquet: {lake}/{{resource}}/{{kind}}/dt={{date}}/RESOURCE-ID-SHARD-NUMBER-DIGEST.parquet\n"
        )
    );

    let web = sites::chain(N_PAGES).open();
    let server = Server::start_in(home, &[]);
    server.push("puppet", &[]);
    server.add("books", &web.url("/0"), &["--sink=lines,lake,sheets"]);
    server.finished("books");
    let items = server.ok(&["items", "books", "--envelope"]);
    let known: BTreeSet<[String; 4]> = items.lines().map(of_envelope).collect();
    assert_eq!(known.len(), N_PAGES);

    let mut command = Command::new(&python);
    command.args(["-c", READ, &lake, &sheets]);
    let ended = Process::start(&mut command).wait(PATIENCE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let lines: Vec<&str> = ended.stdout.lines().collect();
    let [at, pyarrow, parquet, csv, has_dates] = lines[..] else {
        panic!("{}", ended.stdout);
    };
    assert_eq!((at, has_dates), ("timestamp[ms, tz=UTC]", "True"));
    for (reader, rows) in [
        ("pyarrow", pyarrow),
        ("DuckDB", parquet),
        ("DuckDB, CSV", csv),
    ] {
        let rows: Vec<[String; 4]> = serde_json::from_str(rows).expect("rows of texts");
        assert_eq!(rows.len(), N_PAGES, "{reader}");
        assert_eq!(rows.into_iter().collect::<BTreeSet<_>>(), known, "{reader}");
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
