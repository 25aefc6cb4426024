//! Owners of the shards that send links, by the records of the store.
//!
//! A worker that calls with a certificate brings the links of its own shards only. What a record told is trusted for a
//! while, so that not each call reads it. A node that is not the owner by that is looked up again: it may have got the
//! shard meanwhile. The links of a node that is refused wait with it, and come again.
//!
//! Owners that are known are kept with the assignment that the links are for, and go with it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::links::LinkDeliveryError;
use crawler_model::id::{NodeId, Shard};
use crawler_model::resource::{ShardId, ShardRecord};
use crawler_process::telemetry;
use crawler_store::catalog::Catalog;

/// Time for which an owner is trusted to have its shard still.
const TRUST: Duration = Duration::from_secs(30);
/// Time between the end of a look at the record of a shard and the next look, whoever calls.
const AGAIN: Duration = Duration::from_secs(1);
/// Time that a look may take.
const DEADLINE: Duration = Duration::from_secs(3);

/// Looks up the owners of shards.
#[derive(Clone)]
pub struct ShardOwners {
    catalog: Catalog,
}

/// Owners of the shards that send links to one assignment. It has one entry at most for each shard of the resource.
/// Clones share it.
#[derive(Clone, Default)]
pub(super) struct KnownOwners(Arc<Mutex<BTreeMap<Shard, Known>>>);

/// Owner of a shard, as far as it is known.
#[derive(Default)]
struct Known {
    /// Result of the last look that succeeded.
    found: Option<Found>,
    /// True while somebody looks.
    is_looked_up: bool,
    /// End of the last look, whether it succeeded or not.
    looked_at: Option<Instant>,
}

/// Owner that a look has found.
struct Found {
    /// `None` if nobody owns the shard, or it is not there.
    owner: Option<NodeId>,
    /// Time at which the look began.
    at: Instant,
}

/// Look at the record of a shard: there is one at a time. Its end is noted when it is dropped.
struct Look<'a> {
    known: &'a KnownOwners,
    shard: Shard,
    began: Instant,
}

impl ShardOwners {
    /// Creates the owners by the records of this catalog.
    pub fn new(catalog: Catalog) -> Self {
        Self { catalog }
    }

    /// Checks that a node owns a shard.
    pub(super) async fn check(
        &self,
        known: &KnownOwners,
        shard: ShardId,
        node: &NodeId,
    ) -> Result<(), LinkDeliveryError> {
        let Some(look) = known.admit(shard, node)? else {
            return Ok(());
        };
        let owner = self.look(shard).await?;
        let is_owner = owner.as_ref() == Some(node);
        let why = match &owner {
            Some(owner) => format!("shard {shard} belongs to {owner}, and not to {node}"),
            None => format!("shard {shard} belongs to nobody, and not to {node}"),
        };
        look.found(owner);
        match is_owner {
            true => Ok(()),
            false => Err(LinkDeliveryError::NotOwner(why)),
        }
    }

    async fn look(&self, shard: ShardId) -> Result<Option<NodeId>, LinkDeliveryError> {
        let key = self.catalog.keys().shard(shard);
        let look = self.catalog.read::<ShardRecord>(&key);
        let unknown = |why: String| {
            LinkDeliveryError::NotNow(format!("the owner of shard {shard} is not known: {why}"))
        };
        match tokio::time::timeout(DEADLINE, look).await {
            Ok(Ok(record)) => {
                let owner = record.and_then(|record| record.value.owner);
                Ok(owner.map(|owner| owner.node))
            }
            Ok(Err(error)) => Err(unknown(telemetry::chain(&error))),
            Err(_elapsed) => {
                let seconds = DEADLINE.as_secs();
                Err(unknown(format!(
                    "the store does not answer within {seconds} s"
                )))
            }
        }
    }
}

