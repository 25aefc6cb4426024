//! Store of records with the faults of etcd: no answer, an answer that is lost after the work was done, the same
//! request twice, history that is compacted away under a watch.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use crawler_store::{
    Entry, LeaseId, Listing, Outcome, Revision, Store, StoreError, Txn, Watch, WatchEvent,
};

/// Faults that a call may meet with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The call is not done, and the error says so.
    Unavailable,
    /// The call is not done; for a transaction, the outcome is unknown.
    RequestLost,
    /// The call is done; for a transaction, the outcome is unknown.
    AnswerLost,
    /// A transaction arrives twice, and the second one is refused; the first answer counts.
    Twice,
    /// A watch loses the changes that it has not told yet; nothing else is affected.
    Compacted,
    /// The call is done, this much later.
    Slow(Duration),
}

/// Source of the faults that the calls of a [`FaultyStore`] meet with.
pub type Faults = crate::faults::Faults<Fault>;

/// A store whose calls, and those of its watches, meet with [`Faults`].
pub struct FaultyStore<S> {
    inner: Arc<S>,
    faults: Faults,
}

impl<S: Store> FaultyStore<S> {
    /// Wraps another store.
    pub fn new(inner: S, faults: Faults) -> Self {
        let inner = Arc::new(inner);
        Self { inner, faults }
    }

    /// The store inside, without faults.
    pub fn inner(&self) -> &Arc<S> {
        &self.inner
    }

    async fn around<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        match self.faults.next() {
            None | Some(Fault::Twice | Fault::Compacted) => call.await,
            Some(Fault::Slow(wait)) => {
                tokio::time::sleep(wait).await;
                call.await
            }
            Some(Fault::AnswerLost) => call.await.and(Err(unavailable())),
            Some(Fault::Unavailable | Fault::RequestLost) => Err(unavailable()),
        }
    }
}

impl<S> fmt::Debug for FaultyStore<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyStore").finish_non_exhaustive()
    }
}

#[async_trait]
impl<S: Store> Store for FaultyStore<S> {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.around(self.inner.get(key)).await
    }

    async fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.around(self.inner.list(prefix)).await
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
        match self.faults.next() {
            None | Some(Fault::Compacted) => self.inner.commit(txn).await,
            Some(Fault::Slow(wait)) => {
                tokio::time::sleep(wait).await;
                self.inner.commit(txn).await
            }
            Some(Fault::Twice) if txn.may_be_repeated() => {
                let outcome = self.inner.commit(txn.clone()).await;
                let _repeated = self.inner.commit(txn).await?;
                outcome
            }
            Some(Fault::Twice) => self.inner.commit(txn).await,
            Some(Fault::AnswerLost) => self.inner.commit(txn).await.map(|_| Outcome::Unknown),
            Some(Fault::RequestLost) => Ok(Outcome::Unknown),
            Some(Fault::Unavailable) => Err(unavailable()),
        }
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        let inner = self.around(self.inner.watch(prefix, from)).await?;
        Ok(Box::new(FaultyWatch {
            store: self.inner.clone(),
            prefix: prefix.to_owned(),
            inner,
            faults: self.faults.clone(),
            next: Next::Undecided,
        }))
    }

    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        self.around(self.inner.grant_lease(ttl)).await
    }

    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.around(self.inner.renew_lease(lease)).await
    }

    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.around(self.inner.revoke_lease(lease)).await
    }

    async fn compact(&self, keep: u64) -> Result<(), StoreError> {
        self.around(self.inner.compact(keep)).await
    }
}

fn unavailable() -> StoreError {
    StoreError::Unavailable {
        why: "a fault was planted".to_owned(),
    }
}

struct FaultyWatch<S> {
    store: Arc<S>,
    prefix: String,
    inner: Box<dyn Watch>,
    faults: Faults,
    next: Next,
}

/// Purpose of the next call. It is kept over a cancelled wait, which is no call of its own.
enum Next {
    Undecided,
    Tell,
    Wait(tokio::time::Instant),
    StartOver,
}

#[async_trait]
impl<S: Store> Watch for FaultyWatch<S> {
    async fn next(&mut self) -> Result<WatchEvent, StoreError> {
        loop {
            match self.next {
                Next::Undecided => {
                    self.next = match self.faults.next() {
                        Some(Fault::Compacted) => Next::StartOver,
                        Some(Fault::Slow(wait)) => Next::Wait(tokio::time::Instant::now() + wait),
                        Some(Fault::Unavailable | Fault::RequestLost | Fault::AnswerLost) => {
                            return Err(unavailable());
                        }
                        Some(Fault::Twice) | None => Next::Tell,
                    }
                }
                Next::Wait(until) => {
                    tokio::time::sleep_until(until).await;
                    self.next = Next::Tell;
                }
                Next::StartOver => {
                    // Changes between the last event and this listing are never told.
                    let present = self.store.list(&self.prefix).await?.revision;
                    self.inner = self.store.watch(&self.prefix, present).await?;
                    self.next = Next::Undecided;
                    return Ok(WatchEvent::StartOver);
                }
                Next::Tell => {
                    let event = self.inner.next().await;
                    self.next = Next::Undecided;
                    return event;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
