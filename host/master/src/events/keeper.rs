//! Bounds of all events in the store: a task of the leader that follows what is written, and removes the oldest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::ring::{Ring, n_beyond};
use super::{EventBounds, sort};
use crate::replica::Replica;
use crawler_model::id::ResourceId;
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::catalog::Catalog;
use crawler_store::election::Leadership;
use crawler_store::keys::Keys;
use crawler_store::{
    Entry, ListingVisitor, Outcome, Revision, StoreError, TXN_MAX, Txn, WatchEvent,
};

/// Time between two looks for events of resources that are gone.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Wait after the first error of the store; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait after an error.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Keeps the events of all resources within these bounds, for one term of a leader. It is cancelled at the end of the term.
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
            tracing::warn!(
                error,
                "events of resources are not kept within their bounds"
            );
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

/// Events that are in the store, by resource. A record may be counted twice, so a resource is looked at before anything of
/// it is removed.
struct Rings<'a> {
    keys: &'a Keys,
    bounds: EventBounds,
    by_id: BTreeMap<ResourceId, Ring>,
    /// Resources with more than the bounds allow.
    full: BTreeSet<ResourceId>,
    /// Revision of the last write that is counted.
    seen: Revision,
}

impl ListingVisitor for Rings<'_> {
    fn begin(&mut self) {
        self.by_id.clear();
        self.full.clear();
    }

    fn entry(&mut self, entry: Entry) {
        self.seen = self.seen.max(entry.revision);
        let Some(id) = self.keys.parse_event(&entry.key) else {
            return;
        };
        let ring = self.by_id.entry(id).or_default();
        ring.add(size_of_entry(&entry));
        if ring.is_full(self.bounds) {
            self.full.insert(id);
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
            by_id: BTreeMap::new(),
            full: BTreeSet::new(),
            seen: Revision::default(),
        };
        let revision = store.list_into(&prefix, &mut rings).await?;
        let mut watch = store.watch(&prefix, revision).await?;
        let mut next_sweep = Instant::now() + SWEEP_INTERVAL;
        loop {
            while let Some(id) = rings.full.pop_first() {
                let ring = self.trim(id).await?;
                rings.by_id.insert(id, ring);
            }
            let event = tokio::select! {
                biased;
                () = tokio::time::sleep_until(next_sweep) => {
                    self.sweep(&mut rings).await?;
                    backoff.reset();
                    next_sweep = Instant::now() + SWEEP_INTERVAL;
                    continue;
                }
                event = watch.next() => event?,
            };
            match event {
                WatchEvent::Put(entry) => rings.entry(entry),
                // These are removals of a leader. Each resource is counted anew when it is trimmed.
                WatchEvent::Delete { .. } => {}
                WatchEvent::StartOver => return Ok(()),
            }
        }
    }

    /// Removes what is beyond the bounds of a resource. Returns what is left.
    async fn trim(&self, id: ResourceId) -> Result<Ring, StoreError> {
        let entries = self.entries(id).await?;
        let sizes: Vec<usize> = entries.iter().map(size_of_entry).collect();
        let n = n_beyond(&sizes, self.bounds);
        match self.remove(&entries[..n]).await? {
            true => Ok(Ring::of(&sizes[n..])),
            // The next event of the resource finds it full again.
            false => Ok(Ring::of(&sizes)),
        }
    }

    /// Removes the events of resources that are not there any more.
    async fn sweep(&self, rings: &mut Rings<'_>) -> Result<(), StoreError> {
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
        let known = rings.by_id.keys().copied();
        let gone: Vec<ResourceId> = known.filter(|id| !present.contains(id)).collect();
        for id in gone {
            let entries = self.entries(id).await?;
            if self.remove(&entries).await? {
                rings.by_id.remove(&id);
            }
        }
        Ok(())
    }

    /// Returns the records of a resource, the oldest first.
    async fn entries(&self, id: ResourceId) -> Result<Vec<Entry>, StoreError> {
        let prefix = self.catalog.keys().events_of(id);
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

fn size_of_entry(entry: &Entry) -> usize {
    entry.key.len() + entry.value.len()
}
