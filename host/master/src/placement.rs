//! Choice of a worker for a shard: a pure function of registrations and assignments.
//!
//! The algorithm filters, then scores. A worker is ruled out if it drains, is at capacity, lacks a label of the
//! selector, supports no plugin interface as new as the plugin's, or has a resource that must stay apart from
//! this one, whichever of the two asks for it. Among the remaining workers, those with the resource that this
//! one wants to be near come first; then the strategy decides; then the fewest shards of the same resource;
//! ties are broken by a hash of the shard, so that the same state always gives the same answer and many ties
//! spread. Workers are kept in the order of their ranks, so that most shards examine one worker, however many
//! there are.
//!
//! The load is the sum of the assignments in the store. It is counted nowhere else, so it cannot drift.
//! Capacity counts shards, load counts their weights.

use crawler_model::id::NodeId;
use crawler_model::node::Node;

mod candidate;
mod candidates;
mod request;
mod strategy;
#[cfg(any(test, feature = "testing"))]
#[allow(missing_docs, clippy::unwrap_used, reason = "code of tests")]
pub mod testing;
#[cfg(test)]
mod tests;
mod unplaceable;

pub use candidate::Candidate;
pub use candidates::Candidates;
use candidates::hash_of;
pub use request::PlacementRequest;
pub use strategy::{Strategy, UnknownStrategy};
use unplaceable::Objection;
pub use unplaceable::Unplaceable;

/// Returns the worker that takes this shard.
pub fn place<'c>(
    request: &PlacementRequest<'_>,
    candidates: &'c Candidates,
) -> Result<&'c Node, Unplaceable> {
    best(request, candidates, |_| true).ok_or_else(|| {
        let objections = candidates.iter().flat_map(|c| objections(request, c));
        Unplaceable::by(objections, candidates.len())
    })
}

/// Returns the worker that takes this shard, other than its owner.
pub(super) fn place_beside<'c>(
    request: &PlacementRequest<'_>,
    candidates: &'c Candidates,
    owner: &NodeId,
) -> Option<&'c Node> {
    best(request, candidates, |candidate| candidate.node.id != *owner)
}

fn best<'c>(
    request: &PlacementRequest<'_>,
    candidates: &'c Candidates,
    is_asked: impl Fn(&Candidate) -> bool,
) -> Option<&'c Node> {
    let hash = hash_of(request.shard);
    let first = |is_near: &dyn Fn(&Candidate) -> bool| {
        let is_fit = |c: &Candidate| is_asked(c) && is_near(c) && is_fit(request, c);
        candidates.first(hash, request.name, is_fit)
    };
    let near = request.placement.near.as_ref();
    let near = near.and_then(|near| first(&|candidate| candidate.n_of(near) > 0));
    let best = near.or_else(|| first(&|_| true));
    best.map(|candidate| &candidate.node)
}

/// Returns this worker if nothing rules it out. A worker that has come back gets its shards again.
pub(super) fn place_on<'c>(
    request: &PlacementRequest<'_>,
    node: &NodeId,
    candidates: &'c Candidates,
) -> Option<&'c Node> {
    let candidate = candidates.get(node)?;
    is_fit(request, candidate).then_some(&candidate.node)
}

/// True if a worker may not go on with a shard that it has. Being at capacity is no reason.
pub(super) fn must_leave(request: &PlacementRequest<'_>, candidate: &Candidate) -> bool {
    let full = Objection::AtCapacity;
    objections(request, candidate).any(|objection| objection != full)
}

/// True if the worker has the resource that this one wants to be near.
pub(super) fn leaves_affinity(request: &PlacementRequest<'_>, candidate: &Candidate) -> bool {
    let near = request.placement.near.as_ref();
    near.is_some_and(|near| candidate.n_of(near) > 0)
}

fn is_fit(request: &PlacementRequest<'_>, candidate: &Candidate) -> bool {
    objections(request, candidate).next().is_none()
}

/// Returns all objections to a worker, with one for each label that it lacks.
fn objections<'a>(
    request: &'a PlacementRequest<'_>,
    candidate: &'a Candidate,
) -> impl Iterator<Item = Objection<'a>> {
    let node = &candidate.node;
    let draining = node.draining.then_some(Objection::Draining);
    let full = (candidate.n_shards >= node.capacity).then_some(Objection::AtCapacity);
    let selector = request.placement.selector.iter();
    let labels = selector.filter_map(|(key, value)| match node.label(key) {
        Some(present) if present == value => None,
        Some(_) => Some(Objection::OtherValue { key, value }),
        None => Some(Objection::NoLabel { key }),
    });
    let needed = request.interface.iter();
    let needed = needed
        .filter(|needed| needed.is_too_new_for(&node.interface, candidate.interface.as_ref()));
    let interface = needed.map(|needed| Objection::Interface(needed.text));
    let apart = candidate.kept_apart(request).map(Objection::Apart);
    let rest = interface.chain(apart);
    draining.into_iter().chain(full).chain(labels).chain(rest)
}
