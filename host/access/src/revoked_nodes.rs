//! Revoked certificates of nodes.
//!
//! A record tells the time before which the certificates of a node are void; serial numbers are kept nowhere. Those who
//! admit nodes follow the records. Those who issue certificates read the record of the node, and issue none that would be
//! void at once. Join tokens from before that time buy that node nothing either: whoever has the key of a node may
//! have its token.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::record::VoidBefore;
use crawler_model::crawl::UnixMillis;
use crawler_model::id::NodeId;
use crawler_store::catalog::{Catalog, encode};
use crawler_store::changes::Changes;
use crawler_store::{Guard, Outcome, StoreError, TXN_MAX, Txn};

/// Largest number of nodes whose revocations are kept.
pub const REVOKED_MAX: usize = 10_000;
/// Time after which a revocation is of no use: no certificate and no join token from before is valid any more.
const USEFUL: Duration = Duration::from_secs(31 * 24 * 60 * 60);
/// Time between two looks without a change.
const RESYNC: Duration = Duration::from_secs(10);
/// Pause after a look that failed.
const PAUSE: Duration = Duration::from_secs(1);
/// Milliseconds of a second: certificates are issued at full ones.
const SECOND: u64 = 1_000;

/// Reason why certificates were not revoked.
#[derive(Debug, thiserror::Error)]
pub enum RevokeNodeError {
    /// There are too many revocations.
    #[error(
        "the certificates of {REVOKED_MAX} nodes were revoked within a month, and no more are kept"
    )]
    Full,
    /// The store did not carry it out.
    #[error("cannot revoke the certificates of a node")]
    Store(#[from] StoreError),
}

/// Makes all certificates of a node void that were issued until now. Returns the time before which they are.
pub async fn revoke(
    catalog: &Catalog,
    node: &NodeId,
    now: UnixMillis,
) -> Result<UnixMillis, RevokeNodeError> {
    let at = (now / SECOND + 1) * SECOND;
    let key = catalog.keys().void_node(node);
    loop {
        let present = catalog.read::<VoidBefore>(&key).await?;
        let guard = match present {
            Some(present) if present.value.at >= at => return Ok(present.value.at),
            Some(present) => Guard::RevisionIs(key.clone(), present.revision),
            None => {
                check_room(catalog, now).await?;
                Guard::Absent(key.clone())
            }
        };
        let txn = Txn::new()
            .guard(guard)
            .put(key.clone(), encode(&VoidBefore { at }));
        match catalog.store().commit(txn).await? {
            Outcome::Done(_) => return Ok(at),
            // Another master wrote it, or this one, whose answer was lost: the next look tells.
            Outcome::Lost(_) | Outcome::Unknown => {}
        }
    }
}

/// Returns the time before which the certificates of a node are void; 0 if none was revoked.
pub async fn void_before(catalog: &Catalog, node: &NodeId) -> Result<UnixMillis, StoreError> {
    let key = catalog.keys().void_node(node);
    let record = catalog.read::<VoidBefore>(&key).await?;
    Ok(record.map_or(0, |record| record.value.at))
}

/// True if a join token that was made at this time buys no certificate of a node whose certificates are void before
/// another time. The latter is up to a second later than the revocation was.
pub(super) fn is_before(issued_at: UnixMillis, void_before: UnixMillis) -> bool {
    issued_at + SECOND < void_before
}

/// Checks that there is room for another record, and removes those of no use if there is none.
async fn check_room(catalog: &Catalog, now: UnixMillis) -> Result<(), RevokeNodeError> {
    let prefix = catalog.keys().void_nodes();
    let records = catalog.scan::<VoidBefore>(&prefix).await?.records;
    if records.len() < REVOKED_MAX {
        return Ok(());
    }
    let useful = u64::try_from(USEFUL.as_millis()).unwrap_or(u64::MAX);
    let useless = records
        .iter()
        .filter(|(_, record)| record.value.at.saturating_add(useful) < now);
    let keys: Vec<&String> = useless.map(|(key, _)| key).collect();
    for keys in keys.chunks(TXN_MAX) {
        let txn = keys
            .iter()
            .fold(Txn::new(), |txn, key| txn.delete((*key).clone()));
        // Those that do not go this time go the next one.
        let _outcome = catalog.store().commit(txn).await?;
    }
    match records.len() - keys.len() < REVOKED_MAX {
        true => Ok(()),
        false => Err(RevokeNodeError::Full),
    }
}

/// Times before which the certificates of nodes are void.
type View = Arc<BTreeMap<NodeId, UnixMillis>>;

/// Revocations, as a process that admits nodes follows them. Clones share what is known. The default knows that there are
/// none.
#[derive(Clone, Default)]
pub struct RevokedNodes {
    /// `None` if there are none.
    view: Option<watch::Receiver<Option<View>>>,
}

impl RevokedNodes {
    /// Creates revocations, and the task that follows them until `stop` is cancelled.
    pub fn new(
        catalog: Catalog,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send) {
        let (sender, view) = watch::channel(None);
        let task = async move {
            stop.run_until_cancelled(keep_view(catalog, sender)).await;
        };
        let view = Some(view);
        (Self { view }, task)
    }

    /// True if a certificate of this node that was issued at this time is void. `None` before the first look. A process
    /// that does not reach the store goes on with what it knows: a certificate is valid for a day at most.
    pub fn is_void(&self, node: &NodeId, issued_at: UnixMillis) -> Option<bool> {
        let Some(view) = &self.view else {
            return Some(false);
        };
        let view = view.borrow().clone()?;
        Some(view.get(node).is_some_and(|at| issued_at < *at))
    }
}

impl fmt::Debug for RevokedNodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RevokedNodes").finish_non_exhaustive()
    }
}

