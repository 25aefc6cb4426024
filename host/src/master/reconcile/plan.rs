//! The differences between what is and what should be: a pure function of what was observed.

use std::time::Duration;

use tokio::time::Instant;

use super::super::absent::Absences;
use super::super::observed::Observed;
use super::super::placement::{self, Strategy, Wish};
use crate::model::id::{NodeId, ResourceName};
use crate::model::plugin::PluginRecord;
use crate::model::resource::{PinnedPlugin, ShardId, ShardState};

/// One difference between what is and what should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    /// The plugin that a resource waits for is there.
    Pin(ResourceName, PinnedPlugin),
    /// A shard gets an owner.
    Assign(ShardId, NodeId),
    /// All shards of a resource have nothing left.
    Finish(ShardId),
    /// An assignment that no shard record backs.
    Unassign(NodeId, ShardId),
}

/// What is to be done now, and when something is to be done though nothing changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Plan {
    /// In an order in which they can be carried out.
    pub(super) actions: Vec<Action>,
    /// The first missing worker has been waited for by then.
    pub(super) look_again: Option<Duration>,
}

/// The differences.
pub(super) fn plan(
    observed: &Observed,
    absences: &Absences,
    strategy: Strategy,
    now: Instant,
) -> Plan {
    let mut look_again: Option<Duration> = None;
    let mut actions = Vec::new();
    for resource in observed.resources.values() {
        let resource = &resource.value;
        if resource.pinned.is_none()
            && let Some(plugin) = observed.newest_plugin(&resource.spec.plugin)
        {
            actions.push(Action::Pin(resource.spec.name.clone(), pinned(plugin)));
        }
    }
    let mut candidates = observed.candidates(strategy);
    for (id, shard) in &observed.shards {
        let shard = &shard.value;
        let resource = observed.resources.get(&shard.resource);
        let resource = resource.filter(|resource| resource.value.pinned.is_some());
        match (&shard.state, resource) {
            (ShardState::Idle, _) => actions.push(Action::Finish(*id)),
            (ShardState::Free | ShardState::Assigned, Some(resource)) => {
                let owner = shard.owner.as_ref();
                if owner.is_some_and(|owner| observed.is_alive(owner)) {
                    continue;
                }
                let crawled_by = owner.filter(|_| shard.state == ShardState::Assigned);
                let wait = crawled_by.and_then(|owner| absences.wait(&owner.node, now));
                if let Some(wait) = wait {
                    look_again = Some(look_again.map_or(wait, |before| before.min(wait)));
                    continue;
                }
                let wish = Wish::of(*id, &resource.value);
                let mirrored = owner.map(|owner| (owner.node.clone(), *id));
                let mirrored = mirrored.and_then(|key| observed.assignments.get_key_value(&key));
                if let Some(((node, _), mirror)) = mirrored {
                    candidates.release(node, mirror.as_ref());
                }
                let back = mirrored
                    .and_then(|((node, _), _)| placement::place_on(&wish, node, &candidates));
                let node = match back {
                    Some(node) => Ok(node),
                    None => placement::place(&wish, &candidates),
                };
                if let Ok(node) = node {
                    let node = node.id.clone();
                    candidates.take(&node, &wish);
                    actions.push(Action::Assign(*id, node));
                }
            }
            (
                ShardState::Free
                | ShardState::Assigned
                | ShardState::Finished
                | ShardState::Failed { .. },
                _,
            ) => {}
        }
    }
    for (worker, id) in observed.assignments.keys() {
        let is_backed = observed.shards.get(id).is_some_and(|shard| {
            let is_running = matches!(shard.value.state, ShardState::Assigned | ShardState::Idle);
            is_running
                && shard
                    .value
                    .owner
                    .as_ref()
                    .is_some_and(|owner| owner.node == *worker)
        });
        if !is_backed && !observed.unreadable.contains(id) {
            actions.push(Action::Unassign(worker.clone(), *id));
        }
    }
    Plan {
        actions,
        look_again,
    }
}

fn pinned(plugin: &PluginRecord) -> PinnedPlugin {
    PinnedPlugin {
        version: plugin.version.clone(),
        digest: plugin.digest,
        interface: plugin.interface.clone(),
    }
}
