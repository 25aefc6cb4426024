//! The reason why a crawl ends here that nobody has finished, for the log.
//!
//! A worker sees that an assignment is gone; why, stands in the records of the resource and of the shard.

use std::fmt;
use std::time::Duration;

use super::agent::AgentParts;
use super::assigned::{Assigned, Stop};
use super::opening::OwnShard;
use crate::model::resource::{Order, Resource, ShardRecord};
use crate::store::StoreError;

/// Time for which a line of the log waits for the store.
const DEADLINE: Duration = Duration::from_secs(2);

/// What has become of the shard of a crawl that was told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Deleted,
    Paused,
    Restarted,
    Moved,
    Stopping,
    Unknown,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Deleted => "the resource was deleted",
            Reason::Paused => "the resource is paused",
            Reason::Restarted => "a new run begins",
            Reason::Moved => "another worker is to have it",
            Reason::Stopping => "the worker stops",
            Reason::Unknown => "not known: the store does not answer",
        })
    }
}

/// Returns why a crawl has ended, in a few words.
pub(super) async fn why(end: &Result<(), Stop>, assigned: &Assigned) -> String {
    match end {
        Ok(()) => "it is finished".to_owned(),
        Err(Stop::Failed(_)) => "it has failed".to_owned(),
        Err(Stop::Lost | Stop::Told) => {
            let Assigned {
                parts,
                shard,
                resource,
                ..
            } = assigned;
            Reason::find(parts, shard, resource).await.to_string()
        }
    }
}

impl Reason {
    /// Reads why the crawl of this shard has ended.
    async fn find(parts: &AgentParts, own: &OwnShard, of: &Resource) -> Self {
        let keys = own.catalog.keys();
        let read = async {
            let (resource, shard) = (keys.resource(&of.spec.name), keys.shard(own.id));
            let resource = own.catalog.read::<Resource>(&resource).await?;
            let resource = resource.map(|record| record.value);
            let shard = own.catalog.read::<ShardRecord>(&shard).await?;
            let is_own = shard.is_some_and(|shard| {
                let ShardRecord {
                    owner,
                    epoch,
                    state,
                    ..
                } = &shard.value;
                let is_here = owner
                    .as_ref()
                    .is_some_and(|owner| owner.node == parts.node.id);
                is_here && *epoch == own.epoch && state.order() == Some(Order::Crawl)
            });
            Ok::<_, StoreError>(Self::of(of, resource.as_ref(), is_own))
        };
        match tokio::time::timeout(DEADLINE, read).await {
            Ok(Ok(reason)) => reason,
            Ok(Err(_)) | Err(_) => Self::Unknown,
        }
    }

    /// `was` is the resource as it was crawled, `is_own` tells that the shard is still this worker's.
    fn of(was: &Resource, present: Option<&Resource>, is_own: bool) -> Self {
        match present.filter(|present| present.id == was.id) {
            None => Self::Deleted,
            Some(present) if present.paused => Self::Paused,
            Some(present) if present.run != was.run => Self::Restarted,
            Some(_) if is_own => Self::Stopping,
            Some(_) => Self::Moved,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"id":"7","assigned_node":"worker-1|a:1","creation_time":1,"generation":1,"run":1,
        "pinned":null,"name":"books","plugin":"books"}"#;

    #[test]
    fn a_crawl_tells_what_has_become_of_its_resource() {
        let was: Resource = serde_json::from_str(RECORD).unwrap();
        let with = |change: fn(&mut Resource)| {
            let mut present = was.clone();
            change(&mut present);
            Reason::of(&was, Some(&present), true)
        };
        assert_eq!(Reason::of(&was, None, false), Reason::Deleted);
        assert_eq!(with(|r| r.id.0 += 1), Reason::Deleted);
        assert_eq!(with(|r| r.paused = true), Reason::Paused);
        assert_eq!(with(|r| r.run = r.run.next()), Reason::Restarted);
        assert_eq!(with(|_| {}), Reason::Stopping);
        assert_eq!(Reason::of(&was, Some(&was), false), Reason::Moved);
    }
}
