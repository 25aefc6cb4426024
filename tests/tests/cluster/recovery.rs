//! Time until everything is as it should be again, in lease times.

use std::time::{Duration, Instant};

use crawler_tests::cluster::{Cluster, LEASE_TTL, Node};
use crawler_tests::web::{Method, Web};
use crawler_tests::{PATIENCE, soak, until};

use crate::{add_endless, chains, goes_on, of_chain, one_at_a_time, take_leader, three_masters};

fn n_runs() -> usize {
    if soak() { 20 } else { 2 }
}

/// Shows median and worst value of one row of the table. In full length they must be within the goal, which is for
/// a machine that does nothing else; otherwise within ten times the goal.
#[track_caller]
#[expect(clippy::print_stdout, reason = "the table is what this is for")]
fn report(what: &str, mut times: Vec<Duration>, goal: Duration) {
    times.sort_unstable();
    let in_leases = |time: Duration| time.as_secs_f64() / LEASE_TTL.as_secs_f64();
    let (median, worst) = (times[times.len() / 2], times[times.len() - 1]);
    println!(
        "recovery: {what}: median {:.2} s = {:.2} leases, worst {:.2} s = {:.2} leases, goal {:.1} s, {} runs",
        median.as_secs_f64(),
        in_leases(median),
        worst.as_secs_f64(),
        in_leases(worst),
        goal.as_secs_f64(),
        times.len()
    );
    let limit = if soak() { goal } else { goal * 10 };
    assert!(
        worst <= limit,
        "{what}: {worst:?}, which is above {limit:?}"
    );
}

fn next_page(web: &Web, name: &str) {
    let before = of_chain(&web.log(), name).count();
    web.wait_for("the next page", PATIENCE, |log| {
        of_chain(log, name).count() > before
    });
}

/// Returns the worker that has the one crawl, taken out of these.
fn owner(cluster: &Cluster, workers: &mut Vec<Node>) -> Node {
    let owner = until("an owner among the workers", PATIENCE, || {
        let owner = cluster.owners()[0].1.clone();
        workers.iter().position(|worker| worker.id == owner)
    });
    workers.remove(owner)
}

#[test]
fn recovery_after_the_end_of_a_worker() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let masters = three_masters(&cluster);
    let web = chains();
    let mut n_workers = 0;
    let mut start = || {
        n_workers += 1;
        cluster.worker(&n_workers.to_string(), &[])
    };
    let mut workers = vec![start(), start()];
    cluster.registered("worker", 2);
    add_endless(&masters[0], "a", &web);
    goes_on(&web, "a", 3);
    let (mut crashes, mut stops) = (Vec::new(), Vec::new());
    for run in 0..2 * n_runs() {
        let mut worker = owner(&cluster, &mut workers);
        // The worker that joins now is known when the other ends.
        workers.push(start());
        until("the new worker's registration", PATIENCE, || {
            let id = &workers[1].id;
            cluster.keys("nodes/worker/").contains(id).then_some(())
        });
        goes_on(&web, "a", 3);
        let begun = Instant::now();
        match run % 2 {
            0 => worker.process.kill(),
            _ => {
                worker.process.interrupt();
                let ended = worker.process.wait(PATIENCE);
                assert_eq!(ended.code, Some(0), "{}", ended.stderr);
            }
        }
        // Any further page belongs to the next owner.
        next_page(&web, "a");
        match run % 2 {
            0 => crashes.push(begun.elapsed()),
            _ => stops.push(begun.elapsed()),
        }
    }
    report(
        "worker crash to running elsewhere",
        crashes,
        LEASE_TTL + Duration::from_secs(1),
    );
    report(
        "worker Ctrl-C to running elsewhere",
        stops,
        Duration::from_secs(1),
    );
}

#[test]
fn recovery_after_the_crash_of_the_leader() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let mut masters = three_masters(&cluster);
    let mut n_masters = 3;
    let mut times = Vec::new();
    for run in 0..n_runs() {
        cluster.registered("master", 3);
        let mut leading = take_leader(&cluster, &mut masters, &[]);
        let begun = Instant::now();
        leading.process.kill();
        let body = format!(r#"{{"name":"r-{run}","plugin":"puppet"}}"#);
        let added = masters[run % 2].http(Method::POST, "/crawler/resource", Some(&body));
        assert_eq!(added.status, 200, "{added:?}");
        times.push(begun.elapsed());
        n_masters += 1;
        masters.push(cluster.master(&n_masters.to_string(), &[]));
    }
    report(
        "leader crash to next answered write",
        times,
        LEASE_TTL + Duration::from_secs(1),
    );
}
