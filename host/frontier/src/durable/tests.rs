//! The suite of all frontiers, and tests of a frontier that survives its process.

use std::sync::Arc;

use object_store::memory::InMemory;

use super::*;
use crate::suite::{
    self, commit_of, cookies, item_of, make_ready, new, parsed, ready, retry, take,
};
use crate::{Ended, Take};
use crawler_model::frontier::SinkMark;
use crawler_model::id::{Digest, Epoch, ResourceId, Shard};
use crawler_model::resource::ShardId;
use crawler_model::settings::{SinkName, SinkNames};
use crawler_process::clock::{Clock, StillClock};
use object_store::ObjectStore;
use slatedb::Db;

mod changes;
mod disk_cache;
mod group;
mod growth;
mod hosts;
mod memory;
mod moved;
mod peers;
mod quarantine;
mod refused;
mod reopening;
mod runs;
mod sinks;
mod statistics;
mod suspects;
mod sweep;
mod told_items;

fn shard() -> ShardId {
    ShardId::only(ResourceId(7))
}

fn settings() -> DurableSettings {
    DurableSettings {
        flush_interval: Duration::from_millis(5),
        ..DurableSettings::default()
    }
}

/// Returns the arguments that tests open a frontier with.
async fn open_options(frontiers: &Arc<Frontiers>, run: u64) -> OpenOptions {
    let storage_epoch = frontiers.storage_epoch(shard()).await.unwrap();
    OpenOptions {
        run: Run(run),
        created: storage_epoch > 0,
        storage_epoch,
        ..OpenOptions::first(shard())
    }
}

fn frontiers_in(objects: &Arc<InMemory>, settings: DurableSettings) -> Arc<Frontiers> {
    Arc::new(Frontiers::new(objects.clone(), settings))
}

async fn open(objects: &Arc<InMemory>, run: u64) -> Arc<DurableFrontier> {
    let frontiers = frontiers_in(objects, settings());
    let open_options = open_options(&frontiers, run).await;
    Arc::new(frontiers.open(open_options).await.unwrap())
}

async fn fresh() -> Arc<dyn Frontier> {
    open(&Arc::new(InMemory::new()), 1).await
}

/// Reopens a frontier that was not closed: the new one opens while the old one is still there.
async fn reopen(objects: &Arc<InMemory>, run: u64) -> Arc<dyn Frontier> {
    open(objects, run).await
}

macro_rules! suite {
    ($($name:ident)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                suite::$name(fresh().await).await;
            }
        )*
    };
}

suite! {
    the_run_is_over_only_after_the_last_page_in_flight
    f03_a_second_seed_changes_nothing
    f24_a_failed_page_is_not_lost
    f26_failures_are_tried_again_at_their_time_and_hold_up_nothing
    f25_a_url_is_stored_once_unless_it_asks_to_be_reloaded
    a_claim_that_is_given_back_is_as_it_was
    cookies_are_kept_with_a_page_until_others_are
    r11_older_cookies_do_not_replace_newer_ones
    a_host_is_left_alone_for_as_long_as_a_claim_of_it_is_given_back
    a_claim_ends_once
    lines_of_the_log_are_stored_by_their_numbers
    a_host_is_left_alone_until_its_clock
    hosts_are_counted_by_what_they_wait_for
    hosts_that_are_ready_have_places_of_their_own
    a_host_that_was_asked_while_it_became_ready_waits
    a_host_that_could_not_be_reached_waits_with_all_its_urls
    a_host_that_is_given_up_brings_its_urls_at_once
    a_failure_from_before_an_answer_puts_nothing_off
    hosts_that_have_answered_leave_the_others_an_eighth
    a_host_has_as_many_in_flight_as_it_may
    items_stay_in_the_outbox_in_order_until_cleared
    where_redirects_led_to_is_known_like_a_stored_url
    f25_links_of_one_pattern_are_stored_up_to_their_bound
    links_to_new_hosts_end_at_their_bound
    a_run_is_not_over_while_links_wait_or_come
    a_shard_without_root_requests_of_its_own_is_over_until_links_come
    links_of_another_shard_are_stored_once_as_those_of_a_page_are
    r14_links_that_a_policy_refuses_are_counted_and_do_not_come_again
    links_of_other_shards_are_kept_once_in_order_until_they_are_there
    links_that_ask_for_a_reload_are_sent_each_time
    pages_are_counted_by_their_outcomes
    a_request_keeps_its_first_referrer_and_its_statuses
    links_between_shards_keep_their_referrers_and_statuses
}

