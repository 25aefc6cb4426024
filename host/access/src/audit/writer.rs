//! Writes the entries of one process to its objects, and removes the oldest objects of all.

use std::sync::Arc;
use std::time::Duration;

use object_store::path::Path as ObjectPath;
use object_store::{Error as ObjectError, ObjectStore, ObjectStoreExt as _};
use tokio::time::Instant;

use super::{AUDIT, AuditSettings, INTERVAL, QUEUE_BYTES, REFUSED_INTERVAL, Shared, list};
use crawler_process::clock::Clock;
use crawler_process::retry::Backoff;

/// Bytes of an object after which the next one is begun. An object is written anew with each batch of entries.
const OBJECT_BYTES: usize = 256 << 10;
/// Time for which the calls in hand may add entries when the process stops.
const LAST_ENTRIES: Duration = Duration::from_secs(2);
/// Deadline of the last write when the process stops.
const LAST_WRITE: Duration = Duration::from_secs(2);
/// Pause between two looks whether calls are in hand.
const PAUSE: Duration = Duration::from_millis(20);

/// Writes the record of one process.
pub(super) struct Writer {
    pub(super) shared: Arc<Shared>,
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) settings: AuditSettings,
    /// End of the names of the objects of this process.
    pub(super) name: String,
    /// Object that is written to, with its content.
    pub(super) present: Option<(ObjectPath, String)>,
}

impl Writer {
    /// Writes entries as they come, for ever.
    pub(super) async fn run(&mut self) {
        let mut backoff = Backoff::new(INTERVAL, Duration::from_secs(30));
        // Processes that end before an object is full leave small ones.
        if let Err(error) = self.remove_oldest().await {
            tracing::warn!(%error, "cannot look at the audit record");
        }
        loop {
            let changed = self.shared.changed.notified();
            match self.shared.has_refused() {
                // It does not matter which of both comes first.
                true => drop(tokio::time::timeout(REFUSED_INTERVAL, changed).await),
                false => changed.await,
            }
            tokio::time::sleep(INTERVAL).await;
            while let Err(error) = self.write(false).await {
                tracing::warn!(%error, "cannot write the audit record; entries wait");
                tokio::time::sleep(backoff.next_delay()).await;
            }
            backoff.reset();
        }
    }

    /// Writes the last entries, once nobody is left who could add some, or after a moment.
    pub(super) async fn finish(&mut self) {
        let began = Instant::now();
        while Arc::strong_count(&self.shared) > 1 && began.elapsed() < LAST_ENTRIES {
            tokio::time::sleep(PAUSE).await;
        }
        match tokio::time::timeout(LAST_WRITE, self.write(true)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, "the last entries of the audit record are lost")
            }
            Err(_elapsed) => tracing::warn!(
                "the last entries of the audit record are lost: the storage does not answer"
            ),
        }
    }

    /// Writes what waits. After an error, all of it is still here. Cancelling it loses nothing.
    async fn write(&mut self, are_last: bool) -> Result<(), ObjectError> {
        let now = self.clock.unix_millis();
        let n_bytes = self.present.as_ref().map_or(0, |(_, text)| text.len());
        // While the storage is away, what does not fit here stays in the queue, which counts what it cannot keep.
        if n_bytes < OBJECT_BYTES + QUEUE_BYTES {
            let lines = self.shared.take(now, are_last);
            if !lines.is_empty() {
                let name = &self.name;
                let (_, text) = self.present.get_or_insert_with(|| {
                    (
                        ObjectPath::from(format!("{AUDIT}/{now:020}-{name}")),
                        String::new(),
                    )
                });
                text.push_str(&lines);
            }
        }
        let Some((path, text)) = &self.present else {
            return Ok(());
        };
        self.objects.put(path, text.clone().into()).await?;
        if text.len() >= OBJECT_BYTES {
            self.present = None;
            self.remove_oldest().await?;
        }
        Ok(())
    }

    async fn remove_oldest(&self) -> Result<(), ObjectError> {
        let mut objects = list(&*self.objects).await?;
        // The newest entry counts: a quiet process begins an object long before it ends it.
        objects.sort_by_key(|object| std::cmp::Reverse(object.last_modified));
        let mut n_bytes = 0;
        for object in objects {
            n_bytes += object.size;
            if n_bytes > self.settings.max_bytes {
                match self.objects.delete(&object.location).await {
                    // Another master was faster.
                    Ok(()) | Err(ObjectError::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(())
    }
}
