//! Plan of a pass: the differences between the actual and the desired state, as a pure function of the observed
//! records and of earlier observations of this leader.

use std::time::Duration;

use tokio::time::Instant;

use super::super::balance::Balance;
use super::super::missing_workers::MissingWorkers;
use super::super::observed::{Observed, value_of};
use super::super::placement::{self, Candidates, PlacementRequest};
use super::super::revocations::Revocations;
use super::settings::PlacementSettings;
use crawler_model::id::{NodeId, ResourceId, ResourceName};
use crawler_model::resource::{
    Owner, PinnedPlugin, Resource, ShardId, ShardRecord, ShardState, is_complete,
};

/// Number of records that are examined before other tasks go on: less than a millisecond's worth.
const BATCH: u32 = 512;

/// One difference between the actual and the desired state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// The plugin that a resource waits for exists now.
    Pin(ResourceName, PinnedPlugin),
    /// A shard gets an owner.
    Assign(ShardId, NodeId),
    /// An owner is to give a shard back. The next owner is named if it is already decided.
    Revoke(ShardId, Option<NodeId>),
    /// A shard that should have no owner has lost it, or the owner has not given it back in time.
    Free(ShardId),
    /// A resource names an owner that it no longer has.
    Vacate(ResourceName),
    /// All shards of a resource have nothing left to do, and no link is on its way.
    Finish(ResourceId),
    /// No shard record backs an assignment.
    Unassign(NodeId, ShardId),
}

impl Action {
    /// Returns the word for the kind of the action, by which it is counted.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Pin(..) => "pin",
            Self::Assign(..) => "assign",
            Self::Revoke(..) => "revoke",
            Self::Free(..) => "free",
            Self::Vacate(..) => "vacate",
            Self::Finish(..) => "finish",
            Self::Unassign(..) => "unassign",
        }
    }
}

/// Actions that are due now, and the time of the next look even if nothing changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// Actions, in an order in which they can be carried out.
    pub(super) actions: Vec<Action>,
    /// True if loads are not level, and moves were looked for.
    pub(super) levels: bool,
    /// Time until something has been waited for long enough.
    pub(super) look_again: Option<Duration>,
    /// Time that planning took, without the work of other tasks meanwhile.
    pub(super) took: Duration,
}

/// Observations of one leader over time.
#[derive(Debug)]
pub(super) struct TermHistory {
    pub(super) missing_workers: MissingWorkers,
    pub(super) revocations: Revocations,
    pub(super) balance: Balance,
}

impl TermHistory {
    /// Creates the record of a leader that begins now.
    pub(super) fn new(lease: Duration, settings: &PlacementSettings, now: Instant) -> Self {
        Self {
            missing_workers: MissingWorkers::new(lease, now),
            revocations: Revocations::new(settings.handover_timeout),
            balance: Balance::new(settings.balance.clone(), now),
        }
    }

    /// Takes note of the present state. Returns the workers that are waited for from now on.
    pub(super) fn observe(&mut self, observed: &Observed, now: Instant) -> Vec<NodeId> {
        let revoking = observed.revoking.iter();
        self.revocations
            .observe(revoking.map(|(id, revision)| (*id, *revision)), now);
        self.balance.observe(observed.workers.keys(), now);
        let owners = observed.owners();
        self.missing_workers
            .observe(observed.workers.keys(), owners, now)
    }
}

/// Plans a pass. Other tasks get their turn in between, however much there is to examine.
pub(super) async fn plan(observed: &Observed, history: &TermHistory, now: Instant) -> Plan {
    let mut planner = Planner {
        observed,
        history,
        now,
        candidates: observed.candidates.clone(),
        n_looked_at: 0,
        resumed: Instant::now(),
        plan: Plan {
            actions: Vec::new(),
            levels: false,
            look_again: None,
            took: Duration::ZERO,
        },
    };
    planner.place().await;
    planner.level().await;
    planner.clear().await;
    planner.plan.took += planner.resumed.elapsed();
    planner.plan
}

struct Planner<'a> {
    observed: &'a Observed,
    history: &'a TermHistory,
    now: Instant,
    /// Workers with their shards, including the actions planned so far.
    candidates: Candidates,
    n_looked_at: u32,
    /// Time at which this task last resumed.
    resumed: Instant,
    plan: Plan,
}

