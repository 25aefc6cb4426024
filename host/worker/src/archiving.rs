//! The archive of an assignment: which files of the data root its pages go to.

use super::assigned::Assigned;
use crawler_archive::{Archive, RunInfo};
use crawler_crawl::archive_in;
use crawler_frontier::OpenFrontier;
use crawler_model::crawl::UnixMillis;
use crawler_model::resource::Waits;

/// Name of the state of a crawl that cannot have the archive that its settings ask for.
const UNAVAILABLE: &str = "ArchiveUnavailable";

impl Assigned {
    /// Returns the time at which the run began.
    pub(super) fn run_started_at(&self) -> UnixMillis {
        let known = self.resource.run_started_at;
        known.unwrap_or_else(|| self.parts.clock.unix_millis())
    }

    /// Returns the archive of the crawl, if the resource asks for one. An error says why there can be none now.
    pub(super) fn archive(&self, frontier: &dyn OpenFrontier) -> Result<Option<Archive>, Waits> {
        let info = RunInfo {
            name: self.resource.spec.name.to_string(),
            resource: self.resource.id,
            run: self.resource.run,
            shard: self.shard.id.shard,
            started_at: self.run_started_at(),
            settings: self.config.borrow().settings.clone(),
        };
        let clock = self.parts.clock.clone();
        let archive = archive_in(&self.parts.data, info, frontier.storage_epoch(), clock);
        archive.map_err(|why| Waits {
            condition: UNAVAILABLE.to_owned(),
            why,
        })
    }
}
