//! Which worker takes a shard: a pure function of what is registered and what is assigned.
//!
//! Filter, then score: of the workers that may take it, the least loaded; ties go by a hash of
//! worker and shard, so that the same state always gives the same answer and many ties spread.

use std::collections::BTreeMap;
use std::fmt;

use crate::model::id::NodeId;
use crate::model::node::Node;
use crate::model::resource::ShardId;

/// A live worker and the shards it has.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// As registered.
    pub node: Node,
    /// Shards assigned to it that are not over.
    pub load: u32,
}

/// Why no worker takes a shard: how many were looked at, and what spoke against them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unplaceable {
    n_workers: usize,
    reasons: BTreeMap<&'static str, usize>,
}

impl fmt::Display for Unplaceable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.n_workers == 0 {
            return f.write_str("no worker is registered");
        }
        write!(f, "0/{} workers:", self.n_workers)?;
        for (n, (reason, count)) in self.reasons.iter().enumerate() {
            write!(f, "{} {count} {reason}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// The worker that takes this shard.
pub fn place(
    shard: ShardId,
    candidates: &BTreeMap<NodeId, Candidate>,
) -> Result<&Node, Unplaceable> {
    let mut reasons = BTreeMap::new();
    let mut best: Option<(u32, u64, &Node)> = None;
    for candidate in candidates.values() {
        if let Some(reason) = objection(candidate) {
            *reasons.entry(reason).or_default() += 1;
            continue;
        }
        let score = (candidate.load, tie_breaker(&candidate.node.id, shard));
        if best.is_none_or(|(load, tie, _)| score < (load, tie)) {
            best = Some((score.0, score.1, &candidate.node));
        }
    }
    match best {
        Some((_, _, node)) => Ok(node),
        None => Err(Unplaceable {
            n_workers: candidates.len(),
            reasons,
        }),
    }
}

fn objection(candidate: &Candidate) -> Option<&'static str> {
    if candidate.node.draining {
        Some("draining")
    } else if candidate.load >= candidate.node.capacity {
        Some("at capacity")
    } else {
        None
    }
}

fn tie_breaker(node: &NodeId, shard: ShardId) -> u64 {
    use sha2::Digest as _;
    let hash = sha2::Sha256::digest(format!("{node} {shard}"));
    u64::from_be_bytes(hash[..8].try_into().expect("a sha256 has 32 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::id::{Incarnation, ResourceId};
    use crate::model::node::Role;

    fn workers(loads: &[u32]) -> BTreeMap<NodeId, Candidate> {
        let candidate = |(n, load): (usize, &u32)| {
            let id: NodeId = format!("worker-{n}").parse().unwrap();
            let node = Node {
                id: id.clone(),
                role: Role::Worker,
                address: format!("127.0.0.1:{n}"),
                incarnation: Incarnation(1),
                labels: BTreeMap::new(),
                capacity: 10_000,
                version: "0".into(),
                draining: false,
                started_at: 0,
            };
            (id, Candidate { node, load: *load })
        };
        loads.iter().enumerate().map(candidate).collect()
    }

    fn shard(n: u64) -> ShardId {
        ShardId::only(ResourceId(n))
    }

    fn place_many(n: u64, workers: &mut BTreeMap<NodeId, Candidate>) -> Vec<u32> {
        for id in 0..n {
            let node = place(shard(id), workers).unwrap().id.clone();
            workers.get_mut(&node).unwrap().load += 1;
        }
        workers.values().map(|c| c.load).collect()
    }

    #[test]
    fn the_least_loaded_worker_takes_the_shard() {
        let mut two = workers(&[0, 0]);
        let mut loads = place_many(5, &mut two);
        loads.sort_unstable();
        assert_eq!(loads, [2, 3]);
        assert_eq!(place_many(10_000, &mut workers(&[0; 10])), [1_000; 10]);
    }

    #[test]
    fn the_same_state_gives_the_same_answer() {
        let workers = workers(&[3, 3, 3]);
        let first: Vec<_> = (0..50)
            .map(|n| place(shard(n), &workers).unwrap().id.clone())
            .collect();
        let again: Vec<_> = (0..50)
            .map(|n| place(shard(n), &workers).unwrap().id.clone())
            .collect();
        assert_eq!(first, again);
        let distinct: std::collections::BTreeSet<_> = first.iter().collect();
        assert_eq!(distinct.len(), 3, "ties spread");
    }

    #[test]
    fn nobody_takes_a_shard_for_a_reason_that_is_told() {
        let mut three = workers(&[0, 10_000, 10_000]);
        three.values_mut().next().unwrap().node.draining = true;
        assert_eq!(
            place(shard(1), &three).unwrap_err().to_string(),
            "0/3 workers: 2 at capacity, 1 draining"
        );
        assert_eq!(
            place(shard(1), &BTreeMap::new()).unwrap_err().to_string(),
            "no worker is registered"
        );
    }
}
