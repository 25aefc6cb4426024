//! Events of what has no transaction of a leader: a task of the leader that tells what becomes of nodes, and what workers
//! alone know of crawls.
//!
//! A record for each node holds what was told of it, and each event of this task changes it in its own transaction. So a
//! change is told once, whoever leads and whatever answer is lost. Two things are gone if they were not told in time: the last
//! folded events of a worker whose totals went with its lease, and how many shards came and left in the present span of a
//! leader that is gone. If the answer to a write is lost and the record cannot be read after that, the leader remembers the
//! write, and looks first whether it was carried out once the store answers again: otherwise numbers of shards, which no
//! record holds, would be told twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::node_changes::{SeenNode, SeenShards, changes};
use super::shard_counts::ShardCounts;
use super::told_nodes::{ToldNodes, Unsure, id_of};
use super::told_of_node;
use crate::observed::Observed;
use crate::replica::Replica;
use crawler_model::event::{Event, ToldNode};
use crawler_model::id::{NodeId, ResourceId};
use crawler_model::node::{Node, Role};
use crawler_model::resource::ShardId;
use crawler_model::status::WorkerStatus;
use crawler_process::clock::Clock;
use crawler_process::retry::Backoff;
use crawler_process::telemetry;
use crawler_store::catalog::{Catalog, decode};
use crawler_store::election::Leadership;
use crawler_store::keys::Keys;
use crawler_store::{StoreError, Txn, WatchEvent};

/// Time between two looks at what workers show, and at what watches do not tell.
const LOOK_INTERVAL: Duration = Duration::from_secs(15);
/// Number of writes after which a look is cut off, so that registrations that come meanwhile are taken in between.
const MAX_WRITES: usize = 256;
/// Time from a look that was cut off to the next one, which goes on from there.
const CUT_OFF_PAUSE: Duration = Duration::from_millis(100);
/// Number of times that a change is told anew after another write came first, before the next look does so.
const MAX_TRIES: usize = 3;
/// Largest number of folded events of one transaction.
const MAX_FOLDED: usize = 32;
/// Largest number of folded events of a worker that are told at one look. A worker shows fewer.
const MAX_FOLDED_AT_ONCE: usize = 128;
/// Wait after the first error of the store; it doubles with each further one.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// The longest wait after an error.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// Parts that the task works with, for one term of a leader.
#[derive(Clone, Copy)]
pub(crate) struct Teller<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) replica: &'a Replica,
    pub(crate) leadership: &'a Leadership,
    pub(crate) clock: &'a dyn Clock,
    /// Id of the leader.
    pub(crate) leader: &'a NodeId,
}

/// Tells events for one term of a leader. It is cancelled at the end of the term.
pub(crate) async fn tell(teller: Teller<'_>) {
    let mut backoff = Backoff::new(FIRST_WAIT, MAX_WAIT);
    let mut memory = Memory::default();
    loop {
        if let Err(error) = teller.follow(&mut backoff, &mut memory).await {
            let error = telemetry::chain(&error);
            tracing::warn!(error, "events of nodes and workers are not told yet");
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }
}

/// Memory of a leader for its term, which errors of the store do not end.
#[derive(Default)]
struct Memory {
    shard_counts: ShardCounts,
    /// Last write, if it ended in an error.
    unsure: Unsure,
}

/// Nodes that are known, and what was told of them.
struct Nodes<'a> {
    teller: Teller<'a>,
    told: ToldNodes<'a>,
    /// Registrations by their keys. `None` if the record does not decode: nothing is told of such a node.
    registered: BTreeMap<String, Option<Node>>,
    shard_counts: &'a mut ShardCounts,
}

impl Teller<'_> {
    /// Tells what has changed, and follows what changes. Returns when changes were missed.
    async fn follow(self, backoff: &mut Backoff, memory: &mut Memory) -> Result<(), StoreError> {
        let (keys, store) = (self.catalog.keys(), self.catalog.store());
        let prefix = keys.all_nodes();
        let listing = store.list(&prefix).await?;
        let registered = listing.entries.iter().map(|entry| {
            let node = decode::<Node>(entry).ok();
            (entry.key.clone(), node.map(|node| node.value))
        });
        let Memory {
            shard_counts,
            unsure,
        } = memory;
        let mut told = ToldNodes::read(self.catalog, self.leadership, unsure).await?;
        shard_counts.end_telling(told.settle());
        let mut nodes = Nodes {
            teller: self,
            told,
            registered: registered.collect(),
            shard_counts,
        };
        let mut watch = store.watch(&prefix, listing.revision).await?;
        let mut next_look = Instant::now();
        loop {
            let event = tokio::select! {
                biased;
                () = tokio::time::sleep_until(next_look) => {
                    let pause = match nodes.look().await? {
                        true => LOOK_INTERVAL,
                        false => CUT_OFF_PAUSE,
                    };
                    backoff.reset();
                    // However long the look took, there is time for what the watch tells.
                    next_look = Instant::now() + pause;
                    continue;
                }
                event = watch.next() => event?,
            };
            // A process that leaves says so and is gone a moment later: each change is told by itself.
            let (key, node) = match event {
                WatchEvent::Put(entry) => {
                    let node = decode::<Node>(&entry).ok().map(|node| node.value);
                    (entry.key, Some(node))
                }
                WatchEvent::Delete { key, .. } => (key, None),
                WatchEvent::StartOver => return Ok(()),
            };
            nodes.take(key, node).await?;
        }
    }
}

