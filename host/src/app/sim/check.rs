//! The invariants that hold at each event.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::LEASE_TTL;
use super::site::{self, DELAY, Site};
use super::sky::Sky;
use crate::frontier::twin::Event;
use crate::model::crawl::ItemRecord;
use crate::model::id::{Epoch, ResourceId, ResourceName};
use crate::model::node::{Contender, Node, Role};
use crate::model::resource::{Deleting, Resource, ShardId, ShardRecord};
use crate::store::keys::Keys;
use crate::store::twin::Carried;
use crate::store::{Guard, Revision, WatchEvent};

/// What has happened, as far as it is needed to judge what happens next.
#[derive(Default)]
pub(super) struct Checker {
    sites: BTreeMap<u64, Site>,
    /// By id: the name, and the life of it.
    pub(super) lives: BTreeMap<ResourceId, (ResourceName, u64)>,
    /// Deleted with their items.
    pub(super) purged: BTreeSet<ResourceId>,
    /// By life.
    ids: BTreeMap<u64, ResourceId>,
    /// Workers under a lease, by their labels.
    registered: BTreeSet<String>,
    owners: BTreeMap<(ShardId, Epoch), String>,
    openings: BTreeMap<ShardId, Vec<Opening>>,
    /// The last of each who asked, by host.
    requests: BTreeMap<String, Vec<Request>>,
    /// Machines whose clocks were set.
    set_clocks: BTreeSet<String>,
}

struct Opening {
    at: Duration,
    epoch: Epoch,
    storage_epoch: u64,
    hosts: Vec<String>,
}

struct Request {
    label: String,
    storage_epoch: u64,
    began: Duration,
    ended: Option<Duration>,
}

pub(super) type Found = Result<(), String>;

/// Writes what was carried out into the journal.
pub(super) fn note(sky: &Sky, revision: Revision, carried: &Carried<'_>) {
    let changes = carried.events.iter().map(|event| match event {
        WatchEvent::Put(entry) => format!("+{}", entry.key),
        WatchEvent::Delete { key, .. } => format!("-{key}"),
        WatchEvent::StartOver => "?".to_owned(),
    });
    let changes: Vec<String> = changes.collect();
    let guards = carried.guards.iter().map(|guard| match guard {
        Guard::Absent(key) => format!("!{key}"),
        Guard::Exists(key) => key.clone(),
        Guard::RevisionIs(key, revision) => format!("{key}={}", revision.0),
        Guard::CreatedAt(key, revision) => format!("{key}^{}", revision.0),
    });
    let guards: Vec<String> = guards.collect();
    let author = if carried.author.is_empty() {
        "lease"
    } else {
        carried.author
    };
    sky.note(format_args!(
        "r{} {author}: {} if {}",
        revision.0,
        changes.join(" "),
        guards.join(" ")
    ));
}

fn machine_of(label: &str) -> &str {
    label.split('#').next().unwrap_or(label)
}

impl Checker {
    pub(super) fn on_site(&mut self, site: Site) {
        self.sites.insert(site.life, site);
    }

    pub(super) fn site_of(&self, life: u64) -> Option<Site> {
        self.sites.get(&life).copied()
    }

    pub(super) fn on_clock(&mut self, label: &str) {
        self.set_clocks.insert(machine_of(label).to_owned());
    }

    /// Of masters only the one that leads changes anything that others rely on.
    pub(super) fn on_store(&mut self, carried: &Carried<'_>) -> Found {
        let keys = Keys::default();
        for event in carried.events {
            let (key, value) = match event {
                WatchEvent::Put(entry) => (&entry.key, Some(&entry.value)),
                WatchEvent::Delete { key, .. } => (key, None),
                WatchEvent::StartOver => continue,
            };
            self.learn(&keys, key, value.map(|value| &value[..]));
        }
        if !carried.author.starts_with("master") {
            return Ok(());
        }
        let led = [
            keys.resources(),
            keys.shards(),
            keys.assignments(),
            keys.deleting_all(),
        ];
        let is_led = |event: &WatchEvent| match event {
            WatchEvent::Put(entry) => led.iter().any(|prefix| entry.key.starts_with(prefix)),
            WatchEvent::Delete { key, .. } => led.iter().any(|prefix| key.starts_with(prefix)),
            WatchEvent::StartOver => false,
        };
        if !carried.events.iter().any(is_led) {
            return Ok(());
        }
        let election = keys.election();
        let contenders = carried.before.iter();
        let contenders = contenders.filter(|(key, _)| key.starts_with(&election));
        let first = contenders.min_by_key(|(_, stored)| stored.created);
        let leader = first.and_then(|(_, stored)| {
            let leader: Result<Contender, _> = serde_json::from_slice(&stored.value);
            leader.ok().map(|leader| leader.address)
        });
        if leader.as_deref() == Some(carried.author) {
            return Ok(());
        }
        let author = carried.author;
        Err(format!("{author} wrote as the leader, which is {leader:?}"))
    }

