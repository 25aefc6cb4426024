//! Balancing of loads, by moves of shards: pure, over the observations of one leader.
//!
//! A move makes a crawl fetch some pages again, so nothing moves for a small gain or a momentary state. Shards
//! move only once the workers have stayed the same for a while, and a while after the last moves; only from a
//! worker whose load exceeds the average by more than the threshold, to one that has less than the first would
//! have left; and only a few at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::Instant;

use super::placement::{Candidates, PlacementRequest, leaves_affinity, place_beside};
use crawler_model::id::NodeId;
use crawler_model::resource::ShardId;

/// Threshold, size and spacing of moves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BalanceSettings {
    /// Percent above the average from which a worker gives shards away: setting `--rebalance-threshold`.
    pub threshold: u32,
    /// Number of shards that move at a time; 0 turns moves off: setting `--rebalance-moves`.
    pub moves: usize,
    /// Time that must pass since the last moves, and since a worker came or went: setting `--rebalance-cooldown`.
    pub cooldown: Duration,
}

impl Default for BalanceSettings {
    fn default() -> Self {
        Self {
            threshold: 20,
            moves: 4,
            cooldown: Duration::from_secs(30),
        }
    }
}

/// Observations of one leader that decide on moves.
#[derive(Debug)]
pub(super) struct Balance {
    settings: BalanceSettings,
    workers: Vec<NodeId>,
    /// Time since which nothing has happened that moves keep a distance from.
    quiet_since: Instant,
}

/// A shard and the worker that it moves to.
pub(super) type Move = (ShardId, NodeId);

impl Balance {
    /// Creates the record of a leader that begins now.
    pub(super) fn new(settings: BalanceSettings, now: Instant) -> Self {
        Self {
            settings,
            workers: Vec::new(),
            quiet_since: now,
        }
    }

    /// Takes note of the workers that are present.
    pub(super) fn observe<'a>(&mut self, workers: impl Iterator<Item = &'a NodeId>, now: Instant) {
        let workers: Vec<NodeId> = workers.cloned().collect();
        if workers != self.workers {
            self.workers = workers;
            self.quiet_since = now;
        }
    }

    /// Takes note that moves were looked for.
    pub(super) fn looked_for_moves(&mut self, now: Instant) {
        self.quiet_since = now;
    }

    /// Returns how much longer nothing is moved, or `None` if shards may move now.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        let wait = (self.quiet_since + self.settings.cooldown).saturating_duration_since(now);
        (!wait.is_zero()).then_some(wait)
    }

    /// Returns the moves that level the loads most, or `None` if they are level. `movable` returns the shards
    /// of a worker that may move. Other tasks get their turn after each worker that was examined.
    pub(super) async fn moves<'a>(
        &self,
        mut candidates: Candidates,
        movable: impl Fn(&NodeId) -> Vec<PlacementRequest<'a>>,
    ) -> Option<Vec<Move>> {
        if self.settings.moves == 0 || self.heavy(&candidates).is_empty() {
            return None;
        }
        let mut moves: Vec<Move> = Vec::new();
        // Workers without a shard that would be better off elsewhere.
        let mut barren = BTreeSet::new();
        while moves.len() < self.settings.moves {
            tokio::task::yield_now().await;
            let mut heavy = self.heavy(&candidates).into_iter();
            let Some(owner) = heavy.find(|owner| !barren.contains(owner)) else {
                break;
            };
            let own = movable(&owner).into_iter();
            let own = own.filter(|request| moves.iter().all(|(id, _)| *id != request.shard()));
            let best = own.filter_map(|request| {
                let (to, highest) = better_place(&candidates, &request, &owner)?;
                Some((highest, request, to))
            });
            // Among equally good moves, the oldest shard goes.
            let best = best.min_by_key(|(highest, request, _)| (*highest, request.shard()));
            let Some((_, request, to)) = best else {
                barren.insert(owner);
                continue;
            };
            candidates.give_up(&owner, &request);
            candidates.take(&to, &request);
            moves.push((request.shard(), to));
        }
        Some(moves)
    }

    /// Returns the workers whose load is too far above the average, the heaviest first.
    fn heavy(&self, candidates: &Candidates) -> Vec<NodeId> {
        let strategy = candidates.strategy();
        let loads = candidates.iter().filter(|c| !c.node.draining);
        let mut loads: Vec<(u64, &NodeId)> =
            loads.map(|c| (strategy.load(c), &c.node.id)).collect();
        let sum: u128 = loads.iter().map(|(load, _)| u128::from(*load)).sum();
        let allowed = sum * u128::from(100 + self.settings.threshold);
        let n = loads.len() as u128;
        loads.retain(|(load, _)| u128::from(*load) * 100 * n > allowed);
        loads.sort_unstable_by(|a, b| b.cmp(a));
        loads.into_iter().map(|(_, id)| id.clone()).collect()
    }
}

/// Returns a worker where a shard would be better off, and the higher load of the two workers after the move.
fn better_place(
    candidates: &Candidates,
    request: &PlacementRequest<'_>,
    owner: &NodeId,
) -> Option<(NodeId, u64)> {
    let strategy = candidates.strategy();
    let present = candidates.get(owner)?;
    if leaves_affinity(request, present) {
        return None;
    }
    let to = place_beside(request, candidates, owner)?;
    let weight = request.weight();
    let left = strategy.load_without(present, weight);
    let highest = left.max(strategy.load_with(candidates.get(&to.id)?, weight));
    (highest < strategy.load(present)).then(|| (to.id.clone(), highest))
}

#[cfg(test)]
mod tests;