impl Nodes<'_> {
    /// Takes note of a registration, or of its end.
    async fn take(&mut self, key: String, node: Option<Option<Node>>) -> Result<(), StoreError> {
        let Some(id) = id_of(&key) else {
            return Ok(());
        };
        match node {
            Some(node) => drop(self.registered.insert(key, node)),
            None => drop(self.registered.remove(&key)),
        }
        self.tell_node(&id, None).await.map(drop)
    }

    /// Looks at everything. Returns false if the look was cut off, because it had made many writes. What was told is not told
    /// again, so the next look comes further.
    async fn look(&mut self) -> Result<bool, StoreError> {
        let observed = self.teller.replica.clone().after(None).await;
        let now = Instant::now();
        self.told.n_writes = 0;
        let registered = self.registered.keys().filter_map(|key| id_of(key));
        let ids: BTreeSet<NodeId> = self.told.ids().cloned().chain(registered).collect();
        self.shard_counts.keep_only(&ids);
        for id in &ids {
            if self.told.n_writes >= MAX_WRITES {
                return Ok(false);
            }
            let present: BTreeSet<ShardId> = observed.shards_on(id).collect();
            let is_draining = observed.workers.get(id).is_some_and(|node| node.draining);
            let shards = self.shard_counts.seen(id, is_draining, &present, now);
            self.shard_counts.will_tell(id, present, shards, now);
            let is_told = self.tell_node(id, Some(shards)).await?;
            self.shard_counts.end_telling(is_told);
        }
        self.shard_counts.all_seen();
        let is_done = self.tell_folded(&observed).await?;
        self.told
            .forget_gone(self.teller.clock.unix_millis())
            .await?;
        Ok(is_done)
    }

    /// Tells what has changed of a node. Returns false if the next look is to try again.
    async fn tell_node(
        &mut self,
        id: &NodeId,
        shards: Option<SeenShards>,
    ) -> Result<bool, StoreError> {
        for _try in 0..MAX_TRIES {
            if self.told.is_unreadable(id) {
                return Ok(true);
            }
            let Some(node) = self.registration(id) else {
                return Ok(true);
            };
            let Teller {
                leadership,
                clock,
                leader,
                ..
            } = self.teller;
            let seen = SeenNode {
                node,
                leads: (id == leader).then(|| leadership.since().0),
                shards: shards.filter(|_| node.is_some_and(|node| node.role == Role::Worker)),
                now: clock.unix_millis(),
            };
            let Some((state, events)) = changes(self.told.get(id), seen) else {
                return Ok(true);
            };
            let kinds: Vec<&str> = events.iter().map(|event| event.kind.as_str()).collect();
            let kinds = kinds.join(", ");
            let txn = told_of_node(Txn::new(), self.keys(), clock, id, events);
            if self.told.write(id, txn, state).await? {
                tracing::debug!(node = %id, kinds, "events of a node are told");
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the registration of a node; `None` inside if there is none. Returns `None` if a record does not decode.
    fn registration(&self, id: &NodeId) -> Option<Option<&Node>> {
        let keys = self.keys();
        let [master, worker] = [Role::Master, Role::Worker].map(|role| {
            let registered = self.registered.get(&keys.node(role, id));
            registered.map(Option::as_ref)
        });
        match worker.or(master) {
            None => Some(None),
            Some(node) => node.map(Some),
        }
    }

    /// Tells the folded events that workers show and that were not told. Returns false if it was cut off.
    async fn tell_folded(&mut self, observed: &Observed) -> Result<bool, StoreError> {
        let catalog = self.teller.catalog;
        let prefix = catalog.keys().statuses();
        // Records that do not decode are shown with the nodes.
        let statuses = catalog.scan::<WorkerStatus>(&prefix).await?;
        for (key, status) in statuses.records {
            let id = key.strip_prefix(&prefix);
            let Some(id) = id.and_then(|id| id.parse::<NodeId>().ok()) else {
                continue;
            };
            if self.told.n_writes >= MAX_WRITES {
                return Ok(false);
            }
            let n_rounds = MAX_FOLDED_AT_ONCE / MAX_FOLDED;
            for _round in 0..n_rounds {
                if !self.tell_some_folded(observed, &id, &status.value).await? {
                    break;
                }
            }
        }
        Ok(true)
    }

    /// Tells the next folded events of a worker. Returns false if there is none, or if the next look is to try again.
    async fn tell_some_folded(
        &mut self,
        observed: &Observed,
        worker: &NodeId,
        status: &WorkerStatus,
    ) -> Result<bool, StoreError> {
        let Some(told) = self.told.get(worker) else {
            return Ok(false);
        };
        if told.gone_at.is_some() || told.incarnation != status.incarnation {
            return Ok(false);
        }
        let new = (status.events.iter()).filter(|event| event.number > told.folded);
        let mut by_resource: BTreeMap<ResourceId, Vec<Event>> = BTreeMap::new();
        let mut last: Option<u64> = None;
        for event in new.take(MAX_FOLDED) {
            last = last.max(Some(event.number));
            // That of a resource which was deleted since has no history any more, and no worker tells what a leader does.
            if event.kind.is_of_worker() && observed.has_shards(event.resource) {
                let own = by_resource.entry(event.resource).or_default();
                own.push(event.event(worker));
            }
        }
        let Some(last) = last else {
            return Ok(false);
        };
        let state = ToldNode {
            folded: last,
            ..told.clone()
        };
        let (keys, clock) = (self.keys(), self.teller.clock);
        let txn = by_resource
            .into_iter()
            .fold(Txn::new(), |txn, (id, events)| {
                super::told(txn, keys, clock, id, events)
            });
        self.told.write(worker, txn, state).await
    }

    fn keys(&self) -> &Keys {
        self.teller.catalog.keys()
    }
}
