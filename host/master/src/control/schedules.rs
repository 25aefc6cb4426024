//! Schedules of resources: the calls that set and show them, and the decision about a due time.
//!
//! A decision is one transaction: it compares the schedule as it was read, and writes the new run together with the next
//! due time. So a due time starts one run at most, whoever leads and whatever answer was lost; and it starts one, or
//! is decided otherwise, as soon as a leader sees it.

use super::runs::NewRun;
use super::{Asked, Control, MAX_TRIES};
use crate::{Code, ControlError};
use crawler_model::crawl::UnixMillis;
use crawler_model::event::{Event, EventKind};
use crawler_model::id::{RequestId, ResourceId, ResourceName, Run};
use crawler_model::resource::{Resource, ShardRecord, ShardState};
use crawler_model::schedule::{
    MISSED_AFTER_MS, Overlap, Schedule, ScheduleOutcome, ScheduleSpec, ScheduleStep, ScheduleView,
};
use crawler_process::telemetry;
use crawler_store::catalog::{Catalog, Versioned, decode, encode};
use crawler_store::election::Leadership;
use crawler_store::{Guard, Txn};

/// Result of a look at a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Looked {
    /// Nothing is to be done yet: the due time is to come, or waits for the end of the present run.
    Waits,
    /// The record was changed, or another write came first.
    Changed,
    /// The run could not be started. It is to be tried again.
    Fails,
}

/// Observations of a leader about a due time that is not decided yet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    /// True if it was noticed in time, so that it cannot be missed any more.
    pub(crate) is_in_time: bool,
    /// Time at which its run could first not be started.
    pub(crate) failing_since: Option<UnixMillis>,
}

