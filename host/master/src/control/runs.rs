//! Calls that begin a new run, and that try dead letters of the present run again.
//!
//! Each of these calls takes the shard from its owner in one transaction. Nobody owns it then, under an epoch
//! that no process was given, so that pending writes of the former owner are refused. The reconciler then
//! assigns the shard like any other without an owner.

use std::collections::BTreeMap;

use tokio::sync::MutexGuard;

use super::reads::count_live;
use super::resources::Pinning;
use super::{Asked, Control, MAX_TRIES};
use crate::{ControlError, ResourceView};
use crawler_model::crawl::Counts;
use crawler_model::event::{Event, EventCounts, EventKind, changed_settings};
use crawler_model::frontier::FrontierStats;
use crawler_model::id::{RequestId, ResourceName, Run};
use crawler_model::resource::{
    FRONTIER_MISSING, LinkTotals, Redrive, Resource, ResourceSpec, ShardId, ShardRecord, ShardState,
};
use crawler_model::runs::RunOutcome;
use crawler_store::catalog::{Versioned, encode};
use crawler_store::election::Leadership;
use crawler_store::{Guard, Txn};

/// Beginning of a run, which is still to be written.
pub(super) struct NewRun<'a> {
    pub(super) txn: Txn,
    /// Number of the run.
    pub(super) run: Run,
    /// Event that the run before was stopped, if it was not over.
    pub(super) stopped: Option<Event>,
    /// Event that the run begins, still without its reason and who asked for it.
    pub(super) started: Event,
    /// Lock that is held until the run is written, if another plugin was chosen.
    pub(super) decision_lock: Option<MutexGuard<'a, ()>>,
}

