//! A store that is connected while the process runs already. A request before that fails with the reason why
//! the store is not connected yet.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::{
    Entry, LeaseId, Listing, ListingVisitor, Outcome, Revision, Store, StoreError, Txn, Watch,
};

/// Pauses between two tries, at first and at the most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// Store that is not connected until [`ConnectingStore::connect`] has finished.
pub(super) struct ConnectingStore {
    store: OnceLock<Arc<dyn Store>>,
    /// Reason why the store is not connected yet.
    why: Mutex<String>,
}

impl ConnectingStore {
    pub(super) fn new() -> Self {
        Self {
            store: OnceLock::new(),
            why: Mutex::new("it is not connected to yet".to_owned()),
        }
    }

    /// Tries until the store is connected, and logs after each try why it is not.
    pub(super) async fn connect<S, Try>(&self, connect: impl Fn() -> Try)
    where
        S: Store,
        Try: Future<Output = Result<S, StoreError>>,
    {
        let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
        loop {
            match connect().await {
                Ok(store) => {
                    let _already_there = self.store.set(Arc::new(store));
                    return;
                }
                Err(error) => {
                    let chain = telemetry::chain(&error);
                    let is_transient = error.is_transient();
                    let why = match error {
                        StoreError::Unavailable { why } => why,
                        _ => chain.clone(),
                    };
                    *self.why.lock().unwrap_or_else(PoisonError::into_inner) = why;
                    match is_transient {
                        true => tracing::warn!(error = chain, "waiting for the store"),
                        false => tracing::error!(
                            error = chain,
                            "waiting for the store; somebody has to look"
                        ),
                    }
                }
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    fn store(&self) -> Result<&Arc<dyn Store>, StoreError> {
        self.store.get().ok_or_else(|| StoreError::Unavailable {
            why: self
                .why
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .clone(),
        })
    }
}

#[async_trait]
impl Store for ConnectingStore {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.store()?.get(key).await
    }

    async fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.store()?.list(prefix).await
    }

    async fn list_after(
        &self,
        prefix: &str,
        after: &str,
        max: usize,
    ) -> Result<Listing, StoreError> {
        self.store()?.list_after(prefix, after, max).await
    }

    async fn list_into(
        &self,
        prefix: &str,
        visitor: &mut dyn ListingVisitor,
    ) -> Result<Revision, StoreError> {
        self.store()?.list_into(prefix, visitor).await
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
        self.store()?.commit(txn).await
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        self.store()?.watch(prefix, from).await
    }

    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        self.store()?.grant_lease(ttl).await
    }

    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.store()?.renew_lease(lease).await
    }

    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.store()?.revoke_lease(lease).await
    }

    async fn compact(&self, keep: u64) -> Result<(), StoreError> {
        self.store()?.compact(keep).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crawler_store::embedded::{EmbeddedStore, Settings};

    #[tokio::test(start_paused = true)]
    async fn who_asks_before_there_is_a_store_learns_why_and_gets_answers_later() {
        let folder = tempfile::tempdir().unwrap();
        let store = ConnectingStore::new();
        let n_tries = AtomicUsize::new(0);
        let connect = || async {
            if n_tries.fetch_add(1, Ordering::Relaxed) < 3 {
                let why = "connection refused".to_owned();
                return Err(StoreError::Unavailable { why });
            }
            EmbeddedStore::open(folder.path(), Settings::default())
        };
        let ask = async {
            let mut errors = Vec::new();
            loop {
                match store.get("/a").await {
                    Ok(entry) => break (errors, entry),
                    Err(error) => errors.push(error.to_string()),
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let ((), (errors, entry)) = tokio::join!(store.connect(connect), ask);
        assert_eq!(entry, None);
        let why = "the store does not answer: connection refused";
        assert_eq!(errors.last().map(String::as_str), Some(why));
    }
}
