//! Bounds of all events in the store: a task of the leader that follows what is written, and removes the oldest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::ring::{Ring, SizedRecord, beyond};
use super::{EventBounds, sort};
use crate::replica::Replica;
use crawler_model::event::{Event, EventKind, EventRecord};
use crawler_model::id::{NodeId, ResourceId};
use crawler_model::node::Role;
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::catalog::{Catalog, decode};
use crawler_store::election::Leadership;
use crawler_store::keys::Keys;
use crawler_store::{
    Entry, ListingVisitor, Outcome, Revision, StoreError, TXN_MAX, Txn, WatchEvent,
};

/// Time between two looks for events of resources and nodes that are gone.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Wait after the first error of the store; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait after an error.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Keeps the events of all resources and nodes within these bounds, for one term of a leader. It is cancelled at the end of the term.
pub(crate) async fn keep(
    catalog: &Catalog,
    replica: &Replica,
    leadership: &Leadership,
    bounds: EventBounds,
) {
    let keeper = Keeper {
        catalog,
        replica,
        leadership,
        bounds,
    };
    let mut backoff = Backoff::new(FIRST_WAIT, MAX_WAIT);
    loop {
        if let Err(error) = keeper.follow(&mut backoff).await {
            let error = telemetry::chain(&error);
            tracing::warn!(error, "events are not kept within their bounds");
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }
}

struct Keeper<'a> {
    catalog: &'a Catalog,
    replica: &'a Replica,
    leadership: &'a Leadership,
    bounds: EventBounds,
}

/// Subject of events.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Resource(ResourceId),
    Node(NodeId),
}

impl Subject {
    fn of(keys: &Keys, key: &str) -> Option<Self> {
        let resource = keys.parse_event(key).map(Subject::Resource);
        resource.or_else(|| keys.parse_node_event(key).map(Subject::Node))
    }

    fn prefix(&self, keys: &Keys) -> String {
        match self {
            Subject::Resource(id) => keys.events_of(*id),
            Subject::Node(id) => keys.node_events_of(id),
        }
    }
}

/// Events that are in the store, by their subjects. A record may be counted twice, so a subject is looked at before anything
/// of it is removed.
struct Rings<'a> {
    keys: &'a Keys,
    bounds: EventBounds,
    by_subject: BTreeMap<Subject, Ring>,
    /// Subjects with more than the bounds allow.
    full: BTreeSet<Subject>,
    /// Revision of the last write that is counted.
    seen: Revision,
}

impl ListingVisitor for Rings<'_> {
    fn begin(&mut self) {
        self.by_subject.clear();
        self.full.clear();
    }

    fn entry(&mut self, entry: Entry) {
        self.seen = self.seen.max(entry.revision);
        let Some(subject) = Subject::of(self.keys, &entry.key) else {
            return;
        };
        let ring = self.by_subject.entry(subject.clone()).or_default();
        ring.add(size_of_entry(&entry));
        if ring.is_full(self.bounds) {
            self.full.insert(subject);
        }
    }
}

