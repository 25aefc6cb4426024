//! Other shards of a resource, found in the store and given their links wherever they are crawled.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::links::{LINK_DELIVERY_DEADLINE, LinkDelivery};
use super::parts::AgentParts;
use crawler_crawl::peers::{LinkTransport, LinkTransportError};
use crawler_frontier::LinkBatch;
use crawler_model::id::{Epoch, Run, Shard};
use crawler_model::node::{Node, Role};
use crawler_model::resource::{ShardId, ShardRecord};
use crawler_process::telemetry;

/// The other shards of a resource, for one assignment of this one.
pub(super) struct ShardTransport {
    pub(super) parts: Arc<AgentParts>,
    pub(super) own: ShardId,
    pub(super) run: Run,
    /// Places where shards were found last; a place is forgotten when it does not take its links.
    pub(super) known: Mutex<BTreeMap<Shard, Place>>,
}

/// Place where a shard is crawled.
#[derive(Debug, Clone)]
pub(super) struct Place {
    epoch: Epoch,
    /// Worker that crawls it. `None` if it is this process.
    worker: Option<Node>,
}

impl ShardTransport {
    pub(super) fn new(parts: Arc<AgentParts>, own: ShardId, run: Run) -> Self {
        let known = Mutex::default();
        Self {
            parts,
            own,
            run,
            known,
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Shard, Place>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn id(&self, shard: Shard) -> ShardId {
        let resource = self.own.resource;
        ShardId { resource, shard }
    }

    async fn place(&self, shard: Shard) -> Result<Place, String> {
        let known = self.known().get(&shard).cloned();
        if let Some(place) = known {
            return Ok(place);
        }
        let place = self.look_for(shard).await?;
        self.known().insert(shard, place.clone());
        Ok(place)
    }

    async fn look_for(&self, shard: Shard) -> Result<Place, String> {
        let (catalog, own) = (&self.parts.catalog, &self.parts.node);
        let key = catalog.keys().shard(self.id(shard));
        let record = catalog.read::<ShardRecord>(&key).await;
        let record = record.map_err(|e| telemetry::chain(&e))?;
        let record = record.ok_or("it is not in the store")?.value;
        let owner = record.owner.ok_or("no worker has it")?;
        let epoch = record.epoch;
        if owner.node == own.id && owner.incarnation == own.incarnation {
            let worker = None;
            return Ok(Place { epoch, worker });
        }
        let key = catalog.keys().node(Role::Worker, &owner.node);
        let node = catalog.read::<Node>(&key).await;
        let node = node.map_err(|e| telemetry::chain(&e))?;
        let node = node.filter(|node| node.value.incarnation == owner.incarnation);
        let node = node.ok_or_else(|| format!("its worker {} is away", owner.node))?;
        let worker = Some(node.value);
        Ok(Place { epoch, worker })
    }

    async fn transfer(&self, to: Shard, batch: LinkBatch) -> Result<u64, String> {
        let place = self.place(to).await?;
        let links = LinkDelivery {
            to: self.id(to),
            epoch: place.epoch,
            run: self.run,
            from: self.own.shard,
            batch,
        };
        let given = match &place.worker {
            Some(worker) => self.parts.links.send(worker, links).await,
            None => self.parts.crawls.deliver(links).await,
        };
        given.map_err(|error| error.to_string())
    }
}

#[async_trait]
impl LinkTransport for ShardTransport {
    async fn send_links(&self, to: Shard, batch: LinkBatch) -> Result<u64, LinkTransportError> {
        let given = tokio::time::timeout(LINK_DELIVERY_DEADLINE, self.transfer(to, batch)).await;
        let given = given.unwrap_or_else(|_elapsed| {
            Err(format!(
                "no answer within {} s",
                LINK_DELIVERY_DEADLINE.as_secs()
            ))
        });
        given.map_err(|why| {
            self.known().remove(&to);
            LinkTransportError { to, why }
        })
    }
}
