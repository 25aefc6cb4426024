//! What the plan is, by what was observed.

use std::collections::BTreeMap;

use super::plan::Plan;
use super::*;
use crate::model::id::{Digest, Epoch, Generation, Incarnation, ResourceId, Run};
use crate::model::plugin::Description;
use crate::model::plugin::PluginRecord;
use crate::model::resource::{ResourceSpec, ShardState, Waits};
use crate::store::Revision;

fn versioned<T>(value: T) -> Versioned<T> {
    Versioned {
        value,
        revision: Revision(1),
        created: Revision(1),
    }
}

/// One worker, one plugin, one resource with one shard in the state given.
fn observed(state: ShardState, owner_incarnation: Option<u64>) -> Observed {
    let id = ShardId::only(ResourceId(7));
    let worker: NodeId = "worker-1".parse().unwrap();
    let owner = owner_incarnation.map(|n| Owner {
        node: worker.clone(),
        incarnation: Incarnation(n),
    });
    let node = Node {
        id: worker.clone(),
        role: Role::Worker,
        address: "127.0.0.1:1".into(),
        incarnation: Incarnation(2),
        labels: BTreeMap::new(),
        capacity: 10,
        version: "0".into(),
        interface: String::new(),
        draining: false,
        started_at: 0,
    };
    let name: ResourceName = "books".parse().unwrap();
    let resource = Resource {
        requests: Vec::new(),
        id: id.resource,
        assigned_node: String::new(),
        creation_time: 0,
        generation: Generation(1),
        run: Run(1),
        pinned: Some(PinnedPlugin {
            version: "1.0.0".parse().unwrap(),
            digest: Digest::of(b""),
            interface: String::new(),
        }),
        spec: ResourceSpec {
            name: name.clone(),
            plugin: "books".parse().unwrap(),
            params: BTreeMap::new(),
            limits: Default::default(),
            crawl: Default::default(),
            placement: Default::default(),
        },
    };
    let shard = ShardRecord {
        owner: owner.clone(),
        epoch: Epoch(3),
        state,
        created: true,
        ..ShardRecord::new(name.clone())
    };
    Observed {
        unreadable: Default::default(),
        workers: BTreeMap::from([(worker, node)]),
        plugins: vec![plugin("1.0.0"), plugin("1.10.0"), plugin("1.9.0")],
        resources: BTreeMap::from([(name, versioned(resource))]),
        shards: BTreeMap::from([(id, versioned(shard))]),
        assignments: owner
            .map(|owner| ((owner.node, id), None))
            .into_iter()
            .collect(),
        deleting: BTreeMap::new(),
    }
}

fn plugin(version: &str) -> PluginRecord {
    PluginRecord {
        name: "books".parse().unwrap(),
        version: version.parse().unwrap(),
        digest: Digest::of(version.as_bytes()),
        size: 0,
        interface: "0.1.0".into(),
        description: Description {
            name: "books".parse().unwrap(),
            version: version.parse().unwrap(),
            rules: Vec::new(),
            schemas: Vec::new(),
            hosts: Vec::new(),
            limits: BTreeMap::new(),
        },
        pushed_at: 0,
    }
}

/// What a leader that has long led, and knows of nobody who vanished, does.
fn planned(observed: &Observed) -> Vec<Action> {
    let began = Instant::now();
    let absences = Absences::new(LEASE, began);
    let plan = plan(
        observed,
        &absences,
        Strategy::LeastLoad,
        began + 100 * LEASE,
    );
    assert_eq!(plan.look_again, None);
    plan.actions
}

const LEASE: Duration = Duration::from_secs(10);

fn the_shard() -> ShardId {
    ShardId::only(ResourceId(7))
}

fn assign() -> Action {
    Action::Assign(the_shard(), "worker-1".parse().unwrap())
}

#[test]
fn what_nobody_has_is_assigned() {
    assert_eq!(planned(&observed(ShardState::Free, None)), [assign()]);
}

