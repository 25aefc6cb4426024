//! Requirements of a shard on the worker that takes it.

use std::sync::OnceLock;

use crawler_model::id::{PluginVersion, ResourceName};
use crawler_model::resource::{PlacementSpec, Resource, ShardId};

/// A shard to be placed, and its requirements.
#[derive(Debug, Clone)]
pub struct PlacementRequest<'a> {
    pub(super) shard: ShardId,
    pub(super) name: &'a ResourceName,
    pub(super) placement: &'a PlacementSpec,
    pub(super) interface: Option<Interface<'a>>,
}

/// Plugin interface that a shard needs. It is parsed once, and only if it differs from the worker's.
#[derive(Debug, Clone)]
pub(super) struct Interface<'a> {
    pub(super) text: &'a str,
    version: OnceLock<Option<PluginVersion>>,
}

impl Interface<'_> {
    /// True if a worker with this interface is known to support only older ones: `newest` is the newest of them.
    /// A worker that does not say is tried.
    pub(super) fn is_too_new_for(&self, interface: &str, newest: Option<&PluginVersion>) -> bool {
        let Some(newest) = newest else {
            return false;
        };
        let version = || self.version.get_or_init(|| self.text.parse().ok());
        self.text != interface && version().as_ref().is_some_and(|needed| needed > newest)
    }
}

impl<'a> PlacementRequest<'a> {
    /// Collects the requirements of a shard of this resource.
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

    /// Returns the id of the shard.
    pub fn shard(&self) -> ShardId {
        self.shard
    }

    pub(crate) fn weight(&self) -> u32 {
        self.placement.weight
    }
}
