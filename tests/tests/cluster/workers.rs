//! Distribution of crawls over workers, and the moves of crawls when a worker ends.

use std::collections::BTreeMap;
use std::time::Duration;

use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::web::Method;
use crawler_tests::{PATIENCE, pass, until};

use crate::{
    DEEP, add_endless, chains, goes_on, of_chain, one_at_a_time, phase, three_masters, two_workers,
};

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

/// Returns the number of crawls of each worker.
fn loads(cluster: &Cluster) -> BTreeMap<String, usize> {
    let mut loads = BTreeMap::new();
    for (_, owner) in cluster.owners() {
        *loads.entry(owner).or_default() += 1;
    }
    loads
}

#[test]
fn s05_s04_f06_five_crawls_are_three_and_two_and_go_on_when_a_worker_ends() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let masters = three_masters(&cluster);
    let mut workers = two_workers(&cluster);
    let web = chains();
    for (n, name) in NAMES.iter().enumerate() {
        let added = add_endless(&masters[n % 3], name, &web).json();
        let owner = cluster.owners().into_iter().find(|(r, _)| r == name);
        assert_eq!(
            added["id"],
            owner.expect("it was placed at once").1.as_str()
        );
    }
    let mut both: Vec<usize> = loads(&cluster).into_values().collect();
    both.sort_unstable();
    assert_eq!(both, [2, 3]);
    for name in NAMES {
        goes_on(&web, name, 3);
    }
    // S15: after Ctrl-C, a worker gives its crawls to the other before it ends.
    workers.remove(0).stop();
    assert_eq!(cluster.keys("nodes/worker/"), ["worker-2"]);
    assert_eq!(loads(&cluster), [("worker-2".to_owned(), 5)].into());
    for name in NAMES {
        goes_on(&web, name, 3);
    }
    // At most the page in flight was asked for twice, and no crawl began anew.
    let log = web.log();
    for name in NAMES {
        let mut paths: Vec<&str> = of_chain(&log, name).map(|hit| hit.path.as_str()).collect();
        let n_all = paths.len();
        paths.sort_unstable();
        paths.dedup();
        assert!(n_all - paths.len() <= 1, "{name}: {paths:?}");
    }
    // The leader notices a crash after the lease.
    workers.push(cluster.worker("3", &[]));
    cluster.registered("worker", 2);
    workers[0].process.kill();
    until("all crawls on the third", PATIENCE, || {
        (loads(&cluster) == [("worker-3".to_owned(), 5)].into()).then_some(())
    });
    for name in NAMES {
        goes_on(&web, name, 3);
    }
}

#[test]
fn a_worker_that_nobody_relieves_ends_by_its_deadline_and_what_it_had_goes_on_elsewhere() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let mut masters = three_masters(&cluster);
    let mut worker = cluster.worker("1", &["--drain-timeout=1s"]);
    cluster.registered("worker", 1);
    let web = chains();
    add_endless(&masters[0], "a", &web);
    goes_on(&web, "a", 3);
    for master in &mut masters {
        master.process.kill();
    }
    worker.process.terminate();
    let ended = worker.process.wait(PATIENCE);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let said = "not all was given away within 1s; others take it over (--drain-timeout)";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
    let _master = cluster.master("4", &[]);
    let _other = cluster.worker("2", &[]);
    until("the crawl on the other", PATIENCE, || {
        (loads(&cluster) == [("worker-2".to_owned(), 1)].into()).then_some(())
    });
    goes_on(&web, "a", 3);
    // The crawl went on where it was.
    assert_eq!(web.count("/a/0"), 1);
}

#[test]
fn s17_f01_f02_a_worker_goes_on_with_what_was_assigned_to_it_before_it_started() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let master = cluster.master("1", &[]);
    cluster.leader_beside(&[]);
    master.push(&cluster, "puppet");
    let web = chains();
    // S7: without a worker the crawl waits, and it is placed when one comes.
    let added = add_endless(&master, "a", &web).json();
    assert_eq!(added["id"], "");
    assert_eq!(phase(&master, "a"), "Pending");
    let mut worker = cluster.worker("1", &[]);
    goes_on(&web, "a", 5);
    worker.process.kill();
    let worker = cluster.worker("1", &[]);
    goes_on(&web, "a", 5);
    // F03: the crawl went on, and did not begin anew.
    assert!(web.count("/a/0") == 1, "{}", web.count("/a/0"));
    let other = cluster.worker("2", &[]);
    cluster.registered("worker", 2);
    pass(Duration::from_millis(500));
    let started = |worker: &Node| {
        let lines = worker.process.stderr();
        lines
            .iter()
            .filter(|line| line.contains("crawl starts"))
            .count()
    };
    assert_eq!((started(&worker), started(&other)), (1, 0));
}