macro_rules! openings {
    ($($name:ident)*) => {
        $(
            #[tokio::test]
            async fn $name() {
                let objects = Arc::new(InMemory::new());
                let first = frontiers_in(&objects, settings());
                suite::$name([first, frontiers_in(&objects, settings())]).await;
            }
        )*
    };
}

openings! {
    each_opening_has_a_writer_epoch_of_its_own
    whoever_is_overtaken_writes_nothing_more
    an_epoch_that_was_read_too_early_opens_nothing
    what_was_durable_is_there_in_the_next_opening
    what_was_created_and_is_gone_is_missing
    hosts_that_were_divided_anew_rest_for_one_delay
    a_root_request_that_is_redriven_is_counted_anew
    the_log_survives_its_opening_and_its_run
    each_sink_has_a_position_of_its_own
    a_sink_that_is_added_gets_the_items_from_then_on
    a_sink_that_is_gone_holds_nothing_back
    items_that_wait_reach_no_sink_until_they_pass
    held_items_reach_a_sink_only_once_they_are_released
    a_decision_leaves_what_was_held_since
    a_run_with_nothing_left_is_what_the_next_is_judged_by
    a_run_whose_items_were_dropped_is_not_judged_by
    held_items_wait_for_a_decision_over_runs
    a_run_remembers_that_items_of_it_were_dropped
    items_of_an_earlier_run_are_dropped_without_a_trace
}

/// An earlier program knows one sink. It opens a frontier that never had another, and refuses any other.
#[tokio::test]
async fn the_format_is_another_once_a_sink_was_named() {
    let objects = Arc::new(InMemory::new());
    let format = async |sinks: &[&str]| {
        let frontiers = frontiers_in(&objects, settings());
        let sinks = sinks.iter().map(|name| name.parse().unwrap());
        let open_options = OpenOptions {
            sinks: SinkNames::of(sinks),
            ..open_options(&frontiers, 1).await
        };
        let frontier = frontiers.open(open_options).await.unwrap();
        let has_cursors = {
            let mut found = frontier
                .inner
                .scan_prefix(crate::keys::CURSORS)
                .await
                .unwrap();
            found.next().await.unwrap().is_some()
        };
        let format = frontier.inner.state().head.format;
        frontier.close().await.unwrap();
        (format, has_cursors)
    };
    assert_eq!(format(&["lines"]).await, (crate::records::FORMAT, false));
    let with_sinks = (crate::records::FORMAT_WITH_SINKS, true);
    assert_eq!(format(&["lines", "db"]).await, with_sinks);
    // The marks of the other sink are still there.
    assert_eq!(format(&["lines"]).await, with_sinks);
}