#[test]
fn what_runs_well_is_left_alone() {
    assert_eq!(planned(&observed(ShardState::Assigned, Some(2))), []);
    let mut over = observed(ShardState::Finished, Some(2));
    over.assignments.clear();
    assert_eq!(planned(&over), []);
}

#[test]
fn a_shard_of_an_earlier_process_under_the_same_id_is_assigned_again() {
    assert_eq!(
        planned(&observed(ShardState::Assigned, Some(1))),
        [assign()]
    );
}

#[test]
fn f17_without_a_worker_a_shard_waits_and_is_placed_when_one_comes() {
    let mut observed = observed(ShardState::Free, None);
    let workers = std::mem::take(&mut observed.workers);
    assert_eq!(planned(&observed), []);
    observed.workers = workers;
    assert_eq!(planned(&observed), [assign()]);
}

#[test]
fn an_idle_shard_is_finished_even_when_its_worker_is_gone() {
    let mut observed = observed(ShardState::Idle, Some(2));
    assert_eq!(planned(&observed), [Action::Finish(the_shard())]);
    observed.workers.clear();
    assert_eq!(planned(&observed), [Action::Finish(the_shard())]);
}

#[test]
fn an_assignment_that_no_shard_backs_is_removed() {
    let mut observed = observed(ShardState::Assigned, Some(2));
    let stray = ShardId::only(ResourceId(8));
    let worker: NodeId = "worker-1".parse().unwrap();
    observed.assignments.insert((worker.clone(), stray), None);
    assert_eq!(planned(&observed), [Action::Unassign(worker, stray)]);
}

#[test]
fn a_resource_waits_for_its_plugin_and_takes_the_highest_version() {
    let mut observed = observed(ShardState::Free, None);
    observed
        .resources
        .values_mut()
        .for_each(|r| r.value.pinned = None);
    let actions = planned(&observed);
    let [Action::Pin(name, pinned)] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    assert_eq!(
        (name.as_str(), pinned.version.to_string().as_str()),
        ("books", "1.10.0")
    );
    observed.plugins.clear();
    assert_eq!(planned(&observed), []);
}

#[test]
fn f23_a_crawl_goes_on_in_the_same_run_whoever_takes_it_over() {
    let mut observed = observed(ShardState::Assigned, Some(1));
    let shard = observed.shards.get_mut(&the_shard()).unwrap();
    shard.value.storage_epoch = 5;
    shard.value.waits = Some(Waits {
        condition: "StorageUnavailable".to_owned(),
        why: "of the owner before".to_owned(),
    });
    let (resource, shard) = (
        observed.resources.values().next().unwrap(),
        &observed.shards[&the_shard()],
    );
    let node = observed.workers.values().next().unwrap();
    let (txn, resource_record, record) =
        assignment_txn(&Keys::default(), resource, (the_shard(), shard), node);
    assert_eq!(resource_record.run, resource.value.run);
    assert_eq!((record.epoch, record.storage_epoch), (Epoch(4), 5));
    assert!(record.created && record.waits.is_none());
    // It may still bring items to an end, and a deletion has to wait for it.
    assert_eq!(record.former_owners, shard.value.writers());
    let text = format!("{txn:?}");
    assert!(text.contains("worker-1|127.0.0.1:1"), "{text}");
}

/// What a leader does that looks at this now.
fn looked(observed: &Observed, absences: &mut Absences, now: Instant) -> Plan {
    absences.look(observed.workers.keys(), observed.owners(), now);
    plan(observed, absences, Strategy::LeastLoad, now)
}

fn another_worker(observed: &mut Observed) -> NodeId {
    let mut node = observed.workers.values().next().unwrap().clone();
    node.id = "worker-2".parse().unwrap();
    let id = node.id.clone();
    observed.workers.insert(id.clone(), node);
    id
}

