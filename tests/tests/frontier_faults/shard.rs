//! Permission to open a shard's frontier, and the writes that are accepted.

use std::sync::Arc;
use std::time::Duration;

use crawler_crawl::CrawlEnd;
use crawler_frontier::durable::{DurableFrontier, DurableSettings, Frontiers, OpenOptions};
use crawler_frontier::{Frontier as _, FrontierError};
use crawler_model::crawl::Counts;
use crawler_model::id::{Digest, Epoch, ResourceId, Run};
use crawler_model::resource::ShardId;
use crawler_process::clock::StillClock;
use crawler_tests::twin::{Kept, Tree};
use object_store::memory::InMemory;
use object_store::{ObjectStore, ObjectStoreExt as _};
use tokio_util::sync::CancellationToken;

pub(crate) fn shard(resource: u64) -> ShardId {
    ShardId::only(ResourceId(resource))
}

/// Opens the frontier as the one cluster of these tests does.
pub(crate) async fn open(
    frontiers: &Arc<Frontiers>,
    was_opened: bool,
) -> Result<Arc<DurableFrontier>, FrontierError> {
    open_options(frontiers, |open| open.created |= was_opened).await
}

async fn open_options(
    frontiers: &Arc<Frontiers>,
    change: impl FnOnce(&mut OpenOptions),
) -> Result<Arc<DurableFrontier>, FrontierError> {
    let storage_epoch = frontiers.storage_epoch(shard(1)).await?;
    let mut open = OpenOptions {
        shard: shard(1),
        cluster: "here".to_owned(),
        epoch: Epoch(1),
        run: Run(1),
        plugin: Digest::of(b"plugin"),
        created: storage_epoch > 0,
        storage_epoch,
        clock: Arc::new(StillClock(0)),
        delay: Duration::ZERO,
        carry: None,
        sinks: Default::default(),
        division: None,
        changes: Default::default(),
    };
    change(&mut open);
    Box::pin(frontiers.open(open)).await.map(Arc::new)
}

/// Returns the numbers of pages read, of items stored, and of all others.
pub(crate) fn counted(counts: &Counts) -> (u64, u64, u64) {
    let others = counts.other_done + counts.dead + counts.due;
    (counts.parsed, counts.items, others)
}

fn frontiers(objects: &Arc<InMemory>) -> Arc<Frontiers> {
    Arc::new(Frontiers::new(objects.clone(), DurableSettings::default()))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_opening_ends_the_writing_of_the_first_and_loses_nothing() {
    const N_PAGES: u64 = 600;
    let objects = Arc::new(InMemory::new());
    let (tree, kept) = (
        Tree::new(N_PAGES, Duration::from_millis(10), |_| {}),
        Kept::default(),
    );
    let crawl = |frontier: Arc<DurableFrontier>| {
        let (tree, sink) = (tree.clone(), Box::new(kept.clone()));
        async move { tree.crawl(frontier, sink, CancellationToken::new()).await }
    };
    let first = open(&frontiers(&objects), false).await.unwrap();
    let steal = async {
        while first.counts().pages() < N_PAGES / 4 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        open(&frontiers(&objects), true).await.unwrap()
    };
    let (end, second) = tokio::join!(crawl(first.clone()), steal);
    let CrawlEnd::Frontier(error) = end else {
        panic!("{end:?}")
    };
    assert_eq!(error.condition(), "FrontierFenced", "{error}");
    assert_eq!(crawl(second.clone()).await, CrawlEnd::Finished);
    assert_eq!(kept.pages(), (0..N_PAGES).collect::<Vec<_>>());
    assert_eq!(counted(&second.counts()), (N_PAGES, N_PAGES, 0));
    second.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ours_is_refused_by_name() {
    let objects = Arc::new(InMemory::new());
    let frontiers = frontiers(&objects);
    open(&frontiers, false)
        .await
        .unwrap()
        .close()
        .await
        .unwrap();
    let refused = async |change: fn(&mut OpenOptions)| match open_options(&frontiers, change).await
    {
        Ok(_) => "opened",
        Err(error) => error.condition(),
    };
    assert_eq!(
        refused(|open| open.cluster = "there".to_owned()).await,
        "FrontierForeign"
    );
    assert_eq!(
        refused(|open| open.storage_epoch += 1).await,
        "FrontierFenced"
    );
    assert_eq!(
        refused(|open| open.epoch = Epoch(0)).await,
        "FrontierFenced"
    );
    // The files are copied to the place of another resource.
    let files: Vec<_> = futures::TryStreamExt::try_collect(objects.list(None))
        .await
        .unwrap();
    for file in files {
        let file = file.location;
        let there = file.as_ref().replacen("/1/", "/2/", 1);
        objects.copy(&file, &there.into()).await.unwrap();
    }
    let as_two = open_options(&frontiers, |open| {
        open.shard = shard(2);
        open.created = true;
    });
    let error = as_two.await.err().expect("it is a copy");
    assert_eq!(error.condition(), "FrontierForeign", "{error}");
    // The original frontier is unchanged.
    open(&frontiers, true).await.unwrap().close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frontier_that_was_there_is_missing_where_there_is_none() {
    let frontiers = frontiers(&Arc::new(InMemory::new()));
    let error = open(&frontiers, true).await.err().expect("there is none");
    assert_eq!(error.condition(), "FrontierMissing", "{error}");
}