/// Looks at all revocations at each change, for ever.
async fn keep_view(catalog: Catalog, sender: watch::Sender<Option<View>>) {
    let mut is_told = false;
    loop {
        let Err(error) = follow(&catalog, &sender).await;
        if let StoreError::Denied { .. } = &error {
            // The user of this process is older than revocations are.
            if !std::mem::replace(&mut is_told, true) {
                tracing::error!(%error, "cannot read which certificates of nodes were revoked, and goes on as if none were");
            }
            sender.send_if_modified(|view| match view {
                Some(_) => false,
                None => {
                    *view = Some(View::default());
                    true
                }
            });
            tokio::time::sleep(RESYNC).await;
            continue;
        }
        tracing::warn!(%error, "cannot read which certificates of nodes were revoked");
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow(
    catalog: &Catalog,
    sender: &watch::Sender<Option<View>>,
) -> Result<Infallible, StoreError> {
    let prefix = catalog.keys().void_nodes();
    let mut changes = Changes::below(catalog, &prefix, RESYNC).await?;
    loop {
        let view = look(catalog, &prefix).await?;
        sender.send_replace(Some(Arc::new(view)));
        changes.next().await?;
    }
}

async fn look(catalog: &Catalog, prefix: &str) -> Result<BTreeMap<NodeId, UnixMillis>, StoreError> {
    let scan = catalog.scan::<VoidBefore>(prefix).await?;
    let node = |key: &str| key.strip_prefix(prefix)?.parse::<NodeId>().ok();
    // Nobody knows which certificates a record that does not decode leaves valid.
    let broken = scan.broken.iter().filter_map(|error| {
        tracing::error!(%error, "all certificates of a node are void");
        match error {
            StoreError::Record { key, .. } => Some((node(key)?, UnixMillis::MAX)),
            _ => None,
        }
    });
    let records = scan.records.iter();
    let records = records.filter_map(|(key, record)| Some((node(key)?, record.value.at)));
    Ok(records.chain(broken).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_process::task::TaskScope;
    use crawler_store::keys::Keys;
    use crawler_store::twin::StoreTwin;

    const NOW: UnixMillis = 1_800_000_000_500;
    const DEADLINE: Duration = Duration::from_secs(30);

    fn catalog() -> Catalog {
        Catalog::new(Arc::new(StoreTwin::new()), Keys::default())
    }

    fn node(n: usize) -> NodeId {
        format!("worker-{n}").parse().unwrap()
    }

    #[tokio::test]
    async fn certificates_up_to_the_second_of_a_revocation_are_void() {
        let catalog = catalog();
        assert_eq!(void_before(&catalog, &node(1)).await.unwrap(), 0);
        let at = revoke(&catalog, &node(1), NOW).await.unwrap();
        assert_eq!(at, NOW + 500);
        assert_eq!(void_before(&catalog, &node(1)).await.unwrap(), at);
        // An earlier time changes nothing.
        let again = revoke(&catalog, &node(1), NOW - 5_000).await.unwrap();
        assert_eq!(again, at);
        assert_eq!(void_before(&catalog, &node(2)).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn those_who_follow_learn_of_a_revocation() {
        let catalog = catalog();
        let scope = TaskScope::new();
        let (revoked, task) = RevokedNodes::new(catalog.clone(), scope.stop_signal());
        assert_eq!(revoked.is_void(&node(1), NOW), None);
        scope.spawn("revoked nodes", task);
        let says = async |expected: bool| {
            let mut view = revoked.view.clone().unwrap();
            let says = async {
                while revoked.is_void(&node(1), NOW) != Some(expected) {
                    view.changed().await.unwrap();
                }
            };
            tokio::time::timeout(DEADLINE, says).await.expect("known");
        };
        says(false).await;
        let at = revoke(&catalog, &node(1), NOW).await.unwrap();
        says(true).await;
        assert_eq!(revoked.is_void(&node(1), at), Some(false));
        assert_eq!(revoked.is_void(&node(2), NOW), Some(false));
        // A record that nobody can read leaves nothing valid.
        let key = catalog.keys().void_node(&node(2));
        let txn = Txn::new().put(key, "no record");
        catalog.store().commit(txn).await.unwrap();
        let unreadable = async {
            let mut view = revoked.view.clone().unwrap();
            while revoked.is_void(&node(2), at) != Some(true) {
                view.changed().await.unwrap();
            }
        };
        tokio::time::timeout(DEADLINE, unreadable)
            .await
            .expect("known");
        assert_eq!(RevokedNodes::default().is_void(&node(1), 0), Some(false));
    }

    #[tokio::test]
    async fn no_more_revocations_are_kept_than_are_of_use() {
        let catalog = catalog();
        let nodes: Vec<usize> = (0..REVOKED_MAX).collect();
        for nodes in nodes.chunks(TXN_MAX) {
            let put = |txn: Txn, n: &usize| {
                let key = catalog.keys().void_node(&node(*n));
                txn.put(key, encode(&VoidBefore { at: NOW }))
            };
            let txn = nodes.iter().fold(Txn::new(), put);
            catalog.store().commit(txn).await.unwrap();
        }
        let further = node(REVOKED_MAX);
        let full = revoke(&catalog, &further, NOW).await;
        assert!(matches!(full, Err(RevokeNodeError::Full)), "{full:?}");
        // Those that are there can be revoked again.
        revoke(&catalog, &node(0), NOW).await.unwrap();
        let later = NOW + u64::try_from(USEFUL.as_millis()).unwrap() + 60_000;
        revoke(&catalog, &further, later).await.unwrap();
        let prefix = catalog.keys().void_nodes();
        let left = catalog.store().list(&prefix).await.unwrap().entries.len();
        assert_eq!(left, 1);
    }
}
