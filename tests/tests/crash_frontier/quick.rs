//! Kills in quick succession. A kill in the middle of a compaction leaves a job that nobody else may take until
//! its worker counts as dead. With the database's own settings, writing then stands still for up to half a minute.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crawler_frontier::durable::DurableSettings;
use crawler_frontier::{
    Commit, Ended, Frontier as _, ItemOutbox as _, NewRequest, PageResult, Take,
};
use crawler_model::crawl::{Done, ItemKey, ItemRecord, Request};
use crawler_model::id::Run;
use crawler_model::scope::GrowthBounds;
use crawler_model::settings::SinkName;
use crawler_tests::process::Process;
use crawler_tests::random::Random;
use crawler_tests::{PATIENCE, child, soak, until};
use serde_json::value::RawValue;

use crate::open;

/// Number of URLs that each page leads to.
const N_LINKS: u64 = 20;
/// Number of pages that are written before the writer waits until they are durable.
const N_AT_ONCE: u64 = 50;

#[test]
fn crashes_in_quick_succession_let_something_be_acknowledged_within_a_second() {
    let name = "quick::crashes_in_quick_succession_let_something_be_acknowledged_within_a_second";
    check(name, 1 << 20, Duration::from_secs(1), 30);
}

/// The files are so small that compaction is always behind. The next life may have to wait until the worker of the
/// last one counts as dead: a few seconds, and not half a minute.
#[test]
fn crashes_in_the_middle_of_compactions_bring_writing_to_no_halt() {
    let name = "quick::crashes_in_the_middle_of_compactions_bring_writing_to_no_halt";
    check(name, 128 << 10, Duration::from_secs(12), 15);
}

/// Prefix of the role of a life without a kill before it.
const CALM: &str = "calm ";
/// Factor by which it may take longer than without a kill, on a machine so slow that this is more than the given
/// time.
const SLOWER: u32 = 8;
/// Lock of the running test: the tests measure time, and would wait for each other's disk.
static ALONE: Mutex<()> = Mutex::new(());