#[tokio::test]
async fn sinks_that_keep_up_read_from_memory_while_one_lags() {
    let objects = Arc::new(InMemory::new());
    let frontiers = frontiers_in(&objects, settings());
    let (lines, slow) = (SinkName::lines(), "slow".parse::<SinkName>().unwrap());
    let open_options = OpenOptions {
        sinks: SinkNames::of([lines.clone(), slow.clone()]),
        ..open_options(&frontiers, 1).await
    };
    let durable = Arc::new(frontiers.open(open_options).await.unwrap());
    let frontier: Arc<dyn Frontier> = durable.clone();
    frontier.seed(urls(&["1", "2", "3", "4"])).await.unwrap();
    let large = format!("\"{}\"", "x".repeat(3 << 20));
    let mut keys = Vec::new();
    for _ in 0..4 {
        let mut commit = parsed(ready(take(&frontier, 0, 9).await));
        let mut item = item_of(&commit.claim, 0);
        item.item = serde_json::value::RawValue::from_string(large.clone()).unwrap();
        keys.push(item.key.clone());
        commit.result.items = vec![item];
        frontier.commit(commit).await.unwrap();
        frontier.settle().await.unwrap();
        let first = durable.inner.state().outbox.position(&lines).unwrap();
        let in_memory = durable.inner.state().outbox.from(first, 9);
        assert_eq!(in_memory.map(|items| items.len()), Ok(1));
        frontier
            .clear_outbox(&lines, first + 1, None)
            .await
            .unwrap();
    }
    // What fits is limited, and the rest is read back.
    let mut found = Vec::new();
    while found.len() < 4 {
        let batch = frontier.outbox(&slow, 9).await.unwrap();
        assert!(!batch.items.is_empty());
        found.extend(batch.items.iter().map(|item| item.key.clone()));
        frontier.clear_outbox(&slow, batch.end, None).await.unwrap();
    }
    assert_eq!(found, keys);
    assert_eq!(frontier.undelivered_bytes(), 0);
}

#[tokio::test]
async fn sinks_have_the_same_items_after_any_history() {
    for seed in 0..5 {
        let objects = Arc::new(InMemory::new());
        let first = frontiers_in(&objects, settings());
        let two: suite::Two = [first, frontiers_in(&objects, settings())];
        suite::sinks_have_the_same_items_after_any_history(two, seed).await;
    }
}

#[tokio::test]
async fn any_order_of_calls_gives_what_a_plain_list_gives() {
    for seed in 0..3 {
        suite::any_order_of_calls_gives_what_a_plain_list_gives(fresh().await, seed).await;
    }
}

fn urls(names: &[&str]) -> Vec<NewRequest> {
    names
        .iter()
        .map(|name| new(&format!("http://a/{name}")))
        .collect()
}

/// Returns the next URL or moment, once everything that is to be read in is in memory.
async fn next(frontier: &Arc<dyn Frontier>, now: UnixMillis) -> Take {
    loop {
        match frontier.take(now, 1).unwrap() {
            Take::Blocked => frontier.take_changed().await,
            other => return other,
        }
    }
}

/// Takes and parses until no page is ready; returns the paths in their order.
async fn crawl(frontier: &Arc<dyn Frontier>) -> Vec<String> {
    let mut paths = Vec::new();
    while let Take::Ready(claim) = take(frontier, 1_000_000, 1).await {
        paths.push(claim.request.url.path().to_owned());
        frontier.commit(parsed(claim)).await.unwrap();
    }
    paths
}

#[tokio::test]
async fn f23_a_crash_loses_neither_urls_nor_items_nor_what_was_seen() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1", "2", "3"])).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 9).await));
    commit.result.items = vec![item_of(&commit.claim, 0)];
    commit.result.requests = urls(&["2", "4"]);
    (commit.result.bytes, commit.result.kept_bytes) = (10, 4);
    frontier.commit(commit).await.unwrap();
    let in_flight = ready(take(&frontier, 0, 9).await);
    assert_eq!(in_flight.request.url.path(), "/2");
    frontier.settle().await.unwrap();

    let again = reopen(&objects, 1).await;
    assert_eq!(again.roots().unwrap().len(), 3);
    let counts = again.counts();
    assert_eq!(
        (counts.parsed, counts.due, counts.items, counts.bytes),
        (1, 3, 1, 10)
    );
    assert_eq!(counts.kept_bytes, 4);
    assert_eq!(
        again
            .outbox(&SinkName::lines(), 9)
            .await
            .unwrap()
            .items
            .len(),
        1
    );
    assert!(again.knows(&new("http://a/4").request).await.unwrap());
    assert_eq!(
        crawl(&again).await,
        ["/2", "/3", "/4"],
        "what was in flight too"
    );
    let batch = again.outbox(&SinkName::lines(), 9).await.unwrap();
    again
        .clear_outbox(&SinkName::lines(), batch.end, None)
        .await
        .unwrap();
    again.check_empty().await.unwrap();
    assert_eq!(take(&again, 0, 1).await, Take::Empty);
}

