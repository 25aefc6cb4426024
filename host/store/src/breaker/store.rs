//! Store with a circuit breaker in front of reads and writes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::{Breaker, BreakerSettings, Change, Turn, Verdict};
use crate::{
    Entry, LeaseId, Listing, ListingVisitor, Outcome, Revision, Store, StoreError, Txn, Watch,
};
use crawler_process::telemetry;

/// Time from which on a call that nobody waits for any more counts as one that the store has not answered.
const GIVEN_UP: Duration = Duration::from_secs(2);

/// Store whose reads and writes fail at once while the store behind it is away.
pub struct BreakerStore {
    store: Arc<dyn Store>,
    circuit: Mutex<Circuit>,
}

struct Circuit {
    breaker: Breaker,
    /// Reason of the last failure.
    why: String,
}

/// Call that has gone through. If it is dropped before its end, nobody waited for it.
struct Ongoing<'a> {
    store: &'a BreakerStore,
    turn: Turn,
    began: Instant,
    /// Longest time of a probe. If `None`, the call ends by itself or by its caller.
    timeout: Option<Duration>,
    has_ended: bool,
}

impl BreakerStore {
    /// Puts a circuit breaker in front of a store.
    pub fn new(store: Arc<dyn Store>, settings: BreakerSettings) -> Self {
        Self {
            store,
            circuit: Mutex::new(Circuit {
                breaker: Breaker::new(settings),
                why: String::new(),
            }),
        }
    }

    /// Makes a call, unless the circuit is open. `failure` returns why an answer counts as none, and `late` the result of a
    /// probe without an answer in time.
    async fn through<T>(
        &self,
        call: impl Future<Output = Result<T, StoreError>>,
        failure: fn(&T) -> Option<&'static str>,
        late: fn(String) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let ongoing = self.begin()?;
        let in_time = match ongoing.timeout {
            Some(timeout) => tokio::time::timeout(timeout, call).await,
            None => Ok(call.await),
        };
        let Ok(result) = in_time else {
            let why = ongoing.waited();
            ongoing.end(Some(why.clone()));
            return late(why);
        };
        ongoing.end(match &result {
            Ok(answer) => failure(answer).map(str::to_owned),
            Err(error) => fault(error),
        });
        result
    }

    fn begin(&self) -> Result<Ongoing<'_>, StoreError> {
        let mut circuit = self.lock();
        match circuit.breaker.begin(Instant::now()) {
            Some(turn) => Ok(Ongoing {
                store: self,
                turn,
                began: Instant::now(),
                timeout: circuit.breaker.timeout(),
                has_ended: false,
            }),
            None => Err(StoreError::Unavailable {
                why: circuit.why.clone(),
            }),
        }
    }

    fn end(&self, turn: Turn, verdict: Verdict, why: Option<String>) {
        let mut circuit = self.lock();
        let change = circuit.breaker.end(turn, verdict, Instant::now());
        if let Some(why) = why {
            circuit.why = why;
        }
        let why = circuit.why.clone();
        drop(circuit);
        match change {
            Some(Change::Opened) => {
                let setting = "--store-failures";
                tracing::warn!(
                    why,
                    setting,
                    "calls fail at once until the store answers again"
                );
            }
            Some(Change::Closed) => tracing::info!("the store answers calls again"),
            None => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, Circuit> {
        self.circuit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ongoing<'_> {
    /// Returns in words for how long nobody has answered.
    fn waited(&self) -> String {
        format!("no answer within {} s", self.began.elapsed().as_secs())
    }

    /// Ends the call. If `why` is given, the store has not answered.
    fn end(mut self, why: Option<String>) {
        self.has_ended = true;
        let verdict = match &why {
            Some(_) => Verdict::Failed,
            None => Verdict::Answered,
        };
        self.store.end(self.turn, verdict, why);
    }
}

impl Drop for Ongoing<'_> {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        // A caller that has waited for long has given the store up.
        let (verdict, why) = match self.began.elapsed() >= GIVEN_UP {
            true => (Verdict::Failed, Some(self.waited())),
            false => (Verdict::Abandoned, None),
        };
        self.store.end(self.turn, verdict, why);
    }
}

/// Returns why the store did not answer; `None` if the error is an answer.
fn fault(error: &StoreError) -> Option<String> {
    match error {
        StoreError::Unavailable { why } => Some(why.clone()),
        StoreError::Unreachable { .. } | StoreError::NoLeader { .. } => {
            Some(telemetry::chain(error))
        }
        _ => None,
    }
}

/// Says that whatever came is an answer.
fn is_answer<T>(_: &T) -> Option<&'static str> {
    None
}

