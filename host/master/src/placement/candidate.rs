//! A live worker as a candidate for shards, according to the assignments in the store.

use std::collections::BTreeMap;

use super::request::PlacementRequest;
use crawler_model::id::{PluginVersion, ResourceName};
use crawler_model::node::Node;
use crawler_model::resource::Assignment;

/// A live worker and its shards.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// The registration.
    pub node: Node,
    /// Total weight of the shards assigned to the worker that are not over.
    pub load: u64,
    /// Number of these shards.
    pub n_shards: u32,
    /// Newest plugin interface that the worker supports; `None` if unknown.
    pub(super) interface: Option<PluginVersion>,
    /// Number of shards here, by resource.
    resources: BTreeMap<ResourceName, u32>,
    /// Resources that must not come here, with the resources here that ask for it, once for each of their
    /// shards.
    kept_away: BTreeMap<ResourceName, Vec<ResourceName>>,
}

impl Candidate {
    pub(super) fn new(node: Node) -> Self {
        Self {
            load: 0,
            n_shards: 0,
            interface: node.interface.parse().ok(),
            resources: BTreeMap::new(),
            kept_away: BTreeMap::new(),
            node,
        }
    }

    /// Returns the number of shards of this resource on the worker.
    pub(super) fn n_of(&self, name: &ResourceName) -> u32 {
        self.resources.get(name).copied().unwrap_or(0)
    }

    /// Returns a resource here that must stay apart from this one, whichever of the two asks for it.
    pub(super) fn kept_apart<'a>(
        &'a self,
        request: &PlacementRequest<'_>,
    ) -> Option<&'a ResourceName> {
        let apart = request.placement.apart.as_ref();
        let asked_for = apart.and_then(|apart| self.resources.get_key_value(apart));
        match asked_for {
            Some((name, _)) => Some(name),
            None => self.kept_away.get(request.name)?.first(),
        }
    }

    /// Counts this shard.
    pub(super) fn take_up(&mut self, request: &PlacementRequest<'_>) {
        let placement = request.placement;
        self.take(request.name, placement.weight, placement.apart.as_ref());
    }

    /// Stops counting this shard.
    pub(super) fn give_up(&mut self, request: &PlacementRequest<'_>) {
        let placement = request.placement;
        self.drop(request.name, placement.weight, placement.apart.as_ref());
    }

    pub(super) fn take(&mut self, name: &ResourceName, weight: u32, apart: Option<&ResourceName>) {
        self.add(weight);
        *self.resources.entry(name.clone()).or_default() += 1;
        if let Some(apart) = apart {
            let by = self.kept_away.entry(apart.clone()).or_default();
            by.push(name.clone());
        }
    }

    pub(super) fn add(&mut self, weight: u32) {
        self.load += u64::from(weight);
        self.n_shards += 1;
    }

    pub(super) fn release(&mut self, assignment: Option<&Assignment>) {
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