impl KnownOwners {
    /// Returns `None` if a node is trusted to own a shard, and otherwise a look that tells. The error is for a node that has
    /// to come again, because somebody looks already, or has looked a moment ago.
    fn admit(&self, shard: ShardId, node: &NodeId) -> Result<Option<Look<'_>>, LinkDeliveryError> {
        let now = Instant::now();
        let mut owners = self.owners();
        let known = owners.entry(shard.shard).or_default();
        // The calls of an owner do not wait for a look that is on.
        let trust = match known.is_looked_up {
            true => TRUST + DEADLINE,
            false => TRUST,
        };
        let is_trusted = |found: &Found| {
            found.owner.as_ref() == Some(node) && now.duration_since(found.at) < trust
        };
        if known.found.as_ref().is_some_and(is_trusted) {
            return Ok(None);
        }
        let is_recent = |at: Instant| now.duration_since(at) < AGAIN;
        if known.is_looked_up || known.looked_at.is_some_and(is_recent) {
            let why = format!("{node} does not own shard {shard} yet, as of a moment ago");
            return Err(LinkDeliveryError::NotNow(why));
        }
        known.is_looked_up = true;
        Ok(Some(Look {
            known: self,
            shard: shard.shard,
            began: now,
        }))
    }

    fn owners(&self) -> MutexGuard<'_, BTreeMap<Shard, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Look<'_> {
    /// Ends with this owner.
    fn found(self, owner: Option<NodeId>) {
        let at = self.began;
        let found = Some(Found { owner, at });
        self.known.owners().entry(self.shard).or_default().found = found;
    }
}

impl Drop for Look<'_> {
    fn drop(&mut self) {
        let mut owners = self.known.owners();
        let known = owners.entry(self.shard).or_default();
        (known.is_looked_up, known.looked_at) = (false, Some(Instant::now()));
    }
}

