//! Calls that read resources.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::time::Instant;

use super::Control;
use crate::placement::Candidates;
use crate::{
    ControlError, ListPage, ResourceView, ScheduledResource, ShardView, WORKER_CALL_DEADLINE,
    lists, phase,
};
use crawler_model::access::Grants;
use crawler_model::id::{PluginRef, ResourceName};
use crawler_model::node::Node;
use crawler_model::resource::{Owner, Resource, ShardId, ShardRecord};
use crawler_model::schedule::Schedule;
use crawler_model::status::CrawlStatus;
use crawler_store::Entry;
use crawler_store::catalog::Versioned;

/// Number of reads of the store, and of calls to workers, that one list makes at the same time.
const READS: usize = 16;

/// Number of resources that are read at once for a page of a list that is filtered, or of one of schedules.
const BATCH: usize = 200;

/// Number of resources that are read for one such page: it ends there, and others may follow.
const READ_MAX: usize = 10_000;

/// Time after which such a page ends, well before the caller has given up. Others may follow.
const READ_TIME: Duration = Duration::from_secs(10);

/// Resources that a list is to have.
#[derive(Debug, Clone, Default)]
pub struct ResourceQuery {
    /// Name behind which the page begins. If `None`, it is the first page.
    pub after: Option<ResourceName>,
    /// Largest number of resources of the page, at least 1.
    pub max: usize,
    /// Beginning of the names.
    pub name_prefix: String,
    /// Labels that the resources have.
    pub labels: BTreeMap<String, String>,
    /// Plugin that they run, of any version or of one. If `None`, any.
    pub plugin: Option<PluginRef>,
    /// Word of their phase. If `None`, any.
    pub phase: Option<&'static str>,
}

impl ResourceQuery {
    /// True if resources are left out that have the right names.
    fn is_filtered(&self) -> bool {
        !self.labels.is_empty() || self.plugin.is_some() || self.phase.is_some()
    }

    fn selects(&self, resource: &Resource) -> bool {
        let spec = &resource.spec;
        let has = |(key, value): (&String, &String)| spec.labels.get(key) == Some(value);
        let runs = |plugin: &PluginRef| {
            let pinned = resource.pinned.as_ref().map(|pinned| &pinned.version);
            let version = pinned.or(spec.plugin.version.as_ref());
            plugin.name == spec.plugin.name
                && (plugin.version.is_none() || plugin.version.as_ref() == version)
        };
        self.labels.iter().all(has) && self.plugin.as_ref().is_none_or(runs)
    }

    fn has_phase(&self, view: &ResourceView) -> bool {
        self.phase.is_none_or(|phase| view.phase.as_str() == phase)
    }
}

/// Crawls as their workers report them, by shard.
pub(super) type Live = BTreeMap<ShardId, CrawlStatus>;