#[tokio::test]
async fn retries_keep_their_time_and_their_reason_over_a_restart() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1"])).await.unwrap();
    let failed = commit_of(ready(take(&frontier, 100, 1).await), retry(5_000));
    frontier.commit(failed).await.unwrap();
    frontier.settle().await.unwrap();
    let again = reopen(&objects, 1).await;
    assert_eq!(next(&again, 4_999).await, Take::WaitUntil(5_000));
    assert_eq!(ready(next(&again, 5_000).await).attempt, 2);
    let again = reopen(&objects, 1).await;
    assert_eq!(ready(next(&again, 5_000).await).attempt, 2);
}

#[tokio::test]
async fn a_clock_set_back_a_day_delays_nothing() {
    const DAY: u64 = 86_400_000;
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 2 * DAY, 1).await));
    commit.result.requests = urls(&["3"]);
    commit.result.host_ready_at = 2 * DAY + 1_000;
    frontier.commit(commit).await.unwrap();
    assert_eq!(take(&frontier, DAY, 1).await, Take::WaitUntil(DAY + 1_000));
    frontier.settle().await.unwrap();
    let frontiers = frontiers_in(&objects, settings());
    let open_options = OpenOptions {
        clock: Arc::new(StillClock(DAY)),
        ..open_options(&frontiers, 1).await
    };
    let again: Arc<dyn Frontier> = Arc::new(frontiers.open(open_options).await.unwrap());
    assert_eq!(next(&again, DAY).await, Take::WaitUntil(DAY + 1_000));
    ready(next(&again, DAY + 1_000).await);
}

#[tokio::test]
async fn after_an_opening_no_host_is_asked_sooner_than_its_delay() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier
        .seed(vec![
            new("http://a/1"),
            new("http://a/2"),
            new("http://b/1"),
        ])
        .await
        .unwrap();
    let mut commit = parsed(ready(take(&frontier, 10_000, 1).await));
    commit.result.host_ready_at = 10_300;
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
    let frontiers = frontiers_in(&objects, settings());
    let open_options = OpenOptions {
        clock: Arc::new(StillClock(50_000)),
        delay: Duration::from_millis(700),
        ..open_options(&frontiers, 1).await
    };
    let again: Arc<dyn Frontier> = Arc::new(frontiers.open(open_options).await.unwrap());
    assert_eq!(next(&again, 50_000).await, Take::WaitUntil(50_300));
    ready(next(&again, 50_300).await);
    assert_eq!(next(&again, 50_300).await, Take::WaitUntil(50_700));
}

#[tokio::test]
async fn a_redrive_keeps_referrers_and_statuses() {
    let durable = open(&Arc::new(InMemory::new()), 1).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    let link = suite::requests::linked("http://a/2", "http://a/1");
    frontier.seed(vec![link.clone()]).await.unwrap();
    let claim = ready(take(&frontier, 0, 1).await);
    let end = commit_of(claim, dead("timeout"));
    frontier.commit(end).await.unwrap();
    assert_eq!(durable.redrive(&Redrive::default()).await.unwrap(), 1);
    let claim = ready(take(&frontier, 0, 1).await);
    assert_eq!(claim.request, link.request);
}