/// Returns the result of a read without an answer.
fn unread<T>(why: String) -> Result<T, StoreError> {
    Err(StoreError::Unavailable { why })
}

#[async_trait]
impl Store for BreakerStore {
    async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        self.through(self.store.get(key), is_answer, unread).await
    }

    async fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
        self.through(self.store.list(prefix), is_answer, unread)
            .await
    }

    async fn list_after(
        &self,
        prefix: &str,
        after: &str,
        max: usize,
    ) -> Result<Listing, StoreError> {
        let listing = self.store.list_after(prefix, after, max);
        self.through(listing, is_answer, unread).await
    }

    async fn list_into(
        &self,
        prefix: &str,
        visitor: &mut dyn ListingVisitor,
    ) -> Result<Revision, StoreError> {
        let listing = self.store.list_into(prefix, visitor);
        self.through(listing, is_answer, unread).await
    }

    async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
        let failure = |outcome: &Outcome| {
            let is_lost = matches!(outcome, Outcome::Unknown);
            is_lost.then_some("the answer to a write was lost")
        };
        // A write that is given up may have been carried out.
        let late = |_why: String| Ok(Outcome::Unknown);
        self.through(self.store.commit(txn), failure, late).await
    }

    async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
        self.store.watch(prefix, from).await
    }

    async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
        self.store.grant_lease(ttl).await
    }

    async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.store.renew_lease(lease).await
    }

    async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
        self.store.revoke_lease(lease).await
    }

    async fn compact(&self, keep: u64) -> Result<(), StoreError> {
        self.store.compact(keep).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;
    use crate::twin::StoreTwin;

    const SECOND: Duration = Duration::from_secs(1);
    /// Time after which a call to a store that is away fails.
    const TIMEOUT: Duration = Duration::from_secs(3);

    /// Twin that can be away.
    #[derive(Clone)]
    struct Distant {
        twin: StoreTwin,
        is_away: Arc<AtomicBool>,
        /// True if calls have no end.
        is_mute: Arc<AtomicBool>,
        n_asked: Arc<AtomicUsize>,
    }

    impl Distant {
        async fn reach(&self) -> Result<&StoreTwin, StoreError> {
            self.n_asked.fetch_add(1, Ordering::Relaxed);
            if self.is_mute.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
            if self.is_away.load(Ordering::Relaxed) {
                tokio::time::sleep(TIMEOUT).await;
                return Err(StoreError::Unreachable {
                    endpoints: "http://etcd:2379".to_owned(),
                    why: "connection refused".to_owned(),
                });
            }
            Ok(&self.twin)
        }
    }

    #[async_trait]
    impl Store for Distant {
        async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
            self.reach().await?.get(key).await
        }

        async fn list(&self, prefix: &str) -> Result<Listing, StoreError> {
            self.reach().await?.list(prefix).await
        }

        async fn commit(&self, txn: Txn) -> Result<Outcome, StoreError> {
            self.reach().await?.commit(txn).await
        }

        async fn watch(&self, prefix: &str, from: Revision) -> Result<Box<dyn Watch>, StoreError> {
            self.reach().await?.watch(prefix, from).await
        }

        async fn grant_lease(&self, ttl: Duration) -> Result<LeaseId, StoreError> {
            self.reach().await?.grant_lease(ttl).await
        }

        async fn renew_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
            self.reach().await?.renew_lease(lease).await
        }

        async fn revoke_lease(&self, lease: LeaseId) -> Result<(), StoreError> {
            self.reach().await?.revoke_lease(lease).await
        }

        async fn compact(&self, keep: u64) -> Result<(), StoreError> {
            self.reach().await?.compact(keep).await
        }
    }

    fn distant() -> (Distant, BreakerStore) {
        let distant = Distant {
            twin: StoreTwin::new(),
            is_away: Arc::default(),
            is_mute: Arc::default(),
            n_asked: Arc::default(),
        };
        let settings = BreakerSettings {
            failures: 2,
            pause: SECOND,
            probe_timeout: 3 * SECOND,
        };
        let breaker = BreakerStore::new(Arc::new(distant.clone()), settings);
        (distant, breaker)
    }

    #[tokio::test(start_paused = true)]
    async fn calls_fail_at_once_while_the_store_is_away_and_go_through_when_it_is_back() {
        let (distant, store) = distant();
        assert_eq!(store.get("/a").await.unwrap(), None);
        distant.is_away.store(true, Ordering::Relaxed);
        for _ in 0..2 {
            store.get("/a").await.unwrap_err();
        }
        let (began, n_asked) = (Instant::now(), distant.n_asked.load(Ordering::Relaxed));
        for _ in 0..100 {
            let error = store.commit(Txn::new()).await.unwrap_err();
            let why = "cannot reach etcd at http://etcd:2379: connection refused; start it, or name others with --etcd";
            assert_eq!(
                error.to_string(),
                format!("the store does not answer: {why}")
            );
            assert!(error.is_transient());
        }
        assert_eq!(Instant::now(), began, "no call waits");
        assert_eq!(distant.n_asked.load(Ordering::Relaxed), n_asked);

        // One call in a second asks the store.
        tokio::time::advance(SECOND).await;
        let (probe, other) = tokio::join!(store.list("/"), store.list("/"));
        assert!(matches!(probe, Err(StoreError::Unreachable { .. })));
        assert!(matches!(other, Err(StoreError::Unavailable { .. })));
        assert_eq!(distant.n_asked.load(Ordering::Relaxed), n_asked + 1);

        distant.is_away.store(false, Ordering::Relaxed);
        tokio::time::advance(SECOND).await;
        for _ in 0..2 {
            store.get("/a").await.unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn leases_and_watches_go_on_trying_and_change_nothing() {
        let (distant, store) = distant();
        distant.is_away.store(true, Ordering::Relaxed);
        for _ in 0..10 {
            store.grant_lease(SECOND).await.unwrap_err();
            assert!(store.watch("/", Revision(0)).await.is_err());
        }
        assert_eq!(distant.n_asked.load(Ordering::Relaxed), 20);
        distant.is_away.store(false, Ordering::Relaxed);
        store.get("/a").await.unwrap();
        distant.is_away.store(true, Ordering::Relaxed);
        for _ in 0..3 {
            store.get("/a").await.unwrap_err();
        }
        distant.is_away.store(false, Ordering::Relaxed);
        // The circuit is open, and a lease is granted all the same.
        store.get("/a").await.unwrap_err();
        let lease = store.grant_lease(SECOND).await.unwrap();
        store.renew_lease(lease).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_that_is_given_up_does_not_keep_the_circuit_open() {
        let (distant, store) = distant();
        distant.is_away.store(true, Ordering::Relaxed);
        for _ in 0..2 {
            store.get("/a").await.unwrap_err();
        }
        tokio::time::advance(SECOND).await;
        let probe = tokio::time::timeout(SECOND, store.get("/a")).await;
        assert!(probe.is_err(), "its caller had no more time");
        distant.is_away.store(false, Ordering::Relaxed);
        store.get("/a").await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_probe_without_an_answer_ends_in_time() {
        let (distant, store) = distant();
        distant.is_away.store(true, Ordering::Relaxed);
        for _ in 0..2 {
            store.get("/a").await.unwrap_err();
        }
        distant.is_mute.store(true, Ordering::Relaxed);
        tokio::time::advance(SECOND).await;
        let began = Instant::now();
        let error = store.get("/a").await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the store does not answer: no answer within 3 s"
        );
        // A write may have been carried out.
        tokio::time::advance(SECOND).await;
        let outcome = store.commit(Txn::new()).await.unwrap();
        assert_eq!(outcome, Outcome::Unknown);
        assert!(began.elapsed() < 8 * SECOND, "{:?}", began.elapsed());
        for flag in [&distant.is_mute, &distant.is_away] {
            flag.store(false, Ordering::Relaxed);
        }
        tokio::time::advance(SECOND).await;
        store.get("/a").await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn callers_who_give_the_store_up_open_the_circuit() {
        let (distant, store) = distant();
        distant.is_away.store(true, Ordering::Relaxed);
        for _ in 0..2 {
            let given_up = tokio::time::timeout(GIVEN_UP, store.get("/a")).await;
            assert!(given_up.is_err(), "its caller had no more time");
        }
        let n_asked = distant.n_asked.load(Ordering::Relaxed);
        let error = store.get("/a").await.unwrap_err();
        assert!(error.to_string().contains("within 2 s"), "{error}");
        assert_eq!(distant.n_asked.load(Ordering::Relaxed), n_asked);
    }

    #[tokio::test(start_paused = true)]
    async fn an_error_that_is_an_answer_opens_nothing() {
        let (distant, store) = distant();
        let value = bytes::Bytes::from(vec![0; crate::VALUE_MAX + 1]);
        for _ in 0..5 {
            let too_large = Txn::new().put("/a", value.clone());
            let error = store.commit(too_large).await.unwrap_err();
            assert!(matches!(error, StoreError::TooLarge { .. }), "{error}");
        }
        assert_eq!(distant.n_asked.load(Ordering::Relaxed), 5);
    }
}
