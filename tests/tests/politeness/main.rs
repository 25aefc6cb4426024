//! Three resources ask the same hosts, while their workers are killed, stopped and given each other's work. The
//! test judges the requests that the hosts receive, by the log of the fake web.
//!
//! First all resources are on one worker, and are judged together. Then they move between two workers, which crawl
//! the same hosts side by side and share their turns, until one of them is killed. [`early_requests`] says which requests
//! may be too soon.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crawler_tests::cluster::{LEASE_TTL, Node};
use crawler_tests::random::Random;
use crawler_tests::{PATIENCE, pass, soak, soak_time, until};

use check::{Moment, Request, Terms, Together, early_requests};
use stage::{RESOURCES, Scale, Stage};

mod check;
mod stage;

/// Duration of the whole run in full length.
const FULL: Duration = Duration::from_secs(5 * 60);
/// Number of requests to one host that may be too soon after a worker was lost: the first of the other one, and
/// one that the lost one was about to send.
const N_EARLY: usize = 2;
/// Number of looks at two workers side by side, of which at least one must be undisturbed.
const MAX_LOOKS: usize = 5;
/// Number of shown requests that came too soon.
const N_SHOWN: usize = 20;

#[test]
fn politeness_outlasts_crashes_stops_and_moves() {
    // A killed worker is back after a lease; the delay is longer, so that what it had asked still counts.
    let delay = Duration::from_secs(3);
    let (n_hosts, time) = match soak() {
        true => (50, soak_time().unwrap_or(FULL)),
        false => (20, Duration::ZERO),
    };
    let mut random = Random::new("politeness");
    let Some((stage, mut first)) = Stage::new(Scale { n_hosts, delay }) else {
        return;
    };
    stage.goes_on(&first, 1);
    let mut n_kills = 0;
    while n_kills == 0 || stage.now() < time / 2 {
        first = on_one_worker(&stage, first, &mut random);
        n_kills += 1;
    }
    // The check waits until hosts are asked, since without requests none is too soon.
    let have_asked = |worker: &Node, n_lanes_wanted: usize| {
        until("all hosts asked", PATIENCE, || {
            (n_lanes(&stage.requests(), &worker.id) >= n_lanes_wanted).then_some(())
        });
    };
    have_asked(&first, RESOURCES.len() * n_hosts);
    let alone = stage.requests();
    let begun = stage.now();
    let second = stage.worker("2");
    let mut takeovers: BTreeMap<String, usize> = BTreeMap::new();
    let mut n_takeovers = 0;
    while n_takeovers == 0 || stage.now() < time {
        for resource in between_two(&stage, [&first, &second]) {
            *takeovers.entry(resource).or_default() += 1;
        }
        n_takeovers += 1;
    }
    have_asked(&second, n_hosts);
    let mut together = vec![side_by_side(&stage, [&first, &second])];
    let _second = killed_beside(&stage, &first, second);
    let until = stage.now();
    let n_losses = n_takeovers + 1;
    together.push(Together {
        from: begun,
        until,
        n_allowed: N_EARLY * n_losses,
    });
    let requests = stage.requests();
    println!(
        "{} requests to {n_hosts} hosts in {:.1?}, {} of them by one worker; {n_kills} kills, {n_takeovers} takeovers",
        requests.len(),
        stage.now(),
        alone.len(),
    );
    let terms = Terms {
        delay,
        takeovers,
        together,
    };
    let found = early_requests(&requests, &terms);
    assert!(
        found.is_empty(),
        "{} too soon:\n{}",
        found.len(),
        found[..found.len().min(N_SHOWN)].join("\n")
    );
}

/// Number of resources that have asked hosts through a worker, summed up over the hosts.
fn n_lanes(requests: &[Request], worker: &str) -> usize {
    let of_worker = requests.iter().filter(|request| request.worker == worker);
    let lanes = of_worker.filter_map(|page| Some((page.resource.as_ref()?, &page.host)));
    lanes.collect::<BTreeSet<_>>().len()
}

/// Kills the worker, stops it for less than the lease, and stops it for longer.
fn on_one_worker(stage: &Stage, mut worker: Node, random: &mut Random) -> Node {
    // Most hosts were asked just now, and some answer yet.
    pass(Duration::from_millis(random.below(300)));
    worker.process.kill();
    let worker = stage.worker("1");
    stage.goes_on(&worker, 1);
    for stop in [LEASE_TTL / 2, LEASE_TTL * 2] {
        worker.process.freeze();
        pass(stop);
        worker.process.thaw();
        stage.goes_on(&worker, 1);
    }
    worker
}

/// Lets a resource move to the worker that has none, by rebalancing. Then the one that has two is stopped until
/// the other has all, and wakes again. Returns the resources that were taken from it.
fn between_two(stage: &Stage, workers: [&Node; 2]) -> Vec<String> {
    let [first, _] = stage.shared_out(workers, [1, 2]);
    let (stopped, other) = match first.len() {
        1 => (workers[1], workers[0]),
        _ => (workers[0], workers[1]),
    };
    stage.goes_on(other, 1);
    let [_, taken] = stage.shared_out([other, stopped], [1, 2]);
    let n_before = n_lost(stopped);
    stopped.process.freeze();
    stage.shared_out([other], [RESOURCES.len()]);
    stage.goes_on(other, 1);
    stopped.process.thaw();
    until("both crawls lost", PATIENCE, || {
        (n_lost(stopped) == n_before + taken.len()).then_some(())
    });
    stage.goes_on(other, 1);
    taken
}

/// Lets both crawl the same hosts for different resources, while nothing happens to them. Returns the time of
/// that.
fn side_by_side(stage: &Stage, workers: [&Node; 2]) -> Together {
    stage.shared_out(workers, [1, 2]);
    let all_go_on = |n_times: usize| {
        for worker in std::iter::repeat_n(workers, n_times).flatten() {
            stage.goes_on(worker, 1);
        }
    };
    // On an overloaded machine an owner may take longer for its answer than it has. Then another time is looked
    // at.
    for _ in 0..MAX_LOOKS {
        // The resource that moved last has been asked for at its new worker, and no worker goes alone any more.
        all_go_on(2);
        let n_before = n_silent(workers);
        let from: Moment = stage.now();
        all_go_on(2);
        let until = stage.now();
        if n_silent(workers) == n_before {
            return Together {
                from,
                until,
                n_allowed: 0,
            };
        }
    }
    panic!(
        "in {MAX_LOOKS} looks a worker did not answer each time: this machine has too much to do"
    )
}

/// Kills one worker while both crawl, and starts it again.
fn killed_beside(stage: &Stage, other: &Node, mut killed: Node) -> Node {
    killed.process.kill();
    stage.goes_on(other, 1);
    let back = stage.worker("2");
    stage.shared_out([other, &back], [1, 2]);
    for worker in [other, &back] {
        stage.goes_on(worker, 1);
    }
    back
}

/// Number of times that these workers have found that another does not answer.
fn n_silent(workers: [&Node; 2]) -> usize {
    let lines = workers.map(|worker| worker.process.stderr()).concat();
    let silent = |line: &&String| line.contains("does not answer for the hosts");
    lines.iter().filter(silent).count()
}

/// Number of crawls that a worker has been told to end.
fn n_lost(worker: &Node) -> usize {
    let lines = worker.process.stderr();
    let lost = lines
        .iter()
        .filter(|line| line.contains("no longer assigned"));
    lost.count()
}