#[test]
fn s18_s19_a_running_crawl_is_changed_deleted_and_added_again_by_any_master() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let masters = three_masters(&cluster);
    let worker = cluster.worker("1", &[]);
    let web = chains();
    add_endless(&masters[0], "a", &web);
    goes_on(&web, "a", 5);
    masters[1].ok(&cluster, &["resource", "update", "a", "--delay=400ms"]);
    worker.process.line("the change", PATIENCE, |line| {
        line.contains("settings changed")
    });
    // The next two requests may have been under way when the setting changed.
    goes_on(&web, "a", 2);
    let log = web.log();
    goes_on(&web, "a", 3);
    let later = web.log();
    let pauses: Vec<Duration> = later[log.len()..]
        .windows(2)
        .map(|pair| pair[1].start - pair[0].start)
        .collect();
    assert!(
        pauses
            .iter()
            .all(|pause| *pause >= Duration::from_millis(390)),
        "{pauses:?}"
    );
    assert_eq!(web.count("/a/0"), 1, "F03: it was not seeded again");
    masters[2].ok(&cluster, &["resource", "delete", "a"]);
    pass(Duration::from_secs(2));
    let n_after = web.log().len();
    pass(Duration::from_secs(2));
    assert_eq!(
        web.log().len(),
        n_after,
        "something of it was fetched after two seconds"
    );
    worker.process.line("the end", PATIENCE, |line| {
        line.contains("no longer assigned")
    });
    add_endless(&masters[0], "a", &web);
    web.wait_for("a fresh beginning", PATIENCE, |log| {
        of_chain(log, "a").filter(|hit| hit.path == "/a/0").count() == 2
    });
}

#[test]
fn s21_selectors_weights_and_neighbours_are_kept_to() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let master = cluster.master("1", &[]);
    cluster.leader_beside(&[]);
    master.push(&cluster, "puppet");
    let _plain = cluster.worker("1", &[]);
    cluster.registered("worker", 1);
    let web = chains();
    let add = |name: &str, placement: &[&str]| {
        let start = format!("start={}", web.url(&format!("/{name}/0")));
        let usual = [
            "resource",
            "add",
            name,
            "--plugin=puppet",
            "--param",
            &start,
            DEEP,
        ];
        master.ok(&cluster, &[&usual, placement].concat());
    };
    let owner = |name: &str| {
        let owners = cluster.owners().into_iter();
        let mut of_name = owners.filter(|(resource, _)| resource == name);
        of_name.next().expect("it was added").1
    };
    add("trained", &["--selector=gpu=true"]);
    let waits = master
        .http(Method::GET, "/crawler/resource/trained", None)
        .json();
    assert_eq!(waits["reason"], "0/1 workers: 1 lacks label gpu");
    let _gpu = cluster.worker("2", &["--label=gpu=true"]);
    until("a place with a gpu", PATIENCE, || {
        (owner("trained") == "worker-2").then_some(())
    });
    add("here", &["--selector=id=worker-1"]);
    assert_eq!(owner("here"), "worker-1");
    add("heavy", &["--weight=5"]);
    let heavy = owner("heavy");
    let light = if heavy == "worker-1" {
        "worker-2"
    } else {
        "worker-1"
    };
    for name in ["l1", "l2", "l3"] {
        add(name, &[]);
        assert_eq!(owner(name), light);
    }
    add("beside", &["--near=heavy"]);
    assert_eq!(owner("beside"), heavy);
    add("away", &["--apart=l1"]);
    assert_eq!(owner("away"), heavy);
}

#[test]
fn a_second_process_with_one_id_is_refused_and_told_who_has_it() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let first = cluster.worker("1", &[]);
    cluster.registered("worker", 1);
    let mut second = cluster.worker("1", &["--state=state-other"]);
    let ended = second.process.wait(PATIENCE);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let told = format!(
        "another process is registered as worker-1: at {}, since ",
        first.grpc
    );
    assert!(ended.stderr.contains(&told), "{}", ended.stderr);
}