impl Control {
    /// Begins a new run, whatever the state of the present one. `change` makes its spec out of the present resource.
    pub async fn restart_resource<'a>(
        &self,
        name: &ResourceName,
        change: impl Fn(&Resource) -> Result<ResourceSpec, ControlError>,
        asked: impl Into<Asked<'a>>,
    ) -> Result<ResourceView, ControlError> {
        let Asked { request, by } = asked.into();
        let leadership = self.leadership()?;
        for _try in 0..MAX_TRIES {
            let present = self.existing(name).await?;
            if present.value.has_seen(request) {
                return self.resource(name).await;
            }
            self.check_first_life(name, request).await?;
            let spec = ResourceSpec {
                name: name.clone(),
                ..change(&present.value)?
            };
            let requests = present.value.requests_with(request);
            let changed = changed_settings(&present.value.spec, &spec);
            let new_run = Box::pin(self.new_run(&present, spec, requests)).await?;
            let NewRun {
                txn,
                run,
                stopped,
                started,
                decision_lock: _lock,
            } = new_run;
            let started = started.by(by).because(changed);
            let events = stopped.into_iter().chain([started]).collect();
            let txn = self.tell(txn, present.value.id, events);
            if self.commit(&leadership, txn).await? {
                tracing::info!(resource = %name, %run, "a new run begins");
                return self.resource(name).await;
            }
        }
        Err(Self::contended(name))
    }

    /// Returns the transaction that begins a new run of a resource with this spec, whatever the state of the present one.
    /// It is guarded by the resource and its shards as they were read.
    pub(super) async fn new_run(
        &self,
        present: &Versioned<Resource>,
        spec: ResourceSpec,
        requests: Vec<RequestId>,
    ) -> Result<NewRun<'_>, ControlError> {
        let keys = self.parts.catalog.keys();
        let run = present.value.run.next();
        let name = &present.value.spec.name;
        self.check(&spec)?;
        self.check_sinks(&spec, Some(&present.value.spec))?;
        let generation = match spec == present.value.spec {
            true => present.value.generation,
            false => present.value.generation.next(),
        };
        let resharded_at = match spec.placement.shards == present.value.spec.placement.shards {
            true => present.value.resharded_at,
            false => run,
        };
        // Stored are the numbers from when a shard was given back last. Workers are asked before the lock is taken, for which
        // others wait.
        let live = self.live_of(&present.value).await?;
        let Pinning {
            pinned,
            guard,
            decision_lock,
        } = self.pinned_after(&present.value, &spec).await?;
        let resource = Resource {
            run,
            resharded_at,
            run_started_at: Some(self.parts.clock.unix_millis()),
            generation,
            spec,
            pinned,
            requests,
            assigned_node: String::new(),
            ..present.value.clone()
        };
        let shards = self.whole_shards(&present.value).await?;
        let mut counted = shards.clone();
        count_live(&mut counted, &live);
        let mut history = self.history_with(&present.value, &counted).await?;
        history.begin(&resource);
        let ended = history.runs.last();
        let stopped = ended.filter(|ended| ended.outcome == RunOutcome::Stopped);
        let stopped = stopped.map(|ended| Event {
            counts: Some(EventCounts {
                pages: ended.pages,
                items: ended.items,
                dead: ended.dead,
            }),
            ..Event::of(EventKind::RunStopped, ended.run)
        });
        let started = Event {
            generation: (generation != present.value.generation).then_some(generation),
            ..Event::of(EventKind::RunStarted, run)
        };
        let mut txn = Txn::new().put(keys.runs(resource.id), encode(&history));
        txn.guards.extend(guard);
        // Nobody opens the frontier of a shard that is dropped: items that its sink does not have would
        // stay there.
        let goes = |id: &ShardId| present.value.has_shard(*id) && !resource.has_shard(*id);
        let mut going = shards.iter().filter(|(id, _)| goes(id));
        if let Some((id, _)) = going.find(|(_, shard)| !is_empty(&shard.value)) {
            return Err(ControlError::ShardBusy {
                name: name.clone(),
                shard: id.shard,
                shards: present.value.spec.placement.shards,
            });
        }
        let mut going = shards.iter().filter(|(id, _)| goes(id));
        if let Some((id, _)) = going.find(|(_, shard)| holds_items(&shard.value)) {
            return Err(ControlError::ShardHolds {
                name: name.clone(),
                shard: id.shard,
                shards: present.value.spec.placement.shards,
            });
        }
        for id in resource.shard_ids().filter(|id| !shards.contains_key(id)) {
            let key = keys.shard(id);
            let record = encode(&ShardRecord::new(name.clone()));
            txn = txn.guard(Guard::Absent(key.clone())).put(key, record);
        }
        for (id, shard) in shards {
            let record = restarted(&shard.value);
            let state = match resource.has_shard(id) {
                true => ShardState::Free,
                // The run before this one had more shards. Their former owners must still be known.
                false => ShardState::Finished,
            };
            txn = self.freed(txn, id, &shard, ShardRecord { state, ..record });
        }
        Ok(NewRun {
            txn: self.over(txn, present, &resource),
            run,
            stopped,
            started,
            decision_lock,
        })
    }

    /// Pauses a resource, which takes it from its workers, or resumes it. Repeating the present state changes
    /// nothing.
    pub async fn pause_resource<'a>(
        &self,
        name: &ResourceName,
        pause: bool,
        asked: impl Into<Asked<'a>>,
    ) -> Result<ResourceView, ControlError> {
        let Asked { request, by } = asked.into();
        let leadership = self.leadership()?;
        for _try in 0..MAX_TRIES {
            let present = self.existing(name).await?;
            if present.value.has_seen(request) {
                return self.resource(name).await;
            }
            self.check_first_life(name, request).await?;
            let resource = Resource {
                paused: pause,
                requests: present.value.requests_with(request),
                ..present.value.clone()
            };
            let kind = match pause {
                true => EventKind::Paused,
                false => EventKind::Resumed,
            };
            let event = (pause != present.value.paused).then(|| Event::of(kind, resource.run));
            let events = event.map(|event| event.by(by)).into_iter().collect();
            let txn = self.over(Txn::new(), &present, &resource);
            let txn = self.tell(txn, resource.id, events);
            if self.commit(&leadership, txn).await? {
                tracing::info!(resource = %name, pause, "resource paused or resumed");
                return self.resource(name).await;
            }
        }
        Err(Self::contended(name))
    }

    /// Orders another try of dead letters of the present run. Returns their number. The workers carry the order
    /// out once they have the frontiers open.
    pub async fn redrive_frontier<'a>(
        &self,
        name: &ResourceName,
        reason: Option<String>,
        asked: impl Into<Asked<'a>>,
    ) -> Result<u64, ControlError> {
        let Asked { request, by } = asked.into();
        let leadership = self.leadership()?;
        let order = Redrive::of(reason.as_deref());
        for _try in 0..MAX_TRIES {
            let present = self.existing(name).await?;
            if present.value.has_seen(request) {
                // The exact number is no longer known: a worker may have taken some of them up.
                let stats = self.frontier_stats(name).await.ok();
                let left = stats.and_then(|s| dead_letters(&present.value, s, &order).ok());
                return Ok(left.unwrap_or(0));
            }
            self.check_first_life(name, request).await?;
            let stats = self.frontier_stats(name).await?;
            let n_dead = dead_letters(&present.value, stats, &order)?;
            let reason = reason.as_deref().unwrap_or("all");
            let event = Event::of(EventKind::Redriven, present.value.run).by(by);
            let event = event.because(format_args!("dead letters: {n_dead}, reason: {reason}"));
            if self
                .order_redrive(&leadership, &present, &order, (request, event))
                .await?
            {
                tracing::info!(resource = %name, reason, n_dead, "dead letters are tried again");
                return Ok(n_dead);
            }
        }
        Err(Self::contended(name))
    }

    /// Writes the order, guarded by what was read. Returns false if another write came first.
    pub(super) async fn order_redrive(
        &self,
        leadership: &Leadership,
        present: &Versioned<Resource>,
        order: &Redrive,
        (request, event): (&RequestId, Event),
    ) -> Result<bool, ControlError> {
        let with_redrive = |_id, shard: ShardRecord| {
            // The order joins one that no worker has carried out yet.
            let redrive = match shard.redrive.clone() {
                Some(earlier) => earlier.or(order.clone()),
                None => order.clone(),
            };
            Some(ShardRecord {
                redrive: Some(redrive),
                ..shard
            })
        };
        self.order(leadership, present, with_redrive, (request, event))
            .await
    }

    /// Takes all shards from their owners, each with an order for the next one, which `with_order` adds to its record; guarded
    /// by what was read. Returns false if another write came first, or an order has no room.
    pub(super) async fn order(
        &self,
        leadership: &Leadership,
        present: &Versioned<Resource>,
        with_order: impl Fn(ShardId, ShardRecord) -> Option<ShardRecord>,
        (request, event): (&RequestId, Event),
    ) -> Result<bool, ControlError> {
        let mut txn = Txn::new();
        let shards = self.whole_shards(&present.value).await?.into_iter();
        for (id, shard) in shards.filter(|(id, _)| present.value.has_shard(*id)) {
            let Some(record) = with_order(id, shard.value.clone()) else {
                return Ok(false);
            };
            let record = ShardRecord {
                state: ShardState::Free,
                ..record
            };
            txn = self.freed(txn, id, &shard, record);
        }
        let resource = Resource {
            assigned_node: String::new(),
            requests: present.value.requests_with(request),
            ..present.value.clone()
        };
        let txn = self.over(txn, present, &resource);
        let txn = self.tell(txn, resource.id, vec![event]);
        self.commit(leadership, txn).await
    }

    /// Writes a resource, guarded by the revision that was read.
    pub(super) fn over(&self, txn: Txn, present: &Versioned<Resource>, resource: &Resource) -> Txn {
        let key = self.parts.catalog.keys().resource(&resource.spec.name);
        txn.guard(Guard::RevisionIs(key.clone(), present.revision))
            .put(key, encode(resource))
    }

    /// Takes a shard from its owner and writes this record, with its state, under a new epoch.
    pub(super) fn freed(
        &self,
        txn: Txn,
        id: ShardId,
        present: &Versioned<ShardRecord>,
        record: ShardRecord,
    ) -> Txn {
        let keys = self.parts.catalog.keys();
        let record = ShardRecord {
            owner: None,
            former_owners: present.value.writers(),
            epoch: present.value.epoch.next(),
            next: None,
            waits: None,
            links: LinkTotals::default(),
            ..record
        };
        let txn = txn
            .guard(Guard::RevisionIs(keys.shard(id), present.revision))
            .put(keys.shard(id), encode(&record));
        match &present.value.owner {
            Some(owner) => txn.delete(keys.assignment(&owner.node, id)),
            None => txn,
        }
    }
}

