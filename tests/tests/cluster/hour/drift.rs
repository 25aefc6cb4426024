//! A crawl whose site changes between two runs, so that items are held: the page, a master and the sinks tell the same of it
//! until the items are released.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::http::text;
use crawler_tests::web::{Method, Site, Web};
use crawler_tests::{PATIENCE, until};
use serde_json::{Value, json};

use super::page::Page;
use super::sinks::{self, Items, SINKS};
use super::{api, check, check_at_rest};

/// Resource whose site changes.
const SHOP: &str = "shop";
/// Number of leaves that the first page leads to.
const N_LEAVES: usize = 150;
/// Number of leaves, the first ones, that are as before in the second run.
const N_BEFORE: usize = 60;
/// Number of items of a run.
const N_ITEMS: u64 = 1 + N_LEAVES as u64;

/// Opens a site whose leaves give items with the field `state`, which most of them lack from the second run on.
fn changing_site() -> Web {
    let is_changed = Arc::new(AtomicBool::new(false));
    let page = move || {
        let is_changed = is_changed.swap(true, Ordering::Relaxed);
        let leaf = |n: usize| {
            let state = match is_changed && n >= N_BEFORE {
                true => String::new(),
                false => format!("state {n}"),
            };
            // Leaves come in this order.
            json!({"url": format!("/{n}"), "rule": "leaf", "state": state, "priority": N_LEAVES - n})
        };
        json!((0..N_LEAVES).map(leaf).collect::<Vec<_>>()).to_string()
    };
    let site = Site::new().handle("/start", move |_| {
        let page = page();
        async move { page }
    });
    site.handle("/*", |_| async { "[]" }).open()
}

/// Crawls the site twice, and checks what page, master and sinks tell of held items, and once they are released.
#[track_caller]
pub(super) fn check_held(cluster: &Cluster, master: &Node, page: &mut Option<Page>) {
    let web = changing_site();
    let start = format!("--param=start={}", web.url("/start"));
    let resource = ["resource", "add", SHOP, "--plugin=puppet", &start];
    let settings = [SINKS, "--drift=normal", "--concurrency=1"];
    master.ok(cluster, &[&resource[..], &settings].concat());
    finished(master, 1);
    check_in_sinks(cluster, master, &[(1, N_ITEMS)].into());

    master.ok(cluster, &["resource", "restart", SHOP]);
    finished(master, 2);
    let held = n_held(master);
    let n_changed = (N_LEAVES - N_BEFORE) as u64;
    assert!(held >= n_changed, "{held} are held, and {n_changed} differ");
    let holds = api::holds(&master.grpc, SHOP).expect("it is there");
    assert_eq!(holds.iter().map(|hold| hold.items).sum::<u64>(), held);
    check(page, &[SHOP]);
    check_at_rest(page, SHOP);
    let passed = [(1, N_ITEMS), (2, N_ITEMS - held)].into();
    check_in_sinks(cluster, master, &passed);
    check_states(master);

    master.ok(cluster, &["quarantine", "release", SHOP]);
    until("no item is held", PATIENCE, || {
        (n_held(master) == 0).then_some(())
    });
    finished(master, 2);
    check(page, &[SHOP]);
    check_at_rest(page, SHOP);
    let all: Items = [(1, N_ITEMS), (2, N_ITEMS)].into();
    check_in_sinks(cluster, master, &all);
    let runs = api::runs(&master.grpc, SHOP).expect("it is there");
    let told: Items = runs.iter().map(|run| (run.run, run.items)).collect();
    assert_eq!(told, all);
}

/// Waits for the end of a run.
#[track_caller]
fn finished(master: &Node, run: u64) {
    until(&format!("the end of run {run} of {SHOP}"), PATIENCE, || {
        let shown = api::resource(&master.grpc, SHOP).ok()?;
        (shown.phase == "Finished" && shown.run == run).then_some(())
    });
}

#[track_caller]
fn n_held(master: &Node) -> u64 {
    let shown = api::resource(&master.grpc, SHOP).expect("it is there");
    shown.counts().held
}

/// Checks that no item of the second run in the data root is one of a leaf that lacks its state.
#[track_caller]
fn check_states(master: &Node) {
    let path = format!("/crawler/resource/{SHOP}/items?run=2");
    let answer = master.http(Method::GET, &path, None);
    assert_eq!(answer.status, 200, "{answer:?}");
    for line in answer.text.lines() {
        let item: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        let is_start = text(&item["url"]).ends_with("/start");
        assert!(!text(&item["state"]).is_empty() || is_start, "{line}");
    }
}

/// Checks that each sink has these items, each once.
#[track_caller]
fn check_in_sinks(cluster: &Cluster, master: &Node, items: &Items) {
    let id = api::resource(&master.grpc, SHOP)
        .expect("it is there")
        .spec()
        .id;
    assert_eq!(sinks::in_data_root(master, SHOP, items), *items);
    assert_eq!(sinks::in_files(cluster, &id), *items);
    assert_eq!(sinks::in_table(cluster, SHOP), *items);
}
