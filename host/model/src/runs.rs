//! Runs of a resource that are over, in numbers.

use serde::{Deserialize, Serialize};

use super::crawl::{Counts, UnixMillis};
use super::id::Run;
use super::resource::{ShardRecord, ShardState};

/// Largest number of runs that a resource remembers.
pub const RUNS_MAX: usize = 100;
/// Largest number of bytes of a reason that is remembered.
const REASON_MAX: usize = 256;

/// Returns a reason as it is remembered: cut, if it is too long.
pub(super) fn cut_reason(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(REASON_MAX));
    reason
}

/// Last runs of a resource before the present one, as the store keeps them under `runs/<id>`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RunHistory {
    /// The runs, the latest last.
    pub runs: Vec<EndedRun>,
}

/// A run that is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedRun {
    /// Number of the run.
    pub run: Run,
    /// Time at which the run was requested; 0 if it is not known.
    #[serde(default)]
    pub started_at: UnixMillis,
    /// Time of its latest answer, or 0 if none came; that of its end if the next run ended it.
    pub ended_at: UnixMillis,
    /// Outcome of the run.
    #[serde(flatten)]
    pub outcome: RunOutcome,
    /// Pages that came to an end.
    pub pages: u64,
    /// Items stored.
    pub items: u64,
    /// Pages given up.
    pub dead: u64,
    /// Bytes of bodies.
    pub bytes: u64,
}

/// Outcome of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "outcome")]
pub enum RunOutcome {
    /// The run came to its end.
    Finished,
    /// The run could not go on.
    Failed {
        /// Reason in one sentence.
        reason: String,
    },
    /// The next run ended it. Its numbers are those of the last change of its shards.
    Stopped,
}

impl RunOutcome {
    /// Returns the word that the API uses.
    pub fn as_str(&self) -> &'static str {
        match self {
            RunOutcome::Finished => "finished",
            RunOutcome::Failed { .. } => "failed",
            RunOutcome::Stopped => "stopped",
        }
    }

    /// Returns the reason of a failure; empty if there is none.
    pub fn reason(&self) -> &str {
        match self {
            RunOutcome::Failed { reason } => reason,
            RunOutcome::Finished | RunOutcome::Stopped => "",
        }
    }
}

impl EndedRun {
    /// Sums up a run that the next one follows now. The iterator yields its shards.
    pub fn of<'a>(
        run: Run,
        started_at: Option<UnixMillis>,
        shards: impl Iterator<Item = &'a ShardRecord>,
        now: UnixMillis,
    ) -> Self {
        let mut counts = Counts::default();
        let mut outcome = RunOutcome::Finished;
        for shard in shards {
            counts.add(&shard.counts);
            match &shard.state {
                ShardState::Failed { reason } => {
                    let reason = cut_reason(reason.clone());
                    outcome = RunOutcome::Failed { reason };
                }
                ShardState::Finished => {}
                ShardState::Free
                | ShardState::Assigned
                | ShardState::Idle
                | ShardState::Revoking => {
                    if outcome == RunOutcome::Finished {
                        outcome = RunOutcome::Stopped;
                    }
                }
            }
        }
        let ended_at = match &outcome {
            RunOutcome::Stopped => now,
            RunOutcome::Finished | RunOutcome::Failed { .. } => counts.ended_at,
        };
        Self {
            run,
            started_at: started_at.unwrap_or_default(),
            ended_at,
            outcome,
            pages: counts.pages(),
            items: counts.items,
            dead: counts.dead,
            bytes: counts.bytes,
        }
    }
}

impl RunHistory {
    /// Adds a run. The oldest one is forgotten if there are too many.
    pub fn push(&mut self, ended: EndedRun) {
        self.runs.push(ended);
        let n_beyond = self.runs.len().saturating_sub(RUNS_MAX);
        self.runs.drain(..n_beyond);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shard(state: ShardState, parsed: u64) -> ShardRecord {
        ShardRecord {
            state,
            counts: Counts {
                parsed,
                dead: 1,
                items: 2 * parsed,
                began_at: 1_000,
                ended_at: 5_000 + parsed,
                ..Counts::default()
            },
            ..ShardRecord::new("books".parse().unwrap())
        }
    }

    #[track_caller]
    fn check(shards: &[ShardRecord], outcome: RunOutcome, ended_at: UnixMillis) {
        let ended = EndedRun::of(Run(3), Some(900), shards.iter(), 9_000);
        assert_eq!((ended.outcome, ended.ended_at), (outcome, ended_at));
        assert_eq!((ended.run, ended.started_at), (Run(3), 900));
    }

    #[test]
    fn a_run_ends_as_its_shards_did() {
        let failed = || ShardState::Failed {
            reason: "no".into(),
        };
        let finished = shard(ShardState::Finished, 10);
        let all = [finished.clone(), shard(ShardState::Finished, 20)];
        check(&all, RunOutcome::Finished, 5_020);
        let ended = EndedRun::of(Run(1), None, all.iter(), 9_000);
        assert_eq!((ended.pages, ended.items, ended.dead), (32, 60, 2));
        let reason = "no".to_owned();
        for others in [ShardState::Finished, ShardState::Assigned] {
            let shards = [
                shard(others.clone(), 1),
                shard(failed(), 2),
                shard(others, 3),
            ];
            let reason = reason.clone();
            check(&shards, RunOutcome::Failed { reason }, 5_003);
        }
        check(
            &[shard(ShardState::Assigned, 1), finished],
            RunOutcome::Stopped,
            9_000,
        );
        let unanswered = ShardRecord {
            counts: Counts::default(),
            ..shard(failed(), 1)
        };
        check(&[unanswered], RunOutcome::Failed { reason }, 0);
        check(&[], RunOutcome::Finished, 0);
    }

    #[test]
    fn the_oldest_run_is_forgotten_when_there_are_too_many() {
        let mut history = RunHistory::default();
        for run in 1..=RUNS_MAX as u64 + 5 {
            let long = ShardState::Failed {
                reason: "é".repeat(1_000),
            };
            history.push(EndedRun::of(Run(run), None, [shard(long, 1)].iter(), 9_000));
        }
        assert_eq!(history.runs.len(), RUNS_MAX);
        assert_eq!(history.runs[0].run, Run(6));
        let json = serde_json::to_string(&history).unwrap();
        assert!(json.len() < 50_000, "{}", json.len());
        assert_eq!(serde_json::from_str::<RunHistory>(&json).unwrap(), history);
    }
}
