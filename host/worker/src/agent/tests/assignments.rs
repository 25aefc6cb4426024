//! Tests of which crawls run, whatever the store holds and however its watch fails.

use super::bench::Wanted;
use super::faulty_store::Network;
use super::*;
use crate::snapshot::AssignmentSnapshot;
use crawler_model::crawl::NO_RULE;
use crawler_model::id::{ResourceId, ResourceName};
use crawler_model::resource::Redrive;
use crawler_model::status::LogLine;
use crawler_store::catalog::encode;
use crawler_store::racing_store::Read;
use crawler_store::{Store as _, Txn};

/// Time well below that after which the agent looks by itself.
const SOON: Duration = Duration::from_secs(4);

async fn commit(bench: &Bench, txn: Txn) {
    bench.parts.catalog.store().commit(txn).await.unwrap();
}

fn mirror_of(bench: &Bench, id: u64) -> String {
    let keys = bench.parts.catalog.keys();
    let id = ShardId::only(ResourceId(id));
    keys.assignment(&bench.parts.node.id, id)
}

fn page_number(path: &str) -> u64 {
    path[1..].parse().unwrap()
}

async fn crawls_soon(bench: &Bench) {
    let n_asked = bench.n_asked();
    bench
        .wait_for("crawled", SOON, async |bench| bench.n_asked() > n_asked + 1)
        .await;
}

