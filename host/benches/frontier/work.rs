//! A frontier in a folder, and pages to commit to it.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crawler::frontier::durable::{DurableFrontier, DurableSettings, Frontiers, OpenAs};
use crawler::frontier::{Claim, Commit, Ended, Frontier as _, NewRequest, Take};
use crawler::model::crawl::{Done, ItemKey, ItemRecord, Request};
use crawler::model::id::{Digest, Epoch, ResourceId, Run};
use crawler::model::resource::ShardId;
use crawler::sink::Sink as _;
use crawler::sink::lines::LineFiles;
use crawler::task::TaskScope;
use object_store::local::LocalFileSystem;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::value::RawValue;
use tokio::sync::Mutex;

pub(crate) const SHARD: ShardId = ShardId::only(ResourceId(1));
/// Links of one page, as on an average page of the documentation of Rust.
pub(crate) const N_LINKS: usize = 300;
/// Those of them that are new: one in a hundred.
pub(crate) const N_NEW: usize = 3;

/// Pages in flight at once, as a crawl has by default.
const CONCURRENCY: usize = 16;

pub(crate) fn frontiers(folder: &Path, settings: DurableSettings) -> Arc<Frontiers> {
    let objects = LocalFileSystem::new_with_prefix(folder).expect("the folder is there");
    Arc::new(Frontiers::new(Arc::new(objects.with_fsync(true)), settings))
}

pub(crate) async fn open(frontiers: &Arc<Frontiers>) -> DurableFrontier {
    let storage_epoch = frontiers
        .storage_epoch(SHARD)
        .await
        .expect("it can be read");
    let open_as = OpenAs {
        shard: SHARD,
        cluster: "bench".into(),
        epoch: Epoch(1),
        run: Run(1),
        plugin: Digest::of(b"plugin"),
        created: storage_epoch > 0,
        storage_epoch,
        now: 1,
        delay: Duration::ZERO,
        carry: None,
    };
    frontiers.open(open_as).await.expect("it opens")
}

pub(crate) fn request(host: u32, page: u64) -> NewRequest {
    let url = format!("http://host-{host}.test/std/collections/struct.Page{page}.html");
    NewRequest {
        request: Request::get(url.parse().expect("it is a URL"), "page"),
        depth: 1,
    }
}

pub(crate) fn commit(claim: Box<Claim>, requests: Vec<NewRequest>) -> Commit {
    let item = ItemRecord {
        key: ItemKey::of(
            SHARD.resource,
            Run(1),
            claim.fingerprint,
            claim.visit,
            "page",
            0,
        ),
        url: claim.request.url.to_string(),
        rule: "page".into(),
        schema: "page".into(),
        run: Run(1),
        fetched_at: 0,
        item: RawValue::from_string(format!(r#"{{"title":"{}"}}"#, "x".repeat(150)))
            .expect("it is JSON"),
    };
    Commit {
        claim,
        ended: Ended::Done(Done::Parsed),
        detail: String::new(),
        bytes: 55_000,
        for_others: Vec::new(),
        requests,
        refused: Vec::new(),
        items: vec![item],
        host_ready_at: 0,
        answered_at: 0,
        final_url: None,
        validators: None,
        cookies: None,
        max_pattern_urls: u64::MAX,
    }
}

pub(crate) async fn take(frontier: &DurableFrontier, now: u64) -> Box<Claim> {
    loop {
        match frontier.take(now, u32::MAX).expect("it is open") {
            Take::Ready(claim) => return claim,
            Take::WaitUntil(_) | Take::Blocked => frontier.take_changed().await,
            Take::Empty => panic!("nothing is left"),
        }
    }
}

/// Delivers what is in the outbox, as a crawl does.
pub(crate) async fn deliver(frontier: &DurableFrontier, sink: &mut LineFiles) {
    loop {
        let batch = frontier.outbox(2_000).await.expect("it is open");
        if batch.items.is_empty() {
            return;
        }
        let mark = sink.write(&batch.items).await.expect("it can be written");
        let cleared = frontier.clear_outbox(batch.end, mark).await;
        cleared.expect("it is open");
    }
}

/// A URL, and the links that its page has. One task at a time takes.
async fn next(
    frontier: &DurableFrontier,
    pages: &Mutex<Vec<Vec<NewRequest>>>,
) -> Option<(Box<Claim>, Vec<NewRequest>)> {
    let mut pages = pages.lock().await;
    let links = pages.pop()?;
    Some((take(frontier, 1).await, links))
}

/// Crawls these pages, many at a time, and empties the outbox; how long that takes.
pub(crate) async fn crawl(
    frontier: &Arc<DurableFrontier>,
    pages: Vec<Vec<NewRequest>>,
) -> Duration {
    let began = Instant::now();
    let pages = Arc::new(Mutex::new(pages));
    let tasks = TaskScope::new();
    for _ in 0..CONCURRENCY {
        let (frontier, pages) = (frontier.clone(), pages.clone());
        tasks.spawn("pages", async move {
            while let Some((claim, links)) = next(&frontier, &pages).await {
                let committed = frontier.commit(commit(claim, links)).await;
                committed.expect("it is open");
            }
        });
    }
    tasks.stop(Duration::from_secs(600)).await;
    drain(frontier).await;
    began.elapsed()
}

/// Takes what is in the outbox away, as a sink would.
pub(crate) async fn drain(frontier: &DurableFrontier) {
    loop {
        let batch = frontier.outbox(2_000).await.expect("it is open");
        if batch.items.is_empty() {
            return;
        }
        let cleared = frontier.clear_outbox(batch.end, None).await;
        cleared.expect("it is open");
    }
}

/// The links of pages, one page after the other: most of them known.
pub(crate) struct Site {
    rng: StdRng,
    n_hosts: u64,
    pub(crate) n_known: u64,
}

impl Site {
    /// All on one host.
    pub(crate) fn new() -> Self {
        Self::over(1)
    }

    /// One page after the other on another host.
    pub(crate) fn over(n_hosts: u32) -> Self {
        Self {
            rng: StdRng::seed_from_u64(7),
            n_hosts: n_hosts.into(),
            n_known: 0,
        }
    }

    fn request(&self, page: u64) -> NewRequest {
        let host = u32::try_from(page % self.n_hosts).expect("below a number of this type");
        request(host, page)
    }

    /// Links that nobody has seen.
    pub(crate) fn fresh(&mut self, n: usize) -> Vec<NewRequest> {
        let first = self.n_known;
        self.n_known += n as u64;
        let pages = first..self.n_known;
        pages.map(|page| self.request(page)).collect()
    }

    /// The links of an average page.
    pub(crate) fn page(&mut self) -> Vec<NewRequest> {
        let n_known = self.n_known;
        let known = (N_NEW..N_LINKS).map(|_| {
            let page = self.rng.random_range(0..n_known);
            self.request(page)
        });
        let mut links: Vec<NewRequest> = known.collect();
        links.extend(self.fresh(N_NEW));
        links
    }
}
