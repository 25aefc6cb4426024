//! The live workers and the shards of each, according to the assignments in the store.

use std::sync::Arc;

use imbl::{OrdMap, OrdSet};

use super::candidate::Candidate;
use super::request::PlacementRequest;
use super::strategy::Strategy;
use crawler_model::id::{NodeId, ResourceName};
use crawler_model::node::Node;
use crawler_model::resource::{Assignment, ShardId};

/// All live workers, and the strategy that chooses among them. Cheap to clone, whatever their number.
#[derive(Debug, Clone, Default)]
pub struct Candidates {
    strategy: Strategy,
    workers: OrdMap<NodeId, Arc<Candidate>>,
    /// Workers in the order of their ranks.
    order: OrdSet<RankKey>,
}

/// Position of a worker in the order of ranks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct RankKey {
    rank: u64,
    /// Id of the worker; `None` sorts before all others.
    node: Option<NodeId>,
}

impl RankKey {
    fn of(candidate: &Candidate, strategy: Strategy) -> Self {
        Self {
            rank: strategy.rank(candidate),
            node: Some(candidate.node.id.clone()),
        }
    }

    /// Returns a position before all workers of this rank.
    fn before(rank: u64) -> Self {
        Self { rank, node: None }
    }
}

impl Candidates {
    /// Collects these workers with these assignments; each names its worker and the record, if it decodes. An
    /// assignment that does not decode weighs as much as one of a resource with the default weight.
    pub fn new<'a>(
        strategy: Strategy,
        workers: impl IntoIterator<Item = Node>,
        assignments: impl IntoIterator<Item = (&'a NodeId, Option<&'a Assignment>)>,
    ) -> Self {
        let mut candidates = Self {
            strategy,
            ..Self::default()
        };
        for node in workers {
            candidates.present(node);
        }
        for (worker, assignment) in assignments {
            candidates.assigned(worker, assignment);
        }
        candidates
    }

    /// Takes note that a worker is present, or has changed. A new worker has no shards yet.
    pub(crate) fn present(&mut self, node: Node) {
        if self.workers.contains_key(&node.id) {
            let id = node.id.clone();
            self.change(&id, |candidate| {
                candidate.interface = node.interface.parse().ok();
                candidate.node = node;
            });
            return;
        }
        let candidate = Candidate::new(node);
        self.order.insert(RankKey::of(&candidate, self.strategy));
        let id = candidate.node.id.clone();
        self.workers.insert(id, Arc::new(candidate));
    }

    /// Takes note that a worker has gone.
    pub(crate) fn absent(&mut self, node: &NodeId) {
        if let Some(gone) = self.workers.remove(node) {
            self.order.remove(&RankKey::of(&gone, self.strategy));
        }
    }

    /// Takes note of an assignment; the record is given if it decodes.
    pub(crate) fn assigned(&mut self, node: &NodeId, assignment: Option<&Assignment>) {
        self.change(node, |candidate| match assignment {
            Some(a) => candidate.take(&a.name, a.weight, a.apart.as_ref()),
            None => candidate.add(1),
        });
    }

    /// Applies a change to a worker and updates its rank. All changes go through here.
    fn change(&mut self, node: &NodeId, change: impl FnOnce(&mut Candidate)) {
        let Some(candidate) = self.workers.get_mut(node).map(Arc::make_mut) else {
            return;
        };
        let before = RankKey::of(candidate, self.strategy);
        change(candidate);
        let after = RankKey::of(candidate, self.strategy);
        if after != before {
            self.order.remove(&before);
            self.order.insert(after);
        }
    }

    /// Returns the first worker in the order of ranks that is fit. Among workers with the same rank, it chooses
    /// one with the fewest shards of the same resource; among those, the first from the position that `hash`
    /// selects.
    pub(super) fn first(
        &self,
        hash: u64,
        name: &ResourceName,
        is_fit: impl Fn(&Candidate) -> bool,
    ) -> Option<&Candidate> {
        let mut rank = self.order.get_min()?.rank;
        loop {
            let from = |rank| self.order.range(RankKey::before(rank)..);
            let together = || from(rank).take_while(|place| place.rank == rank);
            // Counting the workers does not touch their records.
            let n = together().count();
            let start = usize::try_from(hash % n.max(1) as u64).unwrap_or(0);
            let ring = together().skip(start).chain(together().take(start));
            let mut best: Option<(u32, &Candidate)> = None;
            for place in ring {
                let candidate = place.node.as_ref().and_then(|node| self.get(node));
                let Some(candidate) = candidate.filter(|candidate| is_fit(candidate)) else {
                    continue;
                };
                let n_same = candidate.n_of(name);
                if n_same == 0 {
                    return Some(candidate);
                }
                if best.is_none_or(|(least, _)| n_same < least) {
                    best = Some((n_same, candidate));
                }
            }
            if let Some((_, best)) = best {
                return Some(best);
            }
            rank = from(rank.checked_add(1)?).next()?.rank;
        }
    }

    /// Iterates over the workers in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Candidate> {
        self.workers.values().map(|candidate| &**candidate)
    }

    /// Returns one worker.
    pub fn get(&self, node: &NodeId) -> Option<&Candidate> {
        self.workers.get(node).map(|candidate| &**candidate)
    }

    /// Number of workers.
    pub fn len(&self) -> usize {
        self.workers.len()
    }

    /// True if there is no worker.
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    pub(crate) fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// Counts a shard at this worker for the following decisions.
    pub(crate) fn take(&mut self, node: &NodeId, request: &PlacementRequest<'_>) {
        self.change(node, |candidate| candidate.take_up(request));
    }

    /// Stops counting a shard at this worker for the following decisions.
    pub(crate) fn give_up(&mut self, node: &NodeId, request: &PlacementRequest<'_>) {
        self.change(node, |candidate| candidate.give_up(request));
    }

    /// Stops counting an assignment that is about to be replaced.
    pub(crate) fn release(&mut self, node: &NodeId, assignment: Option<&Assignment>) {
        self.change(node, |candidate| candidate.release(assignment));
    }
}

/// Returns the position at which the search among workers with the same rank begins: the same wherever it is
/// computed, and evenly spread over shards.
pub(super) fn hash_of(shard: ShardId) -> u64 {
    mixed(shard.resource.0 ^ u64::from(shard.shard.0).rotate_left(32))
}

/// Returns bits that depend on all given bits (the finalizer of splitmix64).
fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
