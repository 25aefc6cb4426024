//! Tests of pages that were in flight when a process ended.

use object_store::throttle::{ThrottleConfig, ThrottledStore};

use super::*;
use crate::durable::suspects::n_careful;

#[tokio::test]
async fn a_page_that_ends_the_process_is_given_up_after_three_ends_alone() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["good", "bad"])).await.unwrap();
    for _ in 0..2 {
        let claim = ready(take(&frontier, 0, 9).await);
        assert!(!claim.alone);
        frontier.suspect(&claim).await.unwrap();
    }
    frontier.settle().await.unwrap();
    drop(frontier);
    let mut n_ends = 1;
    loop {
        let frontier = reopen(&objects, 1).await;
        let mut has_ended = false;
        while let Take::Ready(claim) = take(&frontier, 0, 9).await {
            assert!(claim.alone);
            assert_eq!(
                take(&frontier, 0, 9).await,
                Take::Blocked,
                "nothing beside it"
            );
            frontier.suspect(&claim).await.unwrap();
            if claim.request.url.path() == "/bad" {
                has_ended = true;
                break;
            }
            frontier.commit(parsed(claim)).await.unwrap();
        }
        if !has_ended {
            let counts = frontier.counts();
            assert_eq!(counts.dead_by_reason["poison"], 1);
            assert_eq!((counts.parsed, counts.due), (1, 0));
            break;
        }
        n_ends += 1;
    }
    assert_eq!(n_ends, 4, "the first, and three alone");
}

#[tokio::test]
async fn a_suspect_whose_host_is_left_alone_waits_like_any_other_page() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1"])).await.unwrap();
    let claim = ready(take(&frontier, 0, 9).await);
    frontier.suspect(&claim).await.unwrap();
    frontier.settle().await.unwrap();
    drop(frontier);
    let frontier = reopen(&objects, 1).await;
    let claim = ready(next(&frontier, 60_000).await);
    assert!(claim.alone);
    frontier.give_back(claim, HostUpdate::NotBefore(90_000));
    assert_eq!(next(&frontier, 60_000).await, Take::WaitUntil(90_000));
    assert!(ready(next(&frontier, 90_000).await).alone);
}

#[tokio::test]
async fn pages_that_are_given_back_are_not_suspects() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1"])).await.unwrap();
    let claim = ready(take(&frontier, 0, 9).await);
    frontier.suspect(&claim).await.unwrap();
    frontier.give_back(claim, HostUpdate::None);
    frontier.close().await.unwrap();
    let again = reopen(&objects, 1).await;
    assert!(!ready(next(&again, 0).await).alone);
}

#[tokio::test]
async fn a_suspect_whose_host_must_wait_holds_up_no_other() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    let roots = vec![new("http://a/1"), new("http://a/2"), new("http://b/1")];
    frontier.seed(roots).await.unwrap();
    let mut first = ready(take(&frontier, 0, 9).await);
    let mut others = Vec::new();
    while first.request.host() != "a:80" {
        others.push(first);
        first = ready(take(&frontier, 0, 9).await);
    }
    let mut commit = parsed(first);
    commit.result.host_ready_at = 60_000;
    frontier.commit(commit).await.unwrap();
    while let Take::Ready(claim) = take(&frontier, 60_000, 9).await {
        others.push(claim);
    }
    for claim in &others {
        frontier.suspect(claim).await.unwrap();
    }
    frontier.settle().await.unwrap();
    let frontiers = frontiers_in(&objects, settings());
    let open_options = OpenOptions {
        clock: Arc::new(StillClock(60_000)),
        ..open_options(&frontiers, 1).await
    };
    let again: Arc<dyn Frontier> = Arc::new(frontiers.open(open_options).await.unwrap());
    let claim = ready(take(&again, 60_000, 9).await);
    assert_eq!((claim.request.host().as_str(), claim.alone), ("b:80", true));
    again.commit(parsed(claim)).await.unwrap();
    assert_eq!(take(&again, 60_000, 9).await, Take::WaitUntil(120_000));
}

