//! Shards that came to workers and left them, counted over spans of time: pure, and kept for a term of a leader.
//!
//! While shards come and leave, each span is twice as long as the one before, so that these events do not push out what
//! else became of a worker.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;

use super::node_changes::SeenShards;
use crawler_model::id::NodeId;
use crawler_model::resource::ShardId;
use crawler_process::doubling_span::DoublingSpan;

/// Shards of all nodes at the start of their present spans.
#[derive(Debug, Default)]
pub(super) struct ShardCounts {
    by_node: BTreeMap<NodeId, Count>,
    /// Shards of the node that is about to be told, until it is known if they were.
    tried: Option<Tried>,
    /// True if all nodes were looked at once. All shards of a node that comes after that have come to it.
    has_begun: bool,
}

#[derive(Debug)]
struct Count {
    /// Shards at the start of the span.
    past: BTreeSet<ShardId>,
    span: DoublingSpan,
}

/// Shards that were seen of a node, as they are told.
#[derive(Debug)]
struct Tried {
    id: NodeId,
    present: BTreeSet<ShardId>,
    shards: SeenShards,
    at: Instant,
}

impl ShardCounts {
    /// Forgets all nodes but these.
    pub(super) fn keep_only(&mut self, nodes: &BTreeSet<NodeId>) {
        self.by_node.retain(|id, _| nodes.contains(id));
    }

    /// Returns the shards that a node has, with the numbers of those that came and left if its span has ended.
    pub(super) fn seen(
        &self,
        id: &NodeId,
        is_draining: bool,
        present: &BTreeSet<ShardId>,
        now: Instant,
    ) -> SeenShards {
        let count = self.by_node.get(id);
        let count = count.filter(|count| count.span.has_ended(now));
        let changed = count.map(|Count { past, .. }| {
            let n_came = present.difference(past).count();
            (n_came, past.difference(present).count())
        });
        let (n_came, n_left) = changed.unwrap_or_default();
        SeenShards {
            is_draining,
            n: present.len(),
            n_came,
            n_left,
        }
    }

    /// Takes note of what was seen of a node and is about to be told.
    pub(super) fn will_tell(
        &mut self,
        id: &NodeId,
        present: BTreeSet<ShardId>,
        shards: SeenShards,
        at: Instant,
    ) {
        self.tried = Some(Tried {
            id: id.clone(),
            present,
            shards,
            at,
        });
    }

    /// Takes note if what was about to be told was. If the span of the node has ended, the next one begins then.
    pub(super) fn end_telling(&mut self, is_told: bool) {
        let Some(tried) = self.tried.take().filter(|_| is_told) else {
            return;
        };
        let Tried {
            id,
            present,
            shards,
            at,
        } = tried;
        let (past, span) = match self.by_node.get(&id) {
            Some(count) if !count.span.has_ended(at) => return,
            Some(count) if shards.n_came + shards.n_left > 0 => (present, count.span.next(at)),
            None if self.has_begun => (BTreeSet::new(), DoublingSpan::first(at)),
            Some(_) | None => (present, DoublingSpan::first(at)),
        };
        self.by_node.insert(id, Count { past, span });
    }

    /// Takes note that all nodes were looked at.
    pub(super) fn all_seen(&mut self) {
        self.has_begun = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::ResourceId;

    const FIRST_SPAN: std::time::Duration = DoublingSpan::FIRST;
    const LONGEST_SPAN: std::time::Duration = DoublingSpan::LONGEST;

    /// Looks at a worker with these shards. Returns how many came and left.
    fn look(counts: &mut ShardCounts, worker: u32, shards: &[u64], now: Instant) -> (usize, usize) {
        let id: NodeId = format!("worker-{worker}").parse().unwrap();
        let shards = shards.iter().map(|id| ShardId::only(ResourceId(*id)));
        let present: BTreeSet<ShardId> = shards.collect();
        let seen = counts.seen(&id, false, &present, now);
        assert_eq!(seen.n, present.len());
        counts.will_tell(&id, present, seen, now);
        counts.end_telling(true);
        counts.all_seen();
        (seen.n_came, seen.n_left)
    }

    #[test]
    fn shards_are_counted_from_the_first_look_at_all_nodes() {
        let mut counts = ShardCounts::default();
        let start = Instant::now();
        assert_eq!(look(&mut counts, 1, &[1, 2], start), (0, 0));
        assert_eq!(look(&mut counts, 2, &[3], start), (0, 0));
        let soon = start + FIRST_SPAN / 2;
        assert_eq!(look(&mut counts, 1, &[2], soon), (0, 0));
        let later = start + FIRST_SPAN;
        assert_eq!(look(&mut counts, 1, &[2, 4, 5], later), (2, 1));
        // The second worker was not there at the first look, so its shard has come to it.
        assert_eq!(look(&mut counts, 2, &[3], soon + FIRST_SPAN), (1, 0));
    }

    #[test]
    fn numbers_that_were_not_told_are_told_later() {
        let mut counts = ShardCounts::default();
        let start = Instant::now();
        assert_eq!(look(&mut counts, 1, &[1], start), (0, 0));
        let id: NodeId = "worker-1".parse().unwrap();
        let present = BTreeSet::from([1, 2].map(|id| ShardId::only(ResourceId(id))));
        let later = start + FIRST_SPAN;
        let seen = counts.seen(&id, false, &present, later);
        counts.will_tell(&id, present, seen, later);
        counts.end_telling(false);
        assert_eq!(look(&mut counts, 1, &[1, 2], later), (1, 0));
        // Nothing is about to be told any more.
        counts.end_telling(true);
        assert_eq!(look(&mut counts, 1, &[1, 2], later), (0, 0));
    }

    #[test]
    fn shards_that_come_all_day_are_few_events() {
        let mut counts = ShardCounts::default();
        let mut now = Instant::now();
        let (mut n_events, mut n_came) = (0, 0);
        let mut shards = Vec::new();
        for minute in 0..24 * 60 {
            let (came, _) = look(&mut counts, 1, &shards, now);
            n_events += usize::from(came > 0);
            n_came += came;
            shards.push(minute);
            now += FIRST_SPAN;
        }
        assert!((20..=30).contains(&n_events), "{n_events}");
        assert!(n_came > 23 * 60, "{n_came}");
        // After a quiet span, the next change is told within a minute.
        now += LONGEST_SPAN;
        look(&mut counts, 1, &shards, now);
        now += LONGEST_SPAN;
        assert_eq!(look(&mut counts, 1, &shards, now), (0, 0));
        now += FIRST_SPAN;
        assert_eq!(look(&mut counts, 1, &[], now), (0, shards.len()));
    }
}
