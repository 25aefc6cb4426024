//! Owners of the shards that send links, by the records of the store.
//!
//! A worker that calls with a certificate brings the links of its own shards only. What a record told is trusted for a
//! while, so that not each call reads it. A node that is not the owner by that is looked up again: it may have got the
//! shard meanwhile. The links of a node that is refused wait with it, and come again.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::links::LinkDeliveryError;
use crawler_model::id::NodeId;
use crawler_model::resource::{ShardId, ShardRecord};
use crawler_process::telemetry;
use crawler_store::catalog::Catalog;

/// Time for which an owner is trusted to have its shard still.
const TRUST: Duration = Duration::from_secs(30);
/// Time between two looks at the record of one shard, whoever calls.
const AGAIN: Duration = Duration::from_secs(1);
/// Time that a look may take.
const DEADLINE: Duration = Duration::from_secs(3);
/// Largest number of shards whose owners are remembered. Beyond it, all are looked up again.
const KNOWN_MAX: usize = 10_000;

/// Owners of shards. Clones share what is known.
#[derive(Clone)]
pub struct ShardOwners {
    catalog: Catalog,
    known: Arc<Mutex<BTreeMap<ShardId, Known>>>,
}

/// Owner of a shard, as a look has found it.
#[derive(Debug, Clone)]
struct Known {
    /// `None` if nobody owns the shard, or it is not there.
    owner: Option<NodeId>,
    /// Time at which the look began.
    at: Instant,
}

impl ShardOwners {
    /// Creates owners of which none is known yet.
    pub fn new(catalog: Catalog) -> Self {
        Self {
            catalog,
            known: Arc::default(),
        }
    }

    /// Checks that a node owns a shard.
    pub(super) async fn check(
        &self,
        shard: ShardId,
        node: &NodeId,
    ) -> Result<(), LinkDeliveryError> {
        let now = Instant::now();
        let known = self.known().get(&shard).cloned();
        if let Some(Known { owner, at }) = known {
            let age = now.duration_since(at);
            if owner.as_ref() == Some(node) && age < TRUST {
                return Ok(());
            }
            if age < AGAIN {
                let why = format!("{node} does not own shard {shard} yet, as of a moment ago");
                return Err(LinkDeliveryError::NotNow(why));
            }
        }
        let owner = self.look(shard).await?;
        let is_owner = owner.as_ref() == Some(node);
        let why = match &owner {
            Some(owner) => format!("shard {shard} belongs to {owner}, and not to {node}"),
            None => format!("shard {shard} belongs to nobody, and not to {node}"),
        };
        let mut known = self.known();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(shard, Known { owner, at: now });
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

    fn known(&self) -> MutexGuard<'_, BTreeMap<ShardId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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
    use crawler_model::id::{Epoch, Incarnation, ResourceId, Shard};
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

    fn owners() -> ShardOwners {
        ShardOwners::new(Catalog::new(Arc::new(StoreTwin::new()), Keys::default()))
    }

    async fn assign(owners: &ShardOwners, shard: ShardId, owner: Option<u64>) {
        let record = ShardRecord {
            owner: owner.map(|n| Owner {
                node: node(n),
                incarnation: Incarnation(n),
            }),
            epoch: Epoch(1),
            ..ShardRecord::new("books".parse().unwrap())
        };
        let key = owners.catalog.keys().shard(shard);
        let txn = Txn::new().put(key, encode(&record));
        owners.catalog.store().commit(txn).await.unwrap();
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
        let early = owners.check(SHARD, &node(2)).await;
        assert!(
            matches!(early, Err(LinkDeliveryError::NotNow(_))),
            "{early:?}"
        );
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
        let key = owners.catalog.keys().shard(SHARD);
        let txn = Txn::new().put(key, b"no record".to_vec());
        owners.catalog.store().commit(txn).await.unwrap();
        let answer = owners.check(SHARD, &node(1)).await;
        assert!(
            matches!(answer, Err(LinkDeliveryError::NotNow(_))),
            "{answer:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_owners_of_many_shards_are_not_remembered_all() {
        let owners = owners();
        for n in 0..=KNOWN_MAX as u64 {
            let shard = ShardId::only(ResourceId(n));
            owners.check(shard, &node(1)).await.unwrap_err();
        }
        assert_eq!(owners.known().len(), 1);
    }
}
