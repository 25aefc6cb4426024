//! The invariants that hold at each event.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::site::{self, DELAY, Site};
use super::times::LEASE_TTL;
use crawler_frontier::twin::Event;
use crawler_model::crawl::ItemRecord;
use crawler_model::id::{Epoch, ResourceId, ResourceName};
use crawler_model::resource::ShardId;
use crawler_model::settings::DEFAULT_MAX_ATTEMPTS;

pub(super) use store::note;

mod store;
#[cfg(test)]
mod tests;

/// History so far, as far as it is needed to judge the next event.
#[derive(Default)]
pub(super) struct Checker {
    sites: BTreeMap<u64, Site>,
    /// Name and life of each resource, by its id.
    pub(super) lives: BTreeMap<ResourceId, (ResourceName, u64)>,
    /// Resources that were deleted with their items.
    pub(super) purged: BTreeSet<ResourceId>,
    /// Id of the resource, by its life.
    ids: BTreeMap<u64, ResourceId>,
    /// Labels of the workers that are registered under a lease.
    registered: BTreeSet<String>,
    owners: BTreeMap<(ShardId, Epoch), String>,
    /// Shards whose records were deleted.
    gone: BTreeSet<ShardId>,
    /// Masters that have written as the leader.
    leaders: BTreeSet<String>,
    /// Number of failures of a page, by life and page.
    failures: BTreeMap<(u64, u64), u32>,
    /// Number of times that a host could not be reached.
    host_failures: BTreeMap<String, u32>,
    /// Time until which a host has no address.
    nameless: BTreeMap<String, Duration>,
    pub(super) tally: Tally,
    openings: BTreeMap<ShardId, Vec<Opening>>,
    /// Last request of each worker that asked a host, by host.
    requests: BTreeMap<String, Vec<Request>>,
    /// Machines whose clocks were set.
    set_clocks: BTreeSet<String>,
}

/// Kinds of events that invariants judge: a history in which one never happens shows nothing about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CheckedEvent {
    /// A master wrote as the leader, after another had.
    LedAfterAnother,
    /// A worker changed the record of a shard that it has.
    WorkerWrote,
    /// A worker gave a shard back.
    GivenBack,
    /// A frontier was opened after another worker had it.
    OpenedAfterAnother,
    /// A frontier took a commit of its owner.
    Durable,
    /// A frontier refused an earlier owner.
    Fenced,
    /// A host was asked again by the worker that had asked it before.
    AskedAgain,
    /// A host was asked by a worker that took it over, and had to wait.
    AskedAfterAnother,
    /// Items were given to a sink.
    Items,
    /// A page was given up.
    Dead,
    /// A page was given up because its host could not be reached.
    DeadWithItsHost,
    /// A resource was deleted, and its remains were removed.
    Removed,
    /// A resource was deleted with its items.
    Purged,
    /// A run after the first came to its end.
    RanAgain,
    /// A resource of several shards came to its end.
    Shared,
}

impl CheckedEvent {
    pub(super) const ALL: [Self; 15] = [
        Self::LedAfterAnother,
        Self::WorkerWrote,
        Self::GivenBack,
        Self::OpenedAfterAnother,
        Self::Durable,
        Self::Fenced,
        Self::AskedAgain,
        Self::AskedAfterAnother,
        Self::Items,
        Self::Dead,
        Self::DeadWithItsHost,
        Self::Removed,
        Self::Purged,
        Self::RanAgain,
        Self::Shared,
    ];
}

/// Number of times that each kind of event has happened.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally(BTreeMap<CheckedEvent, u64>);

impl Tally {
    pub(super) fn count(&mut self, what: CheckedEvent) {
        *self.0.entry(what).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (what, n) in &other.0 {
            *self.0.entry(*what).or_default() += n;
        }
    }

    pub(super) fn has(&self, what: CheckedEvent) -> bool {
        self.0.contains_key(&what)
    }
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

    /// Checks that nothing is done under a smaller epoch after a bigger one.
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
            Event::Fenced { .. } => {
                self.tally.count(CheckedEvent::Fenced);
                return Ok(());
            }
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
        let Event::Opened { hosts, .. } = event else {
            self.tally.count(CheckedEvent::Durable);
            return Ok(());
        };
        let owner = |epoch| self.owners.get(&(shard, epoch));
        if let Some(last) = openings.last()
            && owner(last.epoch) != owner(epoch)
        {
            self.tally.count(CheckedEvent::OpenedAfterAnother);
        }
        openings.push(Opening {
            at: now,
            epoch,
            storage_epoch,
            hosts: hosts.clone(),
        });
        Ok(())
    }

    /// Takes note that a page was answered with a failure.
    pub(super) fn on_failure(&mut self, life: u64, page: u64) {
        *self.failures.entry((life, page)).or_default() += 1;
    }

    /// Takes note that a host has no address before this moment.
    pub(super) fn has_no_address(&mut self, host: &str, until: Duration) {
        self.nameless.insert(host.to_owned(), until);
    }

    pub(super) fn is_nameless(&self, host: &str, now: Duration) -> bool {
        self.nameless.get(host).is_some_and(|until| now < *until)
    }

    /// Takes note that a host could not be reached.
    pub(super) fn on_host_failure(&mut self, host: &str) {
        *self.host_failures.entry(host.to_owned()).or_default() += 1;
    }

    /// Checks that a page is given up only after as many failures as a resource allows, its own or its
    /// host's.
    pub(super) fn on_dead(&mut self, life: u64, page: u64, reason: &str) -> Found {
        let n = self.failures.get(&(life, page)).copied().unwrap_or(0);
        let host = self.site_of(life).map(|site| site.host(page));
        let n_of_host = host.and_then(|host| self.host_failures.get(&host));
        let n_of_host = n_of_host.copied().unwrap_or(0);
        if n >= DEFAULT_MAX_ATTEMPTS {
            self.tally.count(CheckedEvent::Dead);
        } else if n_of_host >= DEFAULT_MAX_ATTEMPTS {
            self.tally.count(CheckedEvent::DeadWithItsHost);
        } else {
            return Err(format!(
                "page {page} of life {life} was given up as {reason} after {n} failures, and {n_of_host} of its host"
            ));
        }
        Ok(())
    }

    /// Checks that a request keeps the delay of its host, and is made under a lease.
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
        if last.is_some() {
            self.tally.count(CheckedEvent::AskedAgain);
        }
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
            // If one machine's clock differs from the other's, the time that one has written says nothing to
            // the other: then one request may be early.
            && !was_set(label)
            && !was_set(&before.label)
            && own.hosts.iter().any(|known| known.starts_with(host))
        {
            self.tally.count(CheckedEvent::AskedAfterAnother);
            if now < before.began + DELAY {
                return Err(format!(
                    "{label} asks {host} too soon after {}",
                    before.label
                ));
            }
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

    /// Checks that items of one life of a name do not get among those of another.
    pub(super) fn on_items(&mut self, shard: ShardId, items: &[ItemRecord]) -> Found {
        self.tally.count(CheckedEvent::Items);
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
