//! Tests of the phase of a resource whose owner cannot go on.

use std::collections::BTreeMap;

use super::*;
use crate::twin::{Answer, Workers};
use crawler_model::access::Grants;
use crawler_model::crawl::Counts;
use crawler_model::frontier::HostState;
use crawler_model::id::{Epoch, Run};
use crawler_model::resource::Waits;
use crawler_model::runs::RunHistory;
use crawler_model::status::{CrawlStatus, PresentHosts};

fn waits(condition: &str) -> Option<Waits> {
    Some(Waits {
        condition: condition.to_owned(),
        why: "the disk is full".to_owned(),
    })
}

fn pending(condition: &str) -> Phase {
    Phase::Pending(format!("{condition}: the disk is full"))
}

/// Creates a resource that is crawled, and the workers that report it.
async fn crawled() -> (Bench, Arc<Workers>) {
    let workers = Arc::new(Workers::at_rest());
    let bench = Bench::with(workers.clone()).await;
    bench.push("books@1.0.0").await.unwrap();
    bench.register("worker-1", 1_000).await;
    bench.add("a").await.unwrap();
    (bench, workers)
}

/// Sets the status that the worker reports, under this epoch.
async fn says(bench: &Bench, workers: &Workers, epoch: Epoch, waits: Option<Waits>) {
    let status = status_of(bench, epoch, waits).await;
    workers.set(Answer::Crawls(vec![status]));
}

async fn status_of(bench: &Bench, epoch: Epoch, waits: Option<Waits>) -> CrawlStatus {
    let (id, _) = bench.shard("a").await;
    CrawlStatus {
        last_errors: Vec::new(),
        name: "a".parse().unwrap(),
        id: id.resource,
        shard: id.shard,
        epoch,
        run: Run(1),
        counts: None,
        in_flight: 0,
        hosts: None,
        limits_used: BTreeMap::new(),
        waits,
    }
}

/// Checks the phase as shown for the resource alone and in the list of all.
async fn check_phase(bench: &Bench, expected: &Phase) {
    assert_eq!(bench.phase("a").await, *expected);
    let query = ResourceQuery {
        max: 10,
        ..ResourceQuery::default()
    };
    let all = Grants::all();
    let listed = bench.control.resources(&query, &all);
    let listed = listed.await.unwrap();
    assert_eq!(listed.entries[0].phase, *expected);
}

#[tokio::test]
async fn a_crawl_that_cannot_go_on_is_pending_and_says_why() {
    let (bench, _) = crawled().await;
    check_phase(&bench, &Phase::Running).await;
    for state in [ShardState::Assigned, ShardState::Idle] {
        bench.end("a", state).await;
        bench
            .record("a", |shard| shard.waits = waits("StorageUnavailable"))
            .await;
        check_phase(&bench, &pending("StorageUnavailable")).await;
    }
    // A condition recorded before the end no longer matters.
    bench.end("a", ShardState::Finished).await;
    check_phase(&bench, &Phase::Finished).await;
}

#[tokio::test]
async fn what_the_worker_says_at_this_moment_beats_what_is_stored() {
    let (bench, workers) = crawled().await;
    let (_, shard) = bench.shard("a").await;
    says(&bench, &workers, shard.epoch, waits("StorageUnavailable")).await;
    check_phase(&bench, &pending("StorageUnavailable")).await;
    bench
        .record("a", |shard| shard.waits = waits("FrontierMissing"))
        .await;
    check_phase(&bench, &pending("StorageUnavailable")).await;
    says(&bench, &workers, shard.epoch, None).await;
    check_phase(&bench, &Phase::Running).await;
    // This status comes from a worker that has lost the shard.
    says(&bench, &workers, shard.epoch.next(), None).await;
    check_phase(&bench, &pending("FrontierMissing")).await;
}

#[tokio::test]
async fn a_run_that_is_stopped_keeps_the_numbers_of_its_workers() {
    let (bench, workers) = crawled().await;
    let (id, shard) = bench.shard("a").await;
    let status = status_of(&bench, shard.epoch, None).await;
    let counts = Counts {
        parsed: 7,
        items: 5,
        ..Counts::default()
    };
    workers.set(Answer::Crawls(vec![CrawlStatus {
        counts: Some(counts),
        ..status
    }]));
    bench.restart("a").await.unwrap();
    let history = bench.catalog().keys().runs(id.resource);
    let history = bench.catalog().read::<RunHistory>(&history).await.unwrap();
    let ended = &history.unwrap().value.runs[0];
    assert_eq!((ended.pages, ended.items), (7, 5));
    // The new run begins with none.
    let (_, shard) = bench.shard("a").await;
    assert_eq!(shard.counts, Counts::default());
}

#[tokio::test]
async fn what_an_earlier_owner_counted_is_shown_until_the_present_one_knows_it() {
    let (bench, workers) = crawled().await;
    let counts = |parsed| Counts {
        parsed,
        ..Counts::default()
    };
    bench.record("a", |shard| shard.counts = counts(5)).await;
    let (_, shard) = bench.shard("a").await;
    let shown = async || {
        let shown = bench.control.resource(&"a".parse().unwrap()).await;
        let shown = shown.unwrap().shards.remove(0);
        (shown.record.counts.parsed, shown.is_live)
    };
    says(&bench, &workers, shard.epoch, None).await;
    assert_eq!(shown().await, (5, false));
    let mut status = status_of(&bench, shard.epoch, None).await;
    status.counts = Some(counts(6));
    workers.set(Answer::Crawls(vec![status.clone()]));
    assert_eq!(shown().await, (6, true));
    // The worker is gone, or another one has the shard meanwhile.
    workers.set(Answer::Away);
    assert_eq!(shown().await, (5, false));
    status.epoch = shard.epoch.next();
    workers.set(Answer::Crawls(vec![status.clone()]));
    assert_eq!(shown().await, (5, false));
    // Nobody crawls a shard that is done.
    status.epoch = shard.epoch;
    workers.set(Answer::Crawls(vec![status]));
    bench.end("a", ShardState::Finished).await;
    assert_eq!(shown().await, (5, false));
}

#[tokio::test]
async fn the_owner_tells_of_its_hosts_and_one_that_is_away_of_none() {
    let (bench, workers) = crawled().await;
    let (_, shard) = bench.shard("a").await;
    let status = status_of(&bench, shard.epoch, None).await;
    let by_state = BTreeMap::from([(HostState::Waiting, 3)]);
    workers.set(Answer::Crawls(vec![CrawlStatus {
        hosts: Some(PresentHosts {
            by_state: by_state.clone(),
            in_flight: BTreeMap::new(),
        }),
        ..status
    }]));
    let shown = async || {
        let shown = bench.control.resource(&"a".parse().unwrap()).await;
        shown.unwrap().shards.remove(0).hosts_by_state
    };
    assert_eq!(shown().await, by_state);
    workers.set(Answer::Away);
    assert_eq!(shown().await, BTreeMap::new());
}
