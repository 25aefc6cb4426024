//! Size of a frontier on disk in bytes: everything in its folder, with the log and with files that
//! compactions have replaced and that are not removed yet.
//!
//! A measurement now and then is exact enough for a quota, and costs the pages nothing.

use std::sync::Weak;
use std::sync::atomic::Ordering;

use futures::TryStreamExt as _;
use object_store::ObjectStore;
use tokio_util::sync::CancellationToken;

use super::inner::Inner;
use crate::path_of;

/// Measures the size until the frontier is closed or gone.
pub(super) async fn watch(inner: Weak<Inner>, stop: CancellationToken) {
    loop {
        let Some(frontier) = inner.upgrade() else {
            return;
        };
        let interval = frontier.frontiers.settings.disk_interval;
        let path = path_of(frontier.shard);
        let files = frontier.frontiers.objects.list(Some(&path));
        let sum = files.try_fold(0, async |sum, file| Ok(sum + file.size));
        match stop.run_until_cancelled(sum).await {
            None => return,
            Some(Ok(n_bytes)) => frontier.disk_bytes.store(n_bytes, Ordering::Relaxed),
            // The last measurement stays valid; writers will meet the error too.
            Some(Err(error)) => {
                tracing::warn!(%error, "the files of the frontier cannot be listed");
            }
        }
        drop(frontier);
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = stop.cancelled() => return,
        }
    }
}
