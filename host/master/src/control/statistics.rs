//! Statistics of a resource's present run, read beside the owners of its frontiers.

use super::Control;
use crate::placement::Candidates;
use crate::{ControlError, phase};
use crawler_model::id::ResourceName;
use crawler_model::resource::{Phase, Resource, ShardRecord};
use crawler_model::statistics::{RunStatistics, why_ended};

impl Control {
    /// Returns the statistics of the present run of a resource.
    pub async fn statistics(&self, name: &ResourceName) -> Result<RunStatistics, ControlError> {
        let resource = self.existing(name).await?.value;
        let mut sum = RunStatistics {
            run: resource.run,
            ..RunStatistics::default()
        };
        // It is read before the frontiers: if the run is over by now, what they have is complete.
        let phase = self.phase_without_workers(&resource).await?;
        let mut is_crawled = false;
        for id in resource.shard_ids() {
            let Some(reader) = self.frontier(id).await? else {
                continue;
            };
            is_crawled = true;
            let found = Box::pin(reader.statistics()).await;
            reader.close().await;
            let (run, counts, statistics) = found?;
            // A frontier that no worker has opened in this run is still in the one before.
            if run == resource.run {
                sum.counts.add(&counts);
                sum.statistics.add(&statistics);
            }
        }
        if !is_crawled {
            return Err(ControlError::NoFrontier { name: name.clone() });
        }
        if let Some(pinned) = &resource.pinned {
            let plugins = self.plugin_versions(&resource.spec.plugin.name).await?;
            let plugin = plugins.iter().find(|plugin| plugin.digest == pinned.digest);
            if let Some(plugin) = plugin {
                sum.statistics.declare(&plugin.description);
            }
        }
        sum.end = why_ended(&phase, &sum.counts, &resource.spec.crawl);
        Ok(sum)
    }

    /// Returns the phase of a resource as if no worker were present. It is right for a run that has ended; a run that goes on
    /// may look as if it were pending.
    async fn phase_without_workers(&self, resource: &Resource) -> Result<Phase, ControlError> {
        let shards = self.shards(resource).await?;
        let present = shards.iter().filter(|(id, _)| resource.has_shard(**id));
        let present: Vec<&ShardRecord> = present.map(|(_, shard)| &shard.value).collect();
        Ok(phase::phase(resource, &present, &Candidates::default()))
    }
}
