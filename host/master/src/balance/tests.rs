//! Tests of the moves that balance loads.

use futures::executor::block_on;

use super::super::placement::Strategy;
use super::*;
use crate::placement::testing::{assignment, resource, worker};
use crawler_model::resource::{PlacementSpec, Resource};

/// Workers `a` to `c` with the weights of their resources.
struct Cluster {
    owners: Vec<NodeId>,
    resources: Vec<Resource>,
    strategy: Strategy,
}

impl Cluster {
    fn new(workers: &[&[u32]]) -> Self {
        let mut cluster = Self {
            owners: Vec::new(),
            resources: Vec::new(),
            strategy: Strategy::LeastLoad,
        };
        for (n, weights) in workers.iter().enumerate() {
            for weight in *weights {
                let id = cluster.resources.len() as u64;
                let placement = PlacementSpec {
                    weight: *weight,
                    ..PlacementSpec::default()
                };
                cluster.resources.push(resource(id, placement));
                cluster.owners.push(name(n));
            }
        }
        cluster
    }

    fn candidates(&self, n_workers: usize) -> Candidates {
        let workers = (0..n_workers).map(|n| worker(name(n).as_str(), 1_000, &[]));
        let mirrors: Vec<_> = self.resources.iter().map(assignment).collect();
        let assigned = self.owners.iter().zip(&mirrors);
        let assigned = assigned.map(|(owner, mirror)| (owner, Some(mirror)));
        Candidates::new(self.strategy, workers, assigned)
    }

    /// Returns resource and target of each move, with these settings.
    fn moves(&self, n_workers: usize, settings: BalanceSettings) -> Vec<(u64, String)> {
        let shards_of = |worker: &NodeId| {
            let shards = self.resources.iter().zip(&self.owners);
            let own = shards.filter(|(_, owner)| *owner == worker);
            own.map(|(resource, _)| PlacementRequest::of(ShardId::only(resource.id), resource))
                .collect()
        };
        let balance = Balance::new(settings, Instant::now());
        let moves = block_on(balance.moves(self.candidates(n_workers), shards_of));
        let moves = moves.into_iter().flatten();
        moves
            .map(|(id, to)| (id.resource.0, to.to_string()))
            .collect()
    }
}

fn name(n: usize) -> NodeId {
    format!("worker-{n}").parse().unwrap()
}

fn moves(n_workers: usize, workers: &[&[u32]]) -> Vec<(u64, String)> {
    Cluster::new(workers).moves(n_workers, BalanceSettings::default())
}

fn to(id: u64, n: usize) -> (u64, String) {
    (id, name(n).to_string())
}

#[test]
fn a_worker_that_is_far_above_the_average_gives_to_the_one_that_has_least() {
    assert_eq!(moves(2, &[&[1, 1, 1, 1], &[]]), [to(0, 1), to(1, 1)]);
    // One move that has the effect of two is preferred.
    assert_eq!(moves(2, &[&[2, 1, 1], &[]]), [to(0, 1)]);
}

#[test]
fn what_a_move_would_only_swap_or_hardly_change_stays() {
    assert_eq!(moves(2, &[&[1], &[]]), []);
    assert_eq!(moves(2, &[&[1, 1], &[1]]), []);
    // 11 is not 20 % above the average of 10.
    assert_eq!(moves(2, &[&[1; 11], &[1; 9]]), []);
    // A worker gives shards away until it is no longer above the threshold.
    assert_eq!(moves(2, &[&[1; 13], &[1; 7]]), [to(0, 1)]);
}

#[test]
fn so_many_move_at_a_time_and_none_where_that_is_switched_off() {
    let settings = |moves| BalanceSettings {
        moves,
        ..BalanceSettings::default()
    };
    let cluster = Cluster::new(&[&[1; 100], &[]]);
    assert_eq!(cluster.moves(2, settings(4)).len(), 4);
    assert_eq!(cluster.moves(2, settings(1)).len(), 1);
    assert_eq!(cluster.moves(2, settings(0)), []);
}

#[test]
fn nobody_is_moved_from_its_friend_or_to_whom_it_is_kept_apart_from() {
    let mut cluster = Cluster::new(&[&[1, 1], &[]]);
    cluster.resources[0].spec.placement.near = Some("r1".parse().unwrap());
    assert_eq!(cluster.moves(2, BalanceSettings::default()), [to(1, 1)]);
    let mut cluster = Cluster::new(&[&[3, 3], &[1]]);
    cluster.resources[0].spec.placement.apart = Some("r2".parse().unwrap());
    assert_eq!(cluster.moves(2, BalanceSettings::default()), [to(1, 1)]);
}

#[test]
fn with_round_robin_shards_are_levelled_out_whatever_they_weigh() {
    let mut cluster = Cluster::new(&[&[100], &[1, 1, 1]]);
    cluster.strategy = Strategy::RoundRobin;
    assert_eq!(cluster.moves(2, BalanceSettings::default()), [to(1, 0)]);
}

#[test]
fn a_worker_that_comes_or_goes_and_a_move_begin_the_time_anew() {
    let now = Instant::now();
    let cooldown = BalanceSettings::default().cooldown;
    let mut balance = Balance::new(BalanceSettings::default(), now);
    let (a, b) = (name(0), name(1));
    balance.observe([&a].into_iter(), now);
    assert_eq!(balance.wait(now + cooldown), None);
    balance.observe([&a].into_iter(), now + cooldown);
    assert_eq!(balance.wait(now + cooldown), None);
    balance.observe([&a, &b].into_iter(), now + cooldown);
    assert_eq!(balance.wait(now + cooldown), Some(cooldown));
    balance.looked_for_moves(now + 2 * cooldown);
    assert_eq!(balance.wait(now + 2 * cooldown), Some(cooldown));
}

#[test]
fn the_next_heaviest_gives_where_the_heaviest_has_nothing_to_give() {
    let many: Vec<u32> = vec![1; 90];
    let moved = moves(3, &[&[100], &many]);
    assert_eq!(moved.len(), 4);
    assert!(
        moved
            .iter()
            .all(|(id, worker)| *id > 0 && worker == "worker-2"),
        "{moved:?}"
    );
}
