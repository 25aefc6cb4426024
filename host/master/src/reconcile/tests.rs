//! Tests of the plan, given the observed records.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures::executor::block_on;

use super::actions::ended;
use super::plan::Plan;
use super::*;
use crate::placement::Strategy;
use crawler_model::crawl::{Counts, Done};
use crawler_model::id::{
    Digest, Epoch, Generation, Incarnation, NodeId, ResourceId, ResourceName, Run, Shard,
};
use crawler_model::node::{CallToken, Node, Role};
use crawler_model::plugin::Description;
use crawler_model::plugin::PluginRecord;
use crawler_model::resource::{Assignment, Owner, PinnedPlugin, Resource, ShardId, ShardRecord};
use crawler_model::resource::{ResourceSpec, ShardState, Waits};
use crawler_store::catalog::{Versioned, encode};
use crawler_store::keys::Keys;
use crawler_store::{Entry, Revision};

fn versioned<T>(value: T) -> Versioned<T> {
    Versioned {
        value,
        revision: Revision(1),
        created: Revision(1),
    }
}

/// Records of the store.
struct Facts {
    workers: BTreeMap<NodeId, Node>,
    plugins: Vec<PluginRecord>,
    resources: BTreeMap<ResourceName, Versioned<Resource>>,
    shards: BTreeMap<ShardId, Versioned<ShardRecord>>,
    /// Assignments; `None` stands for a record that does not decode.
    assignments: BTreeMap<(NodeId, ShardId), Option<Assignment>>,
}

impl Facts {
    /// Returns the records as a leader observes them.
    fn observed(&self) -> Observed {
        let keys = Keys::default();
        let mut observed = Observed::nothing(Strategy::LeastLoad);
        let mut put = |key, value, revision| {
            let entry = Entry {
                key,
                value,
                created: Revision(1),
                revision,
            };
            observed.put(&keys, &entry);
        };
        let one = Revision(1);
        for (id, node) in &self.workers {
            put(keys.node(Role::Worker, id), encode(node), one);
        }
        for plugin in &self.plugins {
            let key = keys.plugin(&plugin.name, &plugin.version);
            put(key, encode(plugin), one);
        }
        for (name, resource) in &self.resources {
            put(
                keys.resource(name),
                encode(&resource.value),
                resource.revision,
            );
        }
        for (id, shard) in &self.shards {
            put(keys.shard(*id), encode(&shard.value), shard.revision);
        }
        for ((worker, id), assignment) in &self.assignments {
            let value = assignment.as_ref().map_or(Bytes::from("?"), encode);
            put(keys.assignment(worker, *id), value, one);
        }
        observed
    }
}

/// Creates records of one worker, one plugin, and one resource with one shard in this state.
fn observed(state: ShardState, owner_incarnation: Option<u64>) -> Facts {
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
        http: String::new(),
        pprof: String::new(),
        incarnation: Incarnation(2),
        labels: BTreeMap::new(),
        capacity: 10,
        version: "0".into(),
        interface: String::new(),
        draining: false,
        started_at: 0,
        call_token: CallToken::default(),
        shares_turns: false,
        tls: false,
    };
    let name: ResourceName = "books".parse().unwrap();
    let resource = Resource {
        requests: Vec::new(),
        id: id.resource,
        assigned_node: String::new(),
        creation_time: 0,
        generation: Generation(1),
        run: Run(1),
        resharded_at: Run(1),
        run_started_at: None,
        paused: false,
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
            labels: Default::default(),
        },
    };
    let shard = ShardRecord {
        owner: owner.clone(),
        epoch: Epoch(3),
        state,
        created: true,
        ..ShardRecord::new(name.clone())
    };
    Facts {
        workers: BTreeMap::from([(worker, node)]),
        plugins: vec![plugin("1.0.0"), plugin("1.10.0"), plugin("1.9.0")],
        resources: BTreeMap::from([(name, versioned(resource))]),
        shards: BTreeMap::from([(id, versioned(shard))]),
        assignments: owner
            .map(|owner| ((owner.node, id), None))
            .into_iter()
            .collect(),
    }
}

