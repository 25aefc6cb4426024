//! Assignments of a worker, as the store has them at one moment.
//!
//! A snapshot reads the worker's own prefix only. A record that cannot be used hides no other: it is logged and
//! skipped.

use std::collections::{BTreeMap, BTreeSet};

use super::parts::AgentParts;
use crawler_model::resource::{Assignment, Resource, ShardId};
use crawler_process::telemetry;
use crawler_store::StoreError;

/// Assignments at one moment. Those that were written for another process of the same id are left out.
pub(super) struct AssignmentSnapshot<'a> {
    parts: &'a AgentParts,
    pub(super) assigned: BTreeMap<ShardId, Assignment>,
    /// Shards whose assignment does not decode.
    pub(super) unreadable: BTreeSet<ShardId>,
    /// Reasons why records were skipped.
    pub(super) broken: BTreeSet<String>,
}

impl<'a> AssignmentSnapshot<'a> {
    pub(super) async fn begin(parts: &'a AgentParts) -> Result<Self, StoreError> {
        let keys = parts.catalog.keys();
        let prefix = keys.assignments_of(&parts.node.id);
        let scan = parts.catalog.scan::<Assignment>(&prefix).await?;
        let mut snapshot = Self {
            parts,
            assigned: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            broken: scan.broken.iter().map(|e| telemetry::chain(e)).collect(),
        };
        let shard = |key: &str| keys.parse_assignment(key).map(|(_, id)| id);
        for error in &scan.broken {
            if let StoreError::Record { key, .. } = error {
                snapshot.unreadable.extend(shard(key));
            }
        }
        for (key, record) in scan.records {
            match shard(&key) {
                Some(id) if record.value.incarnation == parts.node.incarnation => {
                    snapshot.assigned.insert(id, record.value);
                }
                Some(_) => {}
                None => {
                    snapshot
                        .broken
                        .insert(format!("record {key} is of no shard"));
                }
            }
        }
        Ok(snapshot)
    }

    /// Returns the resource of an assignment, or `None` if its name belongs to another resource by now, or if
    /// the record does not decode.
    pub(super) async fn resource_of(
        &mut self,
        id: ShardId,
        assignment: &Assignment,
    ) -> Result<Option<Resource>, StoreError> {
        let key = self.parts.catalog.keys().resource(&assignment.name);
        match self.parts.catalog.read::<Resource>(&key).await {
            Ok(record) => Ok(record
                .map(|record| record.value)
                .filter(|resource| resource.id == id.resource)),
            Err(error @ StoreError::Record { .. }) => {
                self.broken.insert(telemetry::chain(&error));
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
