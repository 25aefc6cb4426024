//! Housekeeping of a leader: sweeps of the data root and compaction of the store.

use std::time::Duration;

use super::cleanup::DataCleanup;
use super::control::Control;
use super::replica::Replica;
use crawler_process::clock::Clock;
use crawler_process::telemetry;
use crawler_store::Revision;
use crawler_store::catalog::Catalog;

/// Time between two sweeps of the data root.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Settings for the compaction of the store's history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compaction {
    /// Number of revisions that are kept. Readers that lag behind by more start over.
    pub keep: u64,
    /// Longest time between two compactions.
    pub interval: Duration,
}

/// Removes the remains of interrupted writes and pushes, at once and then every hour.
pub(super) async fn sweep(cleanup: &dyn DataCleanup, clock: &dyn Clock, control: &Control) {
    loop {
        match cleanup.sweep(clock.unix_millis()).await {
            Ok(0) => {}
            Ok(n) => tracing::info!(n, "removed files that were never complete"),
            Err(error) => {
                let error = telemetry::chain(&error);
                tracing::warn!(error, "the data root cannot be swept");
            }
        }
        match control.drop_orphan_plugins().await {
            Ok(0) => {}
            Ok(n) => tracing::info!(n, "removed plugins that no record names"),
            Err(error) => {
                let error = telemetry::chain(&error);
                tracing::warn!(error, "plugins cannot be cleaned up");
            }
        }
        tokio::time::sleep(SWEEP_INTERVAL).await;
    }
}

/// Compacts the store's history to the latest revisions, again and again: whenever there are twice as many as
/// are kept, and at intervals. Busy masters write gigabytes in one interval.
pub(super) async fn compact(catalog: &Catalog, replica: &Replica, compaction: Option<Compaction>) {
    let Some(Compaction { keep, interval }) = compaction else {
        return;
    };
    let mut last = Revision(0);
    loop {
        let many = Revision(last.0.saturating_add(keep));
        tokio::select! {
            biased;
            () = replica.reaches(many) => {}
            () = tokio::time::sleep(interval) => {}
        }
        last = replica.revision().max(last);
        if let Err(error) = catalog.store().compact(keep).await {
            let error = telemetry::chain(&error);
            tracing::warn!(error, "the store's history cannot be compacted");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cleanup::DataRootCleanup;
    use crate::control::Bench;
    use crate::placement::Strategy;
    use crate::reconcile::line_folders;
    use crawler_process::task::TaskScope;
    use crawler_store::keys::Keys;
    use crawler_store::twin::StoreTwin;
    use crawler_store::{Txn, WatchEvent};

    struct Later;

    impl Clock for Later {
        /// A time so late that every file is old.
        fn unix_nanos(&self) -> u64 {
            u64::MAX
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_data_root_is_swept_at_once_and_again_later() {
        let bench = Bench::new().await;
        let data = Arc::new(bench.data().clone());
        let objects = data.object_store();
        let cleanup = DataRootCleanup {
            items: line_folders(&data),
            data,
            objects,
        };
        let cut_off = bench.folder().join("plugins/a.wasm#1");
        std::fs::create_dir(bench.folder().join("plugins")).unwrap();
        let swept = async {
            for _ in 0..2 {
                std::fs::write(&cut_off, "").unwrap();
                while cut_off.exists() {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                }
            }
        };
        tokio::select! {
            () = sweep(&cleanup, &Later, &bench.control) => unreachable!("it goes on"),
            swept = tokio::time::timeout(SWEEP_INTERVAL * 4, swept) => swept.expect("in time"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_history_is_short_however_much_is_written_between_two_looks() {
        let catalog = Catalog::new(Arc::new(StoreTwin::new()), Keys::default());
        let (replica, feeder) = Replica::new(catalog.clone(), Strategy::default());
        let scope = TaskScope::new();
        scope.spawn("feeder", feeder.run(scope.stop_signal()));
        let keep = 10;
        let day = Duration::from_secs(24 * 60 * 60);
        let compaction = Compaction {
            keep,
            interval: day,
        };
        let key = format!("{}key", catalog.keys().all());
        let forgotten = async {
            for _ in 0..3 * keep {
                let put = Txn::new().put(key.clone(), "");
                catalog.store().commit(put).await.unwrap();
            }
            loop {
                let first = catalog.store().watch(&key, Revision(1)).await;
                if matches!(first.unwrap().next().await, Ok(WatchEvent::StartOver)) {
                    return;
                }
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        tokio::select! {
            () = compact(&catalog, &replica, Some(compaction)) => unreachable!("it goes on"),
            done = tokio::time::timeout(day / 2, forgotten) => done.expect("long before its time"),
        }
    }
}