fn plugin(version: &str) -> PluginRecord {
    PluginRecord {
        name: "books".parse().unwrap(),
        version: version.parse().unwrap(),
        digest: Digest::of(version.as_bytes()),
        size: 0,
        interface: "0.1.0".into(),
        sources: None,
        description: Description {
            name: "books".parse().unwrap(),
            version: version.parse().unwrap(),
            rules: Vec::new(),
            schemas: Vec::new(),
            plans: Vec::new(),
            hosts: Vec::new(),
            params: None,
            limits: BTreeMap::new(),
        },
        pushed_at: 0,
    }
}

/// Plans as a leader that has led for long and knows of no worker that vanished.
fn planned(observed: &Facts) -> Vec<Action> {
    let began = Instant::now();
    let later = began + 100 * LEASE;
    let plan = block_on(plan(&observed.observed(), &fresh(began), later));
    assert_eq!(plan.look_again, None);
    plan.actions
}

const LEASE: Duration = Duration::from_secs(10);

/// Creates the empty record of a leader that begins now.
fn fresh(began: Instant) -> TermHistory {
    TermHistory::new(LEASE, &PlacementSettings::default(), began)
}

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
fn a_shard_whose_owner_has_begun_anew_and_may_not_have_it_is_free() {
    let mut observed = observed(ShardState::Assigned, Some(1));
    observed.workers.get_mut(&worker_1()).unwrap().draining = true;
    assert_eq!(planned(&observed), [Action::Free(the_shard())]);
    // A worker that is away may come back unchanged.
    observed.workers.clear();
    assert_eq!(planned(&observed), []);
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
    assert_eq!(planned(&observed), [Action::Finish(the_shard().resource)]);
    observed.workers.clear();
    assert_eq!(planned(&observed), [Action::Finish(the_shard().resource)]);
}

#[test]
fn a_run_whose_root_requests_all_died_has_failed() {
    let name = "books".parse().unwrap();
    let mut counts = Counts::default();
    assert_eq!(ended(Shard(0), &name, &counts), ShardState::Finished);
    counts.end_dead("timeout");
    let ShardState::Failed { reason } = ended(Shard(0), &name, &counts) else {
        panic!("it has not failed")
    };
    let expected = "every root request was given up: timeout 1; `crawler frontier redrive books` tries them again";
    assert_eq!(reason, expected);
    // A root request that a limit left out may be well.
    counts.due = 1;
    assert_eq!(ended(Shard(0), &name, &counts), ShardState::Finished);
    counts.due = 0;
    // The others are empty, and may be dropped by the next run.
    assert_eq!(ended(Shard(1), &name, &counts), ShardState::Finished);
    counts.end_done(Done::Parsed);
    assert_eq!(ended(Shard(0), &name, &counts), ShardState::Finished);
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
    // The former owner may still be finishing its items, and a deletion has to wait for it.
    assert_eq!(record.former_owners, shard.value.writers());
    let text = format!("{txn:?}");
    assert!(text.contains("worker-1|127.0.0.1:1"), "{text}");
}

/// Plans as a leader that looks at these records now.
fn plan_of(observed: &Facts, history: &mut TermHistory, now: Instant) -> Plan {
    let observed = observed.observed();
    history.observe(&observed, now);
    block_on(plan(&observed, history, now))
}

fn another_worker(observed: &mut Facts) -> NodeId {
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
    let mut history = fresh(began);
    let other = another_worker(&mut observed);
    let now = began + 10 * LEASE;
    assert_eq!(plan_of(&observed, &mut history, now).actions, []);
    observed
        .workers
        .remove(&"worker-1".parse::<NodeId>().unwrap());
    let plan = plan_of(&observed, &mut history, now + LEASE);
    assert_eq!(plan.actions, [Action::Assign(the_shard(), other)]);
    assert_eq!(plan.look_again, None);
}

