//! When loads are levelled out, and by which moves: pure, over what one leader has seen.
//!
//! A move costs a crawl some pages fetched again, so nothing moves for a small gain or for a moment's
//! state: only once the workers have been the same ones for a while, and a while after the last moves;
//! only from a worker whose load is further above the average than the threshold, to one that has less
//! than the first would have left; and only so many at a time.

use std::time::Duration;

use tokio::time::Instant;

use super::placement::{Candidates, Wish, leaves_friend, place_beside};
use crate::model::id::NodeId;
use crate::model::resource::ShardId;

/// When and how much is moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BalanceSettings {
    /// Percent above the average from which a worker gives shards away: setting `--rebalance-threshold`.
    pub threshold: u32,
    /// Shards that move at a time, none where it is 0: setting `--rebalance-moves`.
    pub moves: usize,
    /// Since the last moves, and since a worker came or went: setting `--rebalance-cooldown`.
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

/// What one leader has seen of it.
#[derive(Debug)]
pub(super) struct Balance {
    settings: BalanceSettings,
    workers: Vec<NodeId>,
    /// Since when nothing has happened that a move would come too soon after.
    quiet_since: Instant,
}

/// A shard that may move.
#[derive(Debug)]
pub(super) struct Movable<'a> {
    pub(super) wish: Wish<'a>,
    pub(super) owner: &'a NodeId,
}

/// A shard and whom it goes to.
pub(super) type Move = (ShardId, NodeId);

impl Balance {
    /// Of a leader that begins now.
    pub(super) fn new(settings: BalanceSettings, now: Instant) -> Self {
        Self {
            settings,
            workers: Vec::new(),
            quiet_since: now,
        }
    }

    /// Takes note of who is there.
    pub(super) fn look<'a>(&mut self, workers: impl Iterator<Item = &'a NodeId>, now: Instant) {
        let workers: Vec<NodeId> = workers.cloned().collect();
        if workers != self.workers {
            self.workers = workers;
            self.quiet_since = now;
        }
    }

    /// Takes note of moves that were begun.
    pub(super) fn moved(&mut self, now: Instant) {
        self.quiet_since = now;
    }

    /// So much longer nothing is moved; none where it may be now.
    pub(super) fn wait(&self, now: Instant) -> Option<Duration> {
        let wait = (self.quiet_since + self.settings.cooldown).saturating_duration_since(now);
        (!wait.is_zero()).then_some(wait)
    }

    /// The moves that level the loads out most, of these shards.
    pub(super) fn moves(&self, mut candidates: Candidates, movable: &[Movable<'_>]) -> Vec<Move> {
        let mut moves: Vec<Move> = Vec::new();
        while moves.len() < self.settings.moves {
            let Some(heaviest) = self.heaviest(&candidates) else {
                break;
            };
            let own = movable.iter().filter(|shard| {
                let is_moving = moves.iter().any(|(id, _)| *id == shard.wish.shard());
                *shard.owner == heaviest && !is_moving
            });
            let best = own.filter_map(|shard| {
                let (to, highest) = better_place(&candidates, shard)?;
                Some((highest, shard, to))
            });
            let Some((_, shard, to)) = best.min_by_key(|(highest, shard, _)| {
                // Of those that come to the same, the oldest.
                (*highest, shard.wish.shard())
            }) else {
                break;
            };
            candidates.give_up(&heaviest, &shard.wish);
            candidates.take(&to, &shard.wish);
            moves.push((shard.wish.shard(), to));
        }
        moves
    }

    /// The worker with the highest load, where that is too far above the average.
    fn heaviest(&self, candidates: &Candidates) -> Option<NodeId> {
        let strategy = candidates.strategy();
        let loads = candidates.iter().filter(|c| !c.node.draining);
        let loads: Vec<(u64, &NodeId)> = loads.map(|c| (strategy.load(c), &c.node.id)).collect();
        let sum: u128 = loads.iter().map(|(load, _)| u128::from(*load)).sum();
        let (highest, node) = loads.iter().max_by_key(|(load, _)| *load)?;
        let allowed = sum * u128::from(100 + self.settings.threshold);
        let is_above = u128::from(*highest) * 100 * loads.len() as u128 > allowed;
        is_above.then(|| (*node).clone())
    }
}

/// Where a shard would be better off, and the higher load of the two workers then.
fn better_place(candidates: &Candidates, shard: &Movable<'_>) -> Option<(NodeId, u64)> {
    let strategy = candidates.strategy();
    let present = candidates.get(shard.owner)?;
    if leaves_friend(&shard.wish, present) {
        return None;
    }
    let to = place_beside(&shard.wish, candidates, shard.owner)?;
    let (mut from, mut dest) = (present.clone(), candidates.get(&to.id)?.clone());
    from.give_up(&shard.wish);
    dest.take_up(&shard.wish);
    let highest = strategy.load(&from).max(strategy.load(&dest));
    (highest < strategy.load(present)).then(|| (to.id.clone(), highest))
}

#[cfg(test)]
mod tests;
