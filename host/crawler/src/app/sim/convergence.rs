//! The invariants that hold once faults have stopped, and when nothing is left to do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::check::{CheckedEvent, Found};
use super::client::{Clients, Expected};
use super::cluster::{self, Cluster};
use super::site::{self, Site};
use super::times::LEASE_TTL;
use crawler_frontier::twin::Stage;
use crawler_model::crawl::LOST_ROOTS;
use crawler_model::id::{Epoch, NodeId, ResourceId, ResourceName, Shard};
use crawler_model::resource::{Resource, ShardId, ShardRecord, ShardState};
use crawler_store::keys::Keys;

/// Time after faults or calls have stopped within which each shard is where it should be: the lease of a
/// leader and that of a worker, each with the time that a store may be late.
const SETTLED_BY: Duration =
    Duration::from_millis(2 * (LEASE_TTL.as_millis() as u64 * 5 / 4 + 1_000));

/// Waits until every shard is where its record says, nowhere else, and not with a worker that drains. It must
/// be so soon after `stopped` has stopped.
pub(super) async fn ownership(cluster: &Arc<Cluster>, stopped: &str, since: Instant) {
    let world = &cluster.services.world;
    loop {
        cluster.remove_ended();
        let found = owned_once(cluster);
        let passed = since.elapsed();
        match found {
            Ok(()) => break world.note(format_args!("all is owned {passed:?} after {stopped}")),
            Err(why) if passed > SETTLED_BY => {
                break world.violation(format_args!("{passed:?} after {stopped}: {why}"));
            }
            Err(_) => tokio::time::sleep(Duration::from_millis(250)).await,
        }
    }
}

fn shards(cluster: &Cluster) -> BTreeMap<ShardId, ShardRecord> {
    let keys = Keys::default();
    cluster.services.store.inspect(|entries| {
        let shards = entries.iter().filter_map(|(key, stored)| {
            let id = keys.parse_shard(key)?;
            Some((id, serde_json::from_slice(&stored.value).ok()?))
        });
        shards.collect()
    })
}

/// Returns the resources that are there.
fn resources(cluster: &Cluster) -> BTreeMap<ResourceName, Resource> {
    let prefix = Keys::default().resources();
    cluster.services.store.inspect(|entries| {
        let below = entries.iter().filter(|(key, _)| key.starts_with(&prefix));
        let decoded = below.filter_map(|(_, s)| serde_json::from_slice::<Resource>(&s.value).ok());
        let named = decoded.map(|resource| (resource.spec.name.clone(), resource));
        named.collect()
    })
}

/// Returns true if nobody is to crawl the shard.
fn is_paused(resources: &BTreeMap<ResourceName, Resource>, record: &ShardRecord) -> bool {
    let resource = resources.get(&record.resource);
    resource.is_some_and(|resource| resource.paused)
}

fn owned_once(cluster: &Cluster) -> Found {
    let crawls = cluster::crawls(cluster);
    let resources = resources(cluster);
    let shards = shards(cluster);
    for (label, crawls) in &crawls {
        let mut crawled = crawls.iter().map(|crawl| ShardId {
            resource: crawl.id,
            shard: crawl.shard,
        });
        if let Some(id) = crawled.find(|id| !shards.contains_key(id)) {
            return Err(format!("{label} crawls {id}, which has no record"));
        }
    }
    for (id, record) in shards {
        let of_shard = crawls.iter().flat_map(|(label, crawls)| {
            let of_shard = crawls
                .iter()
                .filter(|c| c.id == id.resource && c.shard == id.shard);
            of_shard.map(|crawl| (label.clone(), crawl.epoch))
        });
        let found: Vec<(String, Epoch)> = of_shard.collect();
        let owner = record.owner.as_ref();
        let drains = |node: &NodeId| {
            let key = Keys::default().draining(node);
            cluster
                .services
                .store
                .inspect(|entries| entries.contains_key(&key))
        };
        if let Some(owner) = owner.filter(|owner| drains(&owner.node))
            && matches!(record.state, ShardState::Assigned | ShardState::Idle)
        {
            return Err(format!("{id} is with {}, which drains", owner.node));
        }
        let owner = owner.map(|owner| format!("{}#{}", owner.node, owner.incarnation.0));
        let wanted = owner.map(|owner| (owner, record.epoch));
        let is_right = match &record.state {
            ShardState::Assigned => found.iter().eq(wanted.iter()),
            ShardState::Idle | ShardState::Finished => {
                found.is_empty() || found.iter().eq(wanted.iter())
            }
            ShardState::Free if is_paused(&resources, &record) => found.is_empty(),
            ShardState::Failed { reason } if reason.starts_with(LOST_ROOTS) => {
                found.is_empty() || found.iter().eq(wanted.iter())
            }
            ShardState::Free | ShardState::Revoking | ShardState::Failed { .. } => false,
        };
        if !is_right {
            let state = &record.state;
            return Err(format!(
                "{id} is {state:?} at {wanted:?} and crawled by {found:?}"
            ));
        }
    }
    Ok(())
}

/// Waits until there is nothing left to do, and judges the result.
pub(super) async fn settled(cluster: &Arc<Cluster>, clients: &Clients, by: Instant) {
    let world = &cluster.services.world;
    let expected = clients.expected.lock().unwrap().clone();
    loop {
        cluster.remove_ended();
        let busy = busy(cluster);
        match busy {
            None => break,
            Some(why) if Instant::now() > by => {
                return world.violation(format_args!("it does not converge: {why}"));
            }
            Some(_) => tokio::time::sleep(Duration::from_secs(1)).await,
        }
    }
    world.judge(all_done(cluster, &expected));
}

