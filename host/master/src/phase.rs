//! Phase of a resource: a pure function of its records and the present workers.

use std::collections::BTreeSet;

use super::placement::{Candidates, PlacementRequest, place};
use crawler_model::id::NodeId;
use crawler_model::resource::{
    Phase, Resource, ShardId, ShardRecord, ShardState, Waits, is_complete,
};

/// Returns the phase of a resource, given its shards and the present workers.
pub(super) fn phase(
    resource: &Resource,
    shards: &[&ShardRecord],
    candidates: &Candidates,
) -> Phase {
    phase_with(resource, shards, candidates, || {
        let placement_request = PlacementRequest::of(ShardId::only(resource.id), resource);
        match place(&placement_request, candidates) {
            Ok(node) => Ok(node.id.clone()),
            Err(unplaceable) => Err(unplaceable.to_string()),
        }
    })
}

/// Returns the word of the phase. It takes less time than the phase, because no worker is chosen for the reason.
pub(super) fn phase_word(
    resource: &Resource,
    shards: &[&ShardRecord],
    candidates: &Candidates,
) -> &'static str {
    phase_with(resource, shards, candidates, || Err(String::new())).as_str()
}

/// Returns the phase. `then` returns the worker that takes a waiting shard, or the reason why none does; only reasons
/// depend on it.
fn phase_with(
    resource: &Resource,
    shards: &[&ShardRecord],
    candidates: &Candidates,
    then: impl Fn() -> Result<NodeId, String>,
) -> Phase {
    if resource.pinned.is_none() {
        let why = format!("plugin {} is not pushed yet", resource.spec.plugin);
        return match resource.paused {
            true => Phase::Paused(why),
            false => Phase::Pending(why),
        };
    }
    let failed = shards.iter().find_map(|shard| match &shard.state {
        ShardState::Failed { reason } => Some(reason.clone()),
        ShardState::Free
        | ShardState::Assigned
        | ShardState::Idle
        | ShardState::Revoking
        | ShardState::Finished => None,
    });
    if let Some(reason) = failed {
        return Phase::Failed(reason);
    }
    let is_over = |shard: &&ShardRecord| shard.state == ShardState::Finished;
    // A resource without shards was deleted between two reads.
    if !shards.is_empty() && shards.iter().all(is_over) {
        return Phase::Finished;
    }
    let owned = shards.iter().filter(|shard| shard.state.order().is_some());
    if resource.paused {
        let owners = owned.filter_map(|shard| shard.owner.as_ref());
        let owners: BTreeSet<&str> = owners.map(|owner| owner.node.as_str()).collect();
        let owners: Vec<&str> = owners.into_iter().collect();
        return Phase::Paused(match owners.as_slice() {
            [] => String::new(),
            [owner] => format!("{owner} brings it to an end"),
            owners => format!("{} bring it to an end", owners.join(", ")),
        });
    }
    let is_over = is_complete(shards.iter().copied());
    let mut unfinished = owned.clone().filter(|_| !is_over);
    if let Some((owner, is_back)) = unfinished.find_map(|shard| missing(shard, candidates)) {
        let (what, when) = match is_back {
            true => ("which had it, has started anew", "in a moment"),
            false => ("which has it, is missing", "unless it comes back"),
        };
        let then = match then() {
            Ok(node) => format!("{node} takes it {when}"),
            Err(why) => why,
        };
        return Phase::Pending(format!("{owner}, {what}; {then}"));
    }
    let waits = |shard: &&&ShardRecord| shard.state != ShardState::Revoking;
    let waits = owned
        .clone()
        .filter(waits)
        .find_map(|shard| shard.waits.as_ref());
    if let Some(Waits { condition, why }) = waits {
        return Phase::Pending(format!("{condition}: {why}"));
    }
    let n_waiting = shards
        .iter()
        .filter(|shard| shard.state == ShardState::Free)
        .count();
    let part = match shards.len() {
        1 => String::new(),
        n => format!("{n_waiting} of {n} shards wait: "),
    };
    match n_waiting {
        0 => Phase::Running,
        _ => Phase::Pending(match then() {
            Ok(node) => format!("{part}{node} takes it in a moment"),
            Err(why) => format!("{part}{why}"),
        }),
    }
}

/// Returns the owner of a shard that should be crawled, if it is missing, and whether another incarnation is
/// present.
fn missing<'a>(shard: &'a ShardRecord, candidates: &Candidates) -> Option<(&'a NodeId, bool)> {
    let owner = shard.owner.as_ref()?;
    let present = candidates.get(&owner.node);
    let is_there = present.is_some_and(|c| c.node.incarnation == owner.incarnation);
    let is_crawled = matches!(shard.state, ShardState::Assigned | ShardState::Idle);
    (is_crawled && !is_there).then_some((&owner.node, present.is_some()))
}
