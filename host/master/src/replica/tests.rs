//! Tests that the followed state equals the one that would be read.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;
use crate::observed::ChangeKind;
use crate::placement::testing::{assignment, resource, worker};
use crawler_model::id::{NodeId, ResourceId};
use crawler_model::node::{Draining, Role};
use crawler_model::resource::{
    Deleting, Owner, PlacementSpec, Resource, ShardId, ShardRecord, ShardState,
};
use crawler_process::task::TaskScope;
use crawler_store::Txn;
use crawler_store::catalog::encode;
use crawler_store::embedded::{EmbeddedStore, Settings};
use crawler_store::keys::Keys;
use crawler_store::racing_store::{RacingStore, Read};

const SOON: Duration = Duration::from_secs(30);

fn catalog(folder: &tempfile::TempDir) -> Catalog {
    let store = EmbeddedStore::open(folder.path(), Settings::default()).unwrap();
    Catalog::new(Arc::new(store), Keys::default())
}

fn worker_id(n: u64) -> NodeId {
    format!("worker-{n}").parse().unwrap()
}

/// Makes a change of a random record of any kind, well-formed or not.
fn random_change(rng: &mut StdRng, keys: &Keys) -> Txn {
    let n = rng.random_range(0..4);
    let node = worker(worker_id(n).as_str(), rng.random_range(1..9), &[]);
    let placement = PlacementSpec {
        weight: rng.random_range(1..9),
        ..PlacementSpec::default()
    };
    let id = rng.random_range(0..6);
    let resource = resource(id, placement);
    let shard = ShardId::only(ResourceId(id));
    let name = resource.spec.name.clone();
    let (key, value) = match rng.random_range(0..6) {
        0 => (keys.node(Role::Worker, &node.id), encode(&node)),
        1 => (keys.draining(&node.id), encode(&Draining { since: 1 })),
        2 => (keys.resource(&name), encode(&resource)),
        3 => {
            let states = [
                ShardState::Assigned,
                ShardState::Revoking,
                ShardState::Finished,
            ];
            let owner = Owner {
                node: node.id,
                incarnation: node.incarnation,
            };
            let record = ShardRecord {
                state: states[rng.random_range(0..3)].clone(),
                owner: rng.random_bool(0.8).then_some(owner),
                ..ShardRecord::new(name)
            };
            (keys.shard(shard), encode(&record))
        }
        4 => {
            let mirror = assignment(&resource);
            (keys.assignment(&node.id, shard), encode(&mirror))
        }
        _ => {
            let deleting = Deleting {
                name,
                id: resource.id,
                requests: Vec::new(),
                owners: Vec::new(),
                deleted_at: 1,
                purge: false,
                stopped_at: None,
                items_cut: false,
                rest: None,
            };
            (keys.deleting(resource.id), encode(&deleting))
        }
    };
    match rng.random_range(0..10) {
        0..3 => Txn::new().delete(key),
        3 => Txn::new().put(key, "?"),
        _ => Txn::new().put(key, value),
    }
}

/// Returns all values that decisions are based on, as text.
fn told(observed: &Observed) -> String {
    let loads = observed.candidates.iter();
    let loads: Vec<_> = loads.map(|c| (&c.node, c.load, c.n_shards)).collect();
    let assignments: Vec<_> = observed.assignments.iter().collect();
    let owners: Vec<_> = observed.owners().collect();
    let deletions: Vec<_> = observed.deletions.due(Some(u64::MAX)).collect();
    format!(
        "{:?}\n{loads:?}\n{:?}\n{:?}\n{:?}\n{owners:?}\n{:?}\n{assignments:?}\n{:?}",
        observed.workers,
        observed.resources,
        observed.shards,
        observed.revoking,
        observed.unreadable,
        deletions,
    )
}

#[tokio::test]
async fn what_is_followed_is_what_would_be_read() {
    for seed in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let catalog = catalog(&folder);
        let mut rng = StdRng::seed_from_u64(seed);
        let mut followed = Observed::nothing(Strategy::LeastLoad);
        let mut watch = catalog
            .store()
            .watch(&catalog.keys().all(), Revision(0))
            .await
            .unwrap();
        for _ in 0..60 {
            let txn = random_change(&mut rng, catalog.keys());
            catalog.store().commit(txn).await.unwrap();
        }
        while let Some(event) = watch.next().now_or_never() {
            match event.unwrap() {
                WatchEvent::Put(entry) => followed.put(catalog.keys(), &entry),
                WatchEvent::Delete { key, revision } => {
                    followed.remove(catalog.keys(), &key, revision);
                }
                WatchEvent::StartOver => panic!("nothing was missed"),
            }
        }
        let read = Observed::read(&catalog, Strategy::LeastLoad).await.unwrap();
        assert_eq!(told(&followed), told(&read), "seed {seed}");
    }
}

