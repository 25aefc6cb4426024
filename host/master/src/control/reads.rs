//! Calls that read resources.

use std::collections::BTreeMap;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use super::Control;
use crate::placement::Candidates;
use crate::{ControlError, ListPage, ResourceView, ShardView, WORKER_CALL_DEADLINE, lists, phase};
use crawler_model::access::Grants;
use crawler_model::id::ResourceName;
use crawler_model::node::Node;
use crawler_model::resource::{Owner, Resource, ShardId, ShardRecord};
use crawler_model::status::CrawlStatus;
use crawler_store::catalog::Versioned;

/// Number of reads of the store, and of calls to workers, that one list makes at the same time.
const READS: usize = 16;

/// Crawls as their workers report them, by shard.
type Live = BTreeMap<ShardId, CrawlStatus>;

impl Control {
    /// Returns one resource with its present numbers.
    pub async fn resource(&self, name: &ResourceName) -> Result<ResourceView, ControlError> {
        let resource = self.existing(name).await?;
        let shards = self.shards(&resource.value).await?;
        let candidates = self.candidates().await?;
        let live = self
            .live(owners(shards.values(), &candidates), Some(name))
            .await;
        Ok(view(resource.value, shards, &candidates, &live))
    }

    /// Returns resources that the grants cover, in the order of their names, starting after `after`.
    pub async fn resources(
        &self,
        after: Option<ResourceName>,
        max: usize,
        grants: &Grants,
    ) -> Result<ListPage<ResourceView>, ControlError> {
        let catalog = &self.parts.catalog;
        let (resources, next) =
            lists::resources_after(catalog, after.as_ref(), max, grants).await?;
        let reads = resources.iter().map(|resource| self.shards(resource));
        let reads: Vec<_> = reads.collect();
        let shards: Vec<BTreeMap<ShardId, Versioned<ShardRecord>>> =
            stream::iter(reads).buffered(READS).try_collect().await?;
        let candidates = self.candidates().await?;
        let owners = owners(shards.iter().flat_map(BTreeMap::values), &candidates);
        let live = self.live(owners, None).await;
        let entries = resources
            .into_iter()
            .zip(shards)
            .map(|(resource, shards)| view(resource, shards, &candidates, &live))
            .collect();
        Ok(ListPage { entries, next })
    }

    /// Asks the owners for their numbers. An owner that does not answer is left out, and the stored numbers are
    /// used instead.
    async fn live(&self, owners: BTreeMap<String, Node>, name: Option<&ResourceName>) -> Live {
        let asked = owners.into_values().map(|owner| async move {
            let call = self.parts.workers.status(&owner, name);
            match tokio::time::timeout(WORKER_CALL_DEADLINE, call).await {
                Ok(Ok(crawls)) => crawls,
                Ok(Err(error)) => {
                    tracing::warn!(%error, "showing stored numbers");
                    Vec::new()
                }
                Err(_elapsed) => {
                    tracing::warn!(
                        address = owner.address,
                        "showing stored numbers: the worker does not answer"
                    );
                    Vec::new()
                }
            }
        });
        let answers: Vec<Vec<CrawlStatus>> =
            stream::iter(asked).buffer_unordered(READS).collect().await;
        let by_shard = |crawl: CrawlStatus| {
            (
                ShardId {
                    resource: crawl.id,
                    shard: crawl.shard,
                },
                crawl,
            )
        };
        answers.into_iter().flatten().map(by_shard).collect()
    }
}

/// Returns the owners of these shards by their addresses.
fn owners<'a>(
    shards: impl Iterator<Item = &'a Versioned<ShardRecord>>,
    candidates: &Candidates,
) -> BTreeMap<String, Node> {
    let mut owners = BTreeMap::new();
    for owner in shards.filter_map(|shard| running_owner(&shard.value)) {
        let Some(candidate) = candidates.get(&owner.node) else {
            continue;
        };
        let node = &candidate.node;
        let owner = owners.entry(node.address.clone());
        owner.or_insert_with(|| node.clone());
    }
    owners
}

/// Returns the owner of a shard that is being crawled.
pub(super) fn running_owner(shard: &ShardRecord) -> Option<&Owner> {
    let owner = shard.owner.as_ref();
    owner.filter(|_| shard.state.order().is_some())
}

pub(super) fn view(
    resource: Resource,
    shards: BTreeMap<ShardId, Versioned<ShardRecord>>,
    candidates: &Candidates,
    live: &Live,
) -> ResourceView {
    let own = shards.into_iter();
    let own = own.filter(|(id, _)| resource.has_shard(*id));
    let shards = own.map(|(id, shard)| {
        let mut record = shard.value;
        let crawl = live.get(&id).filter(|crawl| crawl.epoch == record.epoch);
        if let Some(crawl) = crawl
            && running_owner(&record).is_some()
        {
            if let Some(counts) = &crawl.counts {
                record.counts = counts.clone();
            }
            record.waits = crawl.waits.clone();
        }
        ShardView {
            shard: id.shard,
            in_flight: crawl.map_or(0, |crawl| crawl.in_flight),
            last_errors: crawl.map_or_else(Vec::new, |crawl| crawl.last_errors.clone()),
            record,
        }
    });
    let shards: Vec<ShardView> = shards.collect();
    let records: Vec<&ShardRecord> = shards.iter().map(|shard| &shard.record).collect();
    ResourceView {
        phase: phase::phase(&resource, &records, candidates),
        shards,
        resource,
    }
}