/// Returns the number of dead letters in the present run that the order selects. It is an error if there are
/// none.
pub(super) fn dead_letters(
    resource: &Resource,
    stats: FrontierStats,
    order: &Redrive,
) -> Result<u64, ControlError> {
    let mut by_reason = match stats.run == resource.run {
        true => stats.counts.dead_by_reason,
        // URLs that an earlier run gave up are fetched again when a page leads to them.
        false => BTreeMap::new(),
    };
    by_reason.retain(|_, n| *n > 0);
    let of_reason = |(reason, n): (&String, &u64)| order.wants(reason).then_some(*n);
    match by_reason.iter().filter_map(of_reason).sum() {
        0 => Err(ControlError::NoDeadLetters {
            name: resource.spec.name.clone(),
            run: resource.run,
            reason: order.reasons.first().cloned(),
            present: by_reason,
        }),
        n_dead => Ok(n_dead),
    }
}

/// True if a shard has nothing on its way that is only in its frontier: it was never opened, or its run is over.
fn is_empty(shard: &ShardRecord) -> bool {
    // A shard that failed may have done so before its sink had everything.
    let is_over = matches!(shard.state, ShardState::Finished | ShardState::Idle);
    is_over || !shard.created
}

/// True if the frontier of a shard holds items until somebody decides about them, of this run or an earlier one.
fn holds_items(shard: &ShardRecord) -> bool {
    shard.created && (shard.counts.held > 0 || !shard.decisions.is_empty())
}

/// Returns a shard as it is before its next run. Its frontier stays, because it knows what earlier runs have
/// seen. A missing frontier is given up, because nothing else would ever let the crawl go on.
fn restarted(shard: &ShardRecord) -> ShardRecord {
    let is_missing = shard
        .waits
        .as_ref()
        .is_some_and(|waits| waits.condition == FRONTIER_MISSING);
    ShardRecord {
        created: shard.created && !is_missing,
        counts: Counts::default(),
        redrive: None,
        ..shard.clone()
    }
}
