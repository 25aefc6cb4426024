//! Time from an opening to its first URL, with 100 000 URLs done before it.

use std::time::Instant;

use crawler_frontier::durable::DurableSettings;
use crawler_frontier::{Frontier as _, HostUpdate};

use super::work::{self, Site};

const N_DONE: usize = 100_000;

pub(crate) async fn run() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let frontiers = work::frontiers(folder.path(), DurableSettings::default());
    let frontier = work::open(&frontiers).await;
    let mut site = Site::new();
    frontier.seed(site.fresh(1_000)).await.expect("it is open");
    for n in 0..N_DONE {
        let claim = work::take(&frontier, 1).await;
        let committed = frontier.commit(work::commit(claim, site.fresh(1))).await;
        committed.expect("it is open");
        if n % 1_000 == 0 {
            work::drain(&frontier).await;
        }
    }
    work::drain(&frontier).await;
    frontier.close().await.expect("it closes");
    println!("{N_DONE} URLs done, 1 000 ready");
    for _ in 0..3 {
        let began = Instant::now();
        let frontier = work::open(&frontiers).await;
        let opened = began.elapsed();
        let began = Instant::now();
        let claim = work::take(&frontier, 1).await;
        let first = began.elapsed();
        frontier.give_back(claim, HostUpdate::None);
        frontier.close().await.expect("it closes");
        println!(
            "  opened in {:.1} ms, first URL {:.1} ms later (goal: below 10)",
            opened.as_secs_f64() * 1e3,
            first.as_secs_f64() * 1e3
        );
    }
}
