//! An hour of a cluster, in about three minutes: a schedule fires, a worker and the leader are killed, a crawl is paused
//! and goes on, and the items of a site that has changed are held and released. After each step, the page shows the numbers
//! that a master tells over gRPC, and at the end those of the items in each sink.
//!
//! The page belongs to a master that lives through all of it, and its numbers are compared with those of another one. Where
//! there is no browser, the page is left out, and the rest is done all the same.

use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::web::Method;
use crawler_tests::{PATIENCE, until};

use self::page::Page;
use self::sinks::{Items, SINKS};
use self::site::HeldSite;
use crate::{one_at_a_time, take_leader, three_masters, two_workers};

mod api;
mod drift;
mod page;
mod sinks;
mod site;
mod views;

/// Resource whose crawl loses its worker and goes on to its end.
const BOOKS: &str = "books";
/// Resource whose runs begin by a schedule.
const NEWS: &str = "news";
/// Resource that is paused in the middle of its crawl, and goes on under another leader.
const WIKI: &str = "wiki";

#[test]
fn the_page_tells_what_api_and_sinks_tell_after_an_hour() {
    let _turn = one_at_a_time();
    let Some(cluster) = Cluster::new() else {
        return;
    };
    sinks::declare(&cluster);
    let mut masters = three_masters(&cluster);
    let mut leading = take_leader(&cluster, &mut masters, &[]);
    let [shows, tells] = <[Node; 2]>::try_from(masters).expect("two do not lead");
    let mut page = Page::open(&shows, &tells);
    let mut workers = two_workers(&cluster);
    check(&mut page, &[]);

    // A crawl comes to its end, and is to begin anew each minute.
    let news = HeldSite::open(10, 10);
    add(&cluster, &tells, NEWS, &news);
    stands_still(&tells, NEWS, &news);
    check(&mut page, &[NEWS]);
    let schedule = ["resource", "schedule", NEWS];
    let each_minute = ["--cron", "* * * * *", "--overlap", "queue"];
    tells.ok(&cluster, &[&schedule[..], &each_minute].concat());

    // Two crawls go on, as far as their sites let them.
    let (books, wiki) = (HeldSite::open(260, 80), HeldSite::open(60, 30));
    add(&cluster, &tells, BOOKS, &books);
    add(&cluster, &tells, WIKI, &wiki);
    stands_still(&tells, BOOKS, &books);
    stands_still(&tells, WIKI, &wiki);
    let all = [BOOKS, NEWS, WIKI];
    check(&mut page, &all);

    // A worker is killed in the middle of its pages.
    let mut lost = take_owner(&cluster, &mut workers, BOOKS);
    books.let_through(180);
    gets_to(&books, 100);
    lost.process.kill();
    cluster.registered("worker", 1);
    stands_still(&tells, BOOKS, &books);
    stands_still(&tells, WIKI, &wiki);
    check(&mut page, &all);

    // A crawl is paused with a page in flight.
    tells.ok(&cluster, &["resource", "pause", WIKI]);
    until("the end of its crawl", PATIENCE, || {
        let shown = api::resource(&tells.grpc, WIKI).ok()?;
        // While a worker brings it to an end, that is the reason.
        (shown.phase == "Paused" && shown.reason.is_empty()).then_some(())
    });
    check(&mut page, &all);
    check_at_rest(&mut page, WIKI);
    let paused = api::resource(&tells.grpc, WIKI).unwrap().counts();
    let numbers = [paused.parsed, paused.items, paused.due];
    assert_eq!(numbers, [wiki.n_parsed(), wiki.n_parsed(), 1]);
    wiki.let_all_through();

    // The leader is killed in the middle of a crawl, after a run that its schedule has begun.
    ended_after(&tells, 1);
    books.let_all_through();
    gets_to(&books, 200);
    leading.process.kill();
    cluster.leader_beside(&[&leading.id]);
    let told = || api::resource(&tells.grpc, NEWS).ok();
    let last_run = until("an answer", PATIENCE, told).run;
    cluster.registered("master", 2);
    stands_still(&tells, BOOKS, &books);
    check(&mut page, &all);

    // The next leader lets the paused crawl go on, and begins a run by the schedule.
    tells.ok(&cluster, &["resource", "resume", WIKI]);
    stands_still(&tells, WIKI, &wiki);
    ended_after(&tells, last_run);
    tells.ok(&cluster, &[&schedule[..], &["--off"]].concat());
    // A run may have begun just before.
    stands_still(&tells, NEWS, &news);
    check(&mut page, &all);
    for name in all {
        check_at_rest(&mut page, name);
    }

    // The site of another crawl changes.
    drift::check_held(&cluster, &tells, &mut page);
    if let Some(page) = page {
        page.close();
    }

    let n_runs = check_items(&cluster, &tells, NEWS, &news);
    assert!(n_runs >= 3, "{n_runs} runs");
    assert_eq!(check_items(&cluster, &tells, BOOKS, &books), 1);
    assert_eq!(check_items(&cluster, &tells, WIKI, &wiki), 1);
    let told = api::node_events(&tells.grpc).unwrap();
    for (node, kind) in [(&lost, "lost"), (&leading, "lost"), (&leading, "leads")] {
        let is_told = told
            .iter()
            .any(|event| event.node == node.id && event.kind == kind);
        assert!(is_told, "{} {kind}: {told:?}", node.id);
    }
}

