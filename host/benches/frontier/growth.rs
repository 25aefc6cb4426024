//! Files and bytes of a frontier over a long crawl, with all ages one minute: flat after that.

use std::time::{Duration, Instant};

use crawler::frontier::Frontier as _;
use crawler::frontier::durable::DurableSettings;

use super::sizes::disk;
use super::work::{self, Site};

const AGE: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(300);
const PAGES_PER_SECOND: u64 = 500;

pub(crate) async fn run() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let settings = DurableSettings {
        min_age: AGE,
        ..DurableSettings::default()
    };
    let frontiers = work::frontiers(folder.path(), settings);
    let frontier = work::open(&frontiers).await;
    let mut site = Site::new();
    frontier.seed(site.fresh(1_000)).await.expect("it is open");
    println!("{PAGES_PER_SECOND} pages/s, each with one new link; all ages one minute");
    let began = Instant::now();
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    let mut shown = Instant::now();
    let mut n_pages = 0;
    while began.elapsed() < LONG {
        tick.tick().await;
        for _ in 0..PAGES_PER_SECOND / 10 {
            let claim = work::take(&frontier, 1).await;
            let committed = frontier.commit(work::commit(claim, site.fresh(1))).await;
            committed.expect("it is open");
            n_pages += 1;
        }
        work::drain(&frontier).await;
        if shown.elapsed() >= Duration::from_secs(20) {
            shown = Instant::now();
            let (n_files, n_bytes) = disk(folder.path());
            let seconds = began.elapsed().as_secs();
            let megabytes = n_bytes as f64 / 1e6;
            println!(
                "  {seconds:>4} s, {n_pages:>7} pages: {n_files:>5} files, {megabytes:>7.1} MB"
            );
        }
    }
    frontier.close().await.expect("it closes");
}
