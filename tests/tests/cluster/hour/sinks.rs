//! Items of a resource by run, as each of its sinks has them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::http::{block_on, text};
use crawler_tests::web::Method;
use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Row as _};

/// Flag that names all sinks.
pub(super) const SINKS: &str = "--sink=lines,files,db";

/// Number of items by run.
pub(super) type Items = BTreeMap<u64, u64>;

/// Makes the folders of the sinks, and declares them in the config file of all nodes. Pages that a site holds back
/// do not time out.
pub(super) fn declare(cluster: &Cluster) {
    let home = cluster.home.path();
    for folder in ["files", "db"] {
        std::fs::create_dir(home.join(folder)).expect("the home is new");
    }
    let files = home.join("files");
    let config = format!(
        "[fetch]\ntimeout = '10m'\nfirst-byte-timeout = '10m'\n\n\
         [sink.files]\nurl = 'file://{}'\n\n[sink.db]\nurl = 'sqlite:db/items.db'\n",
        files.display()
    );
    cluster.home.write("crawler.toml", &config);
}

/// Returns the items of a resource in the data root, of these runs.
#[track_caller]
pub(super) fn in_data_root(master: &Node, name: &str, runs: &Items) -> Items {
    let items = runs.keys().map(|run| {
        let path = format!("/crawler/resource/{name}/items?envelope&run={run}");
        let answer = master.http(Method::GET, &path, None);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.text
    });
    let items: String = items.collect();
    by_run(items.lines())
}

/// Returns the items of a resource in the line files of the sink `files`.
#[track_caller]
pub(super) fn in_files(cluster: &Cluster, id: &str) -> Items {
    let folder = cluster.home.path().join("files").join(id);
    let files = entries(&folder)
        .into_iter()
        .flat_map(|shard| entries(&shard));
    let read = |file: PathBuf| {
        std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
    };
    let lines: String = files.map(read).collect();
    by_run(lines.lines())
}

/// Returns the items of a resource in its table of the sink `db`.
#[track_caller]
pub(super) fn in_table(cluster: &Cluster, name: &str) -> Items {
    let file = cluster.home.path().join("db/items.db");
    let sql = format!(
        "SELECT _run, COUNT(*), COUNT(DISTINCT _item) FROM {name}_visit GROUP BY _run ORDER BY _run"
    );
    let rows = block_on(async {
        let mut connection = SqliteConnectOptions::new().filename(file).connect().await?;
        let found = sqlx::query::<sqlx::Sqlite>(sqlx::AssertSqlSafe(sql));
        found.fetch_all(&mut connection).await
    });
    let rows = rows.unwrap_or_else(|e| panic!("rows of {name}: {e}"));
    let of_run = |row: &sqlx::sqlite::SqliteRow| {
        let [run, n, n_distinct] = std::array::from_fn(|n| row.get::<i64, usize>(n).unsigned_abs());
        assert_eq!(
            n, n_distinct,
            "an item of run {run} of {name} is there twice"
        );
        (run, n)
    };
    rows.iter().map(of_run).collect()
}

#[track_caller]
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder);
    let entries = entries.unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries
        .map(|entry| entry.expect("a folder can be listed").path())
        .collect()
}

/// Counts the items of lines, each of which has to be there once.
#[track_caller]
fn by_run<'a>(lines: impl Iterator<Item = &'a str>) -> Items {
    let (mut items, mut seen) = (Items::new(), BTreeSet::new());
    for line in lines {
        let record: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        let run = record["run"].as_u64().expect("a run is a number");
        let is_new = seen.insert((run, text(&record["key"]).to_owned()));
        assert!(is_new, "an item is there twice: {line}");
        *items.entry(run).or_default() += 1;
    }
    items
}