/// Answers of workers during one call.
#[derive(Debug, Default)]
struct Known {
    /// Addresses of the workers that were asked.
    asked: BTreeSet<String>,
    live: Live,
}

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

    /// Returns resources that the grants cover, in the order of their names. A page of a list that is filtered may have
    /// fewer than it could, and others follow.
    pub async fn resources(
        &self,
        query: &ResourceQuery,
        grants: &Grants,
    ) -> Result<ListPage<ResourceView>, ControlError> {
        let (catalog, max) = (&self.parts.catalog, query.max);
        let mut entries: Vec<ResourceView> = Vec::new();
        let mut next = query.after.clone();
        let mut n_read = 0;
        let mut known = Known::default();
        let end = Instant::now() + READ_TIME;
        loop {
            let n_missing = max - entries.len();
            let batch = match query.is_filtered() {
                true => n_missing.max(BATCH),
                false => n_missing,
            };
            let prefix = query.name_prefix.as_str();
            let read = lists::resources_after(catalog, next.as_ref(), batch, prefix, grants);
            let (mut resources, following) = read.await?;
            n_read += batch;
            next = following;
            resources.retain(|resource| query.selects(resource));
            let views = self.views(resources, &mut known).await?.into_iter();
            entries.extend(views.filter(|view| query.has_phase(view)));
            if entries.len() > max {
                entries.truncate(max);
                next = entries.last().map(|view| view.resource.spec.name.clone());
            }
            let is_over = n_read >= READ_MAX || Instant::now() >= end;
            if next.is_none() || entries.len() == max || is_over {
                return Ok(ListPage { entries, next });
            }
        }
    }

    /// Returns the resources with a schedule that the grants cover, in the order of their names: of the first `max` schedules behind
    /// this name whose names begin with `name_prefix`. Those of resources that were deleted are left out. Workers are not asked:
    /// the numbers are those that are stored. A page may have fewer than it could, and others follow.
    pub async fn scheduled_resources(
        &self,
        after: Option<&ResourceName>,
        max: usize,
        name_prefix: &str,
        grants: &Grants,
    ) -> Result<ListPage<ScheduledResource>, ControlError> {
        let catalog = &self.parts.catalog;
        let mut entries = Vec::new();
        let mut next = after.cloned();
        let mut n_read = 0;
        let end = Instant::now() + READ_TIME;
        loop {
            let batch = (max - n_read).min(BATCH);
            let read = lists::schedules_after(catalog, next.as_ref(), batch, name_prefix, grants);
            let page = read.await?;
            n_read += batch;
            next = page.next;
            entries.extend(self.scheduled(page.entries).await?);
            if next.is_none() || n_read == max || Instant::now() >= end {
                return Ok(ListPage { entries, next });
            }
        }
    }

    /// Returns the resources of these names that have the schedule beside it, as stored.
    async fn scheduled(
        &self,
        schedules: Vec<(ResourceName, Option<Schedule>)>,
    ) -> Result<Vec<ScheduledResource>, ControlError> {
        let catalog = &self.parts.catalog;
        let keys = schedules.iter();
        let keys = keys.map(|(name, _)| catalog.keys().resource(name));
        let reads = keys.map(|key| async move { catalog.store().get(&key).await });
        let reads: Vec<_> = reads.collect();
        let read: Vec<Option<Entry>> = stream::iter(reads).buffered(READS).try_collect().await?;
        let schedules = schedules.into_iter().map(|(_, schedule)| schedule);
        let found = read.iter().zip(schedules).filter_map(|(entry, schedule)| {
            let resource = lists::decoded::<Resource>(entry.as_ref()?)?.value;
            // A master of an earlier version may have left it from a former resource of the name.
            let is_its_own = |schedule: &Schedule| schedule.resource == resource.id;
            let is_meant = schedule.as_ref().is_none_or(is_its_own);
            is_meant.then_some((resource, schedule))
        });
        let (resources, schedules): (Vec<Resource>, Vec<Option<Schedule>>) = found.unzip();
        let shards = self.shards_of(&resources).await?;
        let candidates = self.candidates().await?;
        let resources = resources.into_iter().zip(shards).zip(schedules);
        let scheduled = resources.map(|((resource, shards), schedule)| ScheduledResource {
            view: view(resource, shards, &candidates, &Live::new()),
            schedule,
        });
        Ok(scheduled.collect())
    }

    /// Returns these resources with their present numbers. Asks each worker at most once for all that it crawls.
    async fn views(
        &self,
        resources: Vec<Resource>,
        known: &mut Known,
    ) -> Result<Vec<ResourceView>, ControlError> {
        let shards = self.shards_of(&resources).await?;
        let candidates = self.candidates().await?;
        let mut owners = owners(shards.iter().flat_map(BTreeMap::values), &candidates);
        owners.retain(|address, _| known.asked.insert(address.clone()));
        known.live.extend(self.live(owners, None).await);
        let views = resources.into_iter().zip(shards);
        let views =
            views.map(|(resource, shards)| view(resource, shards, &candidates, &known.live));
        Ok(views.collect())
    }

    /// Returns the shards of each of these resources.
    async fn shards_of(
        &self,
        resources: &[Resource],
    ) -> Result<Vec<BTreeMap<ShardId, Versioned<ShardRecord>>>, ControlError> {
        let reads = resources.iter().map(|resource| self.shards(resource));
        let reads: Vec<_> = reads.collect();
        stream::iter(reads).buffered(READS).try_collect().await
    }

    /// Returns the numbers that the owners of a resource's shards have at this moment.
    pub(super) async fn live_of(&self, resource: &Resource) -> Result<Live, ControlError> {
        let shards = self.whole_shards(resource).await?;
        let candidates = self.candidates().await?;
        let owners = owners(shards.values(), &candidates);
        Ok(self.live(owners, Some(&resource.spec.name)).await)
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

/// Puts the numbers of the owners in the place of the stored ones.
pub(super) fn count_live(shards: &mut BTreeMap<ShardId, Versioned<ShardRecord>>, live: &Live) {
    for (id, shard) in shards {
        let record = &mut shard.value;
        if let Some(crawl) = live.get(id)
            && crawl.epoch == record.epoch
            && running_owner(record).is_some()
            && let Some(counts) = &crawl.counts
        {
            record.counts = counts.clone();
        }
    }
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
        let mut is_live = false;
        let crawl = live.get(&id).filter(|crawl| crawl.epoch == record.epoch);
        if let Some(crawl) = crawl
            && running_owner(&record).is_some()
        {
            if let Some(counts) = &crawl.counts {
                record.counts = counts.clone();
                is_live = true;
            }
            record.waits = crawl.waits.clone();
        }
        let hosts = crawl.and_then(|crawl| crawl.hosts.as_ref());
        ShardView {
            shard: id.shard,
            is_live,
            in_flight: crawl.map_or(0, |crawl| crawl.in_flight),
            hosts_by_state: hosts.map_or_else(BTreeMap::new, |hosts| hosts.by_state.clone()),
            limits_used: crawl.map_or_else(BTreeMap::new, |crawl| crawl.limits_used.clone()),
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
