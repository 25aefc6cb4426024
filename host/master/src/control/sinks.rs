//! Sinks of a resource, as the config file of this master declares them.

use super::{Control, ControlError};
use crawler_model::resource::ResourceSpec;
use crawler_model::settings::{SinkName, SinkNames};

impl Control {
    /// Refuses names of sinks that are not declared here, and sinks that need changes of a resource that compares no items,
    /// unless the resource has been like that before: workers tell what they lack.
    pub(super) fn check_sinks(
        &self,
        spec: &ResourceSpec,
        present: Option<&ResourceSpec>,
    ) -> Result<(), ControlError> {
        self.check_names(spec, present)?;
        if spec.crawl.changes() > 0 {
            return Ok(());
        }
        let names = spec.crawl.sink_names();
        let before = present.filter(|spec| spec.crawl.changes() == 0);
        let before = before.map(|spec| spec.crawl.sink_names());
        let has_had = |name: &SinkName| before.as_ref().is_some_and(|names| names.contains(name));
        let lacks_changes =
            |name: &&SinkName| self.parts.change_sinks.contains(name) && !has_had(name);
        let Some(lacking) = names.iter().find(lacks_changes) else {
            return Ok(());
        };
        Err(ControlError::Invalid {
            field: "crawl.sinks",
            why: format!(
                "setting sink names {lacking}, which needs changes, and setting changes is 0: the resource would tell it none; set changes, as with --changes 30, or leave out {lacking}"
            ),
        })
    }

    fn check_names(
        &self,
        spec: &ResourceSpec,
        present: Option<&ResourceSpec>,
    ) -> Result<(), ControlError> {
        let before = present.map(|spec| spec.crawl.sink_names());
        let is_known = |name: &SinkName| {
            let has_had = before.as_ref().is_some_and(|names| names.contains(name));
            name.is_lines() || has_had || self.parts.sinks.contains(name)
        };
        let names = spec.crawl.sink_names();
        let Some(unknown) = names.iter().find(|name| !is_known(name)) else {
            return Ok(());
        };
        let declared = SinkNames::of(self.parts.sinks.iter().cloned().chain([SinkName::lines()]));
        Err(ControlError::Invalid {
            field: "crawl.sinks",
            why: format!(
                "setting sink names {unknown}, which is not declared; there are {declared}; add [sink.{unknown}] to the config files of masters and workers"
            ),
        })
    }
}
