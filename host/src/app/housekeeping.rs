//! What is looked after while nothing asks for it.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::data::DataRoot;
use crate::telemetry;

/// Between two sweeps of the data root.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Removes what writes left that were cut off, at once and then every hour, until `stop`.
pub(super) async fn sweep(data: Arc<DataRoot>, clock: Arc<dyn Clock>, stop: CancellationToken) {
    loop {
        match data.sweep(clock.unix_millis()).await {
            Ok(0) => {}
            Ok(n) => tracing::info!(n, "removed files that were never complete"),
            Err(error) => {
                tracing::warn!(
                    error = telemetry::chain(&error),
                    "the data root cannot be swept"
                );
            }
        }
        tokio::select! {
            () = tokio::time::sleep(SWEEP_INTERVAL) => {}
            () = stop.cancelled() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::TaskScope;

    struct Later;

    impl Clock for Later {
        /// So late that every file is old.
        fn unix_nanos(&self) -> u64 {
            u64::MAX
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_data_root_is_swept_at_start_and_again_later() {
        let folder = tempfile::tempdir().unwrap();
        let data = Arc::new(DataRoot::open(folder.path().to_str().unwrap()).unwrap());
        let cut_off = folder.path().join("plugins/a.wasm#1");
        std::fs::create_dir(folder.path().join("plugins")).unwrap();
        let scope = TaskScope::new();
        let stop = scope.stop_signal();
        scope.spawn("sweep", sweep(data, Arc::new(Later), stop));
        for _ in 0..2 {
            std::fs::write(&cut_off, "").unwrap();
            let gone = async {
                while cut_off.exists() {
                    tokio::time::sleep(Duration::from_secs(60)).await;
                }
            };
            let deadline = SWEEP_INTERVAL * 2;
            tokio::time::timeout(deadline, gone).await.expect("swept");
        }
        assert!(scope.stop(Duration::from_secs(1)).await.is_empty());
    }
}
