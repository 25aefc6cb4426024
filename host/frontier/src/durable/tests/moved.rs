//! Tests of the clocks of hosts that come from other shards.

use std::num::NonZeroU32;

use futures::TryStreamExt as _;
use object_store::ObjectStoreExt as _;

use super::*;
use crate::path_of;
use crate::suite::of_another_format;
use crawler_model::links::{Division, shard_of};

const N_SHARDS: NonZeroU32 = NonZeroU32::new(2).unwrap();

fn of(shard: u32) -> ShardId {
    ShardId {
        shard: Shard(shard),
        ..super::shard()
    }
}

/// Returns URLs of hosts that belong to the shard if there are two.
fn hosts_of(shard: u32, n: usize) -> Vec<NewRequest> {
    let all = (0..).map(|n| new(&format!("http://host{n}/")));
    let own = all.filter(|new| shard_of(&new.request.url, N_SHARDS) == Shard(shard));
    own.take(n).collect()
}

/// Opens one of two shards, with a delay of half a second.
async fn open_moved(objects: &Arc<InMemory>, shard: u32, now: UnixMillis) -> Arc<dyn Frontier> {
    let frontiers = frontiers_in(objects, settings());
    let storage_epoch = frontiers.storage_epoch(of(shard)).await.unwrap();
    let open_options = OpenOptions {
        shard: of(shard),
        storage_epoch,
        created: storage_epoch > 0,
        clock: Arc::new(StillClock(now)),
        delay: Duration::from_millis(500),
        division: Some(Division {
            first_run: Run(2),
            n_shards: N_SHARDS,
        }),
        ..open_options(&frontiers, 2).await
    };
    Arc::new(frontiers.open(open_options).await.unwrap())
}

/// Returns the hosts that are taken at these moments, in their order.
async fn taken(frontier: &Arc<dyn Frontier>, moments: &[UnixMillis]) -> Vec<(String, UnixMillis)> {
    let mut taken = Vec::new();
    for &now in moments {
        while let Take::Ready(claim) = take(frontier, now, 1).await {
            taken.push((claim.request.url.to_string(), now));
            frontier.commit(parsed(claim)).await.unwrap();
        }
    }
    taken
}

/// Asks four hosts before hosts are divided anew: one asks to be left alone for a minute, one is asked every
/// 5 s, one as usual, and one stays. Returns them in this order.
async fn four(objects: &Arc<InMemory>) -> ([NewRequest; 4], Arc<dyn Frontier>) {
    let mut hosts = hosts_of(1, 3);
    hosts.extend(hosts_of(0, 1));
    let ready_at = [70_000, 15_000, 10_500, 80_000];
    let frontier: Arc<dyn Frontier> = open(objects, 1).await;
    frontier.seed(hosts.clone()).await.unwrap();
    for _ in &hosts {
        let mut commit = parsed(ready(take(&frontier, 10_000, 1).await));
        let url = &commit.claim.request.url;
        let n = hosts.iter().position(|new| new.request.url == *url);
        (commit.answered_at, commit.result.host_ready_at) = (10_000, ready_at[n.unwrap()]);
        frontier.commit(commit).await.unwrap();
    }
    frontier.settle().await.unwrap();
    (hosts.try_into().unwrap(), frontier)
}

const MOMENTS: [UnixMillis; 9] = [
    20_000, 20_500, 24_999, 25_000, 69_999, 70_000, 79_999, 80_000, 90_000,
];

#[tokio::test]
async fn a_host_takes_the_clock_along_that_another_shard_has_given_it() {
    let objects = Arc::new(InMemory::new());
    let ([busy, slow, usual, stays], frontier) = four(&objects).await;
    frontier.close().await.unwrap();
    let frontier = open_moved(&objects, 1, 20_000).await;
    let urls = [&busy, &slow, &usual].map(Clone::clone);
    frontier.seed(urls.into()).await.unwrap();
    let found = taken(&frontier, &MOMENTS).await;
    let expected = [(&slow, 20_500), (&usual, 20_500), (&busy, 70_000)];
    check(&found, &expected);
    // A host that stays keeps its own clock.
    let frontier = open_moved(&objects, 0, 20_000).await;
    frontier.seed(vec![stays.clone()]).await.unwrap();
    check(&taken(&frontier, &MOMENTS).await, &[(&stays, 80_000)]);
}

/// The delay after the last answer of each host counts from the opening: it may have been asked since.
#[tokio::test]
async fn a_host_of_a_shard_that_was_not_closed_waits_as_it_did_last() {
    let objects = Arc::new(InMemory::new());
    let ([busy, slow, usual, _], _unclosed) = four(&objects).await;
    let expected = [(&usual, 20_500), (&slow, 25_000), (&busy, 80_000)];
    let frontier = open_moved(&objects, 1, 20_000).await;
    let urls = [&busy, &slow, &usual].map(Clone::clone);
    frontier.seed(urls.into()).await.unwrap();
    frontier.settle().await.unwrap();
    // The clocks are durable: a process that ends here loses none of them, though the other frontier is gone.
    let others = frontiers_in(&objects, settings());
    let all = others.objects.list(Some(&path_of(of(0))));
    let all: Vec<_> = all.try_collect().await.unwrap();
    for object in all {
        others.objects.delete(&object.location).await.unwrap();
    }
    let again = open_moved(&objects, 1, 20_000).await;
    check(&taken(&again, &MOMENTS).await, &expected);
}

#[track_caller]
fn check(found: &[(String, UnixMillis)], expected: &[(&NewRequest, UnixMillis)]) {
    let url = |(new, at): &(&NewRequest, UnixMillis)| (new.request.url.to_string(), *at);
    let mut expected: Vec<_> = expected.iter().map(url).collect();
    let mut found = found.to_vec();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_frontier_of_another_shard_that_cannot_be_read_holds_up_nothing() {
    let objects = Arc::new(InMemory::new());
    let shared: Arc<dyn ObjectStore> = objects.clone();
    of_another_format(&shared, of(0)).await;
    let hosts = hosts_of(1, 1);
    let frontier = open_moved(&objects, 1, 20_000).await;
    frontier.seed(hosts).await.unwrap();
    assert_eq!(taken(&frontier, &[20_499, 20_500]).await.len(), 1);
}
