//! The embedded store when its process ends abruptly: kill -9 at any moment, and a full disk.
//!
//! The test binary runs itself as the process that is killed; [`FOLDER`] tells it that it is that process.
//! Every transaction that it acknowledged on its standard output must be there afterwards, and every other
//! one whole or absent.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use crawler_store::embedded::{EmbeddedStore, Settings};
use crawler_store::{Outcome, Store as _, StoreError, Txn};
use rand::RngExt as _;

const FOLDER: &str = "CRAWLER_TEST_STORE_FOLDER";
const N_ROUNDS: usize = 20;
const N_WRITERS: usize = 4;

/// Returns settings whose snapshots are so small that many rounds are killed around one.
fn settings() -> Settings {
    Settings {
        snapshot_bytes: 8 << 10,
        ..Settings::default()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test process has no other settings to be told by"
)]
fn folder_of_child() -> Option<PathBuf> {
    std::env::var_os(FOLDER).map(PathBuf::from)
}

/// Returns a transaction with two keys that exist together or not at all, and one that is written again and
/// again.
fn numbered(n: u64) -> Txn {
    let text = n.to_string();
    Txn::new()
        .put(format!("/n/{n:08}/a"), text.clone())
        .put(format!("/n/{n:08}/b"), text.clone())
        .put("/last", text)
}

/// Returns the numbers that are there; panics if one is there in part.
async fn numbers(store: &EmbeddedStore) -> BTreeSet<u64> {
    let entries = store.list("/n/").await.unwrap().entries;
    assert_eq!(entries.len() % 2, 0);
    let pairs = entries.chunks(2).map(|pair| {
        assert_eq!(
            pair[0].key[..11],
            pair[1].key[..11],
            "a transaction is there in part"
        );
        assert_eq!(
            (&pair[0].value, pair[0].revision),
            (&pair[1].value, pair[1].revision)
        );
        std::str::from_utf8(&pair[0].value)
            .unwrap()
            .parse()
            .unwrap()
    });
    pairs.collect()
}

fn acknowledged(line: &str) -> Option<u64> {
    line.strip_prefix("acknowledged ")?.parse().ok()
}

#[tokio::test]
async fn child_that_commits_until_it_is_killed() {
    let Some(folder) = folder_of_child() else {
        return;
    };
    println!();
    let store = EmbeddedStore::open(&folder, settings()).unwrap();
    let next = AtomicU64::new(numbers(&store).await.last().map_or(1, |last| last + 1));
    let writers = (0..N_WRITERS).map(|_| async {
        while folder.exists() {
            let n = next.fetch_add(1, Ordering::Relaxed);
            let outcome = store.commit(numbered(n)).await.unwrap();
            assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
            println!("acknowledged {n}");
        }
    });
    futures::future::join_all(writers).await;
}

#[tokio::test]
async fn what_was_acknowledged_survives_kill_9_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = BTreeSet::new();
    for round in 0..N_ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "child_that_commits_until_it_is_killed",
                "--nocapture",
            ])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Some rounds end while the log is still being read.
        let n_before_kill = rand::rng().random_range(0..300_usize).saturating_sub(20);
        let mut seen: Vec<u64> = Vec::new();
        while seen.len() < n_before_kill {
            let line = lines.next().expect("commits until it is killed").unwrap();
            seen.extend(acknowledged(&line));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        seen.extend(lines.filter_map(|line| acknowledged(&line.unwrap())));
        expected.extend(seen);

        let store = EmbeddedStore::open(folder.path(), settings()).unwrap();
        let there = numbers(&store).await;
        let lost: Vec<_> = expected.difference(&there).collect();
        assert!(
            lost.is_empty(),
            "round {round}: acknowledged and lost: {lost:?}"
        );
        let unanswered = there.difference(&expected).count();
        assert!(
            unanswered <= N_WRITERS,
            "round {round}: {unanswered} without an answer"
        );
        // Transactions that were durable before their answer was read count from here on.
        expected = there;
    }
    assert!(expected.len() > N_ROUNDS, "the rounds wrote something");
}

#[tokio::test]
async fn child_that_fills_the_disk() {
    let Some(folder) = folder_of_child() else {
        return;
    };
    println!();
    let store = EmbeddedStore::open(&folder, Settings::default()).unwrap();
    let large = "x".repeat(1400);
    let (mut n_refused, mut n_after) = (0, 0);
    for n in 0..200_u64 {
        let txn = if n_refused < 3 {
            numbered(n).put("/large", large.clone())
        } else {
            numbered(n)
        };
        match store.commit(txn).await {
            Ok(Outcome::Done(_)) => {
                println!("acknowledged {n}");
                n_after += u32::from(n_refused > 0);
            }
            Err(StoreError::Io { doing: "write", .. }) => {
                n_refused += 1;
                assert!(
                    !numbers(&store).await.contains(&n),
                    "memory is ahead of the disk"
                );
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(n_refused > 3, "the disk was full");
    assert!(n_after > 0, "what still fits is taken");
}

#[tokio::test]
async fn a_full_disk_costs_only_the_transactions_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    // The shell limits the size of files and lets writes beyond it fail, like a full disk.
    let mut child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 64; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_fills_the_disk", "--nocapture"])
        .env(FOLDER, folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut output)
        .unwrap();
    assert!(child.wait().unwrap().success(), "{output}");
    let expected: BTreeSet<u64> = output.lines().filter_map(acknowledged).collect();
    check_reopened(folder.path(), &expected).await;
}

async fn check_reopened(folder: &Path, expected: &BTreeSet<u64>) {
    let store = EmbeddedStore::open(folder, Settings::default()).unwrap();
    assert_eq!(numbers(&store).await, *expected);
    let outcome = store.commit(numbered(1_000_000)).await.unwrap();
    assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
}