impl<'a> Planner<'a> {
    /// Lets other tasks go on now and then: calls must not wait until everything is examined.
    async fn pace(&mut self) {
        self.n_looked_at += 1;
        if self.n_looked_at.is_multiple_of(BATCH) {
            self.plan.took += self.resumed.elapsed();
            tokio::task::yield_now().await;
            self.resumed = Instant::now();
        }
    }

    /// Plans shards in the order of their ids, which keeps those of one resource together.
    async fn place(&mut self) {
        let mut shards = self.observed.shards.iter().peekable();
        let mut group = Vec::new();
        while let Some((first, shard)) = shards.next() {
            group.clear();
            group.push((*first, &shard.value));
            while let Some((id, shard)) = shards.next_if(|(id, _)| id.resource == first.resource) {
                group.push((*id, &shard.value));
            }
            self.resource(first.resource, &group);
            self.pace().await;
        }
    }

    fn resource(&mut self, id: ResourceId, shards: &[(ShardId, &ShardRecord)]) {
        let name = &shards[0].1.resource;
        let resource = self.observed.resources.get(name);
        let resource = resource.map(|resource| &resource.value);
        let Some(resource) = resource.filter(|resource| resource.id == id) else {
            return;
        };
        // An earlier run may have had more shards.
        let is_part = |(id, _): &&(ShardId, &ShardRecord)| resource.has_shard(*id);
        let records = shards.iter().filter(is_part).map(|(_, shard)| *shard);
        // A shard whose record does not decode is missing here, and is not over.
        let are_all = records.clone().count() == resource.spec.placement.shards as usize;
        if are_all && is_complete(records.clone()) {
            self.plan.actions.push(Action::Finish(id));
            return;
        }
        if resource.pinned.is_none() {
            self.pin(resource);
            return;
        }
        // A run with a failed shard does not finish.
        let has_failed = records
            .clone()
            .any(|shard| matches!(shard.state, ShardState::Failed { .. }));
        let is_wanted = !resource.paused && !has_failed;
        let n_before = self.plan.actions.len();
        // The first shard comes last: its transaction changes the resource, which all of them rely on.
        for (id, shard) in shards.iter().rev() {
            self.shard(*id, shard, resource, is_wanted);
        }
        let is_vacant = shards[0].1.owner.is_none() && !resource.assigned_node.is_empty();
        if is_vacant && self.plan.actions.len() == n_before {
            self.plan.actions.push(Action::Vacate(name.clone()));
        }
    }

    fn pin(&mut self, resource: &Resource) {
        if let Some(plugin) = self.observed.newest_plugin(&resource.spec.plugin) {
            let action = Action::Pin(resource.spec.name.clone(), PinnedPlugin::of(plugin));
            self.plan.actions.push(action);
        }
    }

    fn shard(&mut self, id: ShardId, shard: &ShardRecord, resource: &Resource, is_wanted: bool) {
        let owner = shard.owner.as_ref();
        let is_there = owner.is_some_and(|owner| self.observed.is_alive(owner));
        match &shard.state {
            ShardState::Finished | ShardState::Failed { .. } => {}
            ShardState::Free if is_wanted => self.assign(id, shard, resource),
            ShardState::Free => {}
            ShardState::Assigned | ShardState::Idle if is_there => {
                if let Some(owner) = owner {
                    self.stay(id, owner, resource, is_wanted);
                }
            }
            ShardState::Assigned | ShardState::Idle => {
                let wait = owner.and_then(|o| self.history.missing_workers.wait(&o.node, self.now));
                match wait {
                    Some(wait) => self.look_again_in(wait),
                    None if is_wanted => self.assign(id, shard, resource),
                    None => self.plan.actions.push(Action::Free(id)),
                }
            }
            ShardState::Revoking => {
                let wait = self.history.revocations.wait(id, self.now);
                match wait.filter(|_| is_there) {
                    Some(wait) => {
                        self.look_again_in(wait);
                        self.expect(id, shard, resource, is_wanted);
                    }
                    None if is_wanted => self.assign(id, shard, resource),
                    None => self.plan.actions.push(Action::Free(id)),
                }
            }
        }
    }

    /// Plans a shard whose owner is present: it stays, unless it is unwanted or its worker no longer fits.
    fn stay(&mut self, id: ShardId, owner: &Owner, resource: &Resource, is_wanted: bool) {
        if !is_wanted {
            self.plan.actions.push(Action::Revoke(id, None));
            return;
        }
        let request = PlacementRequest::of(id, resource);
        let present = self.candidates.get(&owner.node);
        if !present.is_some_and(|present| placement::must_leave(&request, present)) {
            return;
        }
        self.candidates.give_up(&owner.node, &request);
        let next = placement::place(&request, &self.candidates);
        let next = next.ok().map(|node| node.id.clone());
        if let Some(next) = &next {
            self.candidates.take(next, &request);
        }
        self.plan.actions.push(Action::Revoke(id, next));
    }