#[test]
fn s06_a_new_leader_leaves_what_is_on_a_missing_worker_for_a_lease_time_and_one_that_is_back_has_it()
 {
    let mut observed = observed(ShardState::Assigned, Some(2));
    let began = Instant::now();
    let mut history = fresh(began);
    let other = another_worker(&mut observed);
    let all = observed.workers.clone();
    observed
        .workers
        .remove(&"worker-1".parse::<NodeId>().unwrap());
    let plan = plan_of(&observed, &mut history, began);
    assert_eq!((plan.actions, plan.look_again), (vec![], Some(LEASE)));
    let later = began + LEASE / 4;
    let plan = plan_of(&observed, &mut history, later);
    assert_eq!(
        (plan.actions, plan.look_again),
        (vec![], Some(LEASE * 3 / 4))
    );
    // The worker is back under the same incarnation.
    let gone = std::mem::replace(&mut observed.workers, all);
    let plan = plan_of(&observed, &mut history, began + LEASE / 2);
    assert_eq!(plan.actions, []);
    // The worker is not back.
    let mut history = fresh(began);
    observed.workers = gone;
    plan_of(&observed, &mut history, began);
    let plan = plan_of(&observed, &mut history, began + LEASE);
    assert_eq!(plan.actions, [Action::Assign(the_shard(), other)]);
}

