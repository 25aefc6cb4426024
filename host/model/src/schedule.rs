//! Schedules: when runs of a resource begin by themselves, and what follows from the wall clock.
//!
//! Everything here is pure: the caller brings the time. A *due time* is a time that the schedule names. Each starts
//! one run at most, because the next one is always later than the last that was decided, whatever the clock does.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::crawl::UnixMillis;
use super::id::{Digest, ResourceId, ResourceName, Run};
use super::runs::cut_reason;

use self::cron::next_in_zone;
pub use self::cron::{Cron, Zone};
pub use self::spec::{Overlap, RawSchedule, ScheduleSpec, When};

mod cron;
mod spec;

/// Lateness from which on a due time that has started nothing counts as missed: no leader was there, or the clock was set
/// forwards. A change of the leader takes seconds.
pub const MISSED_AFTER_MS: u64 = 5 * 60 * 1_000;

/// Schedule of a resource, as the store keeps it under `schedules/<name>`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Id of the resource: a later resource of the same name has nothing to do with it.
    pub resource: ResourceId,
    /// Specification by the user.
    pub spec: ScheduleSpec,
    /// Time at which the schedule was set; intervals are counted from here.
    pub since: UnixMillis,
    /// Next due time. `None` if there is none any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<UnixMillis>,
    /// Time at which the next due time was computed. If the clock is before it, the clock was set back.
    pub computed_at: UnixMillis,
    /// True if the due time waits for the end of the present run.
    #[serde(default, skip_serializing_if = "is_false")]
    pub waits: bool,
    /// Last decision about a due time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<ScheduleDecision>,
}

/// Decision about a due time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleDecision {
    /// The due time, without the jitter.
    pub due: UnixMillis,
    /// Time of the decision.
    pub at: UnixMillis,
    /// The decision.
    #[serde(flatten)]
    pub outcome: ScheduleOutcome,
}

/// Outcome of a due time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "outcome")]
pub enum ScheduleOutcome {
    /// It started a run.
    Started {
        /// Number of the run.
        run: Run,
    },
    /// It started nothing, because the run before was not over.
    Skipped,
    /// It started nothing, because the resource was paused.
    Paused,
    /// It was noticed too late, and the schedule says that it starts nothing then.
    Missed,
    /// The run could not be started.
    Failed {
        /// Reason in one sentence.
        why: String,
    },
}

impl ScheduleOutcome {
    /// Creates the outcome of a start that failed, with a reason that is cut if it is too long.
    pub fn failed(why: String) -> Self {
        ScheduleOutcome::Failed {
            why: cut_reason(why),
        }
    }

    /// Returns the word that the API uses.
    pub fn as_str(&self) -> &'static str {
        match self {
            ScheduleOutcome::Started { .. } => "started",
            ScheduleOutcome::Skipped => "skipped",
            ScheduleOutcome::Paused => "paused",
            ScheduleOutcome::Missed => "missed",
            ScheduleOutcome::Failed { .. } => "failed",
        }
    }
}

/// A schedule and the resource that it is for, as they are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleView {
    /// Name of the resource.
    pub name: ResourceName,
    /// The record, as stored.
    pub schedule: Schedule,
}

/// Next step about a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleStep {
    /// Nothing yet.
    Wait,
    /// The clock was set back so far that an earlier due time is the next one: this record is to be written.
    SetBack(Box<Schedule>),
    /// A decision about this due time.
    Decide {
        /// The due time, without the jitter.
        due: UnixMillis,
        /// True if it is to start nothing, because it was noticed too late.
        is_missed: bool,
    },
}

impl Schedule {
    /// Creates the schedule that begins now.
    pub fn new(resource: ResourceId, spec: ScheduleSpec, now: UnixMillis) -> Self {
        Self {
            resource,
            due: next_due(&spec, now, now),
            spec,
            since: now,
            computed_at: now,
            waits: false,
            last: None,
        }
    }

    /// Returns the schedule with another specification. Whatever was decided stays decided. If its times are the same, what
    /// is due stays due.
    pub fn replaced(&self, spec: ScheduleSpec, now: UnixMillis) -> Self {
        if spec.when == self.spec.when {
            return Self {
                spec,
                ..self.clone()
            };
        }
        Self {
            due: next_due(&spec, now, self.decided_until(now)),
            last: self.last.clone(),
            ..Self::new(self.resource, spec, now)
        }
    }

    /// Returns the time at which the due time starts its run: the jitter later. `None` if nothing is due any more.
    pub fn starts_at(&self) -> Option<UnixMillis> {
        let due = self.due?;
        Some(self.start_of(due))
    }

