//! The end of a crawl, told in the log with its reason.
//!
//! A worker sees that an assignment is gone. The reason stands in the records of the resource and of the shard.

use std::time::Duration;

use super::assigned::{Assigned, Stop};
use crate::model::id::NodeId;
use crate::model::resource::{Resource, ShardRecord, ShardState};
use crate::store::StoreError;

/// Time for which the line waits for the store.
const DEADLINE: Duration = Duration::from_secs(2);

/// Tells that a crawl has ended here, and why.
pub(super) async fn tell(assigned: &Assigned, end: &Result<(), Stop>) {
    let why = match end {
        Ok(()) => "it is finished",
        Err(Stop::Failed(_)) => "it has failed",
        Err(Stop::Lost | Stop::Told) => {
            let reason = tokio::time::timeout(DEADLINE, reason(assigned)).await;
            reason
                .ok()
                .and_then(Result::ok)
                .unwrap_or("not known: the store does not answer")
        }
    };
    let (name, shard) = (&assigned.resource.spec.name, &assigned.shard);
    tracing::info!(resource = %name, shard = %shard.id, epoch = %shard.epoch, why, "crawl ends");
}

/// Reads what has become of the shard of a crawl that was told to end.
async fn reason(assigned: &Assigned) -> Result<&'static str, StoreError> {
    let (own, was) = (&assigned.shard, &assigned.resource);
    let keys = own.catalog.keys();
    let resource = keys.resource(&was.spec.name);
    let resource = own.catalog.read::<Resource>(&resource).await?;
    let resource = resource.map(|record| record.value);
    let shard = own.catalog.read::<ShardRecord>(&keys.shard(own.id)).await?;
    let shard = shard.map(|record| record.value);
    let id = &assigned.parts.node.id;
    Ok(reason_of(was, resource.as_ref(), shard.as_ref(), id))
}

/// The reason by the present records; `was` is the resource as this worker has crawled it.
fn reason_of(
    was: &Resource,
    resource: Option<&Resource>,
    shard: Option<&ShardRecord>,
    worker: &NodeId,
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
    let owner = shard.and_then(|shard| shard.owner.as_ref());
    match (shard.map(|shard| &shard.state), owner) {
        (Some(ShardState::Finished), _) => "it is finished",
        (Some(ShardState::Failed { .. }), _) => "it has failed",
        (Some(ShardState::Assigned | ShardState::Idle), Some(owner)) if owner.node == *worker => {
            "the worker stops"
        }
        // Revoked, free by now, or another's already.
        (_, _) => "another worker is to have it",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::{Digest, Incarnation};
    use crate::model::resource::{Owner, PinnedPlugin};

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
        shard.state = ShardState::Assigned;
        shard.owner = Some(Owner {
            node: node("worker-1"),
            incarnation: Incarnation(1),
        });
        change(&mut resource, &mut shard);
        let reason = reason_of(&was, Some(&resource), Some(&shard), &node("worker-1"));
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
        let gone = reason_of(&was, None, None, &node("worker-1"));
        assert_eq!(gone, "the resource was deleted");
    }
}