#[test]
fn what_nobody_has_is_placed_in_the_first_lease_time_of_a_leader_too() {
    let mut observed = observed(ShardState::Free, None);
    let began = Instant::now();
    let mut history = fresh(began);
    assert_eq!(plan_of(&observed, &mut history, began).actions, [assign()]);
    // No process crawls the shard, whoever owned it before.
    observed.shards.values_mut().for_each(|shard| {
        shard.value.owner = Some(Owner {
            node: "worker-9".parse().unwrap(),
            incarnation: Incarnation(1),
        });
    });
    assert_eq!(plan_of(&observed, &mut history, began).actions, [assign()]);
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
    let mut history = fresh(began);
    // There is no wait, not even in the first lease time of a leader.
    assert_eq!(plan_of(&observed, &mut history, began).actions, [assign()]);
    // A worker that takes no new shards does not get it back.
    let node = observed
        .workers
        .get_mut(&"worker-1".parse::<NodeId>().unwrap());
    node.unwrap().draining = true;
    let other = Action::Assign(the_shard(), "worker-2".parse().unwrap());
    assert_eq!(plan_of(&observed, &mut history, began).actions, [other]);
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

fn revoke(next: Option<&str>) -> Action {
    Action::Revoke(the_shard(), next.map(|id| id.parse().unwrap()))
}

#[test]
fn a_worker_that_drains_gives_its_shards_to_others_or_to_nobody() {
    let mut observed = observed(ShardState::Assigned, Some(2));
    let drain = |observed: &mut Facts, worker: &NodeId| {
        observed.workers.get_mut(worker).unwrap().draining = true;
    };
    let other = another_worker(&mut observed);
    drain(&mut observed, &worker_1());
    assert_eq!(planned(&observed), [revoke(Some("worker-2"))]);
    drain(&mut observed, &other);
    assert_eq!(planned(&observed), [revoke(None)]);
}

#[test]
fn what_a_selector_asks_for_since_moves_what_runs() {
    let mut observed = observed(ShardState::Assigned, Some(2));
    let other = another_worker(&mut observed);
    let resource = observed.resources.values_mut().next().unwrap();
    let selector = &mut resource.value.spec.placement.selector;
    selector.insert("gpu".into(), "true".into());
    assert_eq!(planned(&observed), [revoke(None)]);
    let node = observed.workers.get_mut(&other).unwrap();
    node.labels.insert("gpu".into(), "true".into());
    assert_eq!(planned(&observed), [revoke(Some("worker-2"))]);
}

#[test]
fn a_paused_resource_is_taken_from_its_worker_and_placed_when_it_is_resumed() {
    let paused = |state, owner| {
        let mut observed = observed(state, owner);
        let resource = observed.resources.values_mut().next().unwrap();
        resource.value.paused = true;
        observed
    };
    let running = paused(ShardState::Assigned, Some(2));
    assert_eq!(planned(&running), [revoke(None)]);
    // The worker is gone, so no process is asked to give the shard back.
    let lost = paused(ShardState::Assigned, Some(1));
    assert_eq!(planned(&lost), [Action::Free(the_shard())]);
    let mut free = paused(ShardState::Free, None);
    assert_eq!(planned(&free), []);
    let resource = free.resources.values_mut().next().unwrap();
    resource.value.assigned_node = "worker-1|127.0.0.1:1".into();
    assert_eq!(planned(&free), [Action::Vacate("books".parse().unwrap())]);
    let resource = free.resources.values_mut().next().unwrap();
    resource.value.paused = false;
    assert_eq!(planned(&free), [assign()]);
}

#[test]
fn an_owner_that_does_not_give_back_in_time_loses_the_shard_all_the_same() {
    let mut observed = observed(ShardState::Revoking, Some(2));
    let other = another_worker(&mut observed);
    observed.shards.get_mut(&the_shard()).unwrap().value.next = Some(other.clone());
    let timeout = PlacementSettings::default().handover_timeout;
    let began = Instant::now();
    let mut history = fresh(began);
    let plan = plan_of(&observed, &mut history, began);
    assert_eq!((plan.actions, plan.look_again), (vec![], Some(timeout)));
    let plan = plan_of(&observed, &mut history, began + timeout);
    let expected = [Action::Assign(the_shard(), other)];
    assert_eq!(plan.actions, expected);
    // The owner's lease is gone, so nobody is waited for.
    observed.workers.remove(&worker_1());
    let plan = plan_of(&observed, &mut fresh(began), began);
    assert_eq!(plan.actions, expected);
    // No worker takes the shard, so it becomes free.
    observed.workers.clear();
    let plan = plan_of(&observed, &mut fresh(began), began);
    assert_eq!(plan.actions, [Action::Free(the_shard())]);
}

#[test]
fn what_was_given_back_goes_to_whom_it_was_meant_for_if_that_one_takes_it() {
    let mut observed = observed(ShardState::Free, None);
    let other = another_worker(&mut observed);
    let shard = observed.shards.get_mut(&the_shard()).unwrap();
    shard.value.next = Some(other.clone());
    let busy = (other.clone(), ShardId::only(ResourceId(9)));
    observed.assignments.insert(busy, None);
    let assigned = |to: &NodeId| Action::Assign(the_shard(), to.clone());
    assert_eq!(planned(&observed)[0], assigned(&other));
    observed.workers.get_mut(&other).unwrap().draining = true;
    assert_eq!(planned(&observed)[0], assigned(&worker_1()));
}

#[test]
fn shards_are_finished_together_once_what_each_has_sent_is_stored() {
    let mut observed = observed(ShardState::Idle, Some(2));
    let first = observed.shards[&the_shard()].value.clone();
    let second = ShardId {
        shard: Shard(1),
        ..the_shard()
    };
    let resource = observed.resources.values_mut().next().unwrap();
    resource.value.spec.placement.shards = 2;
    let totals = |n: u64| [(1, n)].into();
    let at = |observed: &mut Facts, id, change: &dyn Fn(&mut ShardRecord)| {
        let shard = observed.shards.get_mut(&id).unwrap();
        change(&mut shard.value);
    };
    observed.shards.insert(second, versioned(first));
    let mirror = (worker_1(), second);
    observed.assignments.insert(mirror, None);
    let finish = [Action::Finish(the_shard().resource)];
    assert_eq!(planned(&observed), finish);
    at(&mut observed, the_shard(), &|shard| {
        shard.links.sent = totals(3)
    });
    assert_eq!(planned(&observed), []);
    at(&mut observed, second, &|shard| {
        shard.links.applied = [(0, 3)].into();
    });
    assert_eq!(planned(&observed), finish);
    at(&mut observed, second, &|shard| {
        shard.state = ShardState::Assigned;
    });
    assert_eq!(planned(&observed), []);
    // A shard whose record does not decode is not over; here it is not even visible.
    let hidden = observed.shards.remove(&second).unwrap();
    at(&mut observed, the_shard(), &|shard| {
        shard.links = Default::default()
    });
    assert!(!planned(&observed).contains(&finish[0]));
    observed.shards.insert(second, hidden);
    at(&mut observed, the_shard(), &|shard| {
        shard.links.sent = totals(3)
    });
    // The run cannot finish, because nobody continues its other shard.
    at(&mut observed, second, &|shard| {
        shard.state = ShardState::Failed {
            reason: "no".into(),
        };
        shard.owner = None;
    });
    observed.assignments.remove(&(worker_1(), second));
    assert_eq!(planned(&observed), [revoke(None)]);
}

#[test]
fn loads_are_levelled_out_once_the_workers_have_been_the_same_for_a_while() {
    let mut observed = observed(ShardState::Assigned, Some(2));
    let other = another_worker(&mut observed);
    let shard = observed.shards[&the_shard()].value.clone();
    for n in 1..4 {
        let id = ShardId {
            shard: Shard(n),
            ..the_shard()
        };
        observed.shards.insert(id, versioned(shard.clone()));
        observed.assignments.insert((worker_1(), id), None);
    }
    let cooldown = PlacementSettings::default().balance.cooldown;
    let began = Instant::now();
    let mut history = fresh(began);
    let plan = plan_of(&observed, &mut history, began);
    assert_eq!((plan.actions, plan.look_again), (vec![], Some(cooldown)));
    let plan = plan_of(&observed, &mut history, began + cooldown);
    let moved = |n| {
        let id = ShardId {
            shard: Shard(n),
            ..the_shard()
        };
        Action::Revoke(id, Some(other.clone()))
    };
    assert_eq!(
        (plan.actions, plan.levels),
        (vec![moved(0), moved(1)], true)
    );
}

fn worker_1() -> NodeId {
    "worker-1".parse().unwrap()
}

/// Returns the kind, the worker before and the reason of the event that the shard is assigned to a worker.
fn told(facts: &Facts, to: &str) -> (&'static str, Option<String>, String) {
    let mut node = observed(ShardState::Free, None).workers[&worker_1()].clone();
    node.id = to.parse().unwrap();
    let shard = &facts.shards[&the_shard()].value;
    let to = (&node, Strategy::LeastLoad);
    let event = tellings::assigned(&facts.observed(), Run(1), (the_shard(), shard), to);
    let from = event.from.map(|from| from.to_string());
    (event.kind.as_str(), from, event.why.to_string())
}

#[test]
fn an_assignment_is_told_with_what_became_of_the_owner() {
    let from = || Some("worker-1".to_owned());
    let free = observed(ShardState::Free, None);
    let placed = ("placed", None, "strategy least-load".to_owned());
    assert_eq!(told(&free, "worker-2"), placed);
    let mut lost = observed(ShardState::Assigned, Some(1));
    let back = ("placed", None, "worker-1 has started anew".to_owned());
    assert_eq!(told(&lost, "worker-1"), back);
    lost.workers.clear();
    let moved = ("moved", from(), "worker-1 is gone".to_owned());
    assert_eq!(told(&lost, "worker-2"), moved);
    let late = observed(ShardState::Revoking, Some(2));
    let why = "worker-1 has not given it back in time".to_owned();
    assert_eq!(told(&late, "worker-2"), ("moved", from(), why));
}

#[test]
fn an_order_to_give_a_shard_back_is_told_with_its_reason() {
    #[track_caller]
    fn check(change: impl Fn(&mut Facts), expected: &str) {
        let mut facts = observed(ShardState::Assigned, Some(2));
        change(&mut facts);
        let owner = facts.shards[&the_shard()].value.owner.clone().unwrap();
        let resource = &facts.resources.values().next().unwrap().value;
        let observed = facts.observed();
        let event = tellings::revoked(&observed, resource, (the_shard(), &owner), None);
        assert_eq!(event.why.as_str(), expected);
        assert_eq!(event.from, Some(worker_1()));
    }
    fn resource(facts: &mut Facts) -> &mut Resource {
        &mut facts.resources.values_mut().next().unwrap().value
    }
    check(|_| {}, "loads of workers are made level");
    check(
        |facts| resource(facts).paused = true,
        "the resource is paused",
    );
    check(
        |facts| facts.workers.get_mut(&worker_1()).unwrap().draining = true,
        "the worker is told to drain",
    );
    check(
        |facts| {
            let selector = &mut resource(facts).spec.placement.selector;
            selector.insert("gpu".to_owned(), "true".to_owned());
        },
        "the worker does not fit the placement any more",
    );
}