#[tokio::test]
async fn what_is_read_anew_is_what_would_be_read_and_shares_what_has_not_changed() {
    for seed in 0..20 {
        let folder = tempfile::tempdir().unwrap();
        let catalog = catalog(&folder);
        let mut rng = StdRng::seed_from_u64(seed);
        let mut before = Arc::<Observed>::default();
        for _ in 0..5 {
            for _ in 0..20 {
                let txn = random_change(&mut rng, catalog.keys());
                catalog.store().commit(txn).await.unwrap();
            }
            let read = Observed::read(&catalog, Strategy::LeastLoad).await.unwrap();
            let over = Observed::read_over(&catalog, Strategy::LeastLoad, before.clone());
            let over = over.await.unwrap();
            assert_eq!(told(&over), told(&read), "seed {seed}");
            assert!(over.n_changes >= before.n_changes + read.n_changes);
            for (id, shard) in &over.shards {
                let known = before.shards.get(id);
                let known = known.filter(|known| known.revision == shard.revision);
                assert!(known.is_none_or(|known| Arc::ptr_eq(known, shard)));
            }
            before = Arc::new(over);
        }
    }
}

#[tokio::test]
async fn what_differs_when_all_is_read_anew_is_a_change() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let [gone, stays, new] = [1, 2, 3].map(|id| resource(id, PlacementSpec::default()));
    let key = |resource: &Resource| catalog.keys().resource(&resource.spec.name);
    for resource in [&gone, &stays] {
        let txn = Txn::new().put(key(resource), encode(resource));
        catalog.store().commit(txn).await.unwrap();
    }
    let strategy = Strategy::LeastLoad;
    let before = Arc::new(Observed::read(&catalog, strategy).await.unwrap());
    for txn in [
        Txn::new().delete(key(&gone)),
        Txn::new().put(key(&new), encode(&new)),
    ] {
        catalog.store().commit(txn).await.unwrap();
    }
    let read = Observed::read_over(&catalog, strategy, before.clone()).await;
    let read = read.unwrap();
    for (log, log_before) in [
        (&read.log, &before.log),
        (&read.state_log, &before.state_log),
    ] {
        let (changes, _) = log.after(log_before.last(), usize::MAX);
        let names: Vec<_> = changes.iter().map(|change| &change.name).collect();
        assert_eq!(names, [&gone.spec.name, &new.spec.name]);
    }
    let (changes, _) = read.state_log.after(0, usize::MAX);
    let kinds: Vec<ChangeKind> = changes.iter().map(|change| change.kind).collect();
    assert_eq!(kinds, [ChangeKind::Ended(gone.id), ChangeKind::Began]);
    assert!(read.state_log.is_after_gap(changes[0].revision));
    // A reader of the state before goes on; one from in between may know what neither state has.
    let Revision(known) = before.settled;
    let numbers = [known, known + 1, known + 2].map(|n| read.states_go_on_from(Revision(n)));
    assert_eq!(numbers, [Some(0), None, Some(2)]);
}

#[tokio::test]
async fn what_came_and_went_between_two_reads_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let keys = catalog.keys();
    let [earlier, known, brief, twice, mut again] =
        [1, 2, 3, 4, 5].map(|id| resource(id, PlacementSpec::default()));
    again.spec.name = twice.spec.name.clone();
    let deleted = |resource: &Resource| {
        let deleting = Deleting {
            name: resource.spec.name.clone(),
            id: resource.id,
            requests: Vec::new(),
            owners: Vec::new(),
            deleted_at: 1,
            purge: false,
            stopped_at: None,
            items_cut: false,
            rest: None,
        };
        Txn::new()
            .delete(keys.resource(&resource.spec.name))
            .put(keys.deleting(resource.id), encode(&deleting))
    };
    let added =
        |resource: &Resource| Txn::new().put(keys.resource(&resource.spec.name), encode(resource));
    for txn in [
        added(&earlier),
        deleted(&earlier),
        added(&known),
        added(&twice),
    ] {
        catalog.store().commit(txn).await.unwrap();
    }
    let strategy = Strategy::LeastLoad;
    let before = Arc::new(Observed::read(&catalog, strategy).await.unwrap());
    for txn in [
        deleted(&known),
        added(&brief),
        deleted(&brief),
        deleted(&twice),
        added(&again),
        deleted(&again),
    ] {
        catalog.store().commit(txn).await.unwrap();
    }
    let read = Observed::read_over(&catalog, strategy, before).await;
    let read = read.unwrap();
    let names = [&known, &brief, &again].map(|resource| &resource.spec.name);
    let (changes, _) = read.log.after(0, usize::MAX);
    let found: Vec<_> = changes.iter().map(|change| &change.name).collect();
    assert_eq!(found, names);
    let (changes, _) = read.state_log.after(0, usize::MAX);
    let ends: Vec<_> = changes
        .iter()
        .map(|change| (&change.name, change.kind))
        .collect();
    let ids = [known.id, brief.id, again.id].map(ChangeKind::Ended);
    let last_ends: Vec<_> = names.into_iter().zip(ids).collect();
    assert_eq!(ends, last_ends);
}

