//! Time and memory of two million URLs in the three kinds of frontier: in memory, durable over objects in
//! memory, durable in a folder. Each runs in a process of its own.

use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use crawler_frontier::durable::{DurableSettings, Frontiers};
use crawler_frontier::memory::{MemoryFrontier, MemorySettings};
use crawler_frontier::{Frontier, Take};
use crawler_model::settings::SinkName;
use object_store::memory::InMemory;

use super::sizes::memory;
use super::work::{self, Site};

pub(crate) const ONE: &str = "kind-of";
const KINDS: [&str; 3] = ["memory", "objects", "folder"];
/// The default maximum number of URLs of a frontier in memory.
const N_KNOWN: u64 = 2_000_000;

pub(crate) fn run() {
    println!("{N_KNOWN} waiting URLs on one host: a thousand at a time");
    for kind in KINDS {
        let program = std::env::current_exe().expect("this program has a path");
        let status = Command::new(program).args([ONE, kind]).status();
        assert!(status.expect("it starts").success());
    }
}

pub(crate) async fn one(kind: &str) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let settings = DurableSettings::default();
    let frontier: Arc<dyn Frontier> = match kind {
        "memory" => Arc::new(MemoryFrontier::new(MemorySettings {
            max_urls: N_KNOWN * 2,
            ..MemorySettings::default()
        })),
        "objects" => {
            let frontiers = Arc::new(Frontiers::new(Arc::new(InMemory::new()), settings));
            Arc::new(work::open(&frontiers).await)
        }
        _ => Arc::new(work::open(&work::frontiers(folder.path(), settings)).await),
    };
    let began = Instant::now();
    let mut site = Site::new();
    frontier.seed(site.fresh(1_000)).await.expect("it is open");
    while site.n_known < N_KNOWN {
        let claim = loop {
            match frontier.take(1, u32::MAX).expect("it is open") {
                Take::Ready(claim) => break claim,
                Take::Empty => panic!("nothing is left"),
                _ => frontier.take_changed().await,
            }
        };
        let committed = frontier.commit(work::commit(claim, site.fresh(1_000)));
        committed.await.expect("it is open");
        let batch = frontier
            .outbox(&SinkName::lines(), 2_000)
            .await
            .expect("it is open");
        let cleared = frontier
            .clear_outbox(&SinkName::lines(), batch.end, None)
            .await;
        cleared.expect("it is open");
    }
    frontier.settle().await.expect("it is open");
    println!(
        "  {kind:>7}: {:>5.1} s, {:>5} MiB, {:>5} MiB at most",
        began.elapsed().as_secs_f64(),
        memory("VmRSS:") >> 20,
        memory("VmHWM:") >> 20,
    );
    frontier.close().await.expect("it closes");
}
