//! The suite of all frontiers, with that for openings.

use super::*;
use crate::Frontier;
use crate::suite;
use crawler_model::id::Shard;

fn twin() -> Arc<FrontiersTwin> {
    Arc::new(FrontiersTwin::new(Arc::new(NoFaults)))
}

/// Opens a shard's frontier, which fences its present owner.
async fn open(twin: &Arc<FrontiersTwin>, shard: u32) -> Arc<dyn Frontier> {
    let shard = ShardId {
        shard: Shard(shard),
        ..ShardId::only(ResourceId(7))
    };
    let storage_epoch = twin.storage_epoch(shard).await.unwrap();
    let open = OpenOptions {
        created: storage_epoch > 0,
        storage_epoch,
        ..OpenOptions::first(shard)
    };
    twin.clone().open(open).await.unwrap()
}

async fn fresh() -> Arc<dyn Frontier> {
    open(&twin(), 0).await
}

fn two() -> suite::Two {
    let twin = twin();
    [twin.clone(), twin]
}

macro_rules! passes {
    ($of:expr => $($statement:ident)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $statement() {
            suite::$statement($of).await;
        }
    )*};
}

passes! { fresh().await =>
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

passes! { two() =>
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

#[tokio::test(start_paused = true)]
async fn sinks_have_the_same_items_after_any_history() {
    for seed in 0..50 {
        suite::sinks_have_the_same_items_after_any_history(two(), seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_item_is_in_one_place_after_any_history() {
    for seed in 0..50 {
        suite::an_item_is_in_one_place_after_any_history(two(), seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn any_order_of_calls_gives_what_a_plain_list_gives() {
    for seed in 0..3 {
        suite::any_order_of_calls_gives_what_a_plain_list_gives(fresh().await, seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_crawl_of_several_shards_gives_each_page_once_however_often_they_are_killed() {
    for seed in 0..20 {
        let twin = twin();
        let mut frontiers = Vec::new();
        for shard in 0..3 {
            frontiers.push(open(&twin, shard).await);
        }
        let shards = suite::links::Shards {
            frontiers,
            reopen: Some(&|shard| Box::pin(open(&twin, shard))),
        };
        suite::links::a_crawl_of_several_shards_gives_each_page_once(shards, seed).await;
    }
}
