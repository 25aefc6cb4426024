//! Two versions in one cluster: the program of an earlier commit, which `CRAWLER_OLD_BIN` names, and the present one.

use std::path::{Path, PathBuf};

use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::process::program;
use crawler_tests::{PATIENCE, setting, skipped};

use crate::{add_chain, chain, check_chain, one_at_a_time};

/// Number of pages of the site.
const N_PAGES: usize = 100;

/// Returns the program of the earlier version. If nobody names one, it says so and returns `None`.
fn old_program() -> Option<PathBuf> {
    let program = setting("CRAWLER_OLD_BIN").map(PathBuf::from);
    if program.is_none() {
        skipped(
            "old-version",
            "CRAWLER_OLD_BIN names no program of an earlier version",
        );
    }
    program
}

#[test]
fn workers_and_then_masters_are_upgraded_under_a_crawl() {
    let _turn = one_at_a_time();
    let Some(old) = old_program() else {
        return;
    };
    replace_all_under_a_crawl(&old, &program(), &["worker", "master"]);
}

#[test]
fn masters_and_then_workers_are_upgraded_under_a_crawl() {
    let _turn = one_at_a_time();
    let Some(old) = old_program() else {
        return;
    };
    replace_all_under_a_crawl(&old, &program(), &["master", "worker"]);
}

#[test]
fn a_cluster_goes_back_to_the_earlier_version_under_a_crawl() {
    let _turn = one_at_a_time();
    let Some(old) = old_program() else {
        return;
    };
    replace_all_under_a_crawl(&program(), &old, &["worker", "master"]);
}

/// Starts two masters and two workers with one program, and replaces them one after the other by the other program
/// while they crawl. The crawl has each page's item once.
#[track_caller]
fn replace_all_under_a_crawl(before: &Path, after: &Path, order: &[&str]) {
    let Some(cluster) = Cluster::new() else {
        return;
    };
    let mut masters = start(&cluster, before, "master");
    cluster.leader_beside(&[]);
    let mut workers = start(&cluster, before, "worker");
    masters[0].push(&cluster, "puppet");
    let web = chain(N_PAGES);
    add_chain(&masters[0], "books", &web);
    let mut n_seen = 0;
    for role in order {
        let nodes = match *role {
            "master" => &mut masters,
            _ => &mut workers,
        };
        for (node, id) in nodes.iter_mut().zip(["3", "4"]) {
            // Each version has a share of the crawl between two replacements.
            web.wait_for("further pages", PATIENCE, |log| log.len() >= n_seen + 10);
            n_seen = web.log().len();
            let next = cluster.start_program(after, role, id, &arguments(role));
            cluster.registered(role, 3);
            let replaced = std::mem::replace(node, next);
            replaced.stop();
            cluster.registered(role, 2);
        }
    }
    check_chain(&cluster, &masters[1], "books", &web, N_PAGES);
}

#[track_caller]
fn start(cluster: &Cluster, program: &Path, role: &str) -> Vec<Node> {
    let started = ["1", "2"].map(|id| cluster.start_program(program, role, id, &arguments(role)));
    cluster.registered(role, 2);
    started.into()
}

fn arguments(role: &str) -> Vec<&'static str> {
    match role {
        "worker" => vec!["--allow-networks=127.0.0.0/8"],
        _ => Vec::new(),
    }
}
