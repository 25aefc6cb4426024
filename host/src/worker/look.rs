//! What a worker is assigned, as the store has it at one moment.
//!
//! Reads the worker's own prefix and nothing beside it. A record that is of no use hides no other: it
//! is told of, and passed over.

use std::collections::{BTreeMap, BTreeSet};

use super::agent::AgentParts;
use crate::model::resource::{Assignment, Resource, ShardId};
use crate::store::StoreError;
use crate::telemetry;

/// One look. An assignment that was written for another process of the same id is not in it.
pub(super) struct Look<'a> {
    parts: &'a AgentParts,
    pub(super) assigned: BTreeMap<ShardId, Assignment>,
    /// Shards whose assignment does not decode.
    pub(super) unreadable: BTreeSet<ShardId>,
    /// Why records were passed over.
    pub(super) broken: BTreeSet<String>,
}

impl<'a> Look<'a> {
    pub(super) async fn begin(parts: &'a AgentParts) -> Result<Self, StoreError> {
        let keys = parts.catalog.keys();
        let prefix = keys.assignments_of(&parts.node.id);
        let scan = parts.catalog.scan::<Assignment>(&prefix).await?;
        let mut look = Self {
            parts,
            assigned: BTreeMap::new(),
            unreadable: BTreeSet::new(),
            broken: scan.broken.iter().map(|e| telemetry::chain(e)).collect(),
        };
        let shard = |key: &str| keys.parse_assignment(key).map(|(_, id)| id);
        for error in &scan.broken {
            if let StoreError::Record { key, .. } = error {
                look.unreadable.extend(shard(key));
            }
        }
        for (key, record) in scan.records {
            match shard(&key) {
                Some(id) if record.value.incarnation == parts.node.incarnation => {
                    look.assigned.insert(id, record.value);
                }
                Some(_) => {}
                None => {
                    look.broken.insert(format!("record {key} is of no shard"));
                }
            }
        }
        Ok(look)
    }

    /// The resource that an assignment is of; none where its name has another life by now, or where
    /// it does not decode.
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
