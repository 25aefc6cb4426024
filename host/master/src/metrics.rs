//! Counts and the present state of a master, for the metrics of its process.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::observed::Observed;
use super::phase::phase;
use super::replica::Replica;
use crawler_model::resource::{Phase, ShardRecord, ShardState};
use crawler_process::metrics::{Count, Durations, WordCounts};

/// Counts of a master's duties as the leader, over all of its terms.
#[derive(Debug, Default)]
pub struct LeaderCounts {
    /// Terms that have begun.
    pub terms: Count,
    /// Actions of the reconciler that were carried out, by their kind, such as `assign`.
    pub done: WordCounts,
    /// Actions that lost their guards, or whose outcome is unknown, by their kind. The next pass decides anew.
    pub lost: WordCounts,
    /// Actions that failed because of the records that they are about, by their kind.
    pub failed: WordCounts,
    /// Times that passes of the reconciler took, with their writes.
    pub passes: Durations,
}

/// Cluster as a master sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterView {
    /// True if the records are followed; otherwise the numbers are those of an earlier moment.
    pub is_followed: bool,
    /// Workers that are registered, without those that are told to drain.
    pub workers: u64,
    /// Workers that are told to drain.
    pub draining: u64,
    /// Resources by phase.
    pub resources: BTreeMap<&'static str, u64>,
    /// Shards by state.
    pub shards: BTreeMap<&'static str, u64>,
    /// Records of resources and shards that do not decode.
    pub unreadable: u64,
    /// Deleted resources whose data is not removed yet.
    pub deletions: u64,
}

/// Parts of a master that its metrics are read from.
#[derive(Clone)]
pub struct MasterMetrics {
    /// Replica of the records.
    pub replica: Replica,
    /// Counts of the leader's duties.
    pub counts: Arc<LeaderCounts>,
}

impl Replica {
    /// Returns the cluster for metrics, or `None` if nothing has been read yet.
    pub fn cluster_view(&self) -> Option<ClusterView> {
        let observed = self.latest()?;
        Some(ClusterView {
            is_followed: self.is_followed(),
            ..view(&observed)
        })
    }
}

fn view(observed: &Observed) -> ClusterView {
    let n_workers = observed.workers.len() as u64;
    let draining = observed.workers.values().filter(|worker| worker.draining);
    let draining = draining.count() as u64;
    let mut view = ClusterView {
        is_followed: true,
        workers: n_workers - draining,
        draining,
        // A phase without resources is told too: an alert must not take it for one that nobody tells of.
        resources: Phase::WORDS.map(|word| (word, 0)).into(),
        shards: STATES.map(|state| (state, 0)).into(),
        unreadable: (observed.unreadable.len() + observed.unreadable_resources.len()) as u64,
        deletions: observed.deletions.len() as u64,
    };
    for resource in observed.resources.values() {
        let shards = observed.shards_of(resource.value.id);
        let shards: Vec<&ShardRecord> = shards.map(|(_, record)| &record.value).collect();
        for shard in &shards {
            *view.shards.entry(state(&shard.state)).or_default() += 1;
        }
        let phase = phase(&resource.value, &shards, &observed.candidates);
        *view.resources.entry(phase.as_str()).or_default() += 1;
    }
    view
}

/// Words of the states of shards.
const STATES: [&str; 6] = ["free", "assigned", "idle", "revoking", "finished", "failed"];

fn state(state: &ShardState) -> &'static str {
    match state {
        ShardState::Free => "free",
        ShardState::Assigned => "assigned",
        ShardState::Idle => "idle",
        ShardState::Revoking => "revoking",
        ShardState::Finished => "finished",
        ShardState::Failed { .. } => "failed",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Strategy;

    #[test]
    fn every_phase_and_state_is_told_even_if_nothing_is_in_it() {
        let view = view(&Observed::nothing(Strategy::default()));
        assert_eq!((view.workers, view.draining), (0, 0));
        assert_eq!(view.resources.len(), Phase::WORDS.len());
        assert_eq!(view.shards.len(), STATES.len());
        assert!(view.resources.values().all(|n| *n == 0));
    }
}