#[tokio::test]
async fn an_end_counts_against_one_page_of_all_crawls_of_the_process() {
    let objects = Arc::new(InMemory::new());
    let frontiers = frontiers_in(&objects, settings());
    let of = async |id, frontiers: &Arc<Frontiers>| -> Arc<dyn Frontier> {
        let shard = ShardId::only(ResourceId(id));
        let storage_epoch = frontiers.storage_epoch(shard).await.unwrap();
        let open_options = OpenOptions {
            shard,
            storage_epoch,
            created: storage_epoch > 0,
            ..open_options(frontiers, 1).await
        };
        let frontier: Arc<dyn Frontier> = Arc::new(frontiers.open(open_options).await.unwrap());
        frontier
    };
    for id in [1, 2] {
        let frontier = of(id, &frontiers).await;
        frontier.seed(urls(&["1"])).await.unwrap();
        let claim = ready(take(&frontier, 0, 9).await);
        frontier.suspect(&claim).await.unwrap();
        frontier.settle().await.unwrap();
    }
    // Writes become durable only if a caller waits for them.
    let seldom = DurableSettings {
        flush_interval: Duration::from_secs(3_600),
        ..settings()
    };
    let again = frontiers_in(&objects, seldom);
    let (one, other) = (of(1, &again).await, of(2, &again).await);
    let claim = ready(take(&one, 0, 9).await);
    one.suspect(&claim).await.unwrap();
    let waiting = ready(take(&other, 0, 9).await);
    assert!(claim.alone && waiting.alone);
    let mut note = Box::pin(other.suspect(&waiting));
    let early = tokio::time::timeout(Duration::from_millis(50), &mut note).await;
    assert!(early.is_err(), "two are tried at a time");
    one.commit(parsed(claim)).await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(50), &mut note).await;
    assert!(early.is_err(), "the end of the first is not durable");
    one.settle().await.unwrap();
    let in_time = tokio::time::timeout(Duration::from_secs(30), note).await;
    in_time.expect("the first is durable").unwrap();
    other.give_back(waiting, HostUpdate::None);
    // A suspect that was given back does not block others.
    assert_eq!(again.alone.available_permits(), 1);
}

/// Ends the process `n_lives` times while `root` is being called, and returns how often that had been counted
/// by the last process.
async fn die_in_root(objects: &Arc<InMemory>, run: u64, n_lives: u32) -> u32 {
    for _ in 0..n_lives {
        reopen(objects, run).await.enter_root().await.unwrap();
    }
    reopen(objects, run).await.root_ends()
}

#[tokio::test]
async fn r01_calls_of_root_that_end_the_process_are_counted() {
    let objects = Arc::new(InMemory::new());
    assert_eq!(die_in_root(&objects, 1, 2).await, 2);
    assert_eq!(die_in_root(&objects, 1, 1).await, 3);
    // Another run begins anew.
    assert_eq!(reopen(&objects, 2).await.root_ends(), 0);
}

#[tokio::test]
async fn r01_a_root_that_comes_back_counts_for_nothing() {
    let objects = Arc::new(InMemory::new());
    die_in_root(&objects, 1, 2).await;
    let frontier = reopen(&objects, 1).await;
    frontier.enter_root().await.unwrap();
    frontier.leave_root().await.unwrap();
    assert_eq!(reopen(&objects, 1).await.root_ends(), 0);
}

#[tokio::test]
async fn r01_a_root_that_is_cut_off_by_a_stop_counts_for_nothing() {
    let objects = Arc::new(InMemory::new());
    die_in_root(&objects, 1, 1).await;
    let frontier = reopen(&objects, 1).await;
    frontier.acquire_root_permit().await;
    frontier.enter_root().await.unwrap();
    assert_eq!(frontier.root_ends(), 1);
    frontier.close().await.unwrap();
    assert_eq!(reopen(&objects, 1).await.root_ends(), 1);
}

#[tokio::test]
async fn r01_the_root_of_another_plugin_is_tried_anew() {
    let objects = Arc::new(InMemory::new());
    die_in_root(&objects, 1, 3).await;
    let frontiers = frontiers_in(&objects, settings());
    let open_options = OpenOptions {
        plugin: Digest::of(b"mended"),
        ..open_options(&frontiers, 1).await
    };
    let frontier = frontiers.open(open_options).await.unwrap();
    assert_eq!(frontier.root_ends(), 0);
}

#[tokio::test]
async fn r01_only_one_call_of_root_at_a_time_counts() {
    let objects = Arc::new(InMemory::new());
    let of = async |id, frontiers: &Arc<Frontiers>| {
        let shard = ShardId::only(ResourceId(id));
        let storage_epoch = frontiers.storage_epoch(shard).await.unwrap();
        let open_options = OpenOptions {
            shard,
            storage_epoch,
            created: storage_epoch > 0,
            ..open_options(frontiers, 1).await
        };
        frontiers.open(open_options).await.unwrap()
    };
    let process = frontiers_in(&objects, settings());
    let (one, other) = (of(1, &process).await, of(2, &process).await);
    one.enter_root().await.unwrap();
    other.enter_root().await.unwrap();
    let next = frontiers_in(&objects, settings());
    let (one, other) = (of(1, &next).await, of(2, &next).await);
    assert_eq!((one.root_ends(), other.root_ends()), (1, 0));
    // Both are tried alone now, one after the other.
    one.acquire_root_permit().await;
    let mut permit = Box::pin(other.acquire_root_permit());
    let early = tokio::time::timeout(Duration::from_millis(50), &mut permit).await;
    assert!(early.is_err(), "two are tried at a time");
    one.enter_root().await.unwrap();
    one.leave_root().await.unwrap();
    let in_time = tokio::time::timeout(Duration::from_secs(30), permit).await;
    in_time.expect("the first has come back");
}

