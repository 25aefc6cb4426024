//! Outages of etcd that are longer than a lease.

use std::time::{Duration, Instant};

use crawler_tests::cluster::{Cluster, LEASE_TTL, Node};
use crawler_tests::http::Answer;
use crawler_tests::web::Method;
use crawler_tests::{PATIENCE, pass, until};

use serde_json::Value;

use crate::{add_endless, chains, goes_on, one_at_a_time, three_masters, two_workers};

/// Longest time of a call that waits for nothing. It is below every deadline of a call to etcd.
const AT_ONCE: Duration = Duration::from_millis(500);
/// Longest time from the moment when etcd is back to the first answer: a probe that is in hand, a pause, and the next probe.
const SOON: Duration = Duration::from_secs(15);

/// Returns the owner and the epochs of each shard, and the assignments.
fn owned(cluster: &Cluster) -> (Vec<(String, [Value; 3])>, String) {
    let shards = cluster.keys("shards/").into_iter().map(|key| {
        let shard = cluster.record(&format!("shards/{key}"));
        let shard = shard.expect("it was listed");
        let fields = ["owner", "epoch", "storage_epoch"];
        (key, fields.map(|field| shard[field].clone()))
    });
    (shards.collect(), cluster.dump("assignments/"))
}

#[test]
fn without_etcd_for_three_leases_nothing_moves_nothing_is_fetched_and_all_goes_on_after() {
    let _turn = one_at_a_time();
    let Some(mut cluster) = Cluster::new() else {
        return;
    };
    let masters = three_masters(&cluster);
    let workers = two_workers(&cluster);
    let web = chains();
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        add_endless(&masters[0], name, &web);
    }
    for name in names {
        goes_on(&web, name, 3);
    }
    let before = owned(&cluster);
    let begun = Instant::now();
    cluster.etcd.kill(0);
    let asked = masters[1].http(Method::GET, "/crawler/node", None);
    assert_eq!(asked.status, 503, "{asked:?}");
    assert!(asked.text.contains("etcd"), "{asked:?}");
    // A page that was answered before is still committed; no new page is asked for.
    let deadline = LEASE_TTL * 2 / 3 + Duration::from_millis(300);
    pass(deadline.saturating_sub(begun.elapsed()));
    let n_at_deadline = web.log().len();
    pass((LEASE_TTL * 3).saturating_sub(begun.elapsed()));
    assert_eq!(
        web.log().len(),
        n_at_deadline,
        "fetched while the lease could not be counted on"
    );
    cluster.etcd.launch(0);
    cluster.etcd.wait();
    for name in names {
        goes_on(&web, name, 3);
    }
    until("all nodes registered again", PATIENCE, || {
        let n = cluster.keys("nodes/worker/").len() + cluster.keys("nodes/master/").len();
        (n == 5).then_some(())
    });
    cluster.leader_beside(&[]);
    // This is longer than the time after which a missing worker's crawls would have moved.
    pass(LEASE_TTL * 2);
    assert_eq!(owned(&cluster), before);
    // Each crawl was opened once, and is still open.
    let starts = |worker: &Node| {
        let lines = worker.process.stderr();
        lines
            .iter()
            .filter(|line| line.contains("crawl starts"))
            .count()
    };
    assert_eq!(workers.iter().map(starts).sum::<usize>(), names.len());
}

/// Asks for what only etcd knows, and tells how long that took.
fn asked(master: &Node) -> (Answer, Duration) {
    let begun = Instant::now();
    let answer = master.http(Method::GET, "/crawler/node", None);
    (answer, begun.elapsed())
}

#[test]
fn calls_fail_at_once_while_etcd_is_away_and_are_answered_soon_after() {
    let _turn = one_at_a_time();
    let Some(mut cluster) = Cluster::new() else {
        return;
    };
    let master = cluster.master("1", &[]);
    // etcd is paused, so that calls have no answer, and then gone, so that none is taken.
    for is_gone in [false, true] {
        until("an answer", PATIENCE, || {
            (asked(&master).0.status == 200).then_some(())
        });
        match is_gone {
            true => cluster.etcd.kill(0),
            false => cluster.etcd.freeze(0),
        }
        let refused = until("a refusal at once", PATIENCE, || {
            let (answer, took) = asked(&master);
            let is_of_circuit = answer.text.contains("the store does not answer");
            (is_of_circuit && took < AT_ONCE).then_some(answer)
        });
        assert_eq!(refused.status, 503, "{refused:?}");
        assert_eq!(refused.json()["code"], "UNAVAILABLE", "{refused:?}");
        let seconds: u64 = refused
            .retry_after
            .parse()
            .expect("Retry-After has seconds");
        assert!(seconds >= 1, "{refused:?}");
        match is_gone {
            true => {
                cluster.etcd.launch(0);
                cluster.etcd.wait();
            }
            false => cluster.etcd.thaw(0),
        }
        until("an answer soon after etcd is back", SOON, || {
            (asked(&master).0.status == 200).then_some(())
        });
    }
}

#[test]
fn a_worker_that_sleeps_longer_than_its_lease_fetches_nothing_of_what_others_have_by_then() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let masters = three_masters(&cluster);
    let workers = two_workers(&cluster);
    let web = chains();
    add_endless(&masters[0], "a", &web);
    goes_on(&web, "a", 3);
    let owner = cluster.owners()[0].1.clone();
    let asleep = workers.iter().find(|worker| worker.id == owner);
    let asleep = asleep.expect("one of them has it");
    asleep.process.freeze();
    until("the crawl on the other", PATIENCE, || {
        (cluster.owners()[0].1 != owner).then_some(())
    });
    goes_on(&web, "a", 3);
    asleep.process.thaw();
    asleep
        .process
        .line("that it lost the crawl", PATIENCE, |line| {
            line.contains("no longer assigned")
        });
    goes_on(&web, "a", 10);
    // Crawls ran one after the other, never two at once: each page of the chain was asked for by one crawl.
    let log = web.log();
    let mut paths: Vec<&str> = log.iter().map(|hit| hit.path.as_str()).collect();
    let n_all = paths.len();
    paths.sort_unstable();
    paths.dedup();
    assert!(
        n_all - paths.len() <= 2,
        "{} pages were fetched twice",
        n_all - paths.len()
    );
}
