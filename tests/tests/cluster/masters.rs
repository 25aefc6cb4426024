//! Election of leaders, and the state that a change of leader leaves alone.

use std::time::Instant;

use crawler_tests::cluster::{Cluster, LEASE_TTL};
use crawler_tests::{PATIENCE, until};

use crate::{
    add_endless, chains, goes_on, lease_and_a_second, one_at_a_time, take_leader, three_masters,
    two_workers,
};

#[test]
fn s01_one_master_leads_and_when_it_stops_another_does() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let mut masters: Vec<_> = ["1", "2", "3"].map(|id| cluster.master(id, &[])).into();
    cluster.registered("master", 3);
    let mut gone: Vec<String> = Vec::new();
    for by_crash in [false, true] {
        let others: Vec<&str> = gone.iter().map(String::as_str).collect();
        let mut leading = take_leader(&cluster, &mut masters, &others);
        let leader = leading.id.clone();
        let list = masters[0].ok(&cluster, &["node", "list"]);
        let row = list.lines().find(|row| row.contains("leader"));
        let row = row.unwrap_or_else(|| panic!("nobody leads in\n{list}"));
        assert!(
            row.contains(&leader) && row.contains(&leading.grpc),
            "{list}"
        );
        let begun = Instant::now();
        match by_crash {
            false => leading.stop(),
            true => leading.process.kill(),
        }
        gone.push(leader);
        let others: Vec<&str> = gone.iter().map(String::as_str).collect();
        cluster.leader_beside(&others);
        let limit = match by_crash {
            false => LEASE_TTL,
            true => lease_and_a_second(),
        };
        assert!(begun.elapsed() < limit, "{:?}", begun.elapsed());
    }
}

#[test]
fn s03_s15_masters_tell_who_joins_leaves_and_comes_back() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let masters = ["1", "2"].map(|id| cluster.master(id, &[]));
    cluster.registered("master", 2);
    let watching = masters[1].command(&cluster, &["node", "watch"]);
    let seen = |what: &str, id: &str, n: usize| {
        let line = format!("{what:<8} {id}  ");
        until(&format!("{n} lines {line}"), PATIENCE, || {
            let events = watching.stdout();
            let n_seen = events.iter().filter(|event| event.starts_with(&line));
            (n_seen.count() == n).then_some(())
        });
    };
    seen("joined", "master-1", 1);
    seen("joined", "master-2", 1);
    let worker = cluster.worker("7", &[]);
    let told = |what: &str, n: usize| {
        for master in &masters {
            until(
                &format!("{n} lines {what} of {}", master.id),
                PATIENCE,
                || {
                    let is_told =
                        |line: &&String| line.contains(what) && line.contains("id=worker-7");
                    let lines = master.process.stderr();
                    (lines.iter().filter(is_told).count() == n).then_some(())
                },
            );
        }
    };
    told("node joined", 1);
    seen("joined", "worker-7", 1);
    worker.stop();
    told("node left", 1);
    seen("left", "worker-7", 1);
    let mut again = cluster.worker("7", &["--label=gpu=true"]);
    told("node joined", 2);
    seen("joined", "worker-7", 2);
    again.process.kill();
    until(
        "the end of the registration",
        lease_and_a_second() * 2,
        || cluster.keys("nodes/worker/").is_empty().then_some(()),
    );
    told("node left", 2);
    seen("left", "worker-7", 2);
}

#[test]
fn s06_f07_a_change_of_leader_moves_nothing() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let mut masters = three_masters(&cluster);
    let _workers = two_workers(&cluster);
    let web = chains();
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        add_endless(&masters[0], name, &web);
    }
    for name in names {
        goes_on(&web, name, 2);
    }
    let records = || (cluster.dump("shards/"), cluster.dump("assignments/"));
    let before = records();
    for _ in 0..2 {
        let mut leading = take_leader(&cluster, &mut masters, &[]);
        leading.process.kill();
        let next = cluster.leader_beside(&[&leading.id]);
        let next = masters.iter().find(|m| m.id == next);
        let next = next.expect("it is one of them");
        next.process.line("its first turn", PATIENCE, |line| {
            line.contains("this master leads")
        });
        for name in names {
            goes_on(&web, name, 2);
        }
        assert_eq!(records(), before);
    }
}

#[test]
fn s07_f07_what_config_files_ask_for_is_there_once_whoever_leads() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let web = chains();
    let config = format!(
        "[[plugin]]\npath = '{}'\n[[resource]]\nname = 'a'\nplugin = 'puppet'\ndelay = '50ms'\n\
         max-depth = 4000000000\nparams = {{ start = '{}' }}\n",
        crawler_tests::guests::guest("puppet").display(),
        web.url("/a/0")
    );
    let config = cluster.home.write("crawler.toml", &config);
    let config = format!("--config={}", config.display());
    let mut masters: Vec<_> = ["1", "2"].map(|id| cluster.master(id, &[&config])).into();
    cluster.registered("master", 2);
    let added = || cluster.record("resources/a");
    let first = until("the resource of the config file", PATIENCE, added);
    assert_eq!(first["assigned_node"], "", "it waits for a worker");
    let _worker = cluster.worker("1", &[]);
    goes_on(&web, "a", 5);
    let mut leading = take_leader(&cluster, &mut masters, &[]);
    leading.process.kill();
    cluster.leader_beside(&[&leading.id]);
    masters[0].process.line("its first turn", PATIENCE, |line| {
        line.contains("this master leads")
    });
    goes_on(&web, "a", 5);
    let present = added().expect("it is there");
    assert_eq!(
        (&present["id"], &present["run"]),
        (&first["id"], &first["run"])
    );
    assert_eq!(cluster.keys("shards/").len(), 1);
    assert_eq!(web.count("/a/0"), 1, "F03: it was seeded once");
}
