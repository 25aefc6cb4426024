//! Tests of the choice of workers, of the reasons against them, and of properties that hold in any state.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::testing::{assignment, resource, worker};
use super::*;
use crawler_model::id::ResourceName;
use crawler_model::resource::{Assignment, PlacementSpec, Resource, ShardId};

fn weighing(weight: u32) -> PlacementSpec {
    PlacementSpec {
        weight,
        ..PlacementSpec::default()
    }
}

/// Workers with the assignments made so far.
struct Cluster {
    strategy: Strategy,
    workers: Vec<Node>,
    placed: Vec<(NodeId, Assignment)>,
}

impl Cluster {
    fn new(workers: impl IntoIterator<Item = Node>) -> Self {
        Self {
            strategy: Strategy::LeastLoad,
            workers: workers.into_iter().collect(),
            placed: Vec::new(),
        }
    }

    fn of(n: usize) -> Self {
        Self::new((0..n).map(|n| worker(&format!("worker-{n}"), 10_000, &[])))
    }

    fn candidates(&self) -> Candidates {
        let assignments = self.placed.iter().map(|(node, a)| (node, Some(a)));
        Candidates::new(self.strategy, self.workers.iter().cloned(), assignments)
    }

    /// Places a resource beside all that were placed before. Returns the worker, or the reason why none takes
    /// it.
    fn place(&mut self, resource: &Resource) -> Result<String, String> {
        let candidates = self.candidates();
        let request = PlacementRequest::of(ShardId::only(resource.id), resource);
        let node = place(&request, &candidates).map_err(|e| e.to_string())?;
        self.placed.push((node.id.clone(), assignment(resource)));
        Ok(node.id.to_string())
    }

    fn asked(&mut self, id: u64, ask: impl FnOnce(&mut PlacementSpec)) -> Result<String, String> {
        let mut placement = PlacementSpec::default();
        ask(&mut placement);
        self.place(&resource(id, placement))
    }

    fn loads(&self) -> Vec<u64> {
        self.candidates().iter().map(|c| c.load).collect()
    }
}

fn select(key: &str, value: &str) -> impl FnOnce(&mut PlacementSpec) {
    let label = (key.to_owned(), value.to_owned());
    |placement| placement.selector = BTreeMap::from([label])
}

fn name(text: &str) -> Option<ResourceName> {
    Some(text.parse().unwrap())
}

#[test]
fn s05_least_load_gives_five_on_two_and_ten_thousand_on_ten_their_share() {
    let mut two = Cluster::of(2);
    for id in 0..5 {
        two.asked(id, |_| {}).unwrap();
    }
    let mut loads = two.loads();
    loads.sort_unstable();
    assert_eq!(loads, [2, 3]);
    let workers = Cluster::of(10);
    let mut candidates = workers.candidates();
    for id in 0..10_000 {
        let resource = resource(id, PlacementSpec::default());
        let request = PlacementRequest::of(ShardId::only(resource.id), &resource);
        let node = place(&request, &candidates).unwrap().id.clone();
        candidates.take(&node, &request);
    }
    assert!(candidates.iter().all(|c| c.load == 1_000));
    assert!(candidates.iter().all(|c| c.n_shards == 1_000));
}

#[test]
fn s05_what_weighs_more_counts_more_and_capacity_counts_shards() {
    let mut two = Cluster::new([worker("worker-1", 3, &[]), worker("worker-2", 9, &[])]);
    let heavy = two.place(&resource(0, weighing(5))).unwrap();
    for id in 1..=3 {
        assert_ne!(two.asked(id, |_| {}).unwrap(), heavy);
    }
    let mut loads = two.loads();
    loads.sort_unstable();
    assert_eq!(loads, [3, 5]);
    let mut one = Cluster::new([worker("worker-1", 2, &[])]);
    one.place(&resource(0, weighing(1_000))).unwrap();
    one.place(&resource(1, weighing(1_000))).unwrap();
    let refusal = one.asked(2, |_| {}).unwrap_err();
    assert_eq!(refusal, "0/1 workers: 1 at capacity");
}

#[test]
fn s05_round_robin_counts_shards_and_weighted_by_capacity_and_neither_what_they_weigh() {
    for (strategy, turns) in [(Strategy::RoundRobin, 1), (Strategy::WeightedRoundRobin, 2)] {
        let mut cluster = Cluster::new([worker("worker-1", 10, &[]), worker("worker-2", 20, &[])]);
        cluster.strategy = strategy;
        for id in 0..30 {
            let weight = if id % 3 == 0 { 50 } else { 1 };
            cluster.place(&resource(id, weighing(weight))).unwrap();
            let n: Vec<u32> = cluster.candidates().iter().map(|c| c.n_shards).collect();
            // A worker at capacity has no further turn.
            assert!(
                n[0] == 10 || n[1].abs_diff(turns * n[0]) <= turns,
                "{strategy}: {n:?}"
            );
        }
        let refusal = cluster.asked(30, |_| {}).unwrap_err();
        assert_eq!(refusal, "0/2 workers: 2 at capacity");
    }
}

