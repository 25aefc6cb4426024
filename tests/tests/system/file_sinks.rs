//! Sinks of files in partitions, read by programs that know nothing of the crawler: pyarrow and DuckDB.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use crawler_testing::s3::{ACCESS_KEY, BUCKET, FaultPlan, S3Server, SECRET_KEY};
use crawler_tests::cluster::faults;
use crawler_tests::http::block_on;
use crawler_tests::process::{Home, Process};
use crawler_tests::python::python;
use crawler_tests::{PATIENCE, until};
use futures::TryStreamExt as _;
use object_store::aws::AmazonS3Builder;
use object_store::{ObjectMeta, ObjectStore as _, ObjectStoreExt as _};
use serde_json::Value;

use crate::server::Server;
use crate::sites::{self, Gate};

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
fn a_check_of_a_folder_that_is_missing_fails() {
    let home = Home::new();
    let lake = home.path().join("lake").display().to_string();
    home.write(
        "crawler.toml",
        &format!("[sink.lake]\nurl = 'file://{lake}'\n"),
    );
    let checked = home.run(["sink", "check", "lake"]);
    assert_eq!(checked.code, Some(1), "{}", checked.stdout);
    let why = format!("sink lake takes no items: {lake} does not exist or is not a folder");
    assert!(checked.stderr.contains(&why), "{}", checked.stderr);
}

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

    check_readers(&python, [&lake, &sheets], &known);
}

/// Checks that each reader finds the known items once.
fn check_readers(python: &Path, [lake, sheets]: [&str; 2], known: &BTreeSet<[String; 4]>) {
    let mut command = Command::new(python);
    command.args(["-c", READ, lake, sheets]);
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
        assert_eq!(
            rows.into_iter().collect::<BTreeSet<_>>(),
            *known,
            "{reader}"
        );
    }
}

/// Returns the number of files that readers see in a folder, and those below it.
fn n_files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("it is there");
    let numbers = entries.map(|entry| {
        let entry = entry.expect("it can be read");
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        match entry.file_type().expect("it has one").is_dir() {
            _ if is_hidden => 0,
            true => n_files(&entry.path()),
            false => 1,
        }
    });
    numbers.sum()
}

#[test]
fn independent_readers_find_each_item_once_after_compaction() {
    let home = Home::new();
    let Some(python) = python(home.path(), "duckdb", &PACKAGES) else {
        return;
    };
    let folders = ["lake", "sheets"].map(|name| {
        let folder = home.path().join(name);
        std::fs::create_dir(&folder).expect("the home is new");
        folder
    });
    let [lake, sheets] = [0, 1].map(|place| folders[place].display().to_string());
    let config = format!(
        "[sink.lake]\nurl = 'file://{lake}'\nformat = 'parquet'\nmax-wait = '0s'\n\n\
         [sink.sheets]\nurl = 'file://{sheets}'\nformat = 'csv'\npartition = '{{kind}}'\nmax-wait = '0s'\n"
    );
    home.write("crawler.toml", &config);
    let gates = [Gate::closed(), Gate::closed()];
    let web = sites::chain_of_gates(N_PAGES, [(7, &gates[0]), (14, &gates[1])]).open();
    let server = Server::start_in(home, &[]);
    server.push("puppet", &[]);
    server.add("books", &web.url("/0"), &["--sink=lines,lake,sheets"]);
    // Each gate holds items back until the ones before it have a file, so each folder has one file more than there are gates.
    for (gate, n_files_before) in gates.iter().zip(1..) {
        until("files of items", PATIENCE, || {
            let is_there = |folder| n_files(folder) >= n_files_before;
            folders.iter().all(|folder| is_there(folder)).then_some(())
        });
        gate.open();
    }
    server.finished("books");
    let items = server.ok(&["items", "books", "--envelope"]);
    let known: BTreeSet<[String; 4]> = items.lines().map(of_envelope).collect();
    assert_eq!(known.len(), N_PAGES);

    for (name, folder) in ["lake", "sheets"].into_iter().zip(&folders) {
        let before = n_files(folder);
        assert!(before > gates.len(), "{before} files");
        let foreign = folder.join("notes.txt");
        std::fs::write(&foreign, "mine").expect("the folder is there");
        let command = ["sink", "compact", name, "--min-files=2"];
        let young = server.ok(&command);
        let nothing = format!("sink {name}: 0 files of 0 B became 0; ");
        assert!(young.starts_with(&nothing), "{young}");
        let why = format!("; {before} small files left, younger than --min-age");
        assert!(young.trim_end().ends_with(&why), "{young}");
        let command = [&command[..], &["--min-age=0s"]].concat();
        let dry = server.ok(&[&command[..], &["--dry-run"]].concat());
        assert!(dry.contains(" would become one"), "{dry}");
        assert_eq!(n_files(folder), before + 1);
        let done = server.ok(&command);
        assert!(done.contains(" are now "), "{done}");
        // A crawl over midnight has two days.
        let after = n_files(folder) - 1;
        assert!((1..=2).contains(&after), "{after} files are left: {done}");
        assert!(foreign.exists());
        std::fs::remove_file(&foreign).expect("it is there");
    }
    check_readers(&python, [&lake, &sheets], &known);
    let refused = server.cli(&["sink", "compact", "lake", "--min-files=1"]);
    let why = "--min-files is 1; it goes from 2 to 4000";
    assert_ne!(refused.code, Some(0));
    assert!(refused.stderr.contains(why), "{}", refused.stderr);
}

