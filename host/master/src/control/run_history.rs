//! Runs of a resource: those that are over, and the present one.
//!
//! The numbers of a run are remembered in the transaction that begins the next one: until then, a redrive may change
//! them.

use std::collections::BTreeMap;

use super::Control;
use crate::{ControlError, ResourceView};
use crawler_model::id::ResourceName;
use crawler_model::resource::{Resource, ShardId, ShardRecord};
use crawler_model::runs::{EndedRun, RunHistory, RunSpec};
use crawler_process::telemetry;
use crawler_store::StoreError;
use crawler_store::catalog::Versioned;

/// Runs of a resource.
#[derive(Debug, Clone)]
pub struct RunsView {
    /// The resource with the numbers of the present run.
    pub present: ResourceView,
    /// Spec that the present run began with.
    pub spec: RunSpec,
    /// Earlier runs that are remembered, the latest last.
    pub earlier: Vec<EndedRun>,
}

impl Control {
    /// Returns the present run of a resource, and the last ones before it.
    pub async fn runs(&self, name: &ResourceName) -> Result<RunsView, ControlError> {
        let present = self.resource(name).await?;
        let history = self.history(&present.resource).await?;
        let spec = history.spec_of(&present.resource);
        let mut earlier = history.runs;
        // A run that began between both reads has ended the present one.
        earlier.retain(|ended| ended.run < present.resource.run);
        Ok(RunsView {
            present,
            spec,
            earlier,
        })
    }

    /// Returns the runs of a resource that are over once the present one is.
    pub(super) async fn history_with(
        &self,
        resource: &Resource,
        shards: &BTreeMap<ShardId, Versioned<ShardRecord>>,
    ) -> Result<RunHistory, ControlError> {
        let mut history = self.history(resource).await?;
        let own = shards.iter().filter(|(id, _)| resource.has_shard(**id));
        let own = own.map(|(_, shard)| &shard.value);
        let now = self.parts.clock.unix_millis();
        let ended = EndedRun::of(resource.run, resource.run_started_at, own, now);
        let spec = Some(history.spec_of(resource));
        history.push(EndedRun { spec, ..ended });
        Ok(history)
    }

    /// Reads the runs of a resource that are over.
    async fn history(&self, resource: &Resource) -> Result<RunHistory, ControlError> {
        let catalog = &self.parts.catalog;
        let key = catalog.keys().runs(resource.id);
        match catalog.read::<RunHistory>(&key).await {
            Ok(history) => Ok(history.map(|history| history.value).unwrap_or_default()),
            // No run has to wait for the numbers of earlier ones.
            Err(error @ StoreError::Record { .. }) => {
                let error = telemetry::chain(&error);
                tracing::error!(
                    error,
                    "runs that are over are forgotten: the record does not decode"
                );
                Ok(RunHistory::default())
            }
            Err(error) => Err(error.into()),
        }
    }
}