#[test]
fn s05_random_spreads_shards_whatever_each_has_and_moves_none_for_its_load() {
    let mut cluster = Cluster::new([
        worker("worker-1", 1_000, &[]),
        worker("worker-2", 1_000, &[]),
    ]);
    cluster.strategy = Strategy::Random;
    for id in 0..200 {
        cluster
            .place(&resource(id, weighing(1 + (id % 2) as u32 * 100)))
            .unwrap();
    }
    let n: Vec<u32> = cluster.candidates().iter().map(|c| c.n_shards).collect();
    assert!(n.iter().all(|n| (60..=140).contains(n)), "{n:?}");
    let loads = cluster.candidates();
    assert!(loads.iter().all(|c| Strategy::Random.load(c) == 0));
}

#[test]
fn s05_the_same_state_gives_the_same_answer_and_ties_spread() {
    let cluster = Cluster::of(3);
    let answers = || -> Vec<NodeId> {
        let (candidates, resources) = (
            cluster.candidates(),
            (0..90).map(|id| resource(id, weighing(1))),
        );
        let place = |r: Resource| {
            let request = PlacementRequest::of(ShardId::only(r.id), &r);
            place(&request, &candidates).unwrap().id.clone()
        };
        resources.map(place).collect()
    };
    assert_eq!(answers(), answers());
    for worker in &cluster.workers {
        let n = answers().iter().filter(|id| **id == worker.id).count();
        assert!((15..=45).contains(&n), "{} got {n} of 90", worker.id);
    }
}

#[test]
fn f15_load_is_what_is_assigned_and_nothing_that_was_counted() {
    let mut one = Cluster::of(1);
    one.place(&resource(0, weighing(7))).unwrap();
    one.place(&resource(1, weighing(2))).unwrap();
    assert_eq!(one.loads(), [9]);
    // The next look at the assignments reflects changes, deletions and ends.
    one.placed[0].1.weight = 3;
    assert_eq!(one.loads(), [5]);
    one.placed.clear();
    assert_eq!(one.loads(), [0]);
    // This assignment is to a worker that is gone.
    one.placed = vec![(
        "worker-9".parse().unwrap(),
        assignment(&resource(2, weighing(4))),
    )];
    assert_eq!(one.loads(), [0]);
    // An assignment that does not decode weighs as much as one with the default weight.
    let broken = [(&one.workers[0].id, None)];
    let candidates = Candidates::new(Strategy::LeastLoad, one.workers.clone(), broken);
    let candidate = candidates.iter().next().unwrap();
    assert_eq!((candidate.load, candidate.n_shards), (1, 1));
}

#[test]
fn f15_what_is_taken_and_released_leaves_nothing_behind() {
    let mut placement = weighing(3);
    placement.apart = name("r9");
    let asks = resource(1, placement);
    let request = PlacementRequest::of(ShardId::only(asks.id), &asks);
    let mut candidates = Cluster::of(1).candidates();
    let before = format!(
        "{:?}",
        candidates.iter().next().map(|c| (c.load, c.n_shards))
    );
    let node: NodeId = "worker-0".parse().unwrap();
    candidates.take(&node, &request);
    let (nine, own) = (resource(9, weighing(1)), assignment(&asks));
    let nine = PlacementRequest::of(ShardId::only(nine.id), &nine);
    assert!(place(&nine, &candidates).is_err());
    candidates.release(&node, Some(&own));
    assert!(place(&nine, &candidates).is_ok());
    let candidate = candidates.get(&node).unwrap();
    assert_eq!(
        format!("{:?}", Some((candidate.load, candidate.n_shards))),
        before
    );
    assert_eq!(candidate.n_of(&asks.spec.name), 0);
}

#[test]
fn s21_a_selector_is_met_by_labels_of_the_start_and_by_id_and_host() {
    let mut cluster = Cluster::new([
        worker("worker-1", 10, &[]),
        worker("worker-2", 10, &[("gpu", "true"), ("zone", "a")]),
        worker("worker-3", 10, &[("gpu", "false")]),
    ]);
    for id in 0..5 {
        assert_eq!(
            cluster.asked(id, select("gpu", "true")).unwrap(),
            "worker-2"
        );
        let on = cluster.asked(10 + id, select("id", "worker-1"));
        assert_eq!(on.unwrap(), "worker-1");
        let on = cluster.asked(20 + id, select("host", "worker-3.test"));
        assert_eq!(on.unwrap(), "worker-3");
    }
}

