//! Wake-ups for a loop that looks at all records below a prefix: at a change, and at intervals without one, in
//! case a watch has missed something.

use std::time::Duration;

use futures::FutureExt as _;
use tokio::time::Instant;

use super::catalog::Catalog;
use super::{Entry, StoreError, Watch, WatchEvent};

/// Changes below a prefix, for a reader that looks at all of it after each.
pub struct Changes {
    watch: Box<dyn Watch>,
    /// Prefixes whose changes are ignored.
    ignored: Vec<String>,
    resync: Duration,
    look_by: Instant,
}

impl Changes {
    /// Watches from now on; records that are read afterwards are at least as new. Wakes at least every
    /// `resync`.
    pub async fn below(
        catalog: &Catalog,
        prefix: &str,
        resync: Duration,
    ) -> Result<Self, StoreError> {
        let store = catalog.store();
        // Any listing returns the present revision. This one is short, and whoever may watch these records may read it.
        let revision = store.list_after(prefix, "", 1).await?.revision;
        Ok(Self {
            watch: store.watch(prefix, revision).await?,
            ignored: Vec::new(),
            resync,
            look_by: Instant::now() + resync,
        })
    }

    /// Ignores changes below this prefix.
    #[must_use]
    pub fn but(mut self, ignored: String) -> Self {
        self.ignored.push(ignored);
        self
    }

    /// Waits until it is time to look. One look serves all changes that have arrived by then. Cancelling the
    /// wait loses nothing.
    pub async fn next(&mut self) -> Result<(), StoreError> {
        loop {
            tokio::select! {
                biased;
                // The timer comes first, so that ignored changes cannot delay it, however many there are.
                () = tokio::time::sleep_until(self.look_by) => break,
                event = self.watch.next() => {
                    if is_news(&event?, &self.ignored) {
                        break;
                    }
                }
            }
        }
        self.drain()
    }

    /// Skips the changes that have already arrived, because the reader is about to look.
    pub fn drain(&mut self) -> Result<(), StoreError> {
        while let Some(event) = self.watch.next().now_or_never() {
            event?;
        }
        self.look_by = Instant::now() + self.resync;
        Ok(())
    }
}

fn is_news(event: &WatchEvent, ignored: &[String]) -> bool {
    match event {
        WatchEvent::Put(Entry { key, .. }) | WatchEvent::Delete { key, .. } => {
            !ignored.iter().any(|prefix| key.starts_with(prefix))
        }
        WatchEvent::StartOver => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Txn;
    use crate::embedded::{EmbeddedStore, Settings};
    use crate::keys::Keys;

    const HOUR: Duration = Duration::from_secs(3600);

    async fn changes(folder: &tempfile::TempDir, resync: Duration) -> (Catalog, Changes) {
        let store = EmbeddedStore::open(folder.path(), Settings::default()).unwrap();
        let catalog = Catalog::new(Arc::new(store), Keys::default());
        let changes = Changes::below(&catalog, "/a/", resync).await.unwrap();
        (catalog, changes)
    }

    async fn put(catalog: &Catalog, key: &str) {
        let txn = Txn::new().put(key, "1");
        catalog.store().commit(txn).await.unwrap();
    }

    #[tokio::test]
    async fn one_look_serves_all_changes_and_none_is_for_what_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let (catalog, changes) = changes(&folder, HOUR).await;
        let mut changes = changes.but("/a/quiet/".to_owned());
        for key in ["/a/1", "/a/2", "/b/1"] {
            put(&catalog, key).await;
        }
        changes.next().await.unwrap();
        for key in ["/a/quiet/1", "/b/2"] {
            put(&catalog, key).await;
        }
        let quiet = tokio::time::timeout(Duration::from_millis(50), changes.next()).await;
        assert!(quiet.is_err(), "nothing woke it");
        put(&catalog, "/a/3").await;
        changes.next().await.unwrap();
    }

    #[tokio::test]
    async fn f05_a_loop_looks_now_and_then_though_its_watch_says_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (_catalog, mut changes) = changes(&folder, Duration::from_millis(20)).await;
        for _ in 0..2 {
            tokio::time::timeout(Duration::from_secs(30), changes.next())
                .await
                .expect("it looks")
                .unwrap();
        }
    }
}