#[track_caller]
fn check(test: &str, l0_bytes: usize, soon: Duration, n_kills: u32) {
    if let Some(role) = child::role() {
        return match role.strip_prefix(CALM) {
            Some(folder) => write(Path::new(folder), l0_bytes, true),
            None => write(Path::new(&role), l0_bytes, false),
        };
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let mut random = Random::new(test);
    let n_kills = if soak() { 4 * n_kills } else { n_kills };
    let calm = |durable: u64| {
        let mut writer = child::again(test, &format!("{CALM}{path}"));
        let life = begun(&mut writer, durable);
        assert_eq!(writer.wait(PATIENCE).code, Some(0));
        life.first
    };
    let (mut durable, mut longest, mut usual) = (0, Duration::ZERO, Duration::ZERO);
    for n in 0..n_kills {
        let mut writer = child::again(test, path);
        let Life { found, first } = begun(&mut writer, durable);
        longest = longest.max(first);
        let moment = Duration::from_millis(random.below(400));
        let started = Instant::now();
        until("moment", PATIENCE, || {
            (started.elapsed() >= moment).then_some(())
        });
        writer.kill();
        let lines = writer.stderr();
        let told = lines.iter().filter_map(|line| number(line, "durable "));
        durable = told.max().unwrap_or(found);
        assert!(durable > found, "life {n} made nothing durable: {lines:?}");
        if n == 0 || first > soon {
            // The machine may be the cause. Only the second of these lives has no kill before it.
            calm(durable);
            usual = calm(durable);
            assert!(
                usual <= soon && first <= soon.max(SLOWER * usual),
                "life {n}: nothing durable for {first:?}, and for {usual:?} without a kill"
            );
        }
    }
    println!(
        "{n_kills} kills, {durable} pages durable, the slowest first one after {longest:?}, \
         without a kill after {usual:?}"
    );
}

/// Beginning of a life.
struct Life {
    /// Number of pages that were there.
    found: u64,
    /// Time from before the opening to the first page that is durable.
    first: Duration,
}

/// Waits until something is durable; pages that were durable before must be there.
#[track_caller]
fn begun(writer: &mut Process, durable: u64) -> Life {
    let line = writer.line("opening", PATIENCE, |line| line.starts_with("found "));
    let found = number(&line, "found ").unwrap();
    assert!(
        found >= durable,
        "{durable} pages were durable, {found} are there"
    );
    let line = writer.line("durable page", PATIENCE, |line| line.starts_with("first "));
    let first = Duration::from_millis(number(&line, "first ").unwrap());
    Life { found, first }
}

fn number(line: &str, mark: &str) -> Option<u64> {
    line.strip_prefix(mark)?.parse().ok()
}

/// Writes pages as fast as possible, and prints which are durable; a calm life ends with the first one.
fn write(folder: &Path, l0_bytes: usize, is_calm: bool) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let settings = DurableSettings {
        l0_bytes,
        max_unflushed_bytes: 16 * l0_bytes,
        flush_interval: Duration::from_millis(20),
        ..DurableSettings::default()
    };
    runtime.block_on(async {
        // The time starts before the opening, which writes too, and would wait with everybody else.
        let began = Instant::now();
        let frontier = open(folder, settings).await;
        let mut n_pages = frontier.counts().pages();
        eprintln!("found {n_pages}");
        let (mut n_durable, mut is_first) = (n_pages, true);
        if frontier.roots().is_none() {
            frontier.seed((0..1_000).map(new).collect()).await.unwrap();
        }
        loop {
            match frontier.take(n_pages, 64).unwrap() {
                Take::Ready(claim) => {
                    let new = (0..N_LINKS).map(|n| new(1_000 + n_pages * N_LINKS + n));
                    let commit = Commit {
                        result: PageResult {
                            bytes: 1,
                            requests: new.collect(),
                            items: vec![item(&claim.request)],
                            ..PageResult::new(Ended::Done(Done::Parsed), 0)
                        },
                        growth: GrowthBounds::NONE,
                        answered_at: 0,
                        cookies: None,
                        claim,
                    };
                    frontier.commit(commit).await.unwrap();
                    n_pages += 1;
                    if !n_pages.is_multiple_of(N_AT_ONCE) {
                        continue;
                    }
                }
                Take::WaitUntil(_) | Take::Blocked if n_pages == n_durable => {
                    frontier.take_changed().await;
                    continue;
                }
                Take::WaitUntil(_) | Take::Blocked => {}
                Take::Empty => panic!("every page leads to more"),
            }
            let waiting = frontier.outbox(&SinkName::lines(), 1_000).await.unwrap();
            if !waiting.items.is_empty() {
                frontier
                    .clear_outbox(&SinkName::lines(), waiting.end, None)
                    .await
                    .unwrap();
            }
            frontier.settle().await.unwrap();
            n_durable = n_pages;
            // This line comes first: a kill may follow the other line at once.
            eprintln!("durable {n_pages}");
            if std::mem::take(&mut is_first) {
                eprintln!("first {}", began.elapsed().as_millis());
            }
            if is_calm {
                return frontier.close().await.unwrap();
            }
        }
    });
}

fn new(n: u64) -> NewRequest {
    let host = n % 50;
    let url = format!("http://host-{host}.test/a/path/of/some/length/{n}");
    NewRequest {
        request: Request::get(url.parse().unwrap(), "page"),
        depth: 0,
    }
}

fn item(request: &Request) -> ItemRecord {
    ItemRecord {
        key: ItemKey(request.url.to_string()),
        url: request.url.to_string(),
        rule: "page".to_owned(),
        schema: "item".to_owned(),
        run: Run(1),
        fetched_at: 0,
        item: RawValue::from_string(format!("{{\"text\": {:?}}}", "x".repeat(8_000))).unwrap(),
        change: None,
    }
}
