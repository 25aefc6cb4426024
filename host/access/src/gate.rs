//! Admits callers by the tokens that they show.
//!
//! A task keeps a view of all tokens in memory, and looks again at each change. So no call waits for the store, and
//! a revoked token is refused as soon as the change arrives. A view that is older than [`TRUST`] admits nobody: a
//! process that is cut off from the store would not learn of a revocation.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::record::{TokenRecord, VoidBefore};
use super::registry;
use super::token::{NodeSecret, Token};
use crawler_model::access::{Grants, Subject, TokenId};
use crawler_model::crawl::UnixMillis;
use crawler_process::clock::Clock;
use crawler_store::StoreError;
use crawler_store::catalog::Catalog;
use crawler_store::changes::Changes;

/// Time for which a view is trusted without another look.
pub const TRUST: Duration = Duration::from_secs(60);
/// Time between two looks without a change.
const RESYNC: Duration = Duration::from_secs(10);
/// Pause after a look that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Admits callers. Clones share the view.
#[derive(Clone)]
pub struct Gate {
    view: watch::Receiver<Option<Arc<View>>>,
    clock: Arc<dyn Clock>,
}

/// The tokens of the cluster, as of a moment.
#[derive(Debug)]
struct View {
    tokens: HashMap<TokenId, TokenRecord>,
    void_before: HashMap<Subject, UnixMillis>,
    node_secret: Option<NodeSecret>,
    seen_at: Instant,
}

/// Caller that showed a valid token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// Token that was shown.
    pub token: TokenId,
    /// Subject that it was given to.
    pub subject: Subject,
    /// Rights of the caller.
    pub grants: Grants,
    /// Time at which it stops being valid; `None` if it never does.
    pub expires_at: Option<UnixMillis>,
}

/// Reason why a token admits nobody.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is no token, or there is none with this id and secret. Which of them is not told.
    #[error("the access token is not valid")]
    Invalid,
    /// It has expired.
    #[error("access token {0} has expired")]
    Expired(TokenId),
    /// It was issued before the time from which its subject's tokens are valid.
    #[error("access token {0} is void: tokens of its subject that were issued then were revoked")]
    Void(TokenId),
    /// The store has not been reached for too long.
    #[error("access tokens cannot be checked: the store does not answer")]
    Unsure,
}

impl Gate {
    /// Creates a gate, and the task that keeps its view until `stop` is cancelled. The gate admits nobody before the
    /// task's first look.
    pub fn new(
        catalog: Catalog,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, view) = watch::channel(None);
        let task = async move {
            stop.run_until_cancelled(keep_view(catalog, sender)).await;
        };
        (Self { view, clock }, task)
    }

    /// Admits the caller that shows this text, or tells why not.
    pub fn admit(&self, shown: &str) -> Result<Admission, Refusal> {
        let token: Token = shown.parse().map_err(|_| Refusal::Invalid)?;
        let view = self.view()?;
        let record = view.tokens.get(token.id()).ok_or(Refusal::Invalid)?;
        if !record.hash.is_of(&token) {
            return Err(Refusal::Invalid);
        }
        let admission = Admission {
            token: token.id().clone(),
            subject: record.subject.clone(),
            grants: record.grants.clone(),
            expires_at: record.expires_at,
        };
        view.check(&admission, record, self.clock.unix_millis())?;
        Ok(admission)
    }

    /// Checks the secret that a node shows.
    pub fn check_node(&self, shown: &str) -> Result<(), Refusal> {
        let view = self.view()?;
        match view
            .node_secret
            .as_ref()
            .is_some_and(|secret| secret.is(shown))
        {
            true => Ok(()),
            false => Err(Refusal::Invalid),
        }
    }

    /// Returns the secret that nodes show to each other, if it is known.
    pub fn node_secret(&self) -> Option<NodeSecret> {
        self.view().ok()?.node_secret.clone()
    }

    /// Waits until the token of this admission is not valid any more, or allows something else.
    pub async fn ended(&self, admission: &Admission) -> Refusal {
        let mut views = self.view.clone();
        loop {
            // Seen before the check, so that a change during it is not missed.
            views.borrow_and_update();
            if let Err(refusal) = self.check_again(admission) {
                return refusal;
            }
            // The closed channel of a gate whose task has ended makes the view grow old.
            let changed = async {
                if views.changed().await.is_err() {
                    std::future::pending::<()>().await;
                }
            };
            // A change, the end of the validity and the age of the view are all noticed within this time.
            drop(tokio::time::timeout(PAUSE, changed).await);
        }
    }

    fn check_again(&self, admission: &Admission) -> Result<(), Refusal> {
        let view = self.view()?;
        let record = view.tokens.get(&admission.token).ok_or(Refusal::Invalid)?;
        if record.grants != admission.grants || record.subject != admission.subject {
            return Err(Refusal::Invalid);
        }
        view.check(admission, record, self.clock.unix_millis())
    }

    fn view(&self) -> Result<Arc<View>, Refusal> {
        let view = self.view.borrow().clone();
        let view = view.filter(|view| view.seen_at.elapsed() <= TRUST);
        view.ok_or(Refusal::Unsure)
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate").finish_non_exhaustive()
    }
}

impl View {
    fn check(
        &self,
        admission: &Admission,
        record: &TokenRecord,
        now: UnixMillis,
    ) -> Result<(), Refusal> {
        if record.expires_at.is_some_and(|at| at <= now) {
            return Err(Refusal::Expired(admission.token.clone()));
        }
        let void_before = self.void_before.get(&record.subject);
        match void_before.is_some_and(|at| record.issued_at < *at) {
            true => Err(Refusal::Void(admission.token.clone())),
            false => Ok(()),
        }
    }
}

/// Looks at all tokens at each change, for ever.
async fn keep_view(catalog: Catalog, sender: watch::Sender<Option<Arc<View>>>) {
    loop {
        let Err(error) = follow(&catalog, &sender).await;
        tracing::warn!(%error, "cannot read the access tokens");
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow(
    catalog: &Catalog,
    sender: &watch::Sender<Option<Arc<View>>>,
) -> Result<std::convert::Infallible, StoreError> {
    let mut changes = Changes::below(catalog, &catalog.keys().access(), RESYNC).await?;
    loop {
        let view = look(catalog).await?;
        sender.send_replace(Some(Arc::new(view)));
        changes.next().await?;
    }
}

async fn look(catalog: &Catalog) -> Result<View, StoreError> {
    let seen_at = Instant::now();
    // The times come first: a token that is issued between the two reads is newer than any of them.
    let prefix = catalog.keys().void_before_all();
    let scan = catalog.scan::<VoidBefore>(&prefix).await?;
    let subject = |key: &str| key.strip_prefix(&prefix)?.parse().ok();
    // Nobody knows which tokens a record that does not decode leaves valid.
    let broken = scan.broken.iter().filter_map(|error| {
        tracing::error!(%error, "all tokens of a subject are void");
        match error {
            StoreError::Record { key, .. } => Some((subject(key)?, UnixMillis::MAX)),
            _ => None,
        }
    });
    let records = scan.records.iter();
    let void_before = records.filter_map(|(key, record)| Some((subject(key)?, record.value.at)));
    let node_secret = catalog.read(&catalog.keys().node_secret()).await?;
    Ok(View {
        node_secret: node_secret.map(|record| record.value),
        void_before: void_before.chain(broken).collect(),
        tokens: registry::list(catalog).await?.into_iter().collect(),
        seen_at,
    })
}

#[cfg(test)]
mod tests;