#[test]
fn items_in_a_bucket_with_faults_are_there_once_after_a_kill() {
    let bucket = S3Server::start();
    bucket.set_faults(FaultPlan {
        lost_answer: 0.3,
        unavailable: 0.1,
        ..faults()
    });
    let home = Home::new();
    let endpoint = bucket.endpoint();
    let config = format!(
        "[sink.lake]\nurl = 's3://{BUCKET}/lake'\npartition = '{{resource}}'\nmax-wait = '0s'\n\
         bucket = {{ endpoint = '{endpoint}', access-key = '{ACCESS_KEY}', secret-key-file = 'key', retry-timeout = '10s' }}\n"
    );
    home.write("crawler.toml", &config);
    home.write("key", SECRET_KEY);
    home.ok(["sink", "check", "lake"]);
    let gates = [Gate::closed(), Gate::closed()];
    let web = sites::chain_of_gates(N_PAGES, [(7, &gates[0]), (14, &gates[1])]).open();
    let mut server = Server::start_in(home, &[]);
    server.push("puppet", &[]);
    server.add("books", &web.url("/0"), &["--sink=lines,lake"]);
    // At each kill some items are in the bucket, and others may be on their way.
    for (gate, n_items_before) in gates.iter().zip([4, 11]) {
        until("items in the bucket", PATIENCE, || {
            (records_in(&bucket).len() >= n_items_before).then_some(())
        });
        server = server.killed_and_started_again();
        gate.open();
    }
    server.finished("books");
    let lines = server.ok(&["items", "books", "--envelope"]);
    let known: BTreeSet<[String; 4]> = lines.lines().map(of_envelope).collect();
    assert_eq!(known.len(), N_PAGES);
    let records = records_in(&bucket);
    assert_eq!(records.len(), N_PAGES);
    let found = records.iter().map(|line| of_envelope(line));
    assert_eq!(found.collect::<BTreeSet<_>>(), known);
}

/// Returns the lines of all files of the sink in a bucket, as a program would read them that knows nothing of the crawler.
fn records_in(bucket: &S3Server) -> Vec<String> {
    let store = AmazonS3Builder::new()
        .with_endpoint(bucket.endpoint())
        .with_allow_http(true)
        .with_bucket_name(BUCKET)
        .with_access_key_id(ACCESS_KEY)
        .with_secret_access_key(SECRET_KEY)
        .build()
        .expect("it is a bucket");
    block_on(async {
        let files = store.list(Some(&"lake/books".into()));
        let files: Vec<ObjectMeta> = files.try_collect().await.expect("it can be listed");
        let mut lines = Vec::new();
        for file in files {
            let bytes = store.get(&file.location).await.expect("it is there");
            let bytes = bytes.bytes().await.expect("it is whole");
            let text = String::from_utf8_lossy(&bytes).into_owned();
            lines.extend(text.lines().map(str::to_owned));
        }
        lines
    })
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
