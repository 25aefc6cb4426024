//! A frontier in a folder, and pages to commit to it.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use crawler_frontier::durable::{DurableFrontier, DurableSettings, Frontiers, OpenOptions};
use crawler_frontier::{
    Claim, Commit, Ended, Frontier as _, ItemOutbox as _, NewRequest, PageResult, Take,
};
use crawler_model::crawl::{Done, ItemKey, ItemRecord, Request};
use crawler_model::id::{ResourceId, Run};
use crawler_model::resource::ShardId;
use crawler_model::scope::GrowthBounds;
use crawler_model::settings::SinkName;
use crawler_process::clock::StillClock;
use crawler_process::task::TaskScope;
use crawler_sink::Sink as _;
use crawler_sink::lines::LineFiles;
use object_store::local::LocalFileSystem;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::value::RawValue;
use tokio::sync::Mutex;

pub(crate) const SHARD: ShardId = ShardId::only(ResourceId(1));
/// Number of links of one page, as on an average page of the documentation of Rust.
pub(crate) const N_LINKS: usize = 300;
/// Number of those links that are new: one in a hundred.
pub(crate) const N_NEW: usize = 3;

/// Number of pages in flight at once, which is the default of a crawl.
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
    let open_options = OpenOptions {
        cluster: "bench".into(),
        created: storage_epoch > 0,
        storage_epoch,
        clock: Arc::new(StillClock(1)),
        ..OpenOptions::first(SHARD)
    };
    frontiers.open(open_options).await.expect("it opens")
}

/// Returns a request. All requests share the name of their rule, like those of a plugin.
pub(crate) fn request(host: u32, page: u64) -> NewRequest {
    static RULE: LazyLock<Arc<str>> = LazyLock::new(|| "page".into());
    let url = format!("http://host-{host}.test/std/collections/struct.Page{page}.html");
    NewRequest {
        request: Request::get(url.parse().expect("it is a URL"), RULE.clone()),
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
        change: None,
    };
    Commit {
        claim,
        result: PageResult {
            bytes: 55_000,
            requests,
            items: vec![item],
            ..PageResult::new(Ended::Done(Done::Parsed), 0)
        },
        growth: GrowthBounds::NONE,
        answered_at: 0,
        cookies: None,
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

/// Delivers the outbox, as a crawl does.
pub(crate) async fn deliver(frontier: &DurableFrontier, sink: &mut LineFiles) {
    loop {
        let batch = frontier
            .outbox(&SinkName::lines(), 2_000)
            .await
            .expect("it is open");
        if batch.items.is_empty() {
            return;
        }
        let written = sink
            .write(0, &batch.items)
            .await
            .expect("it can be written");
        let cleared = frontier
            .clear_outbox(&SinkName::lines(), batch.end, written.mark)
            .await;
        cleared.expect("it is open");
    }
}

/// Cost of an operation.
#[derive(Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) wall: Duration,
    /// Processor time of all threads of this process, including those of the database.
    pub(crate) processors: Duration,
}

impl Spent {
    pub(crate) async fn on(work: impl Future<Output = ()>) -> Self {
        let (began, used) = (Instant::now(), processor_time());
        work.await;
        Self {
            wall: began.elapsed(),
            processors: processor_time() - used,
        }
    }
}

impl std::ops::AddAssign for Spent {
    fn add_assign(&mut self, other: Self) {
        self.wall += other.wall;
        self.processors += other.processors;
    }
}

fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("it grows from zero")
}

/// Crawls these pages, many at a time, and empties the outbox. The links are made by the tasks that commit
/// them, as in a crawl, so that they are in the processor's caches then.
pub(crate) async fn crawl(frontier: &Arc<DurableFrontier>, pages: &[PageLinks]) {
    let (frontier_of, waiting) = (frontier.clone(), Arc::new(Mutex::new(())));
    at_once(pages, move |page| {
        let (frontier, waiting) = (frontier_of.clone(), waiting.clone());
        async move {
            let links = page.links();
            let claim = match frontier.take(1, u32::MAX).expect("it is open") {
                Take::Ready(claim) => claim,
                // Only one task is told that there is more.
                _ => {
                    let _turn = waiting.lock().await;
                    take(&frontier, 1).await
                }
            };
            let committed = frontier.commit(commit(claim, links)).await;
            committed.expect("it is open");
        }
    })
    .await;
    drain(frontier).await;
}