/// Checks all views with numbers, of these resources, if there is a browser.
#[track_caller]
fn check(page: &mut Option<Page>, resources: &[&str]) {
    if let Some(page) = page {
        page.check(resources);
    }
}

/// Checks the views of a crawl that does not go on, if there is a browser.
#[track_caller]
fn check_at_rest(page: &mut Option<Page>, name: &str) {
    if let Some(page) = page {
        page.check_at_rest(name);
    }
}

/// Adds a crawl of a site, with all sinks.
#[track_caller]
fn add(cluster: &Cluster, master: &Node, name: &str, site: &HeldSite) {
    let start = format!("--param=start={}", site.web.url("/0"));
    let resource = ["resource", "add", name, "--plugin=puppet", &start];
    let settings = [SINKS, "--max-depth=1000", "--max-attempts=1"];
    master.ok(cluster, &[&resource[..], &settings].concat());
}

/// Waits until a crawl has nothing left to do but what its site holds back, or has finished if it holds nothing back.
#[track_caller]
fn stands_still(master: &Node, name: &str, site: &HeldSite) {
    let phase = match site.n_in_flight() {
        0 => "Finished",
        _ => "Running",
    };
    // Pages in flight are due until their end.
    let n_in_flight = site.n_in_flight();
    let expected = [site.n_parsed(), site.n_dead(), n_in_flight, n_in_flight];
    let what = format!("{name} {phase} with {expected:?}");
    until(&what, 2 * PATIENCE, || {
        let shown = api::resource(&master.grpc, name).ok()?;
        let counts = shown.counts();
        let numbers = [counts.parsed, counts.dead, counts.due, counts.in_flight];
        (shown.phase == phase && numbers == expected).then_some(())
    });
}

/// Waits for a request for this page of the chain.
#[track_caller]
fn gets_to(site: &HeldSite, page: usize) {
    let path = format!("/{page}");
    site.web.wait_for(&path, PATIENCE, |log| {
        log.iter().any(|hit| hit.path == path)
    });
}

/// Takes the worker that crawls a resource out of these.
#[track_caller]
fn take_owner(cluster: &Cluster, workers: &mut Vec<Node>, name: &str) -> Node {
    let owners = cluster.owners();
    let owner = owners.iter().find(|(resource, _)| resource == name);
    let (_, owner) = owner.expect("it is crawled");
    let place = workers.iter().position(|worker| worker.id == *owner);
    workers.remove(place.expect("it is one of them"))
}

/// Waits until the schedule has begun a run after this one, and the run has ended.
#[track_caller]
fn ended_after(master: &Node, run: u64) {
    // The next minute begins within a minute.
    until(&format!("a run after {run}"), 2 * PATIENCE, || {
        let path = format!("/crawler/resource/{NEWS}/schedule");
        let schedule = master.http(Method::GET, &path, None);
        let begun = schedule.json()["last"]["run"].as_u64();
        let begun = begun.filter(|begun| *begun > run)?;
        let shown = api::resource(&master.grpc, NEWS).ok()?;
        (shown.phase == "Finished" && shown.run >= begun).then_some(())
    });
}

/// Checks that the items of each run are as many as the master tells, in each sink. Returns the number of runs.
#[track_caller]
fn check_items(cluster: &Cluster, master: &Node, name: &str, site: &HeldSite) -> usize {
    let resource = api::resource(&master.grpc, name).expect("it is there");
    let runs = api::runs(&master.grpc, name).expect("it is there");
    assert!(runs.iter().all(|run| run.outcome == "finished"), "{runs:?}");
    let told: Items = runs.iter().map(|run| (run.run, run.items)).collect();
    assert_eq!(told.get(&resource.run), Some(&resource.counts().items));
    let of_site: Items = told.keys().map(|run| (*run, site.n_parsed())).collect();
    assert_eq!(told, of_site, "{name}: each page has an item");
    assert_eq!(told, sinks::in_data_root(master, name, &told), "{name}");
    assert_eq!(
        told,
        sinks::in_files(cluster, &resource.spec().id),
        "{name}"
    );
    assert_eq!(told, sinks::in_table(cluster, name), "{name}");
    told.len()
}
