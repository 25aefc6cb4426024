//! Election of the leader: of the masters that contend, the one whose key was created first leads.
//!
//! Each contender has a key of its own under its lease. The order of their creation is the queue, so that the
//! leadership passes on without a race. [`Leadership`] is a value with two parts: the guard that every write of
//! a leader carries, so that the store refuses writes of a deposed one, and a token that is cancelled after two
//! thirds of the lease without an answer, whatever the network says. A master that loses a write to that guard
//! steps down at once and contends anew under a new lease.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::catalog::{Catalog, Versioned, encode};
use super::changes::Changes;
use super::lease::{LeaseKeeper, Term};
use super::{Guard, LeaseId, Outcome, Revision, Store, StoreError, Txn};
use crawler_model::node::Contender;
use crawler_process::retry::Backoff;
use crawler_process::task::TaskScope;
use crawler_process::telemetry;

/// Right to write as the leader. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Leadership {
    key: Arc<str>,
    created: Revision,
    /// Lease of the leader's key. If `None`, the leadership never ends (in tests).
    lease: Option<Term>,
    lost: CancellationToken,
}

impl Leadership {
    /// Returns the guard that holds for as long as nobody else leads.
    fn guard(&self) -> Guard {
        Guard::CreatedAt(self.key.to_string(), self.created)
    }

    /// Carries a transaction out if its guards hold and nobody else leads. Returns [`StoreError::Deposed`] if
    /// somebody else does; this leadership is then over.
    pub async fn commit(&self, store: &dyn Store, mut txn: Txn) -> Result<Outcome, StoreError> {
        txn.guards.insert(0, self.guard());
        match store.commit(txn).await? {
            Outcome::Lost(0) => {
                self.lost.cancel();
                Err(StoreError::Deposed)
            }
            Outcome::Lost(n) => Ok(Outcome::Lost(n - 1)),
            Outcome::Done(revision) => {
                let (term, revision_n) = (self.created.0, revision.0);
                tracing::debug!(term, revision = revision_n, "written as the leader");
                Ok(Outcome::Done(revision))
            }
            Outcome::Unknown => Ok(Outcome::Unknown),
        }
    }

    /// Returns the revision at which this leadership began; each has a different one.
    pub fn since(&self) -> Revision {
        self.created
    }

    /// True if this master may still lead now. This is for work that no guard protects: after the process was
    /// stopped for a while, it turns false before any timer fires.
    pub fn is_held(&self) -> bool {
        !self.lost.is_cancelled() && self.lease.as_ref().is_none_or(Term::is_held)
    }

    /// Returns a token that is cancelled when this master no longer leads. That is final.
    pub fn lost(&self) -> &CancellationToken {
        &self.lost
    }
}

/// State of the election, as one contender sees it.
#[derive(Debug, Clone, Default)]
pub struct ElectionStatus {
    /// The leader. `None` if nobody leads, or if the leader is not known.
    pub leader: Option<Contender>,
    /// The right to lead, while this contender leads.
    pub own: Option<Leadership>,
    /// Reason why the election cannot be followed at present.
    pub fault: Option<String>,
}

impl ElectionStatus {
    /// Returns this contender's right to lead, unless it was lost since.
    pub fn leadership(&self) -> Option<&Leadership> {
        self.own.as_ref().filter(|leadership| leadership.is_held())
    }
}

/// One contender.
pub struct Election {
    catalog: Catalog,
    contender: Contender,
    ttl: Duration,
    election_status: watch::Sender<ElectionStatus>,
}

impl Election {
    /// Creates an election that does not contend yet. The receiver shows its state.
    pub fn new(
        catalog: Catalog,
        contender: Contender,
        ttl: Duration,
    ) -> (Self, watch::Receiver<ElectionStatus>) {
        let (election_status, receiver) = watch::channel(ElectionStatus::default());
        let election = Self {
            catalog,
            contender,
            ttl,
            election_status,
        };
        (election, receiver)
    }

    /// Contends until `stop`, again after each loss. Gives the leadership away at the end.
    pub async fn run(self, stop: CancellationToken) {
        let scope = TaskScope::new();
        let mut backoff = Backoff::new(self.ttl / 100, self.ttl / 4);
        let mut left_behind = None;
        while !stop.is_cancelled() {
            match stop.run_until_cancelled(self.grant(&scope)).await {
                Some(Ok(lease)) => {
                    if let Some(dead) = left_behind.take() {
                        self.revoke(dead).await;
                    }
                    self.contend(&lease, &stop, &mut backoff).await;
                    self.publish_unknown(Some("its lease in the election was lost".to_owned()));
                    left_behind = self.give_back(lease).await;
                }
                Some(Err(error)) => {
                    let error = telemetry::chain(&error);
                    tracing::warn!(error, "cannot contend for the lead yet");
                    self.publish_unknown(Some(error));
                }
                None => break,
            }
            stop.run_until_cancelled(tokio::time::sleep(backoff.next_delay()))
                .await;
        }
        scope.stop(self.ttl).await;
    }

    async fn grant(&self, scope: &TaskScope) -> Result<LeaseKeeper, StoreError> {
        LeaseKeeper::grant(self.catalog.store().clone(), self.ttl, scope).await
    }