#[tokio::test]
async fn dead_letters_are_tried_again_by_reason() {
    let objects = Arc::new(InMemory::new());
    let durable = open(&objects, 1).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    frontier.seed(urls(&["1", "2", "3"])).await.unwrap();
    for reason in ["timeout", "trapped", "timeout"] {
        let dead = Ended::Dead {
            reason: reason.into(),
        };
        let claim = ready(take(&frontier, 0, 1).await);
        frontier.commit(commit_of(claim, dead)).await.unwrap();
    }
    assert_eq!(take(&frontier, 0, 1).await, Take::Empty);
    let order = |reason: &str| Redrive::of(Some(reason));
    assert_eq!(durable.redrive(&order("nothing")).await.unwrap(), 0);
    assert_eq!(durable.redrive(&order("timeout")).await.unwrap(), 2);
    let counts = frontier.counts();
    assert_eq!((counts.dead, counts.due), (1, 2));
    assert_eq!(crawl(&frontier).await, ["/1", "/3"]);
    assert_eq!(durable.redrive(&Redrive::default()).await.unwrap(), 1);
    assert_eq!(crawl(&frontier).await, ["/2"]);
    assert!(frontier.counts().dead_by_reason.is_empty());
}

#[tokio::test]
async fn items_that_memory_does_not_hold_are_read_back_in_order() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1"])).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    commit.result.items = (0..10).map(|n| item_of(&commit.claim, n)).collect();
    let keys: Vec<_> = commit
        .result
        .items
        .iter()
        .map(|item| item.key.clone())
        .collect();
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
    let mark = SinkMark {
        key: "file".into(),
        value: "length".into(),
    };
    frontier
        .clear_outbox(&SinkName::lines(), 3, Some(mark.clone()))
        .await
        .unwrap();
    frontier.settle().await.unwrap();
    let again = reopen(&objects, 1).await;
    let batch = again.outbox(&SinkName::lines(), 4).await.unwrap();
    let found: Vec<_> = batch.items.iter().map(|item| item.key.clone()).collect();
    assert_eq!((found.as_slice(), batch.end), (&keys[3..7], 7));
    again
        .clear_outbox(&SinkName::lines(), 10, None)
        .await
        .unwrap();
    assert!(
        again
            .outbox(&SinkName::lines(), 4)
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let reader = crate::reader::FrontierReader::open(objects, shard()).await;
    assert_eq!(reader.unwrap().unwrap().marks().await.unwrap(), [mark]);
}

#[tokio::test]
async fn no_more_pages_are_taken_than_may_be_lost() {
    let objects = Arc::new(InMemory::new());
    let settings = DurableSettings {
        max_undurable: 3,
        flush_interval: Duration::from_secs(3_600),
        ..settings()
    };
    let frontiers = frontiers_in(&objects, settings);
    let open_options = open_options(&frontiers, 1).await;
    let durable = Arc::new(frontiers.open(open_options).await.unwrap());
    let frontier: Arc<dyn Frontier> = durable.clone();
    let all: Vec<String> = (0..50).map(|n| n.to_string()).collect();
    let names: Vec<&str> = all.iter().map(String::as_str).collect();
    frontier.seed(urls(&names)).await.unwrap();
    make_ready(&frontier, 1);
    let mut claims = Vec::new();
    for _ in 0..3 {
        claims.push(ready(frontier.take(0, 9).unwrap()));
    }
    assert_eq!(frontier.take(0, 9), Ok(Take::Blocked));
    while frontier.counts().due > 0 {
        match frontier.take(0, 9).unwrap() {
            Take::Ready(claim) => claims.push(claim),
            Take::Blocked if claims.is_empty() => frontier.settle().await.unwrap(),
            Take::Blocked => frontier
                .commit(parsed(claims.remove(0)))
                .await
                .map(drop)
                .unwrap(),
            other => panic!("{other:?}"),
        }
        let state = durable.inner.state();
        assert!(state.n_in_flight() + state.n_undurable <= 3);
    }
}