#[test]
fn f16_nobody_gets_what_it_cannot_run_and_the_reasons_are_counted() {
    let mut drains = worker("worker-1", 10, &[]);
    drains.draining = true;
    let mut cluster = Cluster::new([
        drains,
        worker("worker-2", 10, &[("zone", "b")]),
        worker("worker-3", 0, &[("zone", "b")]),
    ]);
    assert_eq!(
        cluster.asked(1, select("gpu", "true")).unwrap_err(),
        "0/3 workers: 3 lack label gpu, 1 draining, 1 at capacity"
    );
    assert_eq!(
        cluster.asked(1, select("zone", "a")).unwrap_err(),
        "0/3 workers: 2 lack label zone=a, 1 draining, 1 at capacity, 1 lacks label zone"
    );
    assert_eq!(cluster.asked(1, select("zone", "b")).unwrap(), "worker-2");
    let nobody = Cluster::of(0).asked(1, |_| {}).unwrap_err();
    assert_eq!(nobody, "no worker is registered");
}

#[test]
fn f16_a_worker_whose_interface_is_older_than_the_plugins_does_not_get_it() {
    let mut old = worker("worker-1", 10, &[]);
    old.interface = "0.1.9".into();
    let mut new = worker("worker-2", 10, &[]);
    new.interface = "0.1.10".into();
    let mut needs = resource(1, PlacementSpec::default());
    needs.pinned.as_mut().unwrap().interface = "0.1.10".into();
    let mut cluster = Cluster::new([old.clone(), new]);
    for _ in 0..4 {
        assert_eq!(cluster.place(&needs).unwrap(), "worker-2");
    }
    let mut cluster = Cluster::new([old.clone()]);
    let refusal = cluster.place(&needs).unwrap_err();
    assert_eq!(refusal, "0/1 workers: 1 lacks interface 0.1.10");
    // The interface that the worker supports is not known.
    old.interface = String::new();
    assert_eq!(Cluster::new([old]).place(&needs).unwrap(), "worker-1");
}

#[test]
fn s21_a_resource_is_placed_near_another_where_there_is_room_and_freely_otherwise() {
    let mut cluster = Cluster::new([worker("worker-1", 9, &[]), worker("worker-2", 3, &[])]);
    let near = |placement: &mut PlacementSpec| placement.near = name("r0");
    // The other resource is not placed yet, or does not exist.
    cluster.asked(7, near).unwrap();
    cluster.placed.clear();
    assert_eq!(
        cluster.asked(0, select("id", "worker-2")).unwrap(),
        "worker-2"
    );
    // The load of that worker does not matter.
    for id in 1..=2 {
        assert_eq!(cluster.asked(id, near).unwrap(), "worker-2");
    }
    assert_eq!(cluster.asked(3, near).unwrap(), "worker-1");
}

#[test]
fn s21_resources_apart_are_never_on_one_worker_whichever_is_placed_first() {
    let apart = |from: &str| {
        let from = name(from);
        |placement: &mut PlacementSpec| placement.apart = from
    };
    let mut one = Cluster::of(1);
    one.asked(0, |_| {}).unwrap();
    assert_eq!(
        one.asked(1, apart("r0")).unwrap_err(),
        "0/1 workers: 1 kept apart by r0"
    );
    let mut one = Cluster::of(1);
    one.asked(1, apart("r0")).unwrap();
    assert_eq!(
        one.asked(0, |_| {}).unwrap_err(),
        "0/1 workers: 1 kept apart by r1"
    );
    assert!(one.asked(2, |_| {}).is_ok());
    let mut two = Cluster::of(2);
    let first = two.asked(0, |placement| placement.weight = 1).unwrap();
    two.placed.push(two.placed[0].clone());
    assert_ne!(two.asked(1, apart("r0")).unwrap(), first);
}

#[test]
fn shards_of_one_resource_spread_over_workers_of_the_same_load() {
    let mut two = Cluster::of(2);
    two.place(&resource(1, weighing(2))).unwrap();
    let (full, _) = two.placed[0].clone();
    let other = two
        .workers
        .iter()
        .find(|w| w.id != full)
        .unwrap()
        .id
        .clone();
    two.placed
        .push((other.clone(), assignment(&resource(2, weighing(2)))));
    for n in 0..8 {
        let same = resource(1, weighing(1));
        let candidates = two.candidates();
        let mut request = PlacementRequest::of(ShardId::only(same.id), &same);
        request.shard.shard.0 = n;
        assert_eq!(place(&request, &candidates).unwrap().id, other);
    }
}