#[test]
fn s04_what_is_on_a_missing_worker_is_placed_on_another_at_once() {
    let mut observed = observed(ShardState::Assigned, Some(2));
    let began = Instant::now();
    let mut absences = Absences::new(LEASE, began);
    let other = another_worker(&mut observed);
    let now = began + 10 * LEASE;
    assert_eq!(looked(&observed, &mut absences, now).actions, []);
    observed
        .workers
        .remove(&"worker-1".parse::<NodeId>().unwrap());
    let plan = looked(&observed, &mut absences, now + LEASE);
    assert_eq!(plan.actions, [Action::Assign(the_shard(), other)]);
    assert_eq!(plan.look_again, None);
}

#[test]
fn s06_a_new_leader_leaves_what_is_on_a_missing_worker_for_a_lease_time_and_one_that_is_back_has_it()
 {
    let mut observed = observed(ShardState::Assigned, Some(2));
    let began = Instant::now();
    let mut absences = Absences::new(LEASE, began);
    let other = another_worker(&mut observed);
    let all = observed.workers.clone();
    observed
        .workers
        .remove(&"worker-1".parse::<NodeId>().unwrap());
    let plan = looked(&observed, &mut absences, began);
    assert_eq!((plan.actions, plan.look_again), (vec![], Some(LEASE)));
    let later = began + LEASE / 4;
    let plan = looked(&observed, &mut absences, later);
    assert_eq!(
        (plan.actions, plan.look_again),
        (vec![], Some(LEASE * 3 / 4))
    );
    // Back under the same incarnation.
    let gone = std::mem::replace(&mut observed.workers, all);
    let plan = looked(&observed, &mut absences, began + LEASE / 2);
    assert_eq!((plan.actions, plan.look_again), (vec![], None));
    // Or not.
    let mut absences = Absences::new(LEASE, began);
    observed.workers = gone;
    looked(&observed, &mut absences, began);
    let plan = looked(&observed, &mut absences, began + LEASE);
    assert_eq!(plan.actions, [Action::Assign(the_shard(), other)]);
}

#[test]
fn what_nobody_has_is_placed_in_the_first_lease_time_of_a_leader_too() {
    let mut observed = observed(ShardState::Free, None);
    let began = Instant::now();
    let mut absences = Absences::new(LEASE, began);
    assert_eq!(looked(&observed, &mut absences, began).actions, [assign()]);
    // Nobody crawls it, whoever had it before.
    observed.shards.values_mut().for_each(|shard| {
        shard.value.owner = Some(Owner {
            node: "worker-9".parse().unwrap(),
            incarnation: Incarnation(1),
        });
    });
    assert_eq!(looked(&observed, &mut absences, began).actions, [assign()]);
}

#[test]
fn s17_a_worker_that_starts_anew_gets_its_shards_again_however_loaded_it_is() {
    let mut observed = observed(ShardState::Assigned, Some(1));
    another_worker(&mut observed);
    observed
        .workers
        .values_mut()
        .for_each(|node| node.capacity = 1);
    let began = Instant::now();
    let mut absences = Absences::new(LEASE, began);
    // Without a wait, in the first lease time of a leader too.
    assert_eq!(looked(&observed, &mut absences, began).actions, [assign()]);
    // Not where it takes nothing new.
    let node = observed
        .workers
        .get_mut(&"worker-1".parse::<NodeId>().unwrap());
    node.unwrap().draining = true;
    let other = Action::Assign(the_shard(), "worker-2".parse().unwrap());
    assert_eq!(looked(&observed, &mut absences, began).actions, [other]);
}

#[test]
fn s21_an_assignment_carries_what_others_are_placed_by() {
    let mut observed = observed(ShardState::Free, None);
    let resource = observed.resources.values_mut().next().unwrap();
    resource.value.spec.placement.weight = 5;
    resource.value.spec.placement.apart = Some("shop".parse().unwrap());
    let (resource, shard) = (
        observed.resources.values().next().unwrap(),
        &observed.shards[&the_shard()],
    );
    let node = observed.workers.values().next().unwrap();
    let keys = Keys::default();
    let (txn, ..) = assignment_txn(&keys, resource, (the_shard(), shard), node);
    let text = format!("{txn:?}");
    assert!(
        text.contains(r#"\"weight\":5,\"apart\":\"shop\""#),
        "{text}"
    );
}
