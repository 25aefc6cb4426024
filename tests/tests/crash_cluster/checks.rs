//! Checks of the API's answer about a resource, against itself and against the data that a kill has left.

use crawler_model::crawl::LOST_ROOTS;
use crawler_model::resource::ShardState;
use crawler_proto as proto;
use serde_json::Value;

use crate::store::Left;

/// Sorts items by their URLs, which is the order of the expected ones.
pub(crate) fn sorted(items: &[Value]) -> Vec<Value> {
    let mut items = items.to_vec();
    items.sort_by(|a, b| a["url"].as_str().cmp(&b["url"].as_str()));
    items
}

/// Checks that resource and shard agree.
pub(crate) fn check_whole(seen: &proto::Resource) {
    assert_eq!(seen.shards.len(), 1, "{seen:?}");
    let shard = &seen.shards[0];
    let is_running = matches!(shard.state.as_str(), "assigned" | "idle");
    assert_eq!(seen.phase == "Running", is_running, "{seen:?}");
    assert_eq!(
        seen.phase == "Finished",
        shard.state == "finished",
        "{seen:?}"
    );
    assert!(seen.run >= 1 && seen.run <= shard.epoch, "{seen:?}");
    assert_eq!(shard.owner, "worker-1", "{seen:?}");
    assert!(
        seen.spec().assigned_node.starts_with("worker-1|127.0.0.1:"),
        "{seen:?}"
    );
    assert!(!seen.plugin_digest.is_empty(), "{seen:?}");
}

/// Returns true if a resource goes on from where its process was killed; false while it has no worker yet.
pub(crate) fn goes_on(seen: &proto::Resource, left: &Left) -> bool {
    let (epoch, run) = (left.shard.epoch.0, left.resource.run.0);
    assert_eq!(seen.spec().id, left.resource.id.to_string());
    assert_eq!(seen.generation, left.resource.generation.0);
    let shard = &seen.shards[0];
    match &left.shard.state {
        ShardState::Assigned if shard.epoch == epoch => false,
        ShardState::Assigned => {
            assert_eq!(shard.epoch, epoch + 1, "{seen:?}");
            assert_eq!(seen.run, run, "{seen:?}");
            true
        }
        ShardState::Idle | ShardState::Finished => {
            assert_eq!((shard.epoch, seen.run), (epoch, run), "{seen:?}");
            seen.phase == "Finished"
        }
        ShardState::Failed { reason } if reason.starts_with(LOST_ROOTS) => {
            assert_eq!((shard.epoch, seen.run), (epoch, run), "{seen:?}");
            seen.phase == "Failed"
        }
        ShardState::Free | ShardState::Revoking | ShardState::Failed { .. } => {
            panic!("{:?}", left.shard)
        }
    }
}
