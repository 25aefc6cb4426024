//! Log line about the end of a crawl, with its reason.
//!
//! A worker sees only that an assignment is gone. The reason is found in the records of the resource and of
//! the shard.

use std::time::Duration;

use super::assigned::{Assigned, Stop};
use crawler_model::id::{Epoch, NodeId};
use crawler_model::resource::{Resource, ShardRecord, ShardState};
use crawler_store::StoreError;

/// Time for which the line waits for the store.
const DEADLINE: Duration = Duration::from_secs(2);

/// Logs that a crawl has ended here, and why.
pub(super) async fn log(assigned: &Assigned, end: &Result<(), Stop>) {
    let why = match end {
        Ok(()) => "it is finished",
        Err(Stop::Failed(_)) => "it has failed",
        Err(Stop::Lost | Stop::Requested) => {
            let reason = tokio::time::timeout(DEADLINE, reason(assigned)).await;
            reason
                .ok()
                .and_then(Result::ok)
                .unwrap_or("not known: the store does not answer")
        }
    };
    tracing::info!(why, "crawl ends");
}

/// Reads the records of a crawl that was told to end, and returns the reason.
async fn reason(assigned: &Assigned) -> Result<&'static str, StoreError> {
    let (own, was) = (&assigned.shard, &assigned.resource);
    let keys = own.catalog.keys();
    let resource = keys.resource(&was.spec.name);
    let resource = own.catalog.read::<Resource>(&resource).await?;
    let resource = resource.map(|record| record.value);
    let shard = own.catalog.read::<ShardRecord>(&keys.shard(own.id)).await?;
    let shard = shard.map(|record| record.value);
    let own = (&assigned.parts.node.id, own.epoch);
    Ok(reason_of(was, resource.as_ref(), shard.as_ref(), own))
}

/// The reason by the present records; `was` is the resource as this worker has crawled it, under an epoch.
fn reason_of(
    was: &Resource,
    resource: Option<&Resource>,
    shard: Option<&ShardRecord>,
    (worker, epoch): (&NodeId, Epoch),
) -> &'static str {
    let Some(resource) = resource.filter(|resource| resource.id == was.id) else {
        return "the resource was deleted";
    };
    if resource.paused {
        return "the resource is paused";
    }
    if resource.run != was.run {
        return "a new run begins";
    }
    if resource.pinned != was.pinned {
        return "the plugin is another one";
    }
    // Revoked, free by now, or another's already.
    let moved = "another worker is to have it";
    let Some(shard) = shard else {
        return moved;
    };
    let is_here = shard
        .owner
        .as_ref()
        .is_some_and(|owner| owner.node == *worker);
    match &shard.state {
        ShardState::Finished => "it is finished",
        ShardState::Failed { .. } => "it has failed",
        ShardState::Assigned | ShardState::Idle if is_here && shard.epoch == epoch => {
            "the worker stops"
        }
        ShardState::Assigned | ShardState::Idle if is_here => "it is assigned here anew",
        ShardState::Assigned | ShardState::Idle | ShardState::Free | ShardState::Revoking => moved,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::{Digest, Incarnation};
    use crawler_model::resource::{Owner, PinnedPlugin};

    const RECORD: &str = r#"{"id":"7","assigned_node":"worker-1|a:1","creation_time":1,"generation":1,"run":1,
        "pinned":null,"name":"books","plugin":"books"}"#;

    fn node(id: &str) -> NodeId {
        id.parse().unwrap()
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut Resource, &mut ShardRecord), expected: &str) {
        let was: Resource = serde_json::from_str(RECORD).unwrap();
        let mut resource = was.clone();
        let mut shard = ShardRecord::new(was.spec.name.clone());
        (shard.state, shard.epoch) = (ShardState::Assigned, Epoch(3));
        shard.owner = Some(Owner {
            node: node("worker-1"),
            incarnation: Incarnation(1),
        });
        change(&mut resource, &mut shard);
        let own = (&node("worker-1"), Epoch(3));
        let reason = reason_of(&was, Some(&resource), Some(&shard), own);
        assert_eq!(reason, expected);
    }

    #[test]
    fn a_crawl_tells_what_has_become_of_its_shard() {
        check(|_, _| {}, "the worker stops");
        check(|resource, _| resource.id.0 += 1, "the resource was deleted");
        check(
            |resource, _| resource.paused = true,
            "the resource is paused",
        );
        check(
            |resource, _| resource.run = resource.run.next(),
            "a new run begins",
        );
        check(
            |_, shard| shard.state = ShardState::Finished,
            "it is finished",
        );
        check(
            |_, shard| shard.epoch = Epoch(4),
            "it is assigned here anew",
        );
        let moved = "another worker is to have it";
        check(|_, shard| shard.state = ShardState::Revoking, moved);
        let other = |shard: &mut ShardRecord| {
            let owner = shard.owner.as_mut().unwrap();
            owner.node = node("worker-2");
        };
        check(|_, shard| other(shard), moved);
        check(|_, shard| *shard = shard.freed(), moved);
        let other_plugin = |resource: &mut Resource, shard: &mut ShardRecord| {
            let digest = Digest::of(b"2.0.0");
            let version = "2.0.0".parse().unwrap();
            let interface = String::new();
            resource.pinned = Some(PinnedPlugin {
                version,
                digest,
                interface,
            });
            *shard = shard.freed();
        };
        check(other_plugin, "the plugin is another one");
        let was: Resource = serde_json::from_str(RECORD).unwrap();
        let gone = reason_of(&was, None, None, (&node("worker-1"), Epoch(3)));
        assert_eq!(gone, "the resource was deleted");
    }
}
