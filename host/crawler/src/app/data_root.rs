//! The data root of a process, as the options and the config file want it.

use crate::cli::Failure;
use crate::config::DataConfig;
use crawler_data::DataRoot;
use crawler_frontier::durable::DurableSettings;

/// Opens the data root at this place. Whether a bucket can be used, its probe tells.
pub(super) fn open(place: &str, config: &DataConfig) -> anyhow::Result<DataRoot> {
    let remote = config.remote().map_err(|why| Failure {
        what: why,
        hint: "mend [data] in the config file".to_owned(),
    })?;
    Ok(DataRoot::open_with(place, &remote)?)
}

/// Returns the settings of frontiers in this data root.
pub(super) fn frontier_settings(data: &DataRoot, config: &DataConfig) -> DurableSettings {
    config.frontiers(data.folder().is_none())
}
