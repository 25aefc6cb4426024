//! Tests of the waiting time for missing workers, by what a leader saw and when.

use super::*;

/// Lease time in milliseconds.
const LEASE: u64 = 10_000;

/// A leader, long after its first lease time, with these workers present.
struct Leader {
    missing_workers: MissingWorkers,
    began: Instant,
    present: Vec<NodeId>,
    owners: Vec<NodeId>,
}

fn workers(n: usize) -> Vec<NodeId> {
    let id = |n: usize| format!("worker-{n}").parse().unwrap();
    (0..n).map(id).collect()
}

impl Leader {
    fn new() -> Self {
        let began = Instant::now();
        Self {
            missing_workers: MissingWorkers::new(Duration::from_millis(LEASE), began),
            began,
            present: Vec::new(),
            owners: Vec::new(),
        }
    }

    /// Creates a leader 100 leases after its start, which has looked once at `n` workers that all own
    /// something.
    fn settled(n: usize) -> Self {
        let mut leader = Self::new();
        leader.present = workers(n);
        leader.owners = workers(n);
        assert_eq!(leader.observe(100 * LEASE), 0);
        leader
    }

    fn at(&self, millis: u64) -> Instant {
        self.began + Duration::from_millis(millis)
    }

    /// Takes a look. Returns the number of workers that are waited for from now on.
    fn observe(&mut self, at: u64) -> usize {
        let now = self.at(at);
        self.missing_workers
            .observe(&self.present, &self.owners, now)
            .len()
    }

    fn vanish(&mut self, nodes: impl IntoIterator<Item = usize>, at: u64) -> usize {
        for n in nodes {
            self.present
                .retain(|id| id.as_str() != format!("worker-{n}"));
        }
        self.observe(at)
    }

    fn wait(&self, n: usize, at: u64) -> u64 {
        let node = format!("worker-{n}").parse().unwrap();
        let wait = self.missing_workers.wait(&node, self.at(at));
        wait.map_or(0, |wait| wait.as_millis() as u64)
    }
}

/// Time in milliseconds, long after the first lease time.
const T: u64 = 200 * LEASE;

#[test]
fn one_or_two_of_three_that_vanish_are_not_waited_for() {
    let mut leader = Leader::settled(3);
    assert_eq!(leader.vanish([0], T), 0);
    assert_eq!(leader.vanish([1], T + 1), 0);
    assert_eq!((leader.wait(0, T + 1), leader.wait(1, T + 1)), (0, 0));
}

#[test]
fn all_that_vanish_within_a_lease_time_are_waited_for_a_lease_time_each() {
    for n in [1, 2] {
        let mut leader = Leader::settled(n);
        assert_eq!(leader.vanish(0..n, T), n);
        assert_eq!(leader.wait(0, T), LEASE);
        assert_eq!(leader.wait(0, T + LEASE - 1), 1);
        assert_eq!(leader.wait(0, T + LEASE), 0);
    }
    // When the last worker vanishes, those before it are waited for too, each from when it vanished.
    let mut leader = Leader::settled(2);
    assert_eq!(leader.vanish([0], T), 0);
    assert_eq!(leader.vanish([1], T + 4_000), 2);
    assert_eq!(leader.wait(0, T + 4_000), 6_000);
    assert_eq!(leader.wait(1, T + 4_000), LEASE);
}

#[test]
fn one_that_vanished_before_the_last_lease_time_is_not_waited_for() {
    let mut leader = Leader::settled(2);
    assert_eq!(leader.vanish([0], T), 0);
    assert_eq!(leader.vanish([1], T + LEASE), 1);
    assert_eq!(leader.wait(0, T + LEASE), 0);
    assert_eq!(leader.wait(1, T + LEASE), LEASE);
}

#[test]
fn at_least_three_and_more_than_a_third_are_waited_for() {
    for (n_workers, n_vanish, waits) in [
        (8, 2, false),
        (8, 3, true),
        (9, 3, false),
        (9, 4, true),
        (4, 3, true),
        (4, 2, false),
        (30, 10, false),
        (30, 11, true),
    ] {
        let mut leader = Leader::settled(n_workers);
        let n_held = leader.vanish(0..n_vanish, T);
        let expected = if waits { n_vanish } else { 0 };
        assert_eq!(n_held, expected, "{n_vanish} of {n_workers}");
    }
}

#[test]
fn workers_that_own_nothing_count_among_those_known() {
    let mut leader = Leader::settled(9);
    leader.owners.truncate(3);
    leader.observe(T);
    assert_eq!(leader.vanish(0..3, T), 0);
    let mut leader = Leader::settled(9);
    leader.owners.truncate(1);
    leader.observe(T);
    assert_eq!(leader.vanish(0..4, T), 4);
}

#[test]
fn in_the_first_lease_time_of_a_leader_every_missing_worker_is_waited_for() {
    let mut leader = Leader::new();
    (leader.present, leader.owners) = (workers(8), workers(9));
    assert_eq!(leader.observe(0), 1);
    assert_eq!(leader.wait(8, 0), LEASE);
    assert_eq!(leader.vanish([1], LEASE - 1), 1);
    assert_eq!(leader.wait(1, LEASE - 1), LEASE);
    assert_eq!(leader.wait(8, LEASE), 0, "from when it was found missing");
    assert_eq!(leader.vanish([2], LEASE), 0, "the first lease time is over");
}

#[test]
fn who_is_waited_for_is_not_waited_for_twice() {
    let mut leader = Leader::settled(1);
    leader.vanish([0], T);
    for at in [T + 1, T + LEASE, T + 3 * LEASE] {
        assert_eq!(leader.observe(at), 0);
    }
    // The shards still name the worker, for want of another one.
    assert_eq!(leader.wait(0, T + 3 * LEASE), 0);
    // Once no shard names the worker, nothing is remembered of it.
    leader.owners.clear();
    leader.observe(T + 3 * LEASE);
    assert!(leader.missing_workers.missing.is_empty());
}

#[test]
fn one_that_is_back_is_not_missing_and_may_vanish_again() {
    let mut leader = Leader::settled(1);
    leader.vanish([0], T);
    leader.present = workers(1);
    assert_eq!(leader.observe(T + 5_000), 0);
    assert_eq!(leader.wait(0, T + 5_000), 0);
    assert_eq!(leader.vanish([0], T + 6_000), 1);
    assert_eq!(leader.wait(0, T + 6_000), LEASE);
}

#[test]
fn a_worker_that_joins_is_no_reason_to_give_up_those_that_are_waited_for() {
    let mut leader = Leader::settled(2);
    leader.vanish([0, 1], T);
    leader.present = vec!["worker-7".parse().unwrap()];
    leader.observe(T + 1_000);
    assert_eq!(leader.wait(0, T + 1_000), LEASE - 1_000);
}