    /// Contends under a lease. Returns when the lease or the leadership is lost, or `stop` is cancelled.
    async fn contend(&self, lease: &LeaseKeeper, stop: &CancellationToken, backoff: &mut Backoff) {
        let lost = lease.lost().child_token();
        // However this ends, nobody writes as the leader from then on.
        let _over = lost.clone().drop_guard();
        let key = self.catalog.keys().contender(lease.id());
        let follow = async {
            loop {
                let Err(error) = self.follow(&key, lease, &lost, backoff).await else {
                    return;
                };
                let error = telemetry::chain(&error);
                tracing::warn!(error, "the election cannot be watched");
                self.election_status
                    .send_modify(|election_status| election_status.fault = Some(error));
                tokio::time::sleep(backoff.next_delay()).await;
            }
        };
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = lost.cancelled() => tracing::warn!(node = %self.contender.id, "no longer in the election; contending anew"),
            () = follow => {}
        }
    }

    /// Publishes the state of the election until the own key is gone.
    async fn follow(
        &self,
        key: &str,
        lease: &LeaseKeeper,
        lost: &CancellationToken,
        backoff: &mut Backoff,
    ) -> Result<(), StoreError> {
        let txn = Txn::new().guard(Guard::Absent(key.to_owned())).put_leased(
            key,
            encode(&self.contender),
            lease.id(),
        );
        match self.catalog.store().commit(txn).await? {
            // A lost guard means that the key exists already, from a try whose answer was lost.
            Outcome::Done(_) | Outcome::Lost(_) => {}
            Outcome::Unknown => {
                let why = "whether this master contends is not known".to_owned();
                return Err(StoreError::Unavailable { why });
            }
        }
        let prefix = self.catalog.keys().election();
        // A watch that silently missed the end of the leader would leave the cluster without one.
        let mut changes = Changes::below(&self.catalog, &prefix, self.ttl).await?;
        loop {
            let scan = self.catalog.scan::<Contender>(&prefix).await?;
            backoff.reset();
            for error in &scan.broken {
                tracing::error!(error = telemetry::chain(error), "passing over a contender");
            }
            let Some((_, own)) = scan.records.iter().find(|(k, _)| k == key) else {
                return Ok(());
            };
            self.publish(key, own, &scan.records, lease, lost);
            changes.next().await?;
        }
    }

    fn publish(
        &self,
        key: &str,
        own: &Versioned<Contender>,
        contenders: &[(String, Versioned<Contender>)],
        lease: &LeaseKeeper,
        lost: &CancellationToken,
    ) {
        let first = contenders.iter().min_by_key(|(_, c)| c.created);
        let leads = first.is_some_and(|(first, _)| first == key);
        let election_status = ElectionStatus {
            leader: first.map(|(_, leader)| leader.value.clone()),
            own: leads.then(|| Leadership {
                key: key.into(),
                created: own.created,
                lease: Some(lease.term()),
                lost: lost.clone(),
            }),
            fault: None,
        };
        self.election_status.send_if_modified(|present| {
            let is_news = present.leader != election_status.leader
                || present.own.is_some() != election_status.own.is_some()
                || present.fault.is_some();
            if is_news {
                *present = election_status;
            }
            is_news
        });
    }

    fn publish_unknown(&self, fault: Option<String>) {
        let election_status = ElectionStatus {
            fault,
            ..ElectionStatus::default()
        };
        self.election_status.send_replace(election_status);
    }

    /// Revokes a lease, so that no dead key stays in the queue for the time of a lease. Returns its id if that
    /// failed.
    async fn give_back(&self, lease: LeaseKeeper) -> Option<LeaseId> {
        let id = lease.id();
        // Dropping the keeper ends the renewals.
        drop(lease);
        (!self.revoke(id).await).then_some(id)
    }

    async fn revoke(&self, lease: LeaseId) -> bool {
        let revoked = self.catalog.store().revoke_lease(lease);
        let why = match tokio::time::timeout(self.ttl, revoked).await {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => telemetry::chain(&error),
            Err(_elapsed) => "no answer in time".to_owned(),
        };
        tracing::warn!(
            error = why,
            "a lease of the election could not be given back"
        );
        false
    }
}

/// Takes the leadership of a store without contenders, for tests that need one.
#[cfg(any(test, feature = "testing"))]
#[allow(clippy::unwrap_used, reason = "code of tests")]
pub async fn take_lead(catalog: &Catalog) -> watch::Receiver<ElectionStatus> {
    let key = format!("{}test", catalog.keys().election());
    let leader = Contender {
        id: "master-1".parse().unwrap(),
        address: "127.0.0.1:9091".to_owned(),
        tls: false,
    };
    let txn = Txn::new().put(key.clone(), encode(&leader));
    let Outcome::Done(created) = catalog.store().commit(txn).await.unwrap() else {
        panic!("nothing is in the way");
    };
    let own = Leadership {
        key: key.into(),
        created,
        lease: None,
        lost: CancellationToken::new(),
    };
    let election_status = ElectionStatus {
        leader: Some(leader),
        own: Some(own),
        fault: None,
    };
    watch::channel(election_status).1
}

/// Returns the leader, for callers that do not contend.
pub async fn current_leader(catalog: &Catalog) -> Result<Option<Contender>, StoreError> {
    let scan = catalog
        .scan::<Contender>(&catalog.keys().election())
        .await?;
    let first = scan.records.into_iter().min_by_key(|(_, c)| c.created);
    Ok(first.map(|(_, leader)| leader.value))
}

#[cfg(test)]
mod tests;
