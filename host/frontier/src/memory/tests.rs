//! The suite of all frontiers, and tests of the limits of this backend.

use std::sync::Arc;

use super::*;
use crate::TakeLimits;
use crate::suite::{self, commit_of, item_of, make_ready, new, parsed, ready, retry, take};
use crawler_model::crawl::ItemRecord;
use crawler_model::id::Shard;
use crawler_model::settings::SinkName;

fn frontier() -> Arc<dyn Frontier> {
    bounded(MemorySettings::default())
}

fn bounded(settings: MemorySettings) -> Arc<dyn Frontier> {
    Arc::new(MemoryFrontier::new(settings))
}

macro_rules! passes {
    ($($statement:ident)*) => {$(
        #[tokio::test]
        async fn $statement() {
            suite::$statement(frontier()).await;
        }
    )*};
}

passes! {
    the_run_is_over_only_after_the_last_page_in_flight
    f03_a_second_seed_changes_nothing
    f24_a_failed_page_is_not_lost
    f25_a_url_is_stored_once_unless_it_asks_to_be_reloaded
    f26_failures_are_tried_again_at_their_time_and_hold_up_nothing
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
    f25_links_of_one_pattern_are_stored_up_to_their_bound
    links_to_new_hosts_end_at_their_bound
    where_redirects_led_to_is_known_like_a_stored_url
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

#[tokio::test]
async fn any_order_of_calls_gives_what_a_plain_list_gives() {
    for seed in 0..20 {
        suite::any_order_of_calls_gives_what_a_plain_list_gives(frontier(), seed).await;
    }
}

#[tokio::test]
async fn a_crawl_of_several_shards_gives_each_page_once() {
    for seed in 0..20 {
        let shards = suite::links::Shards {
            frontiers: (0..4).map(|_| frontier()).collect(),
            reopen: None,
        };
        suite::links::a_crawl_of_several_shards_gives_each_page_once(shards, seed).await;
    }
}

#[tokio::test]
async fn no_page_is_taken_while_too_many_links_wait() {
    let frontier = bounded(MemorySettings {
        max_links: 1,
        ..MemorySettings::default()
    });
    let roots = (0..2).map(|n| new(&format!("http://a/{n}"))).collect();
    frontier.seed(roots).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 9).await));
    commit.result.for_peers = vec![(Shard(1), new("http://b/"))];
    frontier.commit(commit).await.unwrap();
    assert_eq!(take(&frontier, 0, 9).await, Take::Blocked);
    frontier.delivered(Shard(1), 2).await.unwrap();
    ready(take(&frontier, 0, 9).await);
}

#[tokio::test]
async fn links_beyond_the_bound_are_refused_and_counted() {
    let frontier = bounded(MemorySettings {
        max_urls: 2,
        ..MemorySettings::default()
    });
    let roots = (0..5).map(|n| new(&format!("http://a/{n}"))).collect();
    let expected = Committed {
        n_new: 2,
        n_over_capacity: 3,
        ..Committed::default()
    };
    assert_eq!(frontier.seed(roots).await.unwrap(), expected);
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    commit.result.refused = vec![("scope", 4)];
    commit.result.requests = vec![new("http://a/1"), new("http://a/9")];
    frontier.commit(commit).await.unwrap();
    let counts = frontier.counts();
    assert_eq!(counts.refused_links[FRONTIER_URLS], 4);
    assert_eq!(counts.refused_links["scope"], 4);
    assert_eq!(counts.due, 1);
}

async fn check_full(settings: MemorySettings) {
    let frontier = bounded(settings);
    let roots = (0..3).map(|n| new(&format!("http://a/{n}"))).collect();
    frontier.seed(roots).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 9).await));
    commit.result.items = (0..4).map(|n| item_of(&commit.claim, n)).collect();
    frontier.commit(commit).await.unwrap();
    assert_eq!(take(&frontier, 0, 9).await, Take::Blocked);
    frontier
        .clear_outbox(&SinkName::lines(), 2, None)
        .await
        .unwrap();
    ready(take(&frontier, 0, 9).await);
}

#[tokio::test]
async fn no_page_is_taken_while_the_outbox_is_full() {
    check_full(MemorySettings {
        max_outbox_items: 3,
        ..MemorySettings::default()
    })
    .await;
    check_full(MemorySettings {
        max_outbox_bytes: 3 * size_of::<ItemRecord>(),
        ..MemorySettings::default()
    })
    .await;
}

#[tokio::test]
async fn a_run_with_a_full_outbox_and_no_page_left_is_over() {
    let frontier = bounded(MemorySettings {
        max_outbox_items: 1,
        ..MemorySettings::default()
    });
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 9).await));
    commit.result.items = vec![item_of(&commit.claim, 0)];
    frontier.commit(commit).await.unwrap();
    assert_eq!(take(&frontier, 0, 9).await, Take::Empty);
}

#[tokio::test]
async fn pages_in_flight_are_bounded_over_all_hosts() {
    let frontier = bounded(MemorySettings {
        max_undurable: 2,
        ..MemorySettings::default()
    });
    let roots = (0..3).map(|n| new(&format!("http://{n}.test/"))).collect();
    frontier.seed(roots).await.unwrap();
    make_ready(&frontier, 3);
    let claim = ready(take(&frontier, 0, 9).await);
    ready(take(&frontier, 0, 9).await);
    assert_eq!(take(&frontier, 0, 9).await, Take::Blocked);
    frontier.commit(commit_of(claim, retry(0))).await.unwrap();
    ready(take(&frontier, 0, 9).await);
}

#[tokio::test]
async fn hosts_that_are_made_ready_take_no_place_of_a_page() {
    let frontier = bounded(MemorySettings {
        max_undurable: 1,
        ..MemorySettings::default()
    });
    let roots = (0..5).map(|n| new(&format!("http://{n}.test/"))).collect();
    frontier.seed(roots).await.unwrap();
    make_ready(&frontier, 1);
    let of_unready = TakeLimits {
        ready: None,
        answered: Some(1),
        unreached: Some(1),
    };
    for _ in 0..4 {
        ready(frontier.take_within(0, of_unready).unwrap());
    }
    ready(frontier.take(0, 1).unwrap());
    assert_eq!(frontier.take(0, 1), Ok(Take::Blocked));
}

/// This test counts steps, not seconds: pages of a host with very many URLs cost the same as those of one
/// with few.
#[tokio::test]
async fn a_host_with_many_urls_does_not_slow_the_others() {
    let frontier = frontier();
    let mut roots: Vec<_> = (0..50_000)
        .map(|n| new(&format!("http://big/{n}")))
        .collect();
    roots.extend((0..100).map(|n| new(&format!("http://small/{n}"))));
    frontier.seed(roots).await.unwrap();
    let mut n_small = 0;
    for now in 1..=200 {
        let mut commit = parsed(ready(take(&frontier, now, 1).await));
        n_small += u32::from(commit.claim.request.url.host_str() == Some("small"));
        commit.result.host_ready_at = now;
        frontier.commit(commit).await.unwrap();
    }
    assert_eq!(n_small, 100);
}
