//! A page whose rule ends the process. Nothing in the product can do that, so the rule is a twin in a process of
//! the tests' own.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crawler_crawl::CrawlEnd;
use crawler_frontier::Frontier as _;
use crawler_frontier::durable::DurableSettings;
use crawler_tests::twin::{Call, KeptFile, Tree};
use crawler_tests::{PATIENCE, child};
use tokio_util::sync::CancellationToken;

use crate::open;

const N_PAGES: u64 = 300;
/// Page that ends the process; other pages are in flight beside it.
const POISON: u64 = 150;
/// Largest number of starts that it may cost.
const MAX_RESTARTS: u32 = 6;

#[test]
fn a_page_that_ends_the_process_is_set_aside_within_six_restarts() {
    if let Some(folder) = child::role() {
        return crawl(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let name = "abort::a_page_that_ends_the_process_is_set_aside_within_six_restarts";
    let mut n_restarts = 0;
    let told = loop {
        let mut process = child::again(name, folder.path().to_str().unwrap());
        let ended = process.wait(PATIENCE);
        if ended.code == Some(0) {
            break ended.stderr;
        }
        assert_eq!(ended.code, None, "{}", ended.stderr);
        n_restarts += 1;
        assert!(
            n_restarts <= MAX_RESTARTS,
            "it is not set aside:\n{}",
            ended.stderr
        );
    };
    println!("set aside after {n_restarts} restarts");
    assert!(n_restarts > 0, "nothing has ended the process");
    let expected: Vec<u64> = (0..N_PAGES).filter(|n| *n != POISON).collect();
    assert_eq!(KeptFile::pages(&folder.path().join("items")), expected);
    let counts = told.lines().find_map(|line| line.strip_prefix("dead "));
    assert_eq!(counts, Some(r#"{"poison": 1}"#), "{told}");
}

fn crawl(folder: &Path) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let frontier = open(folder, DurableSettings::default()).await;
        let tree = Tree::new(N_PAGES, Duration::from_millis(2), |call| {
            if call == Call::Page(POISON) {
                std::process::abort();
            }
        });
        let sink = Box::new(KeptFile::new(folder.join("items"), Duration::ZERO));
        let end = tree
            .crawl(frontier.clone(), sink, CancellationToken::new())
            .await;
        assert_eq!(end, CrawlEnd::Finished);
        let dead: BTreeMap<String, u64> = frontier.counts().dead_by_reason;
        eprintln!("dead {dead:?}");
        frontier.close().await.unwrap();
    });
}
