//! Beginning a new run, and trying again what the present one has given up.
//!
//! Both take the shard from its owner in one transaction: nobody has it, under an epoch that no
//! process was given, so that whatever its owner was about to record is refused. The reconciler then
//! assigns it like any other that nobody has.

use super::super::ResourceView;
use super::*;
use crate::model::crawl::Counts;
use crate::model::resource::{FRONTIER_MISSING, ShardId, ShardRecord, ShardState};
use crate::store::Guard;
use crate::store::catalog::encode;

impl Control {
    /// Begins a new run, whatever the present one has come to.
    pub async fn restart_resource(
        &self,
        name: &ResourceName,
    ) -> Result<ResourceView, ControlError> {
        for _try in 0..MAX_TRIES {
            let present = self.existing(name).await?;
            let run = present.value.run.next();
            let mut txn = Txn::new();
            for (id, shard) in self.shards(&present.value).await? {
                let record = restarted(&shard.value);
                txn = self.freed(txn, id, &shard, record);
            }
            let resource = Resource {
                run,
                assigned_node: String::new(),
                ..present.value.clone()
            };
            if self.commit(self.over(txn, &present, &resource)).await? {
                tracing::info!(resource = %name, %run, "a new run begins");
                return self.resource(name).await;
            }
        }
        Err(ControlError::Contended {
            what: format!("resource {name}"),
        })
    }

    /// Writes a resource over what was read of it.
    fn over(&self, txn: Txn, present: &Versioned<Resource>, resource: &Resource) -> Txn {
        let key = self.parts.catalog.keys().resource(&resource.spec.name);
        txn.guard(Guard::RevisionIs(key.clone(), present.revision))
            .put(key, encode(resource))
    }

    /// Takes a shard from its owner and leaves this record, under a new epoch.
    fn freed(
        &self,
        txn: Txn,
        id: ShardId,
        present: &Versioned<ShardRecord>,
        record: ShardRecord,
    ) -> Txn {
        let keys = self.parts.catalog.keys();
        let record = ShardRecord {
            owner: None,
            epoch: present.value.epoch.next(),
            state: ShardState::Free,
            waits: None,
            ..record
        };
        let txn = txn
            .guard(Guard::RevisionIs(keys.shard(id), present.revision))
            .put(keys.shard(id), encode(&record));
        match &present.value.owner {
            Some(owner) => txn.delete(keys.assignment(&owner.node, id)),
            None => txn,
        }
    }
}

/// A shard before its next run. Its frontier stays: it knows what earlier runs have seen. One that is
/// missing is given up, because nothing else would ever let the crawl go on.
fn restarted(shard: &ShardRecord) -> ShardRecord {
    let is_missing = shard
        .waits
        .as_ref()
        .is_some_and(|waits| waits.condition == FRONTIER_MISSING);
    ShardRecord {
        created: shard.created && !is_missing,
        counts: Counts::default(),
        redrive: None,
        ..shard.clone()
    }
}