/// A cause may be a store that does not answer for a while: the process goes on.
#[tokio::test]
async fn r01_a_frontier_that_is_opened_anew_is_no_end_of_the_process() {
    let objects = Arc::new(InMemory::new());
    let process = frontiers_in(&objects, settings());
    for _ in 0..3 {
        let open_options = open_options(&process, 1).await;
        let frontier = process.open(open_options).await.unwrap();
        frontier.enter_root().await.unwrap();
        assert_eq!(frontier.root_ends(), 0);
    }
}

#[test]
fn each_unclean_end_in_a_row_doubles_the_pages_that_are_recorded_first() {
    let n = |n_unclean_stops| n_careful(n_unclean_stops, 512);
    assert_eq!([0, 1, 2, 5].map(n), [0, 1_024, 2_048, 16_384]);
    assert_eq!(n(u32::MAX), n(33), "there is an end to it");
}

#[tokio::test]
async fn after_an_unclean_end_pages_are_recorded_before_their_rules_are_called() {
    let objects = Arc::new(InMemory::new());
    let few = DurableSettings {
        max_undurable: 1,
        ..settings()
    };
    let again = async || {
        let frontiers = frontiers_in(&objects, few.clone());
        let open_options = open_options(&frontiers, 1).await;
        let opened: Arc<dyn Frontier> = Arc::new(frontiers.open(open_options).await.unwrap());
        opened
    };
    let (first, later) = (Some(Duration::ZERO), Some(few.flush_interval / 2));
    let frontier = again().await;
    let paths: Vec<String> = (0..9).map(|n| n.to_string()).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    frontier.seed(urls(&paths)).await.unwrap();
    assert_eq!(frontier.suspect_after(), later, "it is new");
    for n in [2, 4] {
        let frontier = again().await;
        for _ in 0..n {
            assert_eq!(frontier.suspect_after(), first);
            let claim = ready(take(&frontier, 0, 9).await);
            frontier.suspect(&claim).await.unwrap();
            frontier.commit(parsed(claim)).await.unwrap();
        }
        assert_eq!(frontier.suspect_after(), later);
        frontier.settle().await.unwrap();
    }
    let frontier = again().await;
    frontier.close().await.unwrap();
    assert_eq!(again().await.suspect_after(), later, "it was closed");
}

/// The database makes one flush for each call that finds something new, one after the other.
#[tokio::test(start_paused = true)]
async fn pages_that_are_recorded_at_once_share_a_flush() {
    const N_PAGES: usize = 32;
    const WRITE_TIME: Duration = Duration::from_millis(20);
    let objects = Arc::new(InMemory::new());
    let paths: Vec<String> = (0..N_PAGES).map(|n| n.to_string()).collect();
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    open(&objects, 1).await.seed(urls(&paths)).await.unwrap();
    let slow = ThrottleConfig {
        wait_put_per_call: WRITE_TIME,
        ..ThrottleConfig::default()
    };
    let shared: Arc<dyn ObjectStore> = objects.clone();
    let slow = ThrottledStore::new(shared, slow);
    let frontiers = Arc::new(Frontiers::new(Arc::new(slow), settings()));
    let open_options = open_options(&frontiers, 1).await;
    let frontier: Arc<dyn Frontier> = Arc::new(frontiers.open(open_options).await.unwrap());
    let mut claims = Vec::new();
    for _ in 0..N_PAGES {
        claims.push(ready(take(&frontier, 0, N_PAGES as u32).await));
    }
    let other_writes = async {
        loop {
            let mark = SinkMark {
                key: "mark".into(),
                value: "1".into(),
            };
            frontier
                .clear_outbox(&SinkName::lines(), 0, Some(mark))
                .await
                .unwrap();
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let before = tokio::time::Instant::now();
    let recorded = claims.iter().map(|claim| frontier.suspect(claim));
    tokio::select! {
        recorded = futures::future::try_join_all(recorded) => drop(recorded.unwrap()),
        () = other_writes => {}
    }
    let took = before.elapsed();
    assert!(took < 5 * WRITE_TIME, "{took:?}");
    drop(frontier);
    let again: Arc<dyn Frontier> = open(&objects, 1).await;
    assert!(ready(next(&again, 0).await).alone, "they are durable");
}
