//! Suite for openings: who may write, and what is stored. Each case has the frontiers of two processes over
//! one object store, which is empty at first.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::{commit_of, item_of, new, parsed, ready, retry, take};
use crate::{Frontier, FrontierError, NewRequest, OpenFrontier, OpenFrontiers, OpenOptions, Take};
use crawler_model::frontier::SinkMark;
use crawler_model::id::{Epoch, ResourceId, Run};
use crawler_model::links::Division;
use crawler_model::resource::ShardId;
use crawler_model::settings::SinkName;
use crawler_process::clock::StillClock;

/// Handles by which two processes open the same frontiers.
pub type Two = [Arc<dyn OpenFrontiers>; 2];

fn shard() -> ShardId {
    ShardId::only(ResourceId(7))
}

pub(super) async fn open_options(frontiers: &Arc<dyn OpenFrontiers>) -> OpenOptions {
    let storage_epoch = frontiers.storage_epoch(shard()).await.unwrap();
    OpenOptions {
        epoch: Epoch(2),
        created: storage_epoch > 0,
        storage_epoch,
        ..OpenOptions::first(shard())
    }
}

pub(super) async fn open(frontiers: &Arc<dyn OpenFrontiers>) -> Arc<dyn OpenFrontier> {
    open_run(frontiers, Run(1)).await
}

pub(super) async fn open_run(
    frontiers: &Arc<dyn OpenFrontiers>,
    run: Run,
) -> Arc<dyn OpenFrontier> {
    let open_options = OpenOptions {
        run,
        ..open_options(frontiers).await
    };
    frontiers.clone().open(open_options).await.unwrap()
}

fn urls(names: &[&str]) -> Vec<NewRequest> {
    let url = |name: &&str| new(&format!("http://a/{name}"));
    names.iter().map(url).collect()
}

/// Takes and parses until no page is ready; returns the paths in their order.
async fn crawl(frontier: &Arc<dyn OpenFrontier>) -> Vec<String> {
    let frontier: Arc<dyn Frontier> = frontier.clone();
    let mut paths = Vec::new();
    while let Take::Ready(claim) = take(&frontier, 1_000_000, 1).await {
        paths.push(claim.request.url.path().to_owned());
        frontier.commit(parsed(claim)).await.unwrap();
    }
    paths
}

pub async fn each_opening_has_a_writer_epoch_of_its_own([first, second]: Two) {
    assert_eq!(first.storage_epoch(shard()).await, Ok(0));
    for expected in 1..4 {
        let frontiers = if expected % 2 == 0 { &second } else { &first };
        let frontier = open(frontiers).await;
        assert_eq!(frontier.storage_epoch(), expected);
        assert_eq!(second.storage_epoch(shard()).await, Ok(expected));
    }
}

pub async fn whoever_is_overtaken_writes_nothing_more([first, second]: Two) {
    let old = open(&first).await;
    old.seed(urls(&["1", "2"])).await.unwrap();
    old.settle().await.unwrap();
    let claim = ready(old.take(0, 1).unwrap());
    let new = open(&second).await;
    let mut commit = parsed(claim);
    commit.result.items = vec![item_of(&commit.claim, 0)];
    let mut error = old.commit(commit).await.err();
    if error.is_none() {
        error = old.settle().await.err();
    }
    let shard = shard();
    assert_eq!(error, Some(FrontierError::Fenced { shard }));
    assert_eq!(old.take(0, 1), Err(FrontierError::Fenced { shard }));
    assert_eq!(crawl(&new).await, ["/1", "/2"]);
    assert_eq!(new.counts().items, 0);
}

pub async fn an_epoch_that_was_read_too_early_opens_nothing([first, second]: Two) {
    let stale = open_options(&second).await;
    let frontier = open(&first).await;
    let shard = shard();
    for storage_epoch in [0, 2, 7] {
        let open_options = OpenOptions {
            storage_epoch,
            ..stale.clone()
        };
        let error = second.clone().open(open_options).await.err();
        assert_eq!(
            error,
            Some(FrontierError::Fenced { shard }),
            "{storage_epoch}"
        );
    }
    frontier.seed(urls(&["1"])).await.unwrap();
    assert_eq!(crawl(&frontier).await, ["/1"]);
    let earlier = OpenOptions {
        epoch: Epoch(1),
        ..open_options(&second).await
    };
    let error = second.clone().open(earlier).await.err();
    assert_eq!(error, Some(FrontierError::Fenced { shard }));
}