#[tokio::test]
async fn a_state_is_no_older_than_the_loss_of_its_worker() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let keys = catalog.keys();
    let resource = resource(1, PlacementSpec::default());
    let name = &resource.spec.name;
    let node = worker(worker_id(1).as_str(), 10, &[]);
    let shard = ShardId::only(resource.id);
    let record = ShardRecord {
        state: ShardState::Assigned,
        owner: Some(Owner {
            node: node.id.clone(),
            incarnation: node.incarnation,
        }),
        ..ShardRecord::new(name.clone())
    };
    let crawled = Txn::new()
        .put(keys.node(Role::Worker, &node.id), encode(&node))
        .put(keys.resource(name), encode(&resource))
        .put(keys.shard(shard), encode(&record))
        .put(
            keys.assignment(&node.id, shard),
            encode(&assignment(&resource)),
        );
    catalog.store().commit(crawled).await.unwrap();
    let strategy = Strategy::LeastLoad;
    let before = Arc::new(Observed::read(&catalog, strategy).await.unwrap());
    // Nothing is followed between the two reads.
    for txn in [
        Txn::new().put(keys.shard(shard), encode(&record)),
        Txn::new().delete(keys.node(Role::Worker, &node.id)),
    ] {
        catalog.store().commit(txn).await.unwrap();
    }
    let read = Observed::read_over(&catalog, strategy, before.clone()).await;
    let read = read.unwrap();
    let (then, now) = (&before.states[name], &read.states[name]);
    assert_ne!(now.phase, then.phase);
    assert_eq!(now.since, read.revision);
}

#[tokio::test]
async fn a_replica_has_what_was_written_before_and_after_it_began() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = catalog(&folder);
    let register = |n| {
        let node = worker(worker_id(n).as_str(), 10, &[]);
        let key = catalog.keys().node(Role::Worker, &node.id);
        Txn::new().put(key, encode(&node))
    };
    catalog.store().commit(register(1)).await.unwrap();
    let (mut replica, feeder) = Replica::new(catalog.clone(), Strategy::LeastLoad);
    assert!(replica.candidates().is_none());
    // A decision does not wait for a replica that is not fed yet.
    assert!(replica.with(Revision(u64::MAX)).await.is_none());
    let scope = TaskScope::new();
    scope.spawn("feeder", feeder.run(scope.stop_signal()));
    let first = tokio::time::timeout(SOON, replica.after(None))
        .await
        .unwrap();
    assert_eq!(first.workers.len(), 1);
    catalog.store().commit(register(2)).await.unwrap();
    let second = replica.after(Some(first.n_changes));
    let second = tokio::time::timeout(SOON, second).await.unwrap();
    assert_eq!(second.workers.len(), 2);
    assert_eq!(replica.candidates().unwrap().len(), 2);
    assert!(replica.with(second.revision).await.is_some());
    // A record that no decision is based on wakes nobody: only the change after it is seen.
    let other = Txn::new().put(catalog.keys().status(&worker_id(1)), "{}");
    catalog.store().commit(other).await.unwrap();
    catalog.store().commit(register(3)).await.unwrap();
    let third = replica.after(Some(second.n_changes));
    let third = tokio::time::timeout(SOON, third).await.unwrap();
    assert_eq!(third.workers.len(), 3);
    assert_eq!(third.n_changes, second.n_changes + 1);
    scope.stop(SOON).await;
}

#[tokio::test]
async fn f04_a_replica_misses_nothing_between_its_list_and_its_watch() {
    let folder = tempfile::tempdir().unwrap();
    let node = worker(worker_id(1).as_str(), 10, &[]);
    let key = Keys::default().node(Role::Worker, &node.id);
    let store = EmbeddedStore::open(folder.path(), Settings::default()).unwrap();
    let store = RacingStore::new(Arc::new(store));
    store.race_after(Read::Range, 1, Txn::new().put(key, encode(&node)));
    let catalog = Catalog::new(Arc::new(store), Keys::default());
    let (mut replica, feeder) = Replica::new(catalog, Strategy::LeastLoad);
    let scope = TaskScope::new();
    scope.spawn("feeder", feeder.run(scope.stop_signal()));
    let seen = async {
        let mut present = replica.after(None).await;
        while present.workers.is_empty() {
            present = replica.after(Some(present.n_changes)).await;
        }
    };
    tokio::time::timeout(SOON, seen).await.expect("it is seen");
    scope.stop(SOON).await;
}