/// Each seed makes a random cluster and random resources.
#[test]
fn s05_whatever_is_placed_the_loads_differ_by_one_of_the_heaviest_at_most() {
    for seed in 0..200 {
        let mut random = StdRng::seed_from_u64(seed);
        let mut cluster = Cluster::of(random.random_range(1..8));
        let max = random.random_range(1..20);
        for id in 0..random.random_range(1..80) {
            let weight = random.random_range(1..=max);
            cluster.place(&resource(id, weighing(weight))).unwrap();
            let loads = cluster.loads();
            let spread = loads.iter().max().unwrap() - loads.iter().min().unwrap();
            assert!(spread <= u64::from(max), "seed {seed}: {loads:?}");
        }
    }
}

#[test]
fn f16_whatever_is_asked_the_first_of_those_that_meet_it_takes_it() {
    let (mut n_placed, mut n_refused) = (0, 0);
    for seed in 0..400 {
        let mut random = StdRng::seed_from_u64(seed);
        let values = ["a", "b"];
        let workers: Vec<Node> = (0..random.random_range(0..6))
            .map(|n| {
                let zone = [("zone", values[random.random_range(0..2)])];
                let labels = &zone[..random.random_range(0..2)];
                let mut node = worker(&format!("worker-{n}"), random.random_range(0..5), labels);
                node.draining = random.random_range(0..4) == 0;
                node
            })
            .collect();
        let mut cluster = Cluster::new(workers);
        cluster.strategy = Strategy::ALL[random.random_range(0..Strategy::ALL.len())];
        let mut followed = cluster.candidates();
        for id in 0..20 {
            let mut placement = weighing(random.random_range(1..9));
            if random.random_range(0..2) == 0 {
                select("zone", values[random.random_range(0..2)])(&mut placement);
            }
            let mut other = || name(&format!("r{}", random.random_range(100..103)));
            (placement.near, placement.apart) = (other(), other());
            let asks = resource(100 + id % 5, placement);
            // This repeats the rule, from the records alone.
            let fits = |node: &&Node| {
                let own = &asks.spec;
                let here = || cluster.placed.iter().filter(|(id, _)| *id == node.id);
                let zone = own.placement.selector.get("zone");
                !node.draining
                    && here().count() < node.capacity as usize
                    && zone.is_none_or(|zone| node.labels.get("zone") == Some(zone))
                    && here().all(|(_, a)| own.placement.apart.as_ref() != Some(&a.name))
                    && here().all(|(_, a)| a.apart.as_ref() != Some(&own.name))
            };
            let fit: Vec<String> = cluster
                .workers
                .iter()
                .filter(fits)
                .map(|w| w.id.to_string())
                .collect();
            // The smallest rank wins: first nearness, then the turn, then the fewest shards of the resource.
            let rank = |id: &str| {
                let worker = cluster
                    .workers
                    .iter()
                    .find(|w| w.id.as_str() == id)
                    .unwrap();
                let here = || cluster.placed.iter().filter(|(id, _)| *id == worker.id);
                let near = asks.spec.placement.near.as_ref();
                let turn = match cluster.strategy {
                    Strategy::LeastLoad => here().map(|(_, a)| u64::from(a.weight)).sum(),
                    Strategy::RoundRobin => here().count() as u64,
                    Strategy::Random => 0,
                    Strategy::WeightedRoundRobin => {
                        ((here().count() as u64 + 1) << 32) / u64::from(worker.capacity.max(1))
                    }
                };
                let n_same = here().filter(|(_, a)| a.name == asks.spec.name).count();
                (here().all(|(_, a)| Some(&a.name) != near), turn, n_same)
            };
            let best = fit.iter().map(|id| rank(id)).min();
            let ranks: BTreeMap<&String, _> = fit.iter().map(|id| (id, rank(id))).collect();
            let ranks = format!("{ranks:?}");
            let chosen = cluster.candidates();
            let chosen = place(
                &PlacementRequest::of(ShardId::only(asks.id), &asks),
                &chosen,
            )
            .ok();
            assert_eq!(
                chosen.map(|node| rank(node.id.as_str())),
                best,
                "seed {seed}: {ranks}"
            );
            match cluster.place(&asks) {
                Ok(node) => {
                    assert!(fit.contains(&node), "seed {seed}: {node} is not of {fit:?}");
                    let request = PlacementRequest::of(ShardId::only(asks.id), &asks);
                    followed.take(&node.parse().unwrap(), &request);
                    let (followed, read) = (place(&request, &followed), cluster.candidates());
                    let read = place(&request, &read);
                    assert_eq!(followed.map(|n| &n.id), read.map(|n| &n.id), "seed {seed}");
                    n_placed += 1;
                }
                Err(why) => {
                    assert!(fit.is_empty(), "seed {seed}: {why}, though {fit:?}");
                    n_refused += 1;
                }
            }
        }
    }
    assert!(
        n_placed > 500 && n_refused > 500,
        "{n_placed} and {n_refused}"
    );
}
