//! Differences between two runs of a resource: numbers, plugin, settings, and the changes of items from one to the other.

use super::{Control, RunsView};
use crate::{ControlError, ResourceView};
use crawler_frontier::FrontierError;
use crawler_frontier::reader::FrontierReader;
use crawler_model::changes::ChangeTotals;
use crawler_model::id::{ResourceName, Run, Shard};
use crawler_model::resource::{Resource, ShardId};
use crawler_model::runs::{EndedRun, RunSpec};
use crawler_process::telemetry;

/// Two runs of a resource, and what differs beyond their numbers.
#[derive(Debug, Clone)]
pub struct RunsDiff {
    /// The earlier run.
    pub before: RunView,
    /// The later run.
    pub after: RunView,
    /// Names of the settings in which they differ. `None` if those of one of them are not known.
    pub settings: Option<Vec<String>>,
    /// Changes of items that the runs after the earlier one have told, up to the later one.
    pub changes: ChangesBetween,
}

/// A run, as it is known.
#[derive(Debug, Clone)]
pub enum RunView {
    /// The present run, with the spec that it began with.
    Present(Box<(ResourceView, RunSpec)>),
    /// A run that the next one has followed.
    Ended(Box<EndedRun>),
}

/// Changes of items that several runs have told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangesBetween {
    /// Sum of their totals. `None` if none of the runs was compared, or if the frontier cannot be read.
    pub totals: Option<ChangeTotals>,
    /// Number of runs in the sum.
    pub n_compared: u64,
    /// Number of runs that are missing in the sum: their items were not compared, or their changes are not kept any more, or
    /// cannot be read.
    pub n_uncompared: u64,
}

impl Control {
    /// Returns what differs between two runs of a resource.
    pub async fn diff_runs(
        &self,
        name: &ResourceName,
        before: Run,
        after: Run,
    ) -> Result<RunsDiff, ControlError> {
        let invalid = |field, why: String| Err(ControlError::Invalid { field, why });
        if before == Run(0) {
            let why = "field before is missing: it takes the earlier one of two runs".to_owned();
            return invalid("before", why);
        }
        if before >= after {
            let why =
                format!("run {after} does not come after run {before}; name the earlier one first");
            return invalid("after", why);
        }
        let runs = self.runs(name).await?;
        let (before_view, after_view) = (found(&runs, before)?, found(&runs, after)?);
        let settings = match (before_view.spec(), after_view.spec()) {
            (Some(before), Some(after)) => Some(before.differing(after)),
            (None, _) | (_, None) => None,
        };
        Ok(RunsDiff {
            before: before_view,
            after: after_view,
            settings,
            changes: self.changes_between(&runs, before, after).await,
        })
    }

    /// Returns the changes between two runs. They are without totals if the frontier cannot be read: what else differs is
    /// known all the same.
    async fn changes_between(&self, runs: &RunsView, before: Run, after: Run) -> ChangesBetween {
        let resource = &runs.present.resource;
        // A run that begins without the setting removes the changes that earlier ones have told.
        let is_set =
            runs.spec.settings.contains_key("changes") || resource.spec.crawl.changes() > 0;
        let told = match is_set && resource.spec.placement.shards == 1 {
            true => self.told_between(resource, before, after).await,
            false => Ok(ChangesBetween::default()),
        };
        let told = told.unwrap_or_else(|error| {
            let (name, error) = (&resource.spec.name, telemetry::chain(&error));
            tracing::warn!(
                resource = %name,
                error,
                "two runs are compared without the changes of their items: the frontier cannot be read"
            );
            ChangesBetween::default()
        });
        ChangesBetween {
            n_uncompared: after.0 - before.0 - told.n_compared,
            ..told
        }
    }

    /// Reads the changes between two runs from the frontier of a resource with one shard: items are compared in no others.
    async fn told_between(
        &self,
        resource: &Resource,
        before: Run,
        after: Run,
    ) -> Result<ChangesBetween, ControlError> {
        let shard = ShardId {
            resource: resource.id,
            shard: Shard(0),
        };
        let Some(reader) = self.frontier(shard).await? else {
            return Ok(ChangesBetween::default());
        };
        let changes = Box::pin(told_by(&reader, before, after)).await;
        reader.close().await;
        Ok(changes?)
    }
}

/// Sums up the changes that runs after one have told, up to another. Runs that have told none are not counted.
async fn told_by(
    reader: &FrontierReader,
    before: Run,
    after: Run,
) -> Result<ChangesBetween, FrontierError> {
    let mut changes = ChangesBetween::default();
    for run in (before.0 + 1..=after.0).map(Run) {
        let Some(totals) = reader.change_totals(run).await? else {
            continue;
        };
        changes.n_compared += 1;
        match &mut changes.totals {
            Some(sum) => sum.add(&totals),
            None => changes.totals = Some(totals),
        }
    }
    Ok(changes)
}

fn found(runs: &RunsView, run: Run) -> Result<RunView, ControlError> {
    let resource = &runs.present.resource;
    if run == resource.run {
        let present = (runs.present.clone(), runs.spec.clone());
        return Ok(RunView::Present(Box::new(present)));
    }
    let name = &resource.spec.name;
    if run > resource.run {
        return Err(ControlError::NoRun {
            name: name.to_string(),
            run,
            newest: resource.run,
        });
    }
    let ended = runs.earlier.iter().find(|ended| ended.run == run);
    let ended = ended.ok_or_else(|| ControlError::RunForgotten {
        name: name.clone(),
        run,
    })?;
    Ok(RunView::Ended(Box::new(ended.clone())))
}

impl RunView {
    fn spec(&self) -> Option<&RunSpec> {
        match self {
            RunView::Present(present) => Some(&present.1),
            RunView::Ended(ended) => ended.spec.as_ref(),
        }
    }
}