impl Control {
    /// Sets the schedule of a resource. One that is the same already goes on as it is.
    pub async fn set_schedule<'a>(
        &self,
        name: &ResourceName,
        spec: ScheduleSpec,
        asked: impl Into<Asked<'a>>,
    ) -> Result<ScheduleView, ControlError> {
        let Asked { request, by } = asked.into();
        let leadership = self.leadership()?;
        let key = self.parts.catalog.keys().schedule(name);
        for _try in 0..MAX_TRIES {
            let present = self.existing(name).await?;
            let resource = &present.value;
            let is_repeated = resource.has_seen(request);
            if !is_repeated {
                self.check_first_life(name, request).await?;
            }
            let (before, unchanged) = self.schedule_of(resource).await?;
            let before = match before {
                // The call replaces what it does not know.
                Err(ControlError::UnknownSchedule { .. }) if !is_repeated => None,
                before => before?,
            };
            if is_repeated {
                // It may have been taken away since.
                let none = || ControlError::NoSchedule { name: name.clone() };
                return Ok(view(name, before.ok_or_else(none)?));
            }
            let now = self.parts.clock.unix_millis();
            let is_other = before.as_ref().is_none_or(|before| before.spec != spec);
            let schedule = match before {
                Some(before) if before.spec == spec => before,
                Some(before) => before.replaced(spec.clone(), now),
                None => Schedule::new(resource.id, spec.clone(), now),
            };
            let txn = Txn::new()
                .guard(unchanged)
                .put(key.clone(), encode(&schedule));
            let event = Event::of(EventKind::ScheduleSet, resource.run).by(by);
            let events = is_other.then_some(event).into_iter().collect();
            let txn = self.with_request(txn, &present, request);
            let txn = self.tell(txn, resource.id, events);
            if self.commit(&leadership, txn).await? {
                tracing::info!(resource = %name, due = schedule.due, "schedule set");
                return Ok(view(name, schedule));
            }
        }
        Err(Self::contended(name))
    }

    /// Takes the schedule of a resource away. The present run goes on.
    pub async fn delete_schedule<'a>(
        &self,
        name: &ResourceName,
        asked: impl Into<Asked<'a>>,
    ) -> Result<(), ControlError> {
        let Asked { request, by } = asked.into();
        let leadership = self.leadership()?;
        let key = self.parts.catalog.keys().schedule(name);
        for _try in 0..MAX_TRIES {
            let present = self.existing(name).await?;
            if present.value.has_seen(request) {
                return Ok(());
            }
            self.check_first_life(name, request).await?;
            let (before, _unchanged) = self.schedule_of(&present.value).await?;
            if matches!(before, Ok(None)) {
                return Err(ControlError::NoSchedule { name: name.clone() });
            }
            let txn = Txn::new().delete(key.clone());
            let event = Event::of(EventKind::ScheduleRemoved, present.value.run).by(by);
            let txn = self.with_request(txn, &present, request);
            let txn = self.tell(txn, present.value.id, vec![event]);
            if self.commit(&leadership, txn).await? {
                tracing::info!(resource = %name, "schedule taken away");
                return Ok(());
            }
        }
        Err(Self::contended(name))
    }

    /// Returns the schedule of a resource.
    pub async fn schedule(&self, name: &ResourceName) -> Result<ScheduleView, ControlError> {
        let present = self.existing(name).await?;
        let (schedule, _unchanged) = self.schedule_of(&present.value).await?;
        let none = || ControlError::NoSchedule { name: name.clone() };
        Ok(view(name, schedule?.ok_or_else(none)?))
    }

    /// Records of the store, for the loop that looks at all schedules.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.parts.catalog
    }

    /// Present time of the wall clock.
    pub(crate) fn now(&self) -> UnixMillis {
        self.parts.clock.unix_millis()
    }

    /// Looks at a schedule at a time, and decides about its due time.
    ///
    /// # Errors
    ///
    /// The store does not answer, or this master leads no longer. The due time is decided later.
    pub(crate) async fn look_at_schedule(
        &self,
        leadership: &Leadership,
        name: &ResourceName,
        schedule: &Versioned<Schedule>,
        now: UnixMillis,
        seen: Seen,
    ) -> Result<Looked, ControlError> {
        let (due, is_missed) = match schedule.value.step(now) {
            ScheduleStep::Wait => return Ok(Looked::Waits),
            ScheduleStep::SetBack(earlier) => {
                tracing::warn!(resource = %name, due = earlier.due, "the clock was set back; a schedule goes on from there");
                let txn = self.changed_schedule(name, schedule, &earlier);
                self.commit(leadership, txn).await?;
                return Ok(Looked::Changed);
            }
            ScheduleStep::Decide { due, is_missed } => (due, is_missed),
        };
        let late_ms = now.saturating_sub(due);
        let is_missed = is_missed && !seen.is_in_time;
        let deciding = self.decide(leadership, name, schedule, is_missed, now);
        let failed = match Box::pin(deciding).await {
            Ok(looked) => return Ok(looked),
            Err(error) if error.code() == Code::Unavailable => return Err(error),
            Err(error) => error,
        };
        let why = telemetry::chain(&failed);
        let failing_ms = now.saturating_sub(seen.failing_since.unwrap_or(now));
        if failing_ms < MISSED_AFTER_MS {
            tracing::warn!(resource = %name, due, late_ms, error = why, "a schedule will try again to start a run");
            return Ok(Looked::Fails);
        }
        tracing::error!(resource = %name, due, late_ms, error = why, "a schedule cannot start a run");
        // The present run is not known here.
        let event = Event::of(EventKind::ScheduleFailed, Run::default()).because(&why);
        let failed = ScheduleOutcome::failed(why);
        let event = (!is_repeated(&schedule.value, &failed)).then_some(event);
        let decided = schedule.value.decided(failed, now);
        let txn = self.changed_schedule(name, schedule, &decided);
        let txn = self.tell(txn, schedule.value.resource, event.into_iter().collect());
        self.commit(leadership, txn).await?;
        Ok(Looked::Changed)
    }

    async fn decide(
        &self,
        leadership: &Leadership,
        name: &ResourceName,
        schedule: &Versioned<Schedule>,
        is_missed: bool,
        now: UnixMillis,
    ) -> Result<Looked, ControlError> {
        let Schedule { waits, spec, .. } = &schedule.value;
        if *waits && spec.overlap == Overlap::Queue && self.goes_on(schedule.value.resource) {
            return Ok(Looked::Waits);
        }
        let present = self.present(name).await?;
        let present = present.filter(|present| present.value.id == schedule.value.resource);
        let Some(present) = present else {
            // A master of an earlier version has deleted the resource.
            let keys = self.parts.catalog.keys();
            let key = keys.schedule(name);
            let txn = Txn::new()
                .guard(Guard::RevisionIs(key.clone(), schedule.revision))
                .delete(key)
                .delete(keys.runs(schedule.value.resource));
            self.commit(leadership, txn).await?;
            return Ok(Looked::Changed);
        };
        let outcome = match (is_missed, present.value.paused) {
            (true, _) => Some(ScheduleOutcome::Missed),
            // The start goes on waiting: a pause may be short.
            (false, true) if schedule.value.waits => return Ok(Looked::Waits),
            (false, true) => Some(ScheduleOutcome::Paused),
            (false, false) => None,
        };
        if let Some(outcome) = outcome {
            return self
                .start_nothing(
                    (leadership, present.value.run),
                    name,
                    schedule,
                    outcome,
                    now,
                )
                .await;
        }
        match schedule.value.spec.overlap {
            Overlap::Restart => {}
            Overlap::Skip | Overlap::Queue if self.is_over(&present.value).await? => {}
            Overlap::Skip => {
                let (lead, skipped) = ((leadership, present.value.run), ScheduleOutcome::Skipped);
                return self.start_nothing(lead, name, schedule, skipped, now).await;
            }
            Overlap::Queue if schedule.value.waits => return Ok(Looked::Waits),
            Overlap::Queue => {
                let waiting = schedule.value.waiting();
                let txn = self.changed_schedule(name, schedule, &waiting);
                self.commit(leadership, txn).await?;
                return Ok(Looked::Changed);
            }
        }
        let spec = present.value.spec.clone();
        let requests = present.value.requests.clone();
        let NewRun {
            txn,
            run,
            stopped,
            started,
            decision_lock: _lock,
        } = self.new_run(&present, spec, requests).await?;
        let decided = schedule
            .value
            .decided(ScheduleOutcome::Started { run }, now);
        let key = self.parts.catalog.keys().schedule(name);
        let txn = txn
            .guard(Guard::RevisionIs(key.clone(), schedule.revision))
            .put(key, encode(&decided));
        let started = started.because("its schedule");
        let events = stopped.into_iter().chain([started]).collect();
        let txn = self.tell(txn, present.value.id, events);
        if self.commit(leadership, txn).await? {
            let due = schedule.value.due;
            tracing::info!(resource = %name, %run, due, "a new run begins by its schedule");
        }
        Ok(Looked::Changed)
    }

    /// Writes a decision that starts nothing. `run` is the present run.
    async fn start_nothing(
        &self,
        (leadership, run): (&Leadership, Run),
        name: &ResourceName,
        schedule: &Versioned<Schedule>,
        outcome: ScheduleOutcome,
        now: UnixMillis,
    ) -> Result<Looked, ControlError> {
        let word = outcome.as_str();
        let event = match &outcome {
            ScheduleOutcome::Missed => Event::of(EventKind::ScheduleMissed, run),
            _ => Event::of(EventKind::ScheduleSkipped, run).because(word),
        };
        let event = (!is_repeated(&schedule.value, &outcome)).then_some(event);
        let decided = schedule.value.decided(outcome, now);
        let txn = self.changed_schedule(name, schedule, &decided);
        let txn = self.tell(txn, schedule.value.resource, event.into_iter().collect());
        if self.commit(leadership, txn).await? {
            let due = schedule.value.due;
            tracing::info!(resource = %name, due, outcome = word, "a due time starts no run");
        }
        Ok(Looked::Changed)
    }

    /// True if the present run of a resource goes on, as far as this master has followed. A start that waits is looked at
    /// often, and only the end of the run is worth a read.
    fn goes_on(&self, id: ResourceId) -> bool {
        let Some(observed) = self.parts.replica.latest() else {
            return false;
        };
        let shards = observed.shards_of(id);
        let shards: Vec<&ShardRecord> = shards.map(|(_, shard)| &shard.value).collect();
        !shards.is_empty() && !are_over(shards.into_iter())
    }

    /// True if the present run of a resource is over, whether it finished or failed.
    async fn is_over(&self, resource: &Resource) -> Result<bool, ControlError> {
        let shards = self.whole_shards(resource).await?;
        Ok(are_over(shards.values().map(|shard| &shard.value)))
    }

    /// Returns the transaction that writes a schedule over the one that was read.
    fn changed_schedule(
        &self,
        name: &ResourceName,
        present: &Versioned<Schedule>,
        schedule: &Schedule,
    ) -> Txn {
        let key = self.parts.catalog.keys().schedule(name);
        Txn::new()
            .guard(Guard::RevisionIs(key.clone(), present.revision))
            .put(key, encode(schedule))
    }

    /// Adds the memory of a call to a transaction, guarded by the resource as it was read.
    fn with_request(&self, txn: Txn, present: &Versioned<Resource>, request: &RequestId) -> Txn {
        let resource = Resource {
            requests: present.value.requests_with(request),
            ..present.value.clone()
        };
        self.over(txn, present, &resource)
    }

    /// Returns the schedule of this life of a resource, or that it is there and unknown, and the guard that its key is as
    /// it was read.
    async fn schedule_of(
        &self,
        resource: &Resource,
    ) -> Result<(Result<Option<Schedule>, ControlError>, Guard), ControlError> {
        let catalog = &self.parts.catalog;
        let key = catalog.keys().schedule(&resource.spec.name);
        let entry = catalog.store().get(&key).await?;
        let unchanged = match &entry {
            Some(entry) => Guard::RevisionIs(key, entry.revision),
            None => Guard::Absent(key),
        };
        let schedule: Result<Option<Versioned<Schedule>>, _> =
            entry.as_ref().map(decode).transpose();
        let schedule = match schedule {
            Ok(schedule) => Ok(schedule
                .map(|schedule| schedule.value)
                .filter(|schedule| schedule.resource == resource.id)),
            Err(source) => Err(ControlError::UnknownSchedule {
                name: resource.spec.name.clone(),
                source,
            }),
        };
        Ok((schedule, unchanged))
    }
}

fn view(name: &ResourceName, schedule: Schedule) -> ScheduleView {
    ScheduleView {
        name: name.clone(),
        schedule,
    }
}

/// True if the due time before had the same outcome, which was told: events of a schedule that is due each minute would leave
/// no room for others.
fn is_repeated(schedule: &Schedule, outcome: &ScheduleOutcome) -> bool {
    let last = schedule.last.as_ref();
    last.is_some_and(|last| last.outcome == *outcome)
}

/// True if these shards of a run are over: all have finished, or one has failed.
fn are_over<'a>(shards: impl Iterator<Item = &'a ShardRecord>) -> bool {
    let (mut n_shards, mut n_finished) = (0, 0);
    for shard in shards {
        n_shards += 1;
        match shard.state {
            ShardState::Failed { .. } => return true,
            ShardState::Finished => n_finished += 1,
            ShardState::Free | ShardState::Assigned | ShardState::Idle | ShardState::Revoking => {}
        }
    }
    n_shards > 0 && n_finished == n_shards
}