    /// Plans a shard that has no owner, or whose owner is lost.
    fn assign(&mut self, id: ShardId, shard: &ShardRecord, resource: &Resource) {
        let request = PlacementRequest::of(id, resource);
        let owner = shard.owner.as_ref();
        let mirrored = owner.map(|owner| (owner.node.clone(), id));
        let mirrored = mirrored.and_then(|key| self.observed.assignments.get_key_value(&key));
        if let Some(((node, _), mirror)) = mirrored {
            self.candidates.release(node, value_of(mirror));
        }
        // An owner that was to give the shard away does not get it back.
        let back = mirrored.filter(|_| shard.state != ShardState::Revoking);
        let back = back.map(|((node, _), _)| node);
        let chosen = shard.next.as_ref().or(back);
        let chosen = chosen.and_then(|node| placement::place_on(&request, node, &self.candidates));
        let node = match chosen {
            Some(node) => Ok(node),
            None => placement::place(&request, &self.candidates),
        };
        match node {
            Ok(node) => {
                let node = node.id.clone();
                self.candidates.take(&node, &request);
                self.plan.actions.push(Action::Assign(id, node));
            }
            Err(_) if shard.state == ShardState::Revoking => {
                self.plan.actions.push(Action::Free(id));
            }
            // Another incarnation of its owner is present, so the one which had the shard does not come back.
            Err(_) if owner.is_some_and(|o| self.observed.workers.contains_key(&o.node)) => {
                self.plan.actions.push(Action::Free(id));
            }
            // A shard that no worker takes stays with its owner, which may come back.
            Err(_) => {}
        }
    }

    /// Counts a shard that is being given back at its next owner.
    fn expect(&mut self, id: ShardId, shard: &ShardRecord, resource: &Resource, is_wanted: bool) {
        let request = PlacementRequest::of(id, resource);
        if let Some(owner) = &shard.owner {
            self.candidates.give_up(&owner.node, &request);
        }
        if let Some(next) = shard.next.as_ref().filter(|_| is_wanted) {
            self.candidates.take(next, &request);
        }
    }

    /// Moves shards if nothing else is to be done.
    async fn level(&mut self) {
        let is_busy = !self.plan.actions.is_empty() || !self.observed.revoking.is_empty();
        if is_busy || self.observed.workers.len() < 2 {
            return;
        }
        if let Some(wait) = self.history.balance.wait(self.now) {
            self.look_again_in(wait);
            return;
        }
        let candidates = self.candidates.clone();
        let observed = self.observed;
        let movable = |worker: &NodeId| movable(observed, worker);
        let moves = self.history.balance.moves(candidates, movable).await;
        self.plan.levels = moves.is_some();
        let moves = moves.into_iter().flatten();
        let actions = moves.map(|(id, to)| Action::Revoke(id, Some(to)));
        self.plan.actions.extend(actions);
    }

    async fn clear(&mut self) {
        for (worker, id) in self.observed.assignments.keys() {
            self.pace().await;
            let is_backed = self.observed.shards.get(id).is_some_and(|shard| {
                let owner = shard.value.owner.as_ref();
                shard.value.state.order().is_some()
                    && owner.is_some_and(|owner| owner.node == *worker)
            });
            if !is_backed && !self.observed.unreadable.contains(id) {
                let action = Action::Unassign(worker.clone(), *id);
                self.plan.actions.push(action);
            }
        }
    }

    fn look_again_in(&mut self, wait: Duration) {
        let before = self.plan.look_again;
        self.plan.look_again = Some(before.map_or(wait, |before| before.min(wait)));
    }
}

/// Returns the shards of a worker that may move.
fn movable<'a>(observed: &'a Observed, worker: &NodeId) -> Vec<PlacementRequest<'a>> {
    let own = observed.shards_on(worker).filter_map(|id| {
        let shard = &observed.shards.get(&id)?.value;
        let resource = &observed.resources.get(&shard.resource)?.value;
        let owner = shard.owner.as_ref()?;
        let may_move = shard.state == ShardState::Assigned
            && resource.id == id.resource
            && owner.node == *worker
            && observed.is_alive(owner);
        may_move.then(|| PlacementRequest::of(id, resource))
    });
    own.collect()
}