/// Returns the first thing that is still to be done.
fn busy(cluster: &Cluster) -> Option<String> {
    let resources = resources(cluster);
    let mut shards = shards(cluster).into_iter();
    let unfinished = shards.find(|(_, record)| match &record.state {
        ShardState::Finished => false,
        // The faults of a history may end all attempts at the first page.
        ShardState::Failed { reason } => !reason.starts_with(LOST_ROOTS),
        ShardState::Free => !is_paused(&resources, record),
        _ => true,
    });
    if let Some((id, record)) = unfinished {
        let (state, waits) = (record.state, record.waits);
        return Some(format!("{id} is {state:?}, waits {waits:?}"));
    }
    // All shards are finished or paused, so no worker has any.
    let keys = Keys::default();
    let passing = [keys.deleting_all(), keys.assignments()];
    cluster.services.store.inspect(|entries| {
        let is_passing = |key: &&String| passing.iter().any(|prefix| key.starts_with(prefix));
        let mut left = entries.keys().filter(is_passing);
        left.next().map(|key| format!("{key} is there"))
    })
}

fn all_done(cluster: &Cluster, expected: &BTreeMap<ResourceName, Expected>) -> Found {
    let present = resources(cluster);
    let names = |names: Vec<&ResourceName>| format!("{names:?}");
    let (wanted, found) = (
        names(expected.keys().collect()),
        names(present.keys().collect()),
    );
    if wanted != found {
        return Err(format!(
            "{wanted} were answered to be there, and {found} are"
        ));
    }
    for (name, resource) in &present {
        let Expected {
            site,
            run,
            paused,
            concurrency,
        } = &expected[name];
        let is_life = Site::of_params(&resource.spec.params) == Some(*site);
        if !is_life || resource.run != *run || resource.paused != *paused {
            return Err(format!("{name} is not the life or run that was answered"));
        }
        if resource.spec.crawl.concurrency != *concurrency {
            return Err(format!("{name} has not the concurrency that was answered"));
        }
        done(cluster, resource, *site).map_err(|why| format!("{name}: {why}"))?;
    }
    let (lives, purged) = {
        let checker = cluster.services.world.checker();
        (checker.lives.clone(), checker.purged.clone())
    };
    let is_gone = |id: &ResourceId| present.values().all(|resource| resource.id != *id);
    for id in lives.keys().filter(|id| is_gone(id)) {
        cluster.count(CheckedEvent::Removed);
        if cluster.services.frontiers.has(*id) {
            return Err(format!("a frontier of {id} is left, which was deleted"));
        }
        if purged.contains(id) {
            cluster.count(CheckedEvent::Purged);
            if cluster.services.sinks.has(*id) {
                return Err(format!(
                    "items of {id} are left, which was deleted with them"
                ));
            }
        }
    }
    Ok(())
}

/// Checks that every page that is reached is done or dead, in one shard, and that its items are there, once.
fn done(cluster: &Cluster, resource: &Resource, site: Site) -> Found {
    let (mut dead, mut reached) = (BTreeSet::new(), BTreeSet::new());
    let (mut wanted, mut items) = (Vec::new(), Vec::new());
    for shard in (0..site.n_shards).map(Shard) {
        let id = ShardId {
            resource: resource.id,
            shard,
        };
        let kept = cluster.services.frontiers.kept(id);
        let of_run = kept.filter(|kept| kept.plain.run == resource.run);
        let kept = match of_run {
            // The resource was paused before any worker had begun.
            None if resource.paused => return Ok(()),
            kept => kept.ok_or("its frontier is not there, or not of this run")?,
        };
        if kept.plain.roots.is_none() && resource.paused {
            return Ok(());
        }
        for known in kept.plain.urls.values() {
            let url = &known.request.url;
            let (host, life, page) = site::parse(url).ok_or("a URL of nobody")?;
            if life != site.life || site.shard_of(&host) != shard || !reached.insert(page) {
                return Err(format!("{url} is of another life or shard, or there twice"));
            }
            match &known.stage {
                Stage::Due if !resource.paused => return Err(format!("{url} is due")),
                Stage::Due => _ = dead.insert(page),
                Stage::Dead(reason) => {
                    let world = &cluster.services.world;
                    world.checker().on_dead(life, page, reason)?;
                    dead.insert(page);
                }
                Stage::Done(_) if site.is_broken(page) => {
                    return Err(format!("{url} is done, and its server always fails"));
                }
                Stage::Done(_) => wanted.extend(site.items(page)),
            }
        }
        items.extend(cluster.services.sinks.read(id));
        // Items of a paused resource may wait for their sink, or for a verdict.
        items.extend(kept.plain.kept_items());
        items.extend(kept.plain.outbox);
    }
    let closure = site.closure(&dead);
    // Links of a paused resource may wait for their shard.
    if reached != closure && !(resource.paused && site.n_shards > 1) {
        let lost: Vec<_> = closure.symmetric_difference(&reached).collect();
        return Err(format!("these pages are missing or too many: {lost:?}"));
    }
    if !resource.paused && site.n_shards > 1 {
        cluster.count(CheckedEvent::Shared);
    }
    if !resource.paused && resource.run.0 > 1 {
        cluster.count(CheckedEvent::RanAgain);
    }
    let mut keys = BTreeSet::new();
    if let Some(twice) = items.iter().find(|item| !keys.insert(item.key.0.clone())) {
        return Err(format!("an item of {} is there twice", twice.url));
    }
    let of_run = items.iter().filter(|item| item.run == resource.run);
    let mut found: Vec<String> = of_run.map(|item| item.item.get().to_owned()).collect();
    found.sort_unstable();
    wanted.sort_unstable();
    if found != wanted {
        let (n, of) = (found.len(), wanted.len());
        return Err(format!("{n} items are there of {of}"));
    }
    Ok(())
}
