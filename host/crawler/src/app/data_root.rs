//! The data root of a process, as its options and config file describe it.

use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use crate::cli::Failure;
use crate::config::DataConfig;
use crawler_data::{DataError, DataRoot};
use crawler_frontier::durable::{DiskCache, DurableSettings};
use crawler_process::telemetry;

/// Time for which a process tries to reach its data root when it starts.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_secs(2);

/// Opens the data root at this place. Only [`probe`] tells whether a bucket can be used.
pub(super) fn open(place: &str, config: &DataConfig) -> anyhow::Result<DataRoot> {
    let remote = config.remote(&place.parse()?).map_err(|why| Failure {
        what: why,
        hint: "fix [data] in the config file, or the environment".to_owned(),
    })?;
    Ok(DataRoot::open_with(place, &remote)?)
}

/// Probes the data root. While it does not answer, this tries again for a minute. Refused credentials and a missing
/// bucket are errors at once.
pub(super) async fn probe(data: &DataRoot) -> Result<(), DataError> {
    let begun = Instant::now();
    loop {
        match data.probe().await {
            Err(error @ DataError::Object { .. })
                if error.is_transient() && begun.elapsed() < PATIENCE =>
            {
                let error = telemetry::chain(&error);
                tracing::warn!(error, "waiting for the data root");
                tokio::time::sleep(PAUSE).await;
            }
            probed => return probed,
        }
    }
}

/// Refuses a data root into which a backup has been restored in part.
pub(super) async fn check_restored(data: &DataRoot) -> anyhow::Result<()> {
    if data.marked_restore().await?.is_none() {
        return Ok(());
    }
    let what = "a restore into this data root has not finished";
    Err(Failure::new(what, "repeat crawler restore with the same backup").into())
}

/// Returns the folder of the data root of `crawler up`, which also keeps its records there.
pub(super) fn folder(data: &DataRoot) -> Result<&Path, Failure> {
    data.folder().ok_or_else(|| Failure {
        what: "crawler up keeps its records in the data root, which a bucket cannot hold"
            .to_owned(),
        hint: "name a folder with --data, or run crawler master and crawler worker with etcd"
            .to_owned(),
    })
}

/// Returns the settings of frontiers in this data root.
pub(super) fn frontier_settings(data: &DataRoot, config: &DataConfig) -> DurableSettings {
    config.frontiers(data.folder().is_none())
}

/// Returns a cache of blocks in the state folder of this process. `None` if the data root is a folder, if there is to be
/// no cache, or if the state folder cannot hold one: a process works without it.
pub(super) fn disk_cache(data: &DataRoot, config: &DataConfig, state: &Path) -> Option<DiskCache> {
    let max_bytes = config.cache_bytes();
    if data.folder().is_some() || max_bytes == 0 {
        return None;
    }
    let created = DiskCache::create(state, max_bytes);
    created
        .inspect_err(|error| {
            let folder = state.display();
            tracing::warn!(
                %folder,
                %error,
                "no cache of blocks in the state folder; blocks are fetched from the bucket instead"
            );
        })
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_data::RemoteSettings;
    use crawler_process::telemetry::testing::told;

    #[test]
    fn only_a_bucket_has_a_cache_and_no_process_needs_it() {
        let state = tempfile::tempdir().unwrap();
        let data = state.path().join("data").display().to_string();
        let folder = DataRoot::open(&data).unwrap();
        let bucket = DataRoot::open_with("s3://bucket/x", &RemoteSettings::default()).unwrap();
        let config = DataConfig::default();
        assert!(disk_cache(&folder, &config, state.path()).is_none());
        assert!(disk_cache(&bucket, &config, state.path()).is_some());
        let file = state.path().join("file");
        std::fs::write(&file, "").unwrap();
        let lines = told("warn", || {
            assert!(disk_cache(&bucket, &config, &file).is_none());
        });
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(lines[0].contains("no cache of blocks in the state folder"));
    }
}