    fn learn(&mut self, keys: &Keys, key: &str, value: Option<&[u8]>) {
        if let Some(id) = keys.parse_shard(key) {
            let record = value.and_then(|value| serde_json::from_slice::<ShardRecord>(value).ok());
            let owner = record.and_then(|record| Some((record.epoch, record.owner?)));
            if let Some((epoch, owner)) = owner {
                let label = format!("{}#{}", owner.node, owner.incarnation.0);
                self.owners.insert((id, epoch), label);
            }
        } else if key.starts_with(&keys.resources()) {
            let resource = value.and_then(|value| serde_json::from_slice::<Resource>(value).ok());
            let Some(resource) = resource else { return };
            if let Some(site) = Site::of_params(&resource.spec.params) {
                let life = (resource.spec.name, site.life);
                self.lives.insert(resource.id, life);
                self.ids.insert(site.life, resource.id);
            }
        } else if key.starts_with(&keys.deleting_all()) {
            let deleting = value.and_then(|value| serde_json::from_slice::<Deleting>(value).ok());
            self.purged
                .extend(deleting.filter(|d| d.purge).map(|d| d.id));
        } else if key.starts_with(&keys.nodes(Role::Worker)) {
            let id = key.trim_start_matches(&keys.nodes(Role::Worker)).to_owned() + "#";
            self.registered.retain(|label| !label.starts_with(&id));
            if let Some(node) = value.and_then(|value| serde_json::from_slice::<Node>(value).ok()) {
                self.registered
                    .insert(format!("{}#{}", node.id, node.incarnation.0));
            }
        }
    }

    /// After a bigger epoch nothing is done under a smaller one.
    pub(super) fn on_frontier(&mut self, event: &Event, now: Duration) -> Found {
        let (shard, epoch, storage_epoch) = match event {
            Event::Opened {
                shard,
                epoch,
                storage_epoch,
                ..
            }
            | Event::Durable {
                shard,
                epoch,
                storage_epoch,
            } => (*shard, *epoch, *storage_epoch),
            Event::Fenced { .. } => return Ok(()),
        };
        let openings = self.openings.entry(shard).or_default();
        if let Some(last) = openings.last()
            && (epoch, storage_epoch) < (last.epoch, last.storage_epoch)
        {
            return Err(format!(
                "{shard} was written to under epoch {epoch} ({storage_epoch}), after {} ({})",
                last.epoch, last.storage_epoch
            ));
        }
        if let Event::Opened { hosts, .. } = event {
            openings.push(Opening {
                at: now,
                epoch,
                storage_epoch,
                hosts: hosts.clone(),
            });
        }
        Ok(())
    }

    /// A request is spaced, and made under a lease.
    pub(super) fn on_request(
        &mut self,
        label: &str,
        life: u64,
        host: &str,
        now: Duration,
    ) -> Found {
        if !self.registered.contains(label) {
            return Err(format!("{label} asks {host} and has no lease"));
        }
        let id = self.ids.get(&life).ok_or("a life that nobody has added")?;
        let site = self.sites.get(&life).ok_or("a life that nobody has")?;
        let shard = &ShardId {
            resource: *id,
            shard: site.shard_of(host),
        };
        let openings = self.openings.get(shard).map_or(&[][..], Vec::as_slice);
        let is_own = |o: &&Opening| {
            let owner = self.owners.get(&(*shard, o.epoch));
            owner.is_some_and(|owner| owner == label)
        };
        let own = openings.iter().rfind(is_own);
        let own = own.ok_or_else(|| format!("{label} asks {host} and has never opened it"))?;
        let requests = self.requests.entry(host.to_owned()).or_default();
        let last = requests
            .iter()
            .rfind(|r| r.label == label && r.storage_epoch == own.storage_epoch);
        if let Some(last) = last
            && last.ended.is_none_or(|ended| now < ended + DELAY)
        {
            return Err(format!("{label} asks {host} again too soon"));
        }
        let was_set = |label: &str| self.set_clocks.contains(machine_of(label));
        let before = requests
            .iter()
            .rfind(|r| r.storage_epoch < own.storage_epoch && r.began < own.at);
        if let Some(before) = before
            // What one has written of a host says nothing where the other's clock is elsewhere: then
            // one request is early.
            && !was_set(label)
            && !was_set(&before.label)
            && own.hosts.iter().any(|known| known.starts_with(host))
            && now < before.began + DELAY
        {
            return Err(format!(
                "{label} asks {host} too soon after {}",
                before.label
            ));
        }
        let newer = openings
            .iter()
            .find(|o| o.storage_epoch > own.storage_epoch);
        if let Some(newer) = newer
            && now > newer.at + LEASE_TTL
        {
            return Err(format!("{label} asks {host} long after it has lost it"));
        }
        requests.push(Request {
            label: label.to_owned(),
            storage_epoch: own.storage_epoch,
            began: now,
            ended: None,
        });
        Ok(())
    }

    pub(super) fn on_answer(&mut self, label: &str, host: &str, now: Duration) {
        let requests = self.requests.get_mut(host).into_iter().flatten();
        let own = requests.filter(|request| request.label == label).last();
        if let Some(request) = own {
            request.ended.get_or_insert(now);
        }
    }

    /// Items of one life of a name do not get among those of another.
    pub(super) fn on_items(&self, shard: ShardId, items: &[ItemRecord]) -> Found {
        let (name, life) = self.lives.get(&shard.resource).ok_or("items of nobody")?;
        for item in items {
            let url = item.url.parse().ok();
            let of = url
                .and_then(|url| site::parse(&url))
                .map(|(_, life, _)| life);
            if of != Some(*life) {
                return Err(format!(
                    "{} is among the items of life {life} of {name}",
                    item.url
                ));
            }
        }
        Ok(())
    }
}