impl Keeper<'_> {
    /// Counts all events, and follows what is written. Returns when changes were missed.
    async fn follow(&self, backoff: &mut Backoff) -> Result<(), StoreError> {
        let (keys, store) = (self.catalog.keys(), self.catalog.store());
        let prefix = keys.events();
        let mut rings = Rings {
            keys,
            bounds: self.bounds,
            by_subject: BTreeMap::new(),
            full: BTreeSet::new(),
            seen: Revision::default(),
        };
        let revision = store.list_into(&prefix, &mut rings).await?;
        let mut watch = store.watch(&prefix, revision).await?;
        let mut next_sweep = Instant::now() + SWEEP_INTERVAL;
        loop {
            while let Some(subject) = rings.full.pop_first() {
                let ring = self.trim(&subject).await?;
                rings.by_subject.insert(subject, ring);
            }
            let event = tokio::select! {
                biased;
                () = tokio::time::sleep_until(next_sweep) => {
                    self.sweep_resources(&mut rings).await?;
                    self.sweep_nodes(&mut rings).await?;
                    backoff.reset();
                    next_sweep = Instant::now() + SWEEP_INTERVAL;
                    continue;
                }
                event = watch.next() => event?,
            };
            match event {
                WatchEvent::Put(entry) => rings.entry(entry),
                // These are removals of a leader. Each subject is counted anew when it is trimmed.
                WatchEvent::Delete { .. } => {}
                WatchEvent::StartOver => return Ok(()),
            }
        }
    }

    /// Removes what is beyond the bounds of a subject. Returns what is left.
    async fn trim(&self, subject: &Subject) -> Result<Ring, StoreError> {
        let mut left = self.entries(subject).await?;
        let records: Vec<SizedRecord> = left.iter().map(sized).collect();
        let mut is_beyond = beyond(&records, self.bounds).into_iter();
        let gone = left.extract_if(.., |_entry| is_beyond.next() == Some(true));
        let gone: Vec<Entry> = gone.collect();
        if !self.remove(&gone).await? {
            // The next event of the subject finds it full again.
            left.extend(gone);
        }
        let sizes: Vec<usize> = left.iter().map(size_of_entry).collect();
        Ok(Ring::of(&sizes))
    }

    /// Removes the events of resources that are not there any more.
    async fn sweep_resources(&self, rings: &mut Rings<'_>) -> Result<(), StoreError> {
        let Some(observed) = self.replica.with(rings.seen).await else {
            return Ok(());
        };
        // A resource that is written together with its first event may still be on its way. A later sweep looks again.
        if observed.settled < rings.seen {
            return Ok(());
        }
        // The shards of a resource come and go with it, and their keys tell its id, also if its record does not decode.
        let shards = observed.shards.keys().chain(&observed.unreadable);
        let present: BTreeSet<ResourceId> = shards.map(|shard| shard.resource).collect();
        drop(observed);
        let is_gone = |subject: &&Subject| match subject {
            Subject::Resource(id) => !present.contains(id),
            Subject::Node(_) => false,
        };
        let gone: Vec<Subject> = (rings.by_subject.keys()).filter(is_gone).cloned().collect();
        for subject in gone {
            let entries = self.entries(&subject).await?;
            if self.remove(&entries).await? {
                rings.by_subject.remove(&subject);
            }
        }
        Ok(())
    }

    /// Removes the events of nodes of which nothing is told any more: they are not registered, and have not been for long.
    async fn sweep_nodes(&self, rings: &mut Rings<'_>) -> Result<(), StoreError> {
        let nodes = rings.by_subject.keys().filter_map(|subject| match subject {
            Subject::Node(id) => Some(id.clone()),
            Subject::Resource(_) => None,
        });
        let nodes: Vec<NodeId> = nodes.collect();
        if nodes.is_empty() {
            return Ok(());
        }
        let (keys, store) = (self.catalog.keys(), self.catalog.store());
        let told = store.list(&keys.told_nodes()).await?;
        let registered = store.list(&keys.all_nodes()).await?;
        let known = told.entries.iter().chain(&registered.entries);
        let known: BTreeSet<&str> = known.map(|entry| entry.key.as_str()).collect();
        let of_node = |id: &NodeId| {
            let [master, worker] = [Role::Master, Role::Worker].map(|role| keys.node(role, id));
            [keys.told_node(id), master, worker]
        };
        for id in nodes {
            if of_node(&id).iter().any(|key| known.contains(key.as_str())) {
                continue;
            }
            let subject = Subject::Node(id);
            let mut entries = self.entries(&subject).await?;
            // A node may have come back since.
            entries.retain(|entry| entry.revision <= told.revision);
            if self.remove(&entries).await? {
                rings.by_subject.remove(&subject);
            }
        }
        Ok(())
    }

    /// Returns the records of a subject, the oldest first.
    async fn entries(&self, subject: &Subject) -> Result<Vec<Entry>, StoreError> {
        let prefix = subject.prefix(self.catalog.keys());
        let mut entries = self.catalog.store().list(&prefix).await?.entries;
        sort(&mut entries);
        Ok(entries)
    }

    /// Removes records. Returns false if the outcome is not known.
    async fn remove(&self, entries: &[Entry]) -> Result<bool, StoreError> {
        let store = &**self.catalog.store();
        for some in entries.chunks(TXN_MAX) {
            let keys = some.iter().map(|entry| entry.key.as_str());
            let txn = keys.fold(Txn::new(), |txn, key| txn.delete(key));
            let outcome = self.leadership.commit(store, txn).await?;
            if !matches!(outcome, Outcome::Done(_)) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn sized(entry: &Entry) -> SizedRecord {
    let is_folded = |event: &Event| event.times > 0 || event.kind == EventKind::Shards;
    // A record that does not decode is kept like any other.
    let record = decode::<EventRecord>(entry);
    SizedRecord {
        n_bytes: size_of_entry(entry),
        is_folded: record.is_ok_and(|record| record.value.events.iter().all(is_folded)),
    }
}

fn size_of_entry(entry: &Entry) -> usize {
    entry.key.len() + entry.value.len()
}
