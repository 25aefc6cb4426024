//! End of a resource's life, and repeated calls that belong to an earlier life of a name.

use super::{Asked, Control, MAX_TRIES, Precondition};
use crate::ControlError;
use crawler_model::event::{Event, EventKind};
use crawler_model::id::{RequestId, ResourceName};
use crawler_model::resource::{Deleting, ShardRecord};
use crawler_store::catalog::{Versioned, decode, encode};
use crawler_store::{Guard, Txn};

impl Control {
    /// Stops a resource that meets the condition, and frees its name. Its items and kept files stay unless `purge` is
    /// set. Its data is removed later; see `reconcile`.
    pub async fn delete_resource<'a>(
        &self,
        name: &ResourceName,
        purge: bool,
        precondition: Precondition,
        asked: impl Into<Asked<'a>>,
    ) -> Result<(), ControlError> {
        let Asked { request, by } = asked.into();
        let leadership = self.leadership()?;
        let catalog = &self.parts.catalog;
        let keys = catalog.keys();
        for _try in 0..MAX_TRIES {
            // The resource may be deleted after this read. So the ended calls are read last; otherwise, an
            // earlier try of this call whose answer was lost could take effect between the two reads.
            let present = self.present(name).await?;
            if self.has_ended_with(name, request).await? {
                return Ok(());
            }
            let present = present.ok_or_else(|| Self::absent(name))?;
            let resource = &present.value;
            precondition.check(resource)?;
            let key = keys.resource(name);
            let mut txn = Txn::new()
                .guard(Guard::RevisionIs(key.clone(), present.revision))
                .delete(key)
                .delete(keys.schedule(name))
                .delete(keys.runs(resource.id));
            let mut owners = Vec::new();
            let prefix = keys.shards_of(resource.id);
            for entry in catalog.store().list(&prefix).await?.entries {
                let shard: Result<Versioned<ShardRecord>, _> = decode(&entry);
                let unchanged = Guard::RevisionIs(entry.key.clone(), entry.revision);
                // A shard whose record does not decode is deleted as well.
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
            let deleted = Event::of(EventKind::Deleted, resource.run).by(by);
            let txn = self.tell(txn, resource.id, vec![deleted]);
            if self.commit(&leadership, txn).await? {
                tracing::info!(resource = %name, id = %resource.id, purge, "resource deleted");
                return Ok(());
            }
        }
        Err(Self::contended(name))
    }

    /// Refuses a call that belonged to an earlier life of the name.
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

    /// True if this call belonged to an earlier life of the name.
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