#[tokio::test]
async fn after_a_commit_that_was_cut_off_nothing_more_is_written() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    commit.result.items = vec![item_of(&commit.claim, 0)];
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
    let claim = ready(take(&frontier, 0, 1).await);
    {
        let mut cut_off = std::pin::pin!(frontier.commit(parsed(claim)));
        // At first it lets other pages join its batch.
        for _ in 0..2 {
            assert!(futures::poll!(&mut cut_off).is_pending());
        }
    }
    let shard = shard();
    let closed = FrontierError::Closed { shard };
    assert_eq!(
        frontier.clear_outbox(&SinkName::lines(), 1, None).await,
        Err(closed.clone())
    );
    assert_eq!(frontier.take(0, 1), Err(closed));
    let again = reopen(&objects, 1).await;
    let counts = again.counts();
    assert_eq!(counts.parsed + counts.due, 2);
    // The sink was not told to have the item, whatever happened to the page.
    assert_eq!(
        again
            .outbox(&SinkName::lines(), 9)
            .await
            .unwrap()
            .items
            .len(),
        1
    );
}

#[tokio::test]
async fn pages_that_are_led_to_one_place_at_once_give_its_items_once() {
    let objects = Arc::new(InMemory::new());
    let frontier: Arc<dyn Frontier> = open(&objects, 1).await;
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    let claims = [
        ready(take(&frontier, 0, 9).await),
        ready(take(&frontier, 0, 9).await),
    ];
    for claim in claims {
        let mut commit = parsed(claim);
        commit.result.items = vec![item_of(&commit.claim, 0)];
        commit.result.requests = urls(&["3"]);
        commit.result.final_url = Some(urls(&["target"])[0].request.clone());
        frontier.commit(commit).await.unwrap();
    }
    let counts = frontier.counts();
    assert_eq!((counts.parsed, counts.other_done), (1, 1));
    assert_eq!((counts.items, counts.due), (1, 1));
}

fn dead(reason: &str) -> Ended {
    Ended::Dead {
        reason: reason.to_owned(),
    }
}

/// Returns a frontier with a URL that was given up for `timeout` and is taken for its second visit.
async fn visited_again() -> (Arc<DurableFrontier>, Arc<dyn Frontier>, Box<Claim>) {
    let durable = open(&Arc::new(InMemory::new()), 1).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    frontier.seed(urls(&["1", "2"])).await.unwrap();
    let commit = commit_of(ready(take(&frontier, 0, 1).await), dead("timeout"));
    frontier.commit(commit).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    commit.result.requests = urls(&["1"]);
    commit.result.requests[0].request.reload = true;
    frontier.commit(commit).await.unwrap();
    let claim = ready(take(&frontier, 0, 1).await);
    assert_eq!(claim.visit, 1);
    (durable, frontier, claim)
}

#[tokio::test]
async fn a_url_that_is_given_up_twice_is_one_dead_letter() {
    let (durable, frontier, claim) = visited_again().await;
    frontier
        .commit(commit_of(claim, dead("trapped")))
        .await
        .unwrap();
    let counts = frontier.counts();
    assert_eq!(counts.dead, 1);
    assert_eq!(
        counts.dead_by_reason.keys().collect::<Vec<_>>(),
        ["trapped"]
    );
    assert_eq!(durable.redrive(&Redrive::default()).await.unwrap(), 1);
    assert_eq!(frontier.counts().dead, 0);
}

#[tokio::test]
async fn a_letter_is_not_tried_again_once_a_later_visit_has_come() {
    let (durable, frontier, claim) = visited_again().await;
    frontier.commit(parsed(claim)).await.unwrap();
    // Going back to the first visit would give later items the keys of stored ones.
    assert_eq!(durable.redrive(&Redrive::default()).await.unwrap(), 0);
    let counts = frontier.counts();
    assert_eq!((counts.dead, counts.due, counts.parsed), (0, 0, 2));
    assert_eq!(durable.redrive(&Redrive::default()).await.unwrap(), 0);
}