/// Makes the links of these pages and drops them, as [`crawl`] does among other work.
pub(crate) async fn make_links(pages: &[PageLinks]) {
    at_once(pages, |page| async move {
        drop(std::hint::black_box(page.links()));
    })
    .await;
}

/// Does something for each page, many at a time.
pub(crate) async fn at_once<F: Future<Output = ()> + Send + 'static>(
    pages: &[PageLinks],
    each: impl Fn(PageLinks) -> F + Clone + Send + Sync + 'static,
) {
    let tasks = TaskScope::new();
    for n in 0..CONCURRENCY {
        let own: Vec<_> = pages.iter().skip(n).step_by(CONCURRENCY).copied().collect();
        let each = each.clone();
        tasks.spawn("pages", async move {
            for page in own {
                each(page).await;
                tokio::task::yield_now().await;
            }
        });
    }
    tasks.stop(Duration::from_secs(600)).await;
}

/// Removes the items in the outbox, as a sink would.
pub(crate) async fn drain(frontier: &DurableFrontier) {
    loop {
        let batch = frontier
            .outbox(&SinkName::lines(), 2_000)
            .await
            .expect("it is open");
        if batch.items.is_empty() {
            return;
        }
        let cleared = frontier
            .clear_outbox(&SinkName::lines(), batch.end, None)
            .await;
        cleared.expect("it is open");
    }
}

/// Source of the links of pages, one page after the other: most links are known.
pub(crate) struct Site {
    rng: StdRng,
    n_hosts: u64,
    pub(crate) n_known: u64,
}

impl Site {
    /// Creates a site with all pages on one host.
    pub(crate) fn new() -> Self {
        Self::over(1)
    }

    /// Creates a site whose successive pages are on different hosts.
    pub(crate) fn over(n_hosts: u32) -> Self {
        Self {
            rng: StdRng::seed_from_u64(7),
            n_hosts: n_hosts.into(),
            n_known: 0,
        }
    }

    /// Returns links that nobody has seen.
    pub(crate) fn fresh(&mut self, n: usize) -> Vec<NewRequest> {
        let first = self.n_known;
        self.n_known += n as u64;
        let pages = first..self.n_known;
        pages.map(|page| on_its_host(page, self.n_hosts)).collect()
    }

    /// Returns average pages.
    pub(crate) fn pages(&mut self, n: usize) -> Vec<PageLinks> {
        let pages = (0..n).map(|_| {
            let page = PageLinks {
                seed: self.rng.random(),
                n_hosts: self.n_hosts,
                n_known: self.n_known,
            };
            self.n_known += N_NEW as u64;
            page
        });
        pages.collect()
    }
}

fn on_its_host(page: u64, n_hosts: u64) -> NewRequest {
    let host = u32::try_from(page % n_hosts).expect("below a number of this type");
    request(host, page)
}

/// Links of a page, in a short form.
#[derive(Clone, Copy)]
pub(crate) struct PageLinks {
    seed: u64,
    n_hosts: u64,
    /// Number of pages that others have linked to before.
    n_known: u64,
}

impl PageLinks {
    /// Returns the links. Most of them lead to any known page, the rest to new ones.
    pub(crate) fn links(self) -> Vec<NewRequest> {
        let mut seed = self.seed;
        let known = (N_NEW..N_LINKS).map(|_| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (seed >> 16) % self.n_known
        });
        let new = self.n_known..self.n_known + N_NEW as u64;
        let pages = known.chain(new);
        pages.map(|page| on_its_host(page, self.n_hosts)).collect()
    }
}
