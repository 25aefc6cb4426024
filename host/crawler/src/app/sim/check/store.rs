//! Checks of writes to the store: who may write each record, and what is known from it.

use std::collections::BTreeMap;

use super::{CheckedEvent, Checker, Found};
use crate::app::sim::site::Site;
use crate::app::sim::world::SimWorld;
use crawler_model::id::NodeId;
use crawler_model::node::{Contender, Node, Role};
use crawler_model::resource::{Deleting, Resource, ShardId, ShardRecord, ShardState};
use crawler_store::keys::Keys;
use crawler_store::twin::{CommittedTxn, Stored};
use crawler_store::{Guard, Revision, WatchEvent};

/// Writes changes that were carried out into the journal.
pub(in crate::app::sim) fn note(
    world: &SimWorld,
    revision: Revision,
    committed: &CommittedTxn<'_>,
) {
    let changes = committed.events.iter().map(|event| match event {
        WatchEvent::Put(entry) => format!("+{}", entry.key),
        WatchEvent::Delete { key, .. } => format!("-{key}"),
        WatchEvent::StartOver => "?".to_owned(),
    });
    let changes: Vec<String> = changes.collect();
    let guards = committed.guards.iter().map(|guard| match guard {
        Guard::Absent(key) => format!("!{key}"),
        Guard::Exists(key) => key.clone(),
        Guard::RevisionIs(key, revision) => format!("{key}={}", revision.0),
        Guard::CreatedAt(key, revision) => format!("{key}^{}", revision.0),
    });
    let guards: Vec<String> = guards.collect();
    let author = if committed.author.is_empty() {
        "lease"
    } else {
        committed.author
    };
    world.note(format_args!(
        "r{} {author}: {} if {}",
        revision.0,
        changes.join(" "),
        guards.join(" ")
    ));
}

/// A record that was written or deleted.
struct Written<'a> {
    key: &'a str,
    value: Option<&'a [u8]>,
}

impl Checker {
    /// Checks that among masters only the leader changes anything that others rely on, and among workers only
    /// the owner of a shard.
    pub(in crate::app::sim) fn on_store(&mut self, committed: &CommittedTxn<'_>) -> Found {
        let keys = Keys::default();
        let written = committed.events.iter().filter_map(|event| match event {
            WatchEvent::Put(entry) => Some(Written {
                key: &entry.key,
                value: Some(&entry.value),
            }),
            WatchEvent::Delete { key, .. } => Some(Written { key, value: None }),
            WatchEvent::StartOver => None,
        });
        let written: Vec<Written<'_>> = written.collect();
        let author = committed.author;
        if author.starts_with("master") {
            self.by_master(&keys, committed, &written)?;
        } else if author.starts_with("worker") {
            for written in &written {
                self.by_worker(&keys, author, committed.before, written)?;
            }
        }
        for written in &written {
            if let Some(id) = keys.parse_shard(written.key) {
                self.on_shard(id, committed.before.get(written.key), written.value)?;
            }
            self.learn(&keys, written.key, written.value);
        }
        Ok(())
    }

    fn by_master(
        &mut self,
        keys: &Keys,
        committed: &CommittedTxn<'_>,
        written: &[Written<'_>],
    ) -> Found {
        let author = committed.author;
        let election = keys.election();
        let anybodys = [keys.all_nodes(), election.clone(), keys.ids()];
        let is_led = |written: &Written<'_>| {
            let is_anybodys = |prefix: &String| written.key.starts_with(prefix);
            !anybodys.iter().any(is_anybodys)
        };
        let Some(led) = written.iter().find(|written| is_led(written)) else {
            return Ok(());
        };
        let contenders = committed.before.iter();
        let contenders = contenders.filter(|(key, _)| key.starts_with(&election));
        let first = contenders.min_by_key(|(_, stored)| stored.created);
        let leader = first.and_then(|(_, stored)| {
            let leader: Result<Contender, _> = serde_json::from_slice(&stored.value);
            leader.ok().map(|leader| leader.address)
        });
        if leader.as_deref() != Some(author) {
            let key = led.key;
            return Err(format!(
                "{author} wrote {key} as the leader, which is {leader:?}"
            ));
        }
        if self.leaders.insert(author.to_owned()) && self.leaders.len() > 1 {
            self.tally.count(CheckedEvent::LedAfterAnother);
        }
        Ok(())
    }

    fn by_worker(
        &mut self,
        keys: &Keys,
        author: &str,
        before: &BTreeMap<String, Stored>,
        written: &Written<'_>,
    ) -> Found {
        let key = written.key;
        let Some(id) = keys.parse_shard(key) else {
            let worker = author.split('#').next().unwrap_or(author);
            let worker: NodeId = worker
                .parse()
                .map_err(|_| format!("{author} is no worker"))?;
            let node = keys.node(Role::Worker, &worker);
            let mirrors = keys.assignments_of(&worker);
            let is_own = key == node || key == keys.status(&worker);
            let is_given_back = key.starts_with(&mirrors) && written.value.is_none();
            return match is_own || is_given_back {
                true => Ok(()),
                false => Err(format!("{author} wrote {key}, which is not its own")),
            };
        };
        let record = before
            .get(key)
            .and_then(|stored| shard_record(&stored.value));
        let owner = record.as_ref().and_then(label_of);
        if owner.as_deref() != Some(author) {
            return Err(format!(
                "{author} wrote the record of {id}, which {owner:?} has"
            ));
        }
        self.tally.count(CheckedEvent::WorkerWrote);
        let is_revoked = record.is_some_and(|record| record.state == ShardState::Revoking);
        let after = written.value.and_then(shard_record);
        match after {
            None => Err(format!("{author} deleted the record of {id}")),
            Some(after) => {
                if is_revoked && after.owner.is_none() {
                    self.tally.count(CheckedEvent::GivenBack);
                }
                Ok(())
            }
        }
    }

    /// Checks that epochs never fall, that each has one owner, and that a deleted record stays away.
    fn on_shard(&mut self, id: ShardId, before: Option<&Stored>, value: Option<&[u8]>) -> Found {
        let Some(record) = value.and_then(shard_record) else {
            self.gone.insert(id);
            return Ok(());
        };
        if self.gone.contains(&id) {
            return Err(format!("the record of {id} is back after its deletion"));
        }
        let before = before.and_then(|stored| shard_record(&stored.value));
        if let Some(before) = before
            && record.epoch < before.epoch
        {
            let (from, to) = (before.epoch, record.epoch);
            return Err(format!("the epoch of {id} fell from {from} to {to}"));
        }
        let Some(owner) = label_of(&record) else {
            return Ok(());
        };
        let known = self
            .owners
            .entry((id, record.epoch))
            .or_insert_with(|| owner.clone());
        match *known == owner {
            true => Ok(()),
            false => Err(format!(
                "{id} has two owners under epoch {}: {known} and {owner}",
                record.epoch
            )),
        }
    }

    fn learn(&mut self, keys: &Keys, key: &str, value: Option<&[u8]>) {
        if key.starts_with(&keys.resources()) {
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
}

fn shard_record(value: &[u8]) -> Option<ShardRecord> {
    serde_json::from_slice(value).ok()
}

/// Returns the label of the process that owns a shard.
fn label_of(record: &ShardRecord) -> Option<String> {
    let owner = record.owner.as_ref()?;
    Some(format!("{}#{}", owner.node, owner.incarnation.0))
}
