//! Which worker takes a shard: a pure function of what is registered and what is assigned.
//!
//! Filter, then score. A worker is out of the question where it drains, has as many shards as it
//! takes, lacks a label that the selector asks for, runs no interface as new as the plugin's, or has
//! a resource that this one is to be apart from, whichever of the two says so. Of the others, those
//! that have the resource that this one is to be near come first; then the strategy decides; then the
//! fewest shards of the same resource; ties go by a hash of worker and shard, so that the same state
//! always gives the same answer and many ties spread.
//!
//! The load is summed up from the assignments in the store each time it is asked for. Nobody counts
//! it up and down, so it cannot drift. Capacity counts shards, load counts their weights.

use std::sync::OnceLock;

use crate::model::id::{NodeId, PluginVersion, ResourceName};
use crate::model::node::Node;
use crate::model::resource::{PlacementSpec, Resource, ShardId};

mod candidates;
mod strategy;
#[cfg(test)]
pub(crate) mod tests;
mod unplaceable;

pub use candidates::{Candidate, Candidates};
pub use strategy::{Strategy, UnknownStrategy};
use unplaceable::Objection;
pub use unplaceable::Unplaceable;

/// A shard that is to be placed, and what it wants.
#[derive(Debug, Clone)]
pub struct Wish<'a> {
    shard: ShardId,
    name: &'a ResourceName,
    placement: &'a PlacementSpec,
    interface: Option<Interface<'a>>,
}

/// What a shard's plugin needs. It is read once, where it is not simply what workers run.
#[derive(Debug, Clone)]
struct Interface<'a> {
    text: &'a str,
    version: OnceLock<Option<PluginVersion>>,
}

impl Interface<'_> {
    /// Whether a worker is known to run none as new as this. One that does not say is asked to try.
    fn is_too_new_for(&self, candidate: &Candidate) -> bool {
        let Some(newest) = &candidate.interface else {
            return false;
        };
        let version = || self.version.get_or_init(|| self.text.parse().ok());
        self.text != candidate.node.interface
            && version().as_ref().is_some_and(|needed| needed > newest)
    }
}

impl<'a> Wish<'a> {
    /// What a shard of this resource wants.
    pub fn of(shard: ShardId, resource: &'a Resource) -> Self {
        let pinned = resource.pinned.as_ref();
        Self {
            shard,
            name: &resource.spec.name,
            placement: &resource.spec.placement,
            interface: pinned.map(|pinned| Interface {
                text: &pinned.interface,
                version: OnceLock::new(),
            }),
        }
    }

    /// Which shard it is.
    pub fn shard(&self) -> ShardId {
        self.shard
    }
}

/// The worker that takes this shard.
pub fn place<'c>(wish: &Wish<'_>, candidates: &'c Candidates) -> Result<&'c Node, Unplaceable> {
    best(wish, candidates.strategy(), candidates.iter()).ok_or_else(|| {
        let objections = candidates.iter().flat_map(|c| objections(wish, c));
        Unplaceable::by(objections, candidates.len())
    })
}

/// The worker that takes this shard, other than the one that has it.
pub(super) fn place_beside<'c>(
    wish: &Wish<'_>,
    candidates: &'c Candidates,
    owner: &NodeId,
) -> Option<&'c Node> {
    let others = candidates.iter().filter(|c| c.node.id != *owner);
    best(wish, candidates.strategy(), others)
}

fn best<'c>(
    wish: &Wish<'_>,
    strategy: Strategy,
    candidates: impl Iterator<Item = &'c Candidate>,
) -> Option<&'c Node> {
    let fit = candidates.filter(|candidate| is_fit(wish, candidate));
    let best = fit.min_by_key(|candidate| Score::of(wish, candidate, strategy));
    best.map(|candidate| &candidate.node)
}

/// This worker, where nothing speaks against it: one that has come back takes what it had.
pub(super) fn place_on<'c>(
    wish: &Wish<'_>,
    node: &NodeId,
    candidates: &'c Candidates,
) -> Option<&'c Node> {
    let candidate = candidates.get(node)?;
    is_fit(wish, candidate).then_some(&candidate.node)
}

/// Whether a worker may not go on with a shard that it has. That it is full is no reason.
pub(super) fn must_leave(wish: &Wish<'_>, candidate: &Candidate) -> bool {
    let full = Objection::AtCapacity;
    objections(wish, candidate).any(|objection| objection != full)
}

/// Whether the resource that this one is to be near is here.
pub(super) fn leaves_friend(wish: &Wish<'_>, candidate: &Candidate) -> bool {
    let near = wish.placement.near.as_ref();
    near.is_some_and(|near| candidate.n_of(near) > 0)
}

fn is_fit(wish: &Wish<'_>, candidate: &Candidate) -> bool {
    objections(wish, candidate).next().is_none()
}

/// All that speaks against a worker, each label that it lacks by itself.
fn objections<'a>(
    wish: &'a Wish<'_>,
    candidate: &'a Candidate,
) -> impl Iterator<Item = Objection<'a>> {
    let node = &candidate.node;
    let draining = node.draining.then_some(Objection::Draining);
    let full = (candidate.n_shards >= node.capacity).then_some(Objection::AtCapacity);
    let selector = wish.placement.selector.iter();
    let labels = selector.filter_map(|(key, value)| match node.label(key) {
        Some(present) if present == value => None,
        Some(_) => Some(Objection::OtherValue { key, value }),
        None => Some(Objection::NoLabel { key }),
    });
    let needed = wish.interface.iter();
    let needed = needed.filter(|needed| needed.is_too_new_for(candidate));
    let interface = needed.map(|needed| Objection::Interface(needed.text));
    let apart = candidate.kept_apart(wish).map(Objection::Apart);
    let rest = interface.chain(apart);
    draining.into_iter().chain(full).chain(labels).chain(rest)
}

/// The smallest wins.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Score {
    is_far: bool,
    turn: u64,
    n_same: u32,
    tie_breaker: u64,
}

impl Score {
    fn of(wish: &Wish<'_>, candidate: &Candidate, strategy: Strategy) -> Self {
        let near = wish.placement.near.as_ref();
        Self {
            is_far: near.is_some_and(|near| candidate.n_of(near) == 0),
            turn: strategy.turn(candidate),
            n_same: candidate.n_of(wish.name),
            tie_breaker: candidate.tie_breaker(wish.shard),
        }
    }
}
