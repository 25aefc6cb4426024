//! Suite of tests for every frontier, as statements over `Arc<dyn Frontier>`: each backend runs all of them
//! on an empty frontier that was not seeded.
//!
//! Moments are plain numbers here; nothing waits for real time.

use std::sync::Arc;

use object_store::ObjectStore;
use prost::Message as _;

use super::records::{Head, LATEST_FORMAT};
use super::{
    Claim, Commit, Committed, Ended, Frontier, FrontierError, HostUpdate, NewRequest, PageResult,
    Take, keys, path_of,
};
use crawler_model::crawl::{Done, Item, ItemKey, ItemRecord, Request, UnixMillis};
use crawler_model::frontier::KeptCookies;
use crawler_model::id::{ResourceId, Run};
use crawler_model::resource::ShardId;
use crawler_model::scope::GrowthBounds;
use crawler_model::settings::SinkName;

mod fencing;
pub mod hanging;
mod hosts;
pub mod links;
mod log;
mod model;
mod outcomes;
mod patterns;
mod quarantine;
pub mod requests;
mod sinks;

pub use fencing::*;
pub use hosts::*;
pub use links::{
    a_run_is_not_over_while_links_wait_or_come,
    a_shard_without_root_requests_of_its_own_is_over_until_links_come,
    links_of_another_shard_are_stored_once_as_those_of_a_page_are,
    links_of_other_shards_are_kept_once_in_order_until_they_are_there,
    links_that_ask_for_a_reload_are_sent_each_time,
    r14_links_that_a_policy_refuses_are_counted_and_do_not_come_again,
};
pub use log::*;
pub use model::any_order_of_calls_gives_what_a_plain_list_gives;
pub use outcomes::*;
pub use patterns::{
    f25_links_of_one_pattern_are_stored_up_to_their_bound, links_to_new_hosts_end_at_their_bound,
};
pub use quarantine::{
    a_decision_leaves_what_was_held_since, a_run_remembers_that_items_of_it_were_dropped,
    a_run_whose_items_were_dropped_is_not_judged_by,
    a_run_with_nothing_left_is_what_the_next_is_judged_by,
    an_item_is_in_one_place_after_any_history, held_items_reach_a_sink_only_once_they_are_released,
    held_items_wait_for_a_decision_over_runs, items_of_an_earlier_run_are_dropped_without_a_trace,
    items_that_wait_reach_no_sink_until_they_pass,
};
pub use requests::{
    a_request_keeps_its_first_referrer_and_its_statuses,
    links_between_shards_keep_their_referrers_and_statuses,
};
pub use sinks::{
    a_sink_that_is_added_gets_the_items_from_then_on, a_sink_that_is_gone_holds_nothing_back,
    each_sink_has_a_position_of_its_own, sinks_have_the_same_items_after_any_history,
};

pub fn new(url: &str) -> NewRequest {
    NewRequest {
        request: Request::get(url.parse().unwrap(), "page"),
        depth: 0,
    }
}

/// Makes a frontier that is not open look as if a later version had written it.
pub async fn of_another_format(objects: &Arc<dyn ObjectStore>, shard: ShardId) {
    let head = Head {
        format: LATEST_FORMAT + 1,
        ..Head::default()
    };
    let db = slatedb::Db::builder(path_of(shard), objects.clone())
        .with_segment_extractor(Arc::new(keys::Kinds))
        .build();
    let db = Box::pin(db).await.unwrap();
    db.put(keys::HEAD, head.encode_to_vec()).await.unwrap();
    db.close().await.unwrap();
}

