//! Backups of a cluster on etcd, with its data in a folder and in a bucket.

use crawler_testing::s3::FaultPlan;
use crawler_tests::PATIENCE;
use crawler_tests::cluster::{Cluster, Node};

use crate::{add_chain, chain, check_chain, one_at_a_time};

/// Number of pages of the site.
const N_PAGES: usize = 40;

/// Starts a master and a worker that does not wait for others when it ends.
#[track_caller]
fn nodes(cluster: &Cluster) -> [Node; 2] {
    let master = cluster.master("1", &[]);
    cluster.leader_beside(&[]);
    let worker = cluster.worker("1", &["--drain-timeout=0s"]);
    cluster.registered("worker", 1);
    [master, worker]
}

#[test]
fn a_restored_cluster_on_a_folder_crawls_on() {
    let _turn = one_at_a_time();
    crawl_back_up_and_crawl_on(|cluster| cluster);
}

#[test]
fn a_restored_cluster_on_a_bucket_crawls_on() {
    let _turn = one_at_a_time();
    crawl_back_up_and_crawl_on(|cluster| cluster.in_bucket(FaultPlan::default()));
}

/// Takes a backup in the middle of a crawl, and lets another etcd with another data root go on from there.
#[track_caller]
fn crawl_back_up_and_crawl_on(placed: fn(Cluster) -> Cluster) {
    let (Some(cluster), Some(other)) = (Cluster::new(), Cluster::new()) else {
        return;
    };
    let (cluster, other) = (placed(cluster), placed(other));
    let web = chain(N_PAGES);
    let [master, worker] = nodes(&cluster);
    master.push(&cluster, "puppet");
    add_chain(&master, "books", &web);
    web.wait_for("half of the crawl", PATIENCE, |log| {
        log.len() >= N_PAGES / 2
    });
    let archive = other.home.path().join("archive").display().to_string();
    let refused = cluster.run(&["backup", &archive]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    let said = "the cluster has nodes that run: master-1, worker-1";
    assert!(refused.stderr.contains(said), "{}", refused.stderr);

    worker.stop();
    master.stop();
    let taken = cluster.run(&["backup", &archive]);
    assert_eq!(taken.code, Some(0), "{}", taken.stderr);
    let verified = cluster.home.ok(["backup", "verify", &archive]);
    let described = taken.stdout.strip_prefix("backed up: ");
    let described = described.expect("it is said what was done");
    assert_eq!(verified, format!("whole and undamaged: {described}"));
    drop(cluster);

    let restored = other.run(&["restore", &archive]);
    assert_eq!(restored.code, Some(0), "{}", restored.stderr);
    assert_eq!(restored.stdout, format!("restored: {described}"));
    let again = other.run(&["restore", &archive]);
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    assert!(
        again
            .stderr
            .contains("the store is in use: it has /crawler/")
    );

    let [master, _worker] = nodes(&other);
    check_chain(&other, &master, "books", &web, N_PAGES);
}