#[tokio::test(start_paused = true)]
async fn f01_nothing_runs_that_is_assigned_to_another() {
    let bench = Bench::new().await;
    for (name, id, worker, incarnation) in [
        ("longer", 8, "worker-11", 1),
        ("other", 9, "worker-2", 1),
        ("earlier", 10, "worker-1", 2),
    ] {
        let wanted = Wanted {
            name,
            id,
            worker,
            incarnation,
            ..Wanted::default()
        };
        bench.want(wanted).await;
    }
    bench.pass(2 * MINUTE).await;
    assert_eq!((bench.n_asked(), bench.epoch()), (0, None));
    bench.want(Wanted::default()).await;
    crawls_soon(&bench).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn f02_what_was_assigned_before_the_start_runs() {
    let bench = Bench::after(async |parts, store| {
        let txn = Wanted::default().txn(parts);
        store.store.commit(txn).await.unwrap();
    })
    .await;
    crawls_soon(&bench).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn f03_a_put_on_a_running_resource_seeds_nothing_again() {
    let bench = Bench::new().await;
    bench.want(Wanted::default()).await;
    crawls_soon(&bench).await;
    let opened = bench.record().await.storage_epoch;
    for generation in [1, 1, 2, 3] {
        let wanted = Wanted {
            present: Some(bench.record().await),
            generation: Generation(generation),
            ..Wanted::default()
        };
        bench.want(wanted).await;
        crawls_soon(&bench).await;
    }
    assert_eq!(bench.n_roots(), 1);
    assert_eq!(bench.record().await.storage_epoch, opened);
    let numbers: Vec<u64> = bench.asked().iter().map(|path| page_number(path)).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn f04_nothing_is_missed_between_a_list_and_its_watch() {
    // The requests are the first list, the watch, and the list that is looked at.
    for nth in 1..=3 {
        let bench = Bench::after(async |parts, store| {
            let txn = Wanted::default().txn(parts);
            store.store.race_after(Read::Range, nth, txn);
        })
        .await;
        assert!(bench.store.store.has_raced());
        crawls_soon(&bench).await;
        bench.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn f05_a_watch_that_lost_something_or_broke_ends_nothing() {
    for fault in [Network::StartOver, Network::Breaks] {
        let bench = Bench::new().await;
        bench.store.turns(Network::Lossy);
        bench.want(Wanted::default()).await;
        bench.pass(3 * SECOND).await;
        assert_eq!(bench.n_asked(), 0, "nobody has told the agent");
        bench.store.turns(fault);
        crawls_soon(&bench).await;
        // The next watch works like the first.
        bench.store.turns(Network::Good);
        bench.pass(SOON).await;
        bench.unassign().await;
        bench
            .wait_for("ended", SOON, async |bench| bench.epoch().is_none())
            .await;
        bench.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn f20_records_that_are_of_no_use_hide_no_other_and_stop_nothing() {
    let bench = Bench::new().await;
    let keys = bench.parts.catalog.keys().clone();
    let other = || Wanted {
        name: "other",
        id: 6,
        first: 1_000,
        ..Wanted::default()
    };
    bench.store.turns(Network::Lossy);
    bench.want(other()).await;
    let resource = keys.resource(&"other".parse::<ResourceName>().unwrap());
    let prefix = keys.assignments_of(&bench.parts.node.id);
    let foreign = format!("{prefix}of/nobody");
    let valid = bench.store.store.get(&mirror_of(&bench, 6)).await.unwrap();
    let txn = Txn::new()
        .put(mirror_of(&bench, 5), "{")
        .put(&foreign, valid.unwrap().value)
        .put(&resource, "not a resource");
    commit(&bench, txn).await;
    bench.store.turns(Network::Good);
    bench.want(Wanted::default()).await;
    crawls_soon(&bench).await;
    let mut look = AssignmentSnapshot::begin(&bench.parts).await.unwrap();
    let (id, assignment) = look.assigned.pop_first().unwrap();
    assert!(look.resource_of(id, &assignment).await.unwrap().is_none());
    let told: Vec<String> = look.broken.into_iter().collect();
    for (told, key) in told
        .iter()
        .zip([&mirror_of(&bench, 5), &foreign, &resource])
    {
        assert!(told.contains(key.as_str()), "{told:?}");
    }
    assert_eq!(told.len(), 3);

    // The assignment of a running crawl is overwritten and then restored.
    let mirror = mirror_of(&bench, 7);
    let good = bench.store.store.get(&mirror).await.unwrap().unwrap().value;
    commit(&bench, Txn::new().put(&mirror, "?")).await;
    bench.pass(SOON).await;
    crawls_soon(&bench).await;
    commit(&bench, Txn::new().put(&mirror, good)).await;
    bench.pass(SOON).await;
    assert_eq!(bench.n_roots(), 1);
    assert!(bench.asked().iter().all(|path| page_number(path) < 1_000));

    bench.want(other()).await;
    bench
        .wait_for("repaired", SOON, async |bench| bench.n_roots() == 2)
        .await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn f29_settings_of_the_spec_hold_and_their_changes_apply_at_once() {
    let bench = Bench::new().await;
    let wanted = |present, generation, delay_ms, limits| Wanted {
        present,
        generation: Generation(generation),
        limits,
        first: 100,
        crawl: CrawlSettings {
            delay_ms: Some(delay_ms),
            ..bench::settings()
        },
        ..Wanted::default()
    };
    let first = wanted(None, 1, 5_000, r#"{"body": 1234, "fuel": 70000}"#);
    bench.want(first).await;
    crawls_soon(&bench).await;
    let last = |bench: &Bench| {
        let request = bench.site.asked.lock().unwrap().last().unwrap().clone();
        let limits = *bench.site.limits.lock().unwrap().last().unwrap();
        (request.delay.unwrap(), request.max_body, limits.fuel)
    };
    assert_eq!(bench.asked()[0], "/100", "params are handed to the rules");
    assert_eq!(last(&bench), (5 * SECOND, 1_234, 70_000));
    let opened = bench.record().await.storage_epoch;
    let present = Some(bench.record().await);
    let second = wanted(present, 2, 7_000, r#"{"body": 4321, "fuel": 80000}"#);
    bench.want(second).await;
    crawls_soon(&bench).await;
    crawls_soon(&bench).await;
    assert_eq!(last(&bench), (7 * SECOND, 4_321, 80_000));
    // Another worker would allow these limits; other changes apply here too, and the refusal is logged.
    let present = Some(bench.record().await);
    let third = wanted(present, 3, 9_000, r#"{"body": 900000000000}"#);
    bench.want(third).await;
    crawls_soon(&bench).await;
    crawls_soon(&bench).await;
    assert_eq!(last(&bench), (9 * SECOND, 4_321, 80_000));
    let name = bench.parts.crawls.status(None)[0].name.clone();
    let status = bench.parts.crawls.status(Some(&name));
    let errors = &status[0].last_errors;
    let is_told = |line: &LogLine| line.message.starts_with("the limits stay as they were: ");
    assert!(errors.iter().any(is_told), "{errors:?}");
    assert_eq!(bench.record().await.storage_epoch, opened);
    assert_eq!(bench.n_roots(), 1);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_opening_reads_the_record_of_its_shard_twice() {
    let bench = Bench::new().await;
    bench.want(Wanted::default()).await;
    let is_open = async |bench: &Bench| bench.is_open();
    bench.wait_for("open", SOON, is_open).await;
    let key = bench.parts.catalog.keys().shard(bench::shard());
    assert_eq!(bench.store.n_gets(&key), 2);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn another_version_of_the_plugin_goes_on_where_the_one_before_was() {
    let bench = Bench::new().await;
    bench.want(Wanted::default()).await;
    crawls_soon(&bench).await;
    let before = bench.record().await;
    // A master writes this with the change: the shard is taken from its owner, and assigned anew.
    let freed = ShardRecord {
        redrive: Some(Redrive::of(Some(NO_RULE))),
        epoch: before.epoch.next(),
        ..before.freed()
    };
    let key = bench.parts.catalog.keys().shard(bench::shard());
    let txn = Txn::new()
        .put(key, encode(&freed))
        .delete(mirror_of(&bench, 7));
    commit(&bench, txn).await;
    let second = Wanted {
        epoch: freed.epoch.next(),
        present: Some(freed),
        generation: Generation(2),
        plugin: "second",
        ..Wanted::default()
    };
    bench.want(second).await;
    let reopened = async |bench: &Bench| {
        let record = bench.record().await;
        record.storage_epoch > before.storage_epoch && record.redrive.is_none()
    };
    bench.wait_for("opened anew", SOON, reopened).await;
    crawls_soon(&bench).await;
    assert_eq!((bench.n_roots(), bench.epoch()), (1, Some(Epoch(3))));
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn s18_a_change_that_is_none_of_the_crawls_wakes_nobody() {
    let bench = resting().await;
    let present = bench.record().await;
    bench.assign_with(1, Generation(2), bench::settings()).await;
    bench.pass(MINUTE).await;
    assert_eq!(bench.record().await, present);
    assert!(!bench.is_open());
    bench.stop().await;
}

/// Deletes the resource, and adds another one with the same name at once.
fn deleted_and_added(bench: &Bench) -> Txn {
    let again = Wanted {
        id: 8,
        first: 1_000,
        ..Wanted::default()
    };
    again.txn(&bench.parts).delete(mirror_of(bench, 7))
}

async fn check_that_only_the_new_one_is_asked_for(bench: &Bench, n_before: usize) {
    bench
        .wait_for("anew", SOON, async |bench| bench.n_asked() > n_before + 3)
        .await;
    let asked = bench.asked().split_off(n_before);
    assert!(
        asked.iter().all(|path| page_number(path) >= 1_000),
        "{asked:?}"
    );
    assert_eq!(bench.n_roots(), 2);
}

#[tokio::test(start_paused = true)]
async fn s19_nothing_of_a_deleted_resource_is_fetched_after_two_seconds() {
    let bench = Bench::new().await;
    bench.want(Wanted::default()).await;
    crawls_soon(&bench).await;
    bench.unassign().await;
    bench.pass(2 * SECOND).await;
    let n_asked = bench.n_asked();
    bench.pass(MINUTE).await;
    assert_eq!(bench.n_asked(), n_asked);
    assert_eq!(bench.epoch(), None);
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn s19_a_name_that_is_deleted_and_added_again_starts_anew() {
    let bench = Bench::new().await;
    bench.want(Wanted::default()).await;
    crawls_soon(&bench).await;
    commit(&bench, deleted_and_added(&bench)).await;
    bench.pass(2 * SECOND).await;
    check_that_only_the_new_one_is_asked_for(&bench, bench.n_asked()).await;
    bench.stop().await;
}

#[tokio::test(start_paused = true)]
async fn s19_a_name_that_is_deleted_and_added_while_the_worker_is_cut_off_starts_anew() {
    let bench = outage::cut_off().await;
    let n_asked = bench.n_asked();
    let txn = deleted_and_added(&bench);
    bench.store.store.commit(txn).await.unwrap();
    bench.pass(MINUTE).await;
    assert_eq!(bench.n_asked(), n_asked);
    bench.store.turns(Network::Good);
    check_that_only_the_new_one_is_asked_for(&bench, n_asked).await;
    bench.stop().await;
}