pub async fn what_was_durable_is_there_in_the_next_opening([first, second]: Two) {
    let frontier = open(&first).await;
    frontier.seed(urls(&["1", "2", "3"])).await.unwrap();
    frontier.settle().await.unwrap();
    let mut commit = parsed(ready(frontier.take(0, 9).unwrap()));
    commit.result.items = (0..3).map(|n| item_of(&commit.claim, n)).collect();
    commit.result.requests = urls(&["2", "4"]);
    frontier.commit(commit).await.unwrap();
    let failed = commit_of(ready(frontier.take(0, 9).unwrap()), retry(500));
    frontier.commit(failed).await.unwrap();
    frontier.settle().await.unwrap();
    let mark = SinkMark {
        key: "file".into(),
        value: "length".into(),
    };
    let batch = frontier.outbox(&SinkName::lines(), 2).await.unwrap();
    frontier
        .clear_outbox(&SinkName::lines(), batch.end, Some(mark))
        .await
        .unwrap();
    frontier.settle().await.unwrap();
    let in_flight = ready(frontier.take(0, 9).unwrap());
    assert_eq!(in_flight.request.url.path(), "/3");

    let again = open(&second).await;
    assert_eq!(again.roots().unwrap().len(), 3);
    let counts = again.counts();
    assert_eq!((counts.parsed, counts.due, counts.items), (1, 3, 3));
    let batch = again.outbox(&SinkName::lines(), 9).await.unwrap();
    assert_eq!((batch.items.len(), batch.end), (1, 3));
    assert_eq!(
        crawl(&again).await,
        ["/3", "/4", "/2"],
        "what was in flight too"
    );
    assert_eq!(again.counts().retries, 1);
}

pub async fn what_was_created_and_is_gone_is_missing([first, _]: Two) {
    let open_options = OpenOptions {
        created: true,
        ..open_options(&first).await
    };
    let error = first.open(open_options).await.err();
    let shard = shard();
    assert_eq!(error, Some(FrontierError::Missing { shard }));
}

/// The host may have been asked by another shard until the opening, and no record here tells.
pub async fn hosts_that_were_divided_anew_rest_for_one_delay([first, second]: Two) {
    open(&first).await.close().await.unwrap();
    let open_run = async |frontiers: &Arc<dyn OpenFrontiers>, run, now| {
        let division = Division {
            first_run: Run(2),
            n_shards: NonZeroU32::MIN,
        };
        let open_options = OpenOptions {
            run: Run(run),
            clock: Arc::new(StillClock(now)),
            delay: Duration::from_millis(500),
            division: Some(division),
            ..open_options(frontiers).await
        };
        let frontier = frontiers.clone().open(open_options).await.unwrap();
        let hosts = ["1", "2"].map(|n| new(&format!("http://run{run}-{n}/")));
        frontier.seed(hosts.into()).await.unwrap();
        let frontier: Arc<dyn Frontier> = frontier;
        frontier
    };
    let frontier = open_run(&second, 2, 20_000).await;
    assert_eq!(take(&frontier, 20_010, 1).await, Take::WaitUntil(20_500));
    // The same holds if the frontier is opened again meanwhile, closed or not.
    let frontier = open_run(&first, 2, 20_100).await;
    assert_eq!(take(&frontier, 20_100, 1).await, Take::WaitUntil(20_500));
    frontier.close().await.unwrap();
    let frontier = open_run(&second, 2, 20_200).await;
    assert_eq!(take(&frontier, 20_499, 1).await, Take::WaitUntil(20_500));
    // The hosts had their records when the frontier was opened without having been closed.
    let claim = ready(take(&frontier, 20_600, 1).await);
    frontier.commit(parsed(claim)).await.unwrap();
    frontier.close().await.unwrap();
    // The next run has the same division.
    let frontier = open_run(&first, 3, 30_000).await;
    ready(take(&frontier, 30_000, 1).await);
}
