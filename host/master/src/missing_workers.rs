//! Waiting time for missing workers, before their shards are placed anew: pure, over observations of one leader.
//!
//! A worker is missing once its lease has run out; it has stopped fetching by then. Its shards are placed anew at
//! once, with two exceptions. If all workers, or at least three and more than a third of those known, vanish
//! within one lease time, the store or the network is a more likely cause than the workers. And in the first lease
//! time of a leader, the store may have been away, so that the workers are about to register again. In both cases,
//! the shards of a missing worker wait for one more lease time, counted from when this leader found it missing. A
//! worker that is back by then under the same incarnation keeps its shards, and their records do not change. A
//! worker that is back under another incarnation is not missing, but has lost its shards.
//!
//! Shards without an owner are not the concern of this module: they are placed at once.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crawler_model::id::NodeId;

/// Number of workers that have to vanish together before another cause is assumed, unless they are all.
const FEW: usize = 3;

/// Missing workers that one leader knows of during its term.
#[derive(Debug)]
pub(super) struct MissingWorkers {
    lease: Duration,
    /// Time at which the leader began.
    began: Instant,
    /// Workers at the last look, in order.
    present: Vec<NodeId>,
    missing: BTreeMap<NodeId, Missing>,
}

#[derive(Debug, Clone, Copy)]
struct Missing {
    since: Instant,
    is_held: bool,
}

impl MissingWorkers {
    /// Creates the record of a leader that begins now, with workers whose leases last `lease`.
    pub(super) fn new(lease: Duration, now: Instant) -> Self {
        Self {
            lease,
            began: now,
            present: Vec::new(),
            missing: BTreeMap::new(),
        }
    }

    /// Takes note of the registered workers and of the owners that shards name. Returns the workers that are
    /// waited for from now on.
    pub(super) fn observe<'a>(
        &mut self,
        present: impl IntoIterator<Item = &'a NodeId>,
        owners: impl IntoIterator<Item = &'a NodeId>,
        now: Instant,
    ) -> Vec<NodeId> {
        let mut present: Vec<NodeId> = present.into_iter().cloned().collect();
        present.sort_unstable();
        let mut owners: Vec<&NodeId> = owners.into_iter().collect();
        owners.sort_unstable();
        owners.dedup();
        self.missing.retain(|node, missing| {
            let is_named = owners.binary_search(&node).is_ok();
            let is_recent = now - missing.since < self.lease;
            present.binary_search(node).is_err() && (is_named || is_recent)
        });
        let before = std::mem::replace(&mut self.present, present);
        let known = before.iter().chain(owners);
        for node in known.filter(|node| self.present.binary_search(node).is_err()) {
            let missing = Missing {
                since: now,
                is_held: false,
            };
            self.missing.entry(node.clone()).or_insert(missing);
        }
        self.hold(now)
    }

    /// Returns how much longer the shards of this worker wait, or `None` if they do not.
    pub(super) fn wait(&self, node: &NodeId, now: Instant) -> Option<Duration> {
        let missing = self.missing.get(node).filter(|missing| missing.is_held)?;
        let wait = (missing.since + self.lease).saturating_duration_since(now);
        (!wait.is_zero()).then_some(wait)
    }

    fn hold(&mut self, now: Instant) -> Vec<NodeId> {
        let is_new_leader = now - self.began < self.lease;
        let lease = self.lease;
        let is_recent = |missing: &Missing| now - missing.since < lease;
        let n_vanished = self.missing.values().filter(|m| is_recent(m)).count();
        let n_known = self.present.len() + n_vanished;
        let are_all = self.present.is_empty();
        let are_many = n_vanished >= FEW && 3 * n_vanished > n_known;
        if !(is_new_leader || are_all || are_many) {
            return Vec::new();
        }
        let mut held = Vec::new();
        for (node, missing) in &mut self.missing {
            if is_recent(missing) && !missing.is_held {
                missing.is_held = true;
                held.push(node.clone());
            }
        }
        held
    }
}

#[cfg(test)]
mod tests;
