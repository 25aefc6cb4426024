//! The end of a resource's life, and calls of one life that come again in the next.

use super::*;
use crate::model::resource::{Deleting, ShardRecord};
use crate::store::Guard;
use crate::store::catalog::{decode, encode};

impl Control {
    /// Stops a resource and frees its name; its items stay unless `purge`. Its data goes later, see
    /// `reconcile`.
    pub async fn delete_resource(
        &self,
        name: &ResourceName,
        purge: bool,
        request: &RequestId,
    ) -> Result<(), ControlError> {
        let leadership = self.leadership()?;
        let catalog = &self.parts.catalog;
        let keys = catalog.keys();
        for _try in 0..MAX_TRIES {
            // What it finds may be gone by now: what has ended is asked for last, or an earlier try of
            // this call whose answer was lost could take effect between the two.
            let present = self.present(name).await?;
            if self.has_ended_with(name, request).await? {
                return Ok(());
            }
            let present = present.ok_or_else(|| Self::absent(name))?;
            let resource = &present.value;
            let key = keys.resource(name);
            let mut txn = Txn::new()
                .guard(Guard::RevisionIs(key.clone(), present.revision))
                .delete(key);
            let mut owners = Vec::new();
            let prefix = keys.shards_of(resource.id);
            for entry in catalog.store().list(&prefix).await?.entries {
                let shard: Result<Versioned<ShardRecord>, _> = decode(&entry);
                let unchanged = Guard::RevisionIs(entry.key.clone(), entry.revision);
                // One that nobody can read goes as well.
                txn = txn.guard(unchanged).delete(entry.key.clone());
                if let (Ok(shard), Some(id)) = (shard, keys.parse_shard(&entry.key)) {
                    owners.extend(shard.value.writers());
                    if let Some(owner) = &shard.value.owner {
                        txn = txn.delete(keys.assignment(&owner.node, id));
                    }
                }
            }
            let deleting = Deleting {
                name: name.clone(),
                id: resource.id,
                requests: resource.requests_with(request),
                owners,
                deleted_at: self.parts.clock.unix_millis(),
                purge,
                stopped_at: None,
                items_cut: false,
                rest: None,
            };
            for request in &deleting.requests {
                txn = txn.put(keys.ended(name, request), encode(&resource.id));
            }
            txn = txn.put(keys.deleting(resource.id), encode(&deleting));
            if self.commit(&leadership, txn).await? {
                tracing::info!(resource = %name, id = %resource.id, purge, "resource deleted");
                return Ok(());
            }
        }
        Err(Self::contended(name))
    }

    /// Refuses a call that was about an earlier life of the name.
    pub(super) async fn check_first_life(
        &self,
        name: &ResourceName,
        request: &RequestId,
    ) -> Result<(), ControlError> {
        match self.has_ended_with(name, request).await? {
            true => Err(ControlError::DeletedSince { name: name.clone() }),
            false => Ok(()),
        }
    }

    /// Whether this call was about an earlier life of the name.
    pub(super) async fn has_ended_with(
        &self,
        name: &ResourceName,
        request: &RequestId,
    ) -> Result<bool, ControlError> {
        let catalog = &self.parts.catalog;
        let key = catalog.keys().ended(name, request);
        let ended = catalog.store().get(&key).await?;
        Ok(ended.is_some())
    }
}