    /// Returns the time at which a due time starts its run.
    fn start_of(&self, due: UnixMillis) -> UnixMillis {
        let following = next_due(&self.spec, self.since, due);
        // The run begins well before the next due time, so that a start that is a bit late is not taken for that of the
        // next one.
        let room = following.map_or(u64::MAX, |following| following.saturating_sub(due));
        let room = (room / 4 * 3).min(self.spec.jitter_ms.saturating_add(1));
        let delay = match room {
            0 | 1 => 0,
            room => hash(self.resource, due) % room,
        };
        due.saturating_add(delay)
    }

    /// Returns the times at which there is nothing to be done.
    pub fn quiet(&self) -> Range<UnixMillis> {
        match self.waits {
            true => 0..0,
            false => self.computed_at..self.starts_at().unwrap_or(UnixMillis::MAX),
        }
    }

    /// Returns what is to be done at this time.
    pub fn step(&self, now: UnixMillis) -> ScheduleStep {
        if now < self.computed_at {
            let due = next_due(&self.spec, self.since, self.decided_until(now));
            let is_earlier = match (due, self.due) {
                (Some(due), Some(present)) => due < present,
                (Some(_), None) => true,
                (None, _) => false,
            };
            // A due time that waits is a decision of its own.
            if is_earlier && !self.waits {
                return ScheduleStep::SetBack(Box::new(Self {
                    due,
                    computed_at: now,
                    ..self.clone()
                }));
            }
        }
        let (Some(due), Some(starts_at)) = (self.due, self.starts_at()) else {
            return ScheduleStep::Wait;
        };
        if now < starts_at && !self.waits {
            return ScheduleStep::Wait;
        }
        let late = now.saturating_sub(starts_at);
        let is_missed = late > MISSED_AFTER_MS && !self.waits && !self.spec.makes_up;
        ScheduleStep::Decide { due, is_missed }
    }

    /// Returns the schedule after a decision about its due time. Later due times whose starts have passed meanwhile are
    /// part of the same decision, but none that can still start in time is missed.
    pub fn decided(&self, outcome: ScheduleOutcome, now: UnixMillis) -> Self {
        let Some(due) = self.due else {
            return self.clone();
        };
        Self {
            due: self.due_after(due, outcome == ScheduleOutcome::Missed, now),
            computed_at: now,
            waits: false,
            last: Some(ScheduleDecision {
                due,
                at: now,
                outcome,
            }),
            ..self.clone()
        }
    }

    /// Returns the schedule whose due time waits for the end of the present run.
    pub fn waiting(&self) -> Self {
        Self {
            waits: true,
            ..self.clone()
        }
    }

    /// Returns the first later due time that a decision at this time leaves to be decided.
    fn due_after(&self, due: UnixMillis, is_missed: bool, now: UnixMillis) -> Option<UnixMillis> {
        // No due time before this can still start in time.
        let span = MISSED_AFTER_MS
            .saturating_add(self.spec.jitter_ms)
            .saturating_add(1);
        let mut after = due.max(now.saturating_sub(span));
        loop {
            let next = next_due(&self.spec, self.since, after)?;
            let starts_at = self.start_of(next);
            let is_left = match is_missed {
                true => starts_at.saturating_add(MISSED_AFTER_MS) >= now,
                false => starts_at > now,
            };
            if is_left {
                return Some(next);
            }
            after = next;
        }
    }

    /// Returns the time up to which nothing may start again.
    fn decided_until(&self, now: UnixMillis) -> UnixMillis {
        let Some(last) = &self.last else {
            // Clocks of leaders differ by seconds: nothing is due when it was set, or before.
            return match self.since.saturating_sub(now) <= MISSED_AFTER_MS {
                true => self.since.max(now),
                false => now,
            };
        };
        // A decision may stand for several due times. They stay decided if the clock was put right by some minutes. If it was
        // far ahead, they are still to come.
        match last.at.saturating_sub(now) <= MISSED_AFTER_MS {
            true => last.at.max(last.due).max(now),
            false => last.due.max(now),
        }
    }
}

/// Returns the first due time that is strictly later than `after`.
fn next_due(spec: &ScheduleSpec, since: UnixMillis, after: UnixMillis) -> Option<UnixMillis> {
    match &spec.when {
        When::Cron { cron, zone } => next_in_zone(cron, zone, after),
        When::Every { every_ms } => {
            // Nothing is due when the schedule was set, or before, even if the clock is set back to there.
            let passed = after.saturating_sub(since);
            let n_intervals = passed.checked_div(*every_ms)?.checked_add(1)?;
            since.checked_add(n_intervals.checked_mul(*every_ms)?)
        }
    }
}

/// Returns a number that follows from the resource and the due time alone: every leader computes the same.
fn hash(resource: ResourceId, due: UnixMillis) -> u64 {
    let digest = Digest::of(format!("{resource}/{due}").as_bytes());
    let first: [u8; 8] = std::array::from_fn(|n| digest.as_bytes()[n]);
    u64::from_be_bytes(first)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands a reference over"
)]
fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests;
