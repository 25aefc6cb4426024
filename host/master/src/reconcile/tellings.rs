//! Events of the actions of the plan: pure, from what was observed when the action was planned.

use std::fmt;

use crate::observed::Observed;
use crate::placement::{self, PlacementRequest, Strategy};
use crawler_model::event::{Event, EventCounts, EventKind};
use crawler_model::id::{NodeId, ResourceId, Run};
use crawler_model::node::Node;
use crawler_model::resource::{Owner, Resource, ShardId, ShardRecord, ShardState};

/// Reason why a shard leaves its owner.
enum Leaving<'a> {
    /// The resource was paused.
    Paused,
    /// A shard of the same run has failed.
    OtherFailed,
    /// The owner was told to drain.
    Drains,
    /// The owner does not meet what the resource asks for any more.
    Unfit,
    /// Another worker has less to do.
    Level,
    /// The owner is not registered any more.
    Gone(&'a NodeId),
    /// The owner is a process that has started since.
    StartedAnew(&'a NodeId),
    /// The owner was to give the shard back, and its time is over.
    Late(&'a NodeId),
}

impl fmt::Display for Leaving<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Leaving::Paused => f.write_str("the resource is paused"),
            Leaving::OtherFailed => f.write_str("another shard of the run has failed"),
            Leaving::Drains => f.write_str("the worker is told to drain"),
            Leaving::Unfit => f.write_str("the worker does not fit the placement any more"),
            Leaving::Level => f.write_str("loads of workers are made level"),
            Leaving::Gone(worker) => write!(f, "{worker} is gone"),
            Leaving::StartedAnew(worker) => write!(f, "{worker} has started anew"),
            Leaving::Late(worker) => write!(f, "{worker} has not given it back in time"),
        }
    }
}

/// Returns the event that a shard is assigned to a worker. `shard` is the record before.
pub(super) fn assigned(
    observed: &Observed,
    run: Run,
    (id, shard): (ShardId, &ShardRecord),
    (node, strategy): (&Node, Strategy),
) -> Event {
    let owner = shard.owner.as_ref();
    let before = owner.or(shard.former_owners.last());
    let from = before.map(|owner| &owner.node);
    let kind = match from {
        Some(from) if *from != node.id => EventKind::Moved,
        Some(_) | None => EventKind::Placed,
    };
    let event = match owner {
        Some(owner) => event(kind, run, id).because(loss(observed, shard, owner)),
        // The worker was chosen when the one before was told to give the shard back.
        None if shard.next.as_ref() == Some(&node.id) => event(kind, run, id),
        None => event(kind, run, id).because(format_args!("strategy {strategy}")),
    };
    Event {
        worker: Some(node.id.clone()),
        from: from.filter(|from| **from != node.id).cloned(),
        ..event
    }
}

/// Returns the event that an owner is told to give a shard back.
pub(super) fn revoked(
    observed: &Observed,
    resource: &Resource,
    (id, owner): (ShardId, &Owner),
    next: Option<&NodeId>,
) -> Event {
    Event {
        worker: next.cloned(),
        from: Some(owner.node.clone()),
        ..event(EventKind::Moving, resource.run, id).because(leaving(observed, resource, id, owner))
    }
}

/// Returns the event that a shard is taken from its owner, and nobody has it.
pub(super) fn freed(
    observed: &Observed,
    run: Run,
    (id, shard): (ShardId, &ShardRecord),
    owner: &Owner,
) -> Event {
    Event {
        from: Some(owner.node.clone()),
        ..event(EventKind::Unplaced, run, id).because(loss(observed, shard, owner))
    }
}

/// Returns the event that a shard cannot go on, as its worker has recorded.
pub(super) fn failed(run: Run, id: ShardId, shard: &ShardRecord) -> Option<Event> {
    let ShardState::Failed { reason } = &shard.state else {
        return None;
    };
    Some(Event {
        worker: shard.owner.as_ref().map(|owner| owner.node.clone()),
        counts: Some(EventCounts::of(&shard.counts)),
        ..event(EventKind::Failed, run, id).because(reason)
    })
}

fn event(kind: EventKind, run: Run, id: ShardId) -> Event {
    Event {
        shard: Some(id.shard),
        ..Event::of(kind, run)
    }
}

/// Returns the reason why a shard is taken from an owner that has not given it back.
fn loss<'a>(observed: &Observed, shard: &ShardRecord, owner: &'a Owner) -> Leaving<'a> {
    if observed.is_alive(owner) && shard.state == ShardState::Revoking {
        Leaving::Late(&owner.node)
    } else if observed.workers.contains_key(&owner.node) {
        Leaving::StartedAnew(&owner.node)
    } else {
        Leaving::Gone(&owner.node)
    }
}

/// Returns the reason why an owner that is there is to give a shard back.
fn leaving(
    observed: &Observed,
    resource: &Resource,
    id: ShardId,
    owner: &Owner,
) -> Leaving<'static> {
    if resource.paused {
        return Leaving::Paused;
    }
    if has_failed(observed, resource.id) {
        return Leaving::OtherFailed;
    }
    let candidate = observed.candidates.get(&owner.node);
    let request = PlacementRequest::of(id, resource);
    match candidate {
        Some(candidate) if candidate.node.draining => Leaving::Drains,
        Some(candidate) if placement::must_leave(&request, candidate) => Leaving::Unfit,
        Some(_) | None => Leaving::Level,
    }
}

fn has_failed(observed: &Observed, id: ResourceId) -> bool {
    let mut shards = observed.shards_of(id);
    shards.any(|(_, shard)| matches!(shard.value.state, ShardState::Failed { .. }))
}
