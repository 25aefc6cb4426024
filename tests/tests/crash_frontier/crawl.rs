//! A crawl that is killed again and again: each batch holds all that its page leads to, or none of it.

use std::path::Path;
use std::time::{Duration, Instant};

use crawler_crawl::CrawlEnd;
use crawler_frontier::Frontier as _;
use crawler_frontier::durable::DurableSettings;
use crawler_tests::random::Random;
use crawler_tests::twin::{Call, KeptFile, Tree};
use crawler_tests::{PATIENCE, child, until};
use tokio_util::sync::CancellationToken;

use crate::open;

const N_PAGES: u64 = 4_000;
const PACE: Duration = Duration::from_millis(20);
/// Duration of a write of items: long enough for kills to fall into it.
const SINK_PACE: Duration = Duration::from_millis(40);
/// Smallest number of kills for which the test means something.
const MIN_KILLS: u32 = 5;

#[test]
fn a_crawl_that_is_killed_goes_on_with_all_that_its_pages_led_to() {
    if let Some(folder) = child::role() {
        return crawl(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let name = "crawl::a_crawl_that_is_killed_goes_on_with_all_that_its_pages_led_to";
    let mut random = Random::new("killed crawl");
    let mut n_kills = 0;
    let told = loop {
        let mut process = child::again(name, folder.path().to_str().unwrap());
        let found = process.line("opening", PATIENCE, |line| line.starts_with("found "));
        let moment = Duration::from_millis(50 + random.below(250));
        let started = Instant::now();
        until("moment or end", PATIENCE, || {
            (started.elapsed() >= moment || !process.is_running()).then_some(())
        });
        if process.is_running() && n_kills < 20 {
            process.kill();
            n_kills += 1;
        }
        let ended = process.wait(PATIENCE);
        let asked_root = ended.stderr.lines().any(|line| line == "root");
        assert!(
            found == "found 0" || !asked_root,
            "root was asked again, life {n_kills}:\n{}",
            ended.stderr
        );
        if let Some(code) = ended.code {
            assert_eq!(code, 0, "{}", ended.stderr);
            break ended.stderr;
        }
    };
    println!("{n_kills} kills");
    assert!(
        n_kills >= MIN_KILLS,
        "the crawl was over after {n_kills} kills"
    );
    let pages = KeptFile::pages(&folder.path().join("items"));
    let missing: Vec<u64> = (0..N_PAGES).filter(|n| !pages.contains(n)).collect();
    assert!(missing.is_empty(), "no items of {missing:?}");
    assert_eq!(
        pages.len() as u64,
        N_PAGES,
        "items of a page under two keys"
    );
    assert!(
        told.contains(&format!("parsed {N_PAGES}, items {N_PAGES}, others 0\n")),
        "{told}"
    );
}

fn crawl(folder: &Path) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let frontier = open(folder, DurableSettings::default()).await;
        eprintln!("found {}", frontier.counts().pages());
        let tree = Tree::new(N_PAGES, PACE, |call| {
            if call == Call::Root {
                eprintln!("root");
            }
        });
        let sink = Box::new(KeptFile::new(folder.join("items"), SINK_PACE));
        let end = tree
            .crawl(frontier.clone(), sink, CancellationToken::new())
            .await;
        assert_eq!(end, CrawlEnd::Finished);
        let counts = frontier.counts();
        let n_others = counts.other_done + counts.dead + counts.due;
        eprintln!(
            "parsed {}, items {}, others {n_others}",
            counts.parsed, counts.items
        );
        frontier.close().await.unwrap();
    });
}
