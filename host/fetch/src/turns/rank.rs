//! Owner of each host, by rendezvous hashing over the registered workers, and the time since when it is the owner.
//!
//! Each worker has a rank at each host, a hash of its id and the host's name, and the first owns it. All
//! workers that see the same list therefore agree without a call, and a worker that comes or goes moves only
//! its own hosts. A worker that registers anew counts as another: it may have missed what happened meanwhile.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::time::Instant;

use super::call::WorkerProcess;
use crawler_model::node::Node;

/// Maximum number of lists that are remembered. A host whose owner was the same in all of them counts as
/// owned since the oldest. This may be later than the true time, which only delays its first turn.
const MAX_LISTS: usize = 16;

/// A registered worker that shares turns.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The registration, with the address and the token for calls.
    pub node: Node,
    /// Number of the registration; it changes after each that lapsed.
    pub registration: u64,
}

impl Peer {
    /// Returns the process of the worker.
    pub(super) fn process(&self) -> WorkerProcess {
        WorkerProcess {
            worker: self.node.id.clone(),
            incarnation: self.node.incarnation,
        }
    }

    /// Returns true if no registration came between.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.registration == other.registration
            && self.node.id == other.node.id
            && self.node.incarnation == other.node.incarnation
    }
}

/// Lists of workers, the present one and earlier ones.
#[derive(Debug)]
pub(super) struct Ranks {
    own: WorkerProcess,
    /// Lists in order; the last is the present one.
    lists: VecDeque<WorkerList>,
    /// True once another worker was in the list.
    is_shared: bool,
}

#[derive(Debug)]
struct WorkerList {
    since: Instant,
    workers: Vec<(u64, Arc<Peer>)>,
}

impl Ranks {
    /// Creates ranks without a list.
    pub(super) fn new(own: WorkerProcess) -> Self {
        Self {
            own,
            lists: VecDeque::new(),
            is_shared: false,
        }
    }

    /// Replaces the present list; returns true if it has changed. A worker that has been alone from the start
    /// owns nothing, because no other worker was told of its requests.
    pub(super) fn change(&mut self, peers: Vec<Peer>, now: Instant) -> bool {
        let is_same = |list: &WorkerList| {
            let pairs = || list.workers.iter().zip(&peers);
            list.workers.len() == peers.len() && pairs().all(|((_, old), new)| old.is_same(new))
        };
        if self.lists.back().is_some_and(is_same) {
            return false;
        }
        let own = &self.own;
        let has_others = peers.iter().any(|peer| peer.process() != *own);
        if !self.is_shared {
            self.lists.clear();
        }
        self.is_shared |= has_others;
        let ranked = |peer: Peer| (hash(peer.node.id.as_str()), Arc::new(peer));
        self.lists.push_back(WorkerList {
            since: now,
            workers: peers.into_iter().map(ranked).collect(),
        });
        if self.lists.len() > MAX_LISTS {
            self.lists.pop_front();
        }
        true
    }

    /// Returns true once there is a list with a worker in it.
    pub(super) fn is_known(&self) -> bool {
        (self.lists.back()).is_some_and(|list| !list.workers.is_empty())
    }

    /// Returns true once another worker was in the list.
    pub(super) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Iterates over the workers of the present list.
    pub(super) fn peers(&self) -> impl Iterator<Item = &Arc<Peer>> {
        self.lists
            .back()
            .into_iter()
            .flat_map(|list| list.workers.iter().map(|(_, peer)| peer))
    }

    /// Returns the owner of a host, or `None` if no worker is in the list.
    pub(super) fn owner(&self, host: &str) -> Option<&Arc<Peer>> {
        self.lists.back()?.owner(hash(host))
    }

    /// Returns true if the present list gives the host another owner than the one before.
    pub(super) fn has_moved(&self, host: &str) -> bool {
        let host = hash(host);
        let mut owners = self.lists.iter().rev().map(|list| list.owner(host));
        match (owners.next().flatten(), owners.next().flatten()) {
            (Some(present), Some(before)) => !present.is_same(before),
            (_, _) => true,
        }
    }

    /// Returns the time since when this worker has owned a host without a break, or `None` if it does not own it.
    pub(super) fn owned_since(&self, host: &str) -> Option<Instant> {
        let (owner, since) = self.owner_since(host)?;
        (owner.process() == self.own).then_some(since)
    }

    /// Returns the owner of a host, and since when it has been that without a break.
    pub(super) fn owner_since(&self, host: &str) -> Option<(&Arc<Peer>, Instant)> {
        let host = hash(host);
        let present = self.lists.back()?;
        let owner = present.owner(host)?;
        let is_theirs =
            |list: &&WorkerList| list.owner(host).is_some_and(|peer| peer.is_same(owner));
        let first = self.lists.iter().rev().take_while(is_theirs).last();
        Some((owner, first.unwrap_or(present).since))
    }
}

