//! Store that counts its calls, for the metrics of a process. A call within a trace is a span of it.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::{
    Entry, LeaseId, Listing, ListingVisitor, Outcome, Revision, Store, StoreError, Txn, Watch,
};
use crawler_process::metrics::{Durations, WordCounts};
use crawler_process::traces;

/// Kinds of calls, in the order of [`StoreCounts::calls`].
pub const CALLS: [&str; 7] = [
    "get", "list", "commit", "watch", "grant", "renew", "compact",
];

/// Names of the calls in traces, in the same order.
const SPANS: [&str; CALLS.len()] = [
    "store get",
    "store list",
    "store commit",
    "store watch",
    "store grant",
    "store renew",
    "store compact",
];

/// Counts of the calls of one kind.
#[derive(Debug)]
pub struct CallCounts {
    /// Calls by their result: `ok`; for a transaction also `lost`, if a guard did not hold, and `unknown`; `error` for one
    /// without an answer, and `dropped` for one that nobody waited for to its end.
    pub results: WordCounts,
    /// Durations of the calls that have ended.
    pub durations: Durations,
}

/// Counts of the calls to a store since the start of the process.
#[derive(Debug)]
pub struct StoreCounts {
    /// Counts by the kind of call: those of [`CALLS`].
    pub calls: [CallCounts; CALLS.len()],
}

/// Store that counts the calls to the store behind it.
pub struct CountingStore {
    store: Arc<dyn Store>,
    counts: Arc<StoreCounts>,
}

/// Kind of a call; its number is the place in [`CALLS`].
#[derive(Debug, Clone, Copy)]
enum Call {
    Get,
    List,
    Commit,
    Watch,
    Grant,
    Renew,
    Compact,
}

/// Call that has begun. If it is dropped before its end, nobody waited for it.
struct Ongoing<'a> {
    counts: &'a CallCounts,
    begun: Instant,
    has_ended: bool,
}

impl CallCounts {
    fn of(call: &str) -> Self {
        let results: &[&str] = match call {
            "commit" => &["ok", "lost", "unknown", "error", "dropped"],
            _ => &["ok", "error", "dropped"],
        };
        Self {
            results: WordCounts::starting_with(results.iter().copied()),
            durations: Durations::default(),
        }
    }
}

impl Default for StoreCounts {
    fn default() -> Self {
        Self {
            calls: CALLS.map(CallCounts::of),
        }
    }
}

impl CountingStore {
    /// Counts the calls to a store.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            counts: Arc::default(),
        }
    }

    /// Returns the counts.
    pub fn counts(&self) -> Arc<StoreCounts> {
        self.counts.clone()
    }

    async fn counted<T>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, StoreError>>,
        name: fn(&T) -> &'static str,
    ) -> Result<T, StoreError> {
        let mut ongoing = Ongoing {
            counts: &self.counts.calls[call as usize],
            begun: Instant::now(),
            has_ended: false,
        };
        let noted = async {
            let answer = answer.await;
            traces::note(|notes| {
                match &answer {
                    Ok(answer) => notes.text("crawler.result", name(answer)),
                    Err(error) => notes.fail(error),
                };
            });
            answer
        };
        let trace = traces::child_of_kind(SPANS[call as usize], traces::Kind::Client);
        let answer = trace.around(pin!(noted)).await;
        ongoing.end(answer.as_ref().map_or("error", name));
        answer
    }
}

impl Ongoing<'_> {
    fn end(&mut self, result: &str) {
        self.has_ended = true;
        self.counts.durations.add(self.begun.elapsed());
        self.counts.results.add(result, 1);
    }
}

impl Drop for Ongoing<'_> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.counts.results.add("dropped", 1);
        }
    }
}

fn ok<T>(_answer: &T) -> &'static str {
    "ok"
}

fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_) => "ok",
        Outcome::Lost(_) => "lost",
        Outcome::Unknown => "unknown",
    }
}

#[async_trait]
impl Store for CountingStore {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.counted(Call::Get, self.store.get(key), ok).await
    }

    async fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.counted(Call::List, self.store.list(prefix), ok).await
    }

    async fn list_after(
        &self,
        prefix: &str,
        after: &str,
        max: usize,
    ) -> Result<Listing, StoreError> {
        let listing = self.store.list_after(prefix, after, max);
        self.counted(Call::List, listing, ok).await
    }

    async fn list_into(
        &self,
        prefix: &str,
        visitor: &mut dyn ListingVisitor,
    ) -> Result<Revision, StoreError> {
        let listing = self.store.list_into(prefix, visitor);
        self.counted(Call::List, listing, ok).await
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
        self.counted(Call::Commit, self.store.commit(txn), outcome)
            .await
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        let watch = self.store.watch(prefix, from);
        self.counted(Call::Watch, watch, ok).await
    }

    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        let granted = self.store.grant_lease(ttl);
        self.counted(Call::Grant, granted, ok).await
    }

    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        let renewed = self.store.renew_lease(lease);
        self.counted(Call::Renew, renewed, ok).await
    }

    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        // A process does this at its end, when nobody asks for metrics any more.
        self.store.revoke_lease(lease).await
    }

    async fn compact(&self, keep: u64) -> Result<(), StoreError> {
        self.counted(Call::Compact, self.store.compact(keep), ok)
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Guard;
    use crate::twin::StoreTwin;

    crate::store_conformance!(async || {
        let store = CountingStore::new(Arc::new(StoreTwin::new()));
        Some((Arc::new(store) as Arc<dyn Store>, ()))
    });

    #[tokio::test]
    async fn calls_are_counted_by_kind_and_result() {
        let store = CountingStore::new(Arc::new(StoreTwin::new()));
        store.get("/a").await.unwrap();
        let txn = Txn::new().put("/a", "1");
        store.commit(txn).await.unwrap();
        let txn = Txn::new().guard(Guard::Absent("/a".to_owned()));
        store.commit(txn).await.unwrap();
        drop(store.list("/"));
        assert!(store.renew_lease(LeaseId(7)).await.is_err());
        let counts = store.counts();
        let read = |call: Call| {
            let results = counts.calls[call as usize].results.read();
            let results = results.into_iter().map(|(word, n)| format!("{word} {n}"));
            results.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(read(Call::Get), "dropped 0 error 0 ok 1");
        let commits = "dropped 0 error 0 lost 1 ok 1 unknown 0";
        assert_eq!(read(Call::Commit), commits);
        let lists = "dropped 0 error 0 ok 0";
        assert_eq!(read(Call::List), lists, "it was never begun");
        assert_eq!(read(Call::Renew), "dropped 0 error 1 ok 0");
    }
}