pub fn item_of(claim: &Claim, ordinal: u32) -> ItemRecord {
    let rule = claim.request.rule.clone();
    let item = Item {
        schema: "thing".into(),
        json: format!(r#"{{"n":{ordinal}}}"#),
    };
    ItemRecord {
        key: ItemKey::of(
            ResourceId(1),
            Run(1),
            claim.fingerprint,
            claim.visit,
            &rule,
            ordinal,
        ),
        url: claim.request.url.to_string(),
        rule: rule.to_string(),
        schema: item.schema,
        run: Run(1),
        fetched_at: 0,
        item: serde_json::value::RawValue::from_string(item.json).unwrap(),
        change: None,
    }
}

pub fn commit_of(claim: Box<Claim>, ended: Ended) -> Commit {
    Commit {
        claim,
        result: PageResult::new(ended, 0),
        growth: GrowthBounds::NONE,
        answered_at: 0,
        cookies: None,
    }
}

pub fn cookies(version: u64, jar: &'static str) -> KeptCookies {
    let jar = jar.into();
    KeptCookies { version, jar }
}

pub fn retry(at: UnixMillis) -> Ended {
    Ended::Retry {
        at,
        reason: "timeout".into(),
    }
}

pub fn parsed(claim: Box<Claim>) -> Commit {
    commit_of(claim, Ended::Done(Done::Parsed))
}

/// Takes the next URL once everything is durable.
pub async fn take(frontier: &Arc<dyn Frontier>, now: UnixMillis, per_host: u32) -> Take {
    frontier.settle().await.expect("the frontier is open");
    frontier.take(now, per_host).expect("the frontier is open")
}

#[track_caller]
pub fn ready(take: Take) -> Box<Claim> {
    match take {
        Take::Ready(claim) => claim,
        Take::WaitUntil(_) | Take::Blocked | Take::Empty => panic!("nothing is ready: {take:?}"),
    }
}

pub async fn the_run_is_over_only_after_the_last_page_in_flight(frontier: Arc<dyn Frontier>) {
    assert_eq!(frontier.roots(), None);
    assert_eq!(take(&frontier, 0, 1).await, Take::Blocked);
    let seeded = frontier.seed(vec![new("http://a/")]).await.unwrap();
    assert_eq!(seeded.n_new, 1);
    assert_eq!(frontier.roots(), Some(vec!["http://a/".parse().unwrap()]));
    let claim = ready(take(&frontier, 0, 1).await);
    assert_eq!((claim.attempt, claim.visit, claim.depth), (1, 0, 0));
    assert_eq!((frontier.in_flight(), frontier.counts().due), (1, 1));
    assert_eq!(take(&frontier, 0, 1).await, Take::Blocked);
    frontier.commit(parsed(claim)).await.unwrap();
    assert_eq!(take(&frontier, 0, 1).await, Take::Empty);
    assert_eq!((frontier.counts().parsed, frontier.counts().due), (1, 0));
}

pub async fn f03_a_second_seed_changes_nothing(frontier: Arc<dyn Frontier>) {
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let second = frontier.seed(vec![new("http://a/2")]).await.unwrap();
    assert_eq!(second, Committed::default());
    let claim = ready(take(&frontier, 0, 9).await);
    assert_eq!(claim.request.url.as_str(), "http://a/");
    assert_eq!(take(&frontier, 0, 9).await, Take::Blocked);
}

pub async fn f24_a_failed_page_is_not_lost(frontier: Arc<dyn Frontier>) {
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let claim = ready(take(&frontier, 0, 1).await);
    let failed = commit_of(claim, retry(500));
    frontier.commit(failed).await.unwrap();
    assert_eq!(take(&frontier, 0, 1).await, Take::WaitUntil(500));
    let again = ready(take(&frontier, 500, 1).await);
    assert_eq!((again.attempt, again.visit), (2, 0));
    let dead = Ended::Dead {
        reason: "timeout".into(),
    };
    frontier.commit(commit_of(again, dead)).await.unwrap();
    assert_eq!(take(&frontier, 501, 1).await, Take::Empty);
    let counts = frontier.counts();
    assert_eq!((counts.retries, counts.dead), (1, 1));
    assert_eq!(counts.dead_by_reason["timeout"], 1);
}

pub async fn f26_failures_are_tried_again_at_their_time_and_hold_up_nothing(
    frontier: Arc<dyn Frontier>,
) {
    let urls = vec![new("http://a/1"), new("http://a/2"), new("http://b/1")];
    frontier.seed(urls).await.unwrap();
    let failed = commit_of(ready(take(&frontier, 0, 1).await), retry(9_000));
    frontier.commit(failed).await.unwrap();
    for _ in 0..2 {
        let claim = ready(take(&frontier, 1, 1).await);
        assert_ne!(claim.request.url.as_str(), "http://a/1");
        frontier.commit(parsed(claim)).await.unwrap();
    }
    assert_eq!(take(&frontier, 8_999, 1).await, Take::WaitUntil(9_000));
    let claim = ready(take(&frontier, 9_000, 1).await);
    assert_eq!(claim.request.url.as_str(), "http://a/1");
}

pub async fn f25_a_url_is_stored_once_unless_it_asks_to_be_reloaded(frontier: Arc<dyn Frontier>) {
    let twice = vec![new("http://a/"), new("http://a/#part")];
    assert_eq!(frontier.seed(twice).await.unwrap().n_new, 1);
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    let mut reload = new("http://a/");
    reload.request.reload = true;
    reload.depth = 7;
    commit.result.requests = vec![new("http://a/"), reload.clone(), reload];
    let committed = frontier.commit(commit).await.unwrap();
    assert_eq!(committed, Committed::default());
    let again = ready(take(&frontier, 0, 1).await);
    assert_eq!((again.visit, again.attempt, again.depth), (1, 1, 0));
    frontier.commit(parsed(again)).await.unwrap();
    assert_eq!(take(&frontier, 0, 1).await, Take::Empty);
}

pub async fn a_claim_that_is_given_back_is_as_it_was(frontier: Arc<dyn Frontier>) {
    let urls = vec![new("http://a/1"), new("http://a/2")];
    frontier.seed(urls).await.unwrap();
    let claim = ready(take(&frontier, 0, 1).await);
    frontier.give_back(claim.clone(), HostUpdate::None);
    assert_eq!(frontier.in_flight(), 0);
    assert_eq!(ready(take(&frontier, 0, 1).await), claim);
}

pub async fn a_host_is_left_alone_for_as_long_as_a_claim_of_it_is_given_back(
    frontier: Arc<dyn Frontier>,
) {
    let urls = vec![new("http://a/1"), new("http://a/2"), new("http://b/1")];
    frontier.seed(urls).await.unwrap();
    let claim = ready(take(&frontier, 0, 2).await);
    assert_eq!(claim.request.host(), "a:80");
    frontier.give_back(claim.clone(), HostUpdate::NotBefore(1_000));
    let other = ready(take(&frontier, 0, 2).await);
    assert_eq!(other.request.host(), "b:80");
    frontier.commit(parsed(other)).await.unwrap();
    assert_eq!(take(&frontier, 999, 2).await, Take::WaitUntil(1_000));
    assert_eq!(ready(take(&frontier, 1_000, 2).await), claim);
    // The host is not asked earlier than it was told before.
    frontier.give_back(claim, HostUpdate::NotBefore(500));
    let claim = ready(take(&frontier, 1_000, 2).await);
    frontier.give_back(claim, HostUpdate::None);
    // The clock is set back a little: the host is not due again while it stands there.
    let claim = ready(take(&frontier, 900, 2).await);
    frontier.give_back(claim, HostUpdate::NotBefore(950));
    assert_eq!(take(&frontier, 900, 2).await, Take::WaitUntil(1_001));
    assert!(matches!(take(&frontier, 1_001, 2).await, Take::Ready(_)));
}

pub async fn cookies_are_kept_with_a_page_until_others_are(frontier: Arc<dyn Frontier>) {
    let urls = vec![new("http://a/1"), new("http://a/2"), new("http://a/3")];
    frontier.seed(urls).await.unwrap();
    assert_eq!(frontier.cookies(), None);
    let (first, second) = (cookies(1, "a=1"), cookies(2, "a=2"));
    for (kept, expected) in [
        (Some(&first), &first),
        (None, &first),
        (Some(&second), &second),
    ] {
        let mut commit = parsed(ready(take(&frontier, 0, 1).await));
        commit.cookies = kept.cloned();
        frontier.commit(commit).await.unwrap();
        assert_eq!(frontier.cookies().as_ref(), Some(expected));
    }
}

pub async fn r11_older_cookies_do_not_replace_newer_ones(frontier: Arc<dyn Frontier>) {
    let urls = vec![new("http://a/1"), new("http://b/1"), new("http://c/1")];
    frontier.seed(urls).await.unwrap();
    // The page that has logged in anew ends first.
    for (version, jar, expected) in [
        (2, "login=new", "login=new"),
        (1, "login=old", "login=new"),
        (3, "login=newest", "login=newest"),
    ] {
        let mut commit = parsed(ready(take(&frontier, 0, 1).await));
        commit.cookies = Some(cookies(version, jar));
        frontier.commit(commit).await.unwrap();
        let kept = frontier.cookies().map(|kept| kept.jar);
        assert_eq!(kept.as_deref(), Some(expected.as_bytes()));
    }
}

pub async fn a_claim_ends_once(frontier: Arc<dyn Frontier>) {
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let claim = ready(take(&frontier, 0, 1).await);
    let failed = commit_of(claim.clone(), retry(0));
    frontier.commit(failed).await.unwrap();
    let again = ready(take(&frontier, 0, 1).await);
    let mut late = parsed(claim.clone());
    late.result.items = vec![item_of(&late.claim, 0)];
    let error = frontier.commit(late).await.unwrap_err();
    assert!(
        matches!(error, FrontierError::NotInFlight { .. }),
        "{error}"
    );
    frontier.give_back(claim, HostUpdate::None);
    assert_eq!((frontier.in_flight(), frontier.counts().items), (1, 0));
    frontier.commit(parsed(again)).await.unwrap();
    assert_eq!(take(&frontier, 0, 1).await, Take::Empty);
}

pub async fn a_host_is_left_alone_until_its_clock(frontier: Arc<dyn Frontier>) {
    let urls = vec![new("http://a/1"), new("http://a/2")];
    frontier.seed(urls).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    commit.result.host_ready_at = 1_000;
    commit.result.requests = vec![new("http://a:8080/")];
    frontier.commit(commit).await.unwrap();
    let other_port = ready(take(&frontier, 10, 1).await);
    assert_eq!(other_port.request.url.as_str(), "http://a:8080/");
    assert_eq!(take(&frontier, 10, 1).await, Take::WaitUntil(1_000));
    assert_eq!(
        ready(take(&frontier, 1_000, 1).await).request.url.path(),
        "/2"
    );
}

pub async fn a_host_has_as_many_in_flight_as_it_may(frontier: Arc<dyn Frontier>) {
    let urls = (0..4).map(|n| new(&format!("http://a/{n}"))).collect();
    frontier.seed(urls).await.unwrap();
    let claim = ready(take(&frontier, 0, 2).await);
    ready(take(&frontier, 0, 2).await);
    assert_eq!(take(&frontier, 0, 2).await, Take::Blocked);
    frontier.commit(parsed(claim)).await.unwrap();
    ready(take(&frontier, 0, 2).await);
    assert_eq!(take(&frontier, 0, 2).await, Take::Blocked);
}

pub async fn items_stay_in_the_outbox_in_order_until_cleared(frontier: Arc<dyn Frontier>) {
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    commit.result.items = (0..5).map(|n| item_of(&commit.claim, n)).collect();
    let keys: Vec<ItemKey> = commit
        .result
        .items
        .iter()
        .map(|item| item.key.clone())
        .collect();
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
    for _ in 0..2 {
        let batch = frontier.outbox(&SinkName::lines(), 2).await.unwrap();
        let found: Vec<_> = batch.items.iter().map(|item| &item.key).collect();
        assert_eq!((found, batch.end), (vec![&keys[0], &keys[1]], 2));
    }
    frontier
        .clear_outbox(&SinkName::lines(), 2, None)
        .await
        .unwrap();
    frontier
        .clear_outbox(&SinkName::lines(), 1, None)
        .await
        .unwrap();
    let batch = frontier.outbox(&SinkName::lines(), 9).await.unwrap();
    assert_eq!(
        (batch.items[0].key.clone(), batch.end),
        (keys[2].clone(), 5)
    );
    frontier
        .clear_outbox(&SinkName::lines(), batch.end, None)
        .await
        .unwrap();
    let batch = frontier.outbox(&SinkName::lines(), 9).await.unwrap();
    assert_eq!((batch.items.len(), batch.end), (0, 5));
    assert_eq!(frontier.counts().items, 5);
}

pub async fn where_redirects_led_to_is_known_like_a_stored_url(frontier: Arc<dyn Frontier>) {
    let target = new("http://a/target");
    let request = target.request.clone();
    frontier.seed(vec![new("http://a/moved")]).await.unwrap();
    assert!(!frontier.knows(&request).await.unwrap());
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    commit.result.final_url = Some(request.clone());
    commit.result.requests = vec![target];
    frontier.commit(commit).await.unwrap();
    assert!(frontier.knows(&request).await.unwrap());
    assert_eq!(take(&frontier, 0, 1).await, Take::Empty);
}
