//! The live workers and what each of them has, by the assignments in the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use imbl::OrdMap;

use super::{Strategy, Wish};
use crate::model::id::{NodeId, PluginVersion, ResourceName};
use crate::model::node::Node;
use crate::model::resource::{Assignment, ShardId};

/// A live worker and what it has.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// As registered.
    pub node: Node,
    /// The weights of the shards assigned to it that are not over.
    pub load: u64,
    /// So many they are.
    pub n_shards: u32,
    /// The newest interface that it runs; none where it does not say.
    pub(super) interface: Option<PluginVersion>,
    /// Shards of each resource here.
    resources: BTreeMap<ResourceName, u32>,
    /// Resources that must not come, with those here that say so, once for each of their shards.
    kept_away: BTreeMap<ResourceName, Vec<ResourceName>>,
    /// Of its id: the half of the tie breaker that is the same for all shards.
    seed: u64,
}

/// All live workers, and how one of them is chosen. Cheap to clone, however many they are.
#[derive(Debug, Clone, Default)]
pub struct Candidates {
    strategy: Strategy,
    workers: OrdMap<NodeId, Arc<Candidate>>,
}

impl Candidates {
    /// These workers with these assignments: who has it, and the record where it decodes. One that
    /// does not weighs as much as a resource that asks for nothing.
    pub fn new<'a>(
        strategy: Strategy,
        workers: impl IntoIterator<Item = Node>,
        assignments: impl IntoIterator<Item = (&'a NodeId, Option<&'a Assignment>)>,
    ) -> Self {
        let workers = workers.into_iter();
        let workers = workers.map(|node| (node.id.clone(), Arc::new(Candidate::new(node))));
        let mut candidates = Self {
            strategy,
            workers: workers.collect(),
        };
        for (worker, assignment) in assignments {
            candidates.assigned(worker, assignment);
        }
        candidates
    }

    /// A worker is there, or is otherwise than before. One that was not there has nothing yet.
    pub(in crate::master) fn present(&mut self, node: Node) {
        match self.get_mut(&node.id) {
            Some(candidate) => {
                candidate.interface = node.interface.parse().ok();
                candidate.node = node;
            }
            None => {
                let candidate = Candidate::new(node);
                let id = candidate.node.id.clone();
                self.workers.insert(id, Arc::new(candidate));
            }
        }
    }

    /// A worker is not there any more.
    pub(in crate::master) fn absent(&mut self, node: &NodeId) {
        self.workers.remove(node);
    }

    /// Somebody has something: the record, where it decodes.
    pub(in crate::master) fn assigned(&mut self, node: &NodeId, assignment: Option<&Assignment>) {
        if let Some(candidate) = self.get_mut(node) {
            match assignment {
                Some(a) => candidate.take(&a.name, a.weight, a.apart.as_ref()),
                None => candidate.add(1),
            }
        }
    }

    fn get_mut(&mut self, node: &NodeId) -> Option<&mut Candidate> {
        self.workers.get_mut(node).map(Arc::make_mut)
    }

    /// In the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &Candidate> {
        self.workers.values().map(|candidate| &**candidate)
    }

    /// One of them.
    pub fn get(&self, node: &NodeId) -> Option<&Candidate> {
        self.workers.get(node).map(|candidate| &**candidate)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.workers.len()
    }

    /// No worker is there.
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    pub(in crate::master) fn strategy(&self) -> Strategy {
        self.strategy
    }

    /// What is placed next sees this one where it was placed.
    pub(in crate::master) fn take(&mut self, node: &NodeId, wish: &Wish<'_>) {
        if let Some(candidate) = self.get_mut(node) {
            candidate.take_up(wish);
        }
    }

    /// What is placed next does not see this one where it was.
    pub(in crate::master) fn give_up(&mut self, node: &NodeId, wish: &Wish<'_>) {
        if let Some(candidate) = self.get_mut(node) {
            candidate.give_up(wish);
        }
    }

    /// An assignment that is about to be replaced stands in nobody's way.
    pub(in crate::master) fn release(&mut self, node: &NodeId, assignment: Option<&Assignment>) {
        if let Some(candidate) = self.get_mut(node) {
            candidate.release(assignment);
        }
    }
}

impl Candidate {
    fn new(node: Node) -> Self {
        use sha2::Digest as _;
        let hash = sha2::Sha256::digest(node.id.as_str());
        Self {
            load: 0,
            n_shards: 0,
            interface: node.interface.parse().ok(),
            resources: BTreeMap::new(),
            kept_away: BTreeMap::new(),
            seed: u64::from_be_bytes(hash[..8].try_into().expect("a sha256 has 32 bytes")),
            node,
        }
    }

    /// Shards of this resource that it has.
    pub(super) fn n_of(&self, name: &ResourceName) -> u32 {
        self.resources.get(name).copied().unwrap_or(0)
    }

    /// The resource here that this one is not to be together with, whichever of them says so.
    pub(super) fn kept_apart<'a>(&'a self, wish: &Wish<'_>) -> Option<&'a ResourceName> {
        let apart = wish.placement.apart.as_ref();
        let asked_for = apart.and_then(|apart| self.resources.get_key_value(apart));
        match asked_for {
            Some((name, _)) => Some(name),
            None => self.kept_away.get(wish.name)?.first(),
        }
    }

    /// The same for one worker and shard wherever it is worked out; between workers, any order.
    pub(super) fn tie_breaker(&self, shard: ShardId) -> u64 {
        let shard = shard.resource.0 ^ u64::from(shard.shard.0).rotate_left(32);
        mixed(self.seed ^ mixed(shard))
    }

    /// It has this one too.
    pub(in crate::master) fn take_up(&mut self, wish: &Wish<'_>) {
        let placement = wish.placement;
        self.take(wish.name, placement.weight, placement.apart.as_ref());
    }

    /// It has this one no more.
    pub(in crate::master) fn give_up(&mut self, wish: &Wish<'_>) {
        let placement = wish.placement;
        self.drop(wish.name, placement.weight, placement.apart.as_ref());
    }

    fn take(&mut self, name: &ResourceName, weight: u32, apart: Option<&ResourceName>) {
        self.add(weight);
        *self.resources.entry(name.clone()).or_default() += 1;
        if let Some(apart) = apart {
            let by = self.kept_away.entry(apart.clone()).or_default();
            by.push(name.clone());
        }
    }

    fn add(&mut self, weight: u32) {
        self.load += u64::from(weight);
        self.n_shards += 1;
    }

    fn release(&mut self, assignment: Option<&Assignment>) {
        match assignment {
            Some(a) => self.drop(&a.name, a.weight, a.apart.as_ref()),
            None => self.subtract(1),
        }
    }

    fn drop(&mut self, name: &ResourceName, weight: u32, apart: Option<&ResourceName>) {
        self.subtract(weight);
        if let Some(n) = self.resources.get_mut(name) {
            *n -= 1;
            if *n == 0 {
                self.resources.remove(name);
            }
        }
        let by = apart.and_then(|apart| self.kept_away.get_mut(apart));
        if let Some(by) = by
            && let Some(at) = by.iter().position(|present| present == name)
        {
            by.remove(at);
        }
    }

    fn subtract(&mut self, weight: u32) {
        self.load = self.load.saturating_sub(u64::from(weight));
        self.n_shards = self.n_shards.saturating_sub(1);
    }
}

/// Bits that depend on all bits given (the finalizer of splitmix64).
fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