impl fmt::Debug for ShardOwners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardOwners").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::{Epoch, Incarnation, ResourceId};
    use crawler_model::resource::Owner;
    use crawler_store::Txn;
    use crawler_store::catalog::encode;
    use crawler_store::keys::Keys;
    use crawler_store::twin::StoreTwin;

    const SHARD: ShardId = ShardId {
        resource: ResourceId(7),
        shard: Shard(1),
    };

    fn node(n: u64) -> NodeId {
        format!("worker-{n}").parse().unwrap()
    }

    /// Owners by the records of a store, and what an assignment knows of them.
    struct Owners {
        all: ShardOwners,
        known: KnownOwners,
    }

    impl Owners {
        async fn check(&self, shard: ShardId, node: &NodeId) -> Result<(), LinkDeliveryError> {
            self.all.check(&self.known, shard, node).await
        }
    }

    fn owners() -> Owners {
        let catalog = Catalog::new(Arc::new(StoreTwin::new()), Keys::default());
        Owners {
            all: ShardOwners::new(catalog),
            known: KnownOwners::default(),
        }
    }

    #[track_caller]
    fn assert_not_now(answer: Result<(), LinkDeliveryError>) {
        assert!(
            matches!(answer, Err(LinkDeliveryError::NotNow(_))),
            "{answer:?}"
        );
    }

    async fn assign(owners: &Owners, shard: ShardId, owner: Option<u64>) {
        let record = ShardRecord {
            owner: owner.map(|n| Owner {
                node: node(n),
                incarnation: Incarnation(n),
            }),
            epoch: Epoch(1),
            ..ShardRecord::new("books".parse().unwrap())
        };
        let key = owners.all.catalog.keys().shard(shard);
        let txn = Txn::new().put(key, encode(&record));
        owners.all.catalog.store().commit(txn).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn r14_only_its_owner_brings_the_links_of_a_shard() {
        let owners = owners();
        let why = "shard 7/1 belongs to nobody, and not to worker-1".to_owned();
        let refused = owners.check(SHARD, &node(1)).await;
        assert_eq!(refused, Err(LinkDeliveryError::NotOwner(why)));
        assign(&owners, SHARD, Some(1)).await;
        tokio::time::advance(AGAIN).await;
        assert_eq!(owners.check(SHARD, &node(1)).await, Ok(()));
        tokio::time::advance(AGAIN).await;
        assert_eq!(owners.check(SHARD, &node(1)).await, Ok(()));
        let why = "shard 7/1 belongs to worker-1, and not to worker-2".to_owned();
        let refused = owners.check(SHARD, &node(2)).await;
        assert_eq!(refused, Err(LinkDeliveryError::NotOwner(why)));
    }

    #[tokio::test(start_paused = true)]
    async fn r14_the_new_owner_of_a_shard_gets_through_within_a_second() {
        let owners = owners();
        assign(&owners, SHARD, Some(1)).await;
        assert_eq!(owners.check(SHARD, &node(1)).await, Ok(()));
        assign(&owners, SHARD, Some(2)).await;
        assert_not_now(owners.check(SHARD, &node(2)).await);
        tokio::time::advance(AGAIN).await;
        assert_eq!(owners.check(SHARD, &node(2)).await, Ok(()));
        // The one before is not the owner any more, and is trusted no longer.
        owners.check(SHARD, &node(1)).await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_that_lost_its_shard_is_trusted_for_a_while_only() {
        let owners = owners();
        assign(&owners, SHARD, Some(1)).await;
        assert_eq!(owners.check(SHARD, &node(1)).await, Ok(()));
        assign(&owners, SHARD, None).await;
        tokio::time::advance(TRUST - AGAIN).await;
        assert_eq!(owners.check(SHARD, &node(1)).await, Ok(()));
        tokio::time::advance(AGAIN).await;
        owners.check(SHARD, &node(1)).await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn links_wait_while_the_record_of_their_shard_is_unreadable() {
        let owners = owners();
        let key = owners.all.catalog.keys().shard(SHARD);
        let txn = Txn::new().put(key, b"no record".to_vec());
        owners.all.catalog.store().commit(txn).await.unwrap();
        assert_not_now(owners.check(SHARD, &node(1)).await);
        // A look that failed is not made again at once either.
        assign(&owners, SHARD, Some(1)).await;
        assert_not_now(owners.check(SHARD, &node(1)).await);
        tokio::time::advance(AGAIN).await;
        assert_eq!(owners.check(SHARD, &node(1)).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_record_of_a_shard_is_read_by_one_call_at_a_time() {
        let owners = owners();
        let begin = || owners.known.admit(SHARD, &node(2));
        let look = begin().unwrap().expect("nothing is known");
        tokio::time::advance(2 * AGAIN).await;
        assert_not_now(begin().map(drop));
        // The pause begins at the end of the look, and with a call that breaks off.
        drop(look);
        tokio::time::advance(AGAIN - Duration::from_millis(1)).await;
        assert_not_now(begin().map(drop));
        tokio::time::advance(Duration::from_millis(1)).await;
        begin().unwrap().expect("it may look again");
    }

    #[tokio::test(start_paused = true)]
    async fn owners_are_remembered_by_shard_and_not_by_caller() {
        let owners = owners();
        for n in 0..100 {
            owners.check(SHARD, &node(n)).await.unwrap_err();
            tokio::time::advance(AGAIN).await;
        }
        assert_eq!(owners.known.owners().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_does_not_wait_while_another_call_looks() {
        let owners = owners();
        assign(&owners, SHARD, Some(1)).await;
        assert_eq!(owners.check(SHARD, &node(1)).await, Ok(()));
        tokio::time::advance(TRUST).await;
        let look = owners.known.admit(SHARD, &node(1)).unwrap();
        let look = look.expect("the owner is looked up again");
        assert_eq!(owners.check(SHARD, &node(1)).await, Ok(()));
        assert_not_now(owners.check(SHARD, &node(2)).await);
        // No look takes that long.
        tokio::time::advance(DEADLINE).await;
        assert_not_now(owners.check(SHARD, &node(1)).await);
        drop(look);
    }
}