impl WorkerList {
    fn owner(&self, host: u64) -> Option<&Arc<Peer>> {
        let first = self.workers.iter().max_by(|(a, one), (b, other)| {
            let ranks = mixed(a ^ host).cmp(&mixed(b ^ host));
            ranks.then_with(|| one.node.id.cmp(&other.node.id))
        });
        first.map(|(_, peer)| peer)
    }
}

/// Computes FNV-1a, mixed once more. All workers of a cluster have to agree on it, also those of other versions.
fn hash(text: &str) -> u64 {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    mixed(text.bytes().fold(0xcbf2_9ce4_8422_2325, fold))
}

/// Applies the last steps of SplitMix64: each bit of the input changes half of those of the output.
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::super::testing::{peer, process};
    use super::*;

    fn ranks(own: u64, workers: &[u64], now: Instant) -> Ranks {
        let mut ranks = Ranks::new(process(own));
        ranks.change(workers.iter().map(|&n| peer(n)).collect(), now);
        ranks
    }

    fn owners(workers: &[u64]) -> Vec<String> {
        let ranks = ranks(1, workers, Instant::now());
        let hosts = (0..1_000).map(|n| format!("host-{n}.test"));
        let owner = |host: String| ranks.owner(&host).unwrap().node.id.to_string();
        hosts.map(owner).collect()
    }

    #[test]
    fn hosts_are_shared_out_evenly() {
        let mut n_each = BTreeMap::<String, usize>::new();
        for owner in owners(&[1, 2, 3, 4]) {
            *n_each.entry(owner).or_default() += 1;
        }
        assert_eq!(n_each.len(), 4);
        assert!(
            n_each.values().all(|n| (200..300).contains(n)),
            "{n_each:?}"
        );
    }

    #[test]
    fn a_worker_that_goes_moves_only_its_hosts() {
        let (before, after) = (owners(&[1, 2, 3, 4]), owners(&[4, 2, 1]));
        for (before, after) in before.iter().zip(&after) {
            assert!(before == after || before == "worker-3", "{before}, {after}");
        }
    }

    /// Workers of other versions have to compute the same owner.
    #[test]
    fn the_owner_of_a_host_never_changes_with_the_version() {
        let owners = owners(&[1, 2, 3]);
        let first: Vec<&str> = owners[..8].iter().map(String::as_str).collect();
        let numbers: Vec<&str> = first.iter().map(|id| &id["worker-".len()..]).collect();
        assert_eq!(numbers.join(""), "13111113");
    }

    #[test]
    fn a_host_is_owned_since_its_owner_was_another() {
        let begun = Instant::now();
        let at = |n: u64| begun + Duration::from_secs(n);
        let mut ranks = ranks(1, &[1, 2], at(0));
        let host = (0..)
            .map(|n| format!("h{n}"))
            .find(|host| ranks.owned_since(host).is_none())
            .unwrap();
        let other = (0..)
            .map(|n| format!("h{n}"))
            .find(|host| ranks.owned_since(host).is_some())
            .unwrap();
        assert!(
            !ranks.change(vec![peer(1), peer(2)], at(1)),
            "the same list"
        );
        assert!(ranks.change(vec![peer(1)], at(2)));
        assert_eq!(ranks.owned_since(&host), Some(at(2)));
        assert_eq!(ranks.owned_since(&other), Some(at(0)));
        assert!(ranks.has_moved(&host) && !ranks.has_moved(&other));
        let again = Peer {
            registration: 9,
            ..peer(1)
        };
        assert!(ranks.change(vec![again], at(3)));
        assert_eq!(ranks.owned_since(&other), Some(at(3)), "it was away");
        for n in 4..100 {
            let registration = n;
            let second = Peer {
                registration,
                ..peer(2)
            };
            ranks.change(vec![peer(1), second], at(n));
        }
        assert!(ranks.lists.len() <= MAX_LISTS);
        assert_eq!(ranks.owned_since(&host), None);
    }

    #[test]
    fn who_was_always_alone_owns_nothing_from_before() {
        let begun = Instant::now();
        let later = begun + Duration::from_secs(60);
        let mut ranks = ranks(1, &[1], begun);
        assert!(ranks.is_known() && !ranks.is_shared());
        ranks.change(vec![peer(1), peer(2)], later);
        assert!(ranks.is_shared());
        let host = (0..).map(|n| format!("h{n}"));
        let since = host.filter_map(|host| ranks.owned_since(&host)).next();
        assert_eq!(since, Some(later));
        ranks.change(vec![peer(1)], later);
        assert!(ranks.is_shared(), "remote_owners may have asked just now");
    }
}
