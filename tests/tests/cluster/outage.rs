//! Outages of etcd that are longer than a lease.

use std::time::{Duration, Instant};

use crawler_tests::cluster::{Cluster, LEASE_TTL, Node};
use crawler_tests::{PATIENCE, pass, until};

use serde_json::Value;

use crate::{add_endless, chains, goes_on, one_at_a_time, three_masters, two_workers};

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
    let asked = masters[1].http(crawler_tests::web::Method::GET, "/crawler/node", None);
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
