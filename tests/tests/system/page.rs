//! The page of a master in a browser. Scripts of the folder `page` use it as a reader would; each says what it shows.

mod pictures;

use std::fmt::Display;
use std::fs;
use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crawler_tests::edited_site;
use crawler_tests::web::{Site, Web};
use crawler_tests::{chromium, guests, repository};
use serde_json::json;

use crate::installed;
use crate::server::Server;
use crate::sites;
use crate::tokens::Guarded;

/// Package of npm that judges whether everybody can use a view.
const AXE: &str = "axe-core@4.14.1";

/// Text that would run as a script, or ask for something, wherever it is taken for markup.
fn markup(stolen: impl Display) -> String {
    format!(
        "<img src=x onerror=\"window.ran=1\"><script>window.ran=1;fetch('{stolen}')</script>\
         <svg onload=\"window.ran=1\"></svg><iframe src=\"{stolen}\"></iframe>"
    )
}

/// Name of a field of the hostile plugin, which would run as a script.
const FIELD: &str = "<img src=x onerror=window.ran=1>";

fn script(name: &str) -> PathBuf {
    repository().join("tests/tests/system/page").join(name)
}

/// Takes a walk over the page of a server, if there is a browser.
#[track_caller]
fn walk(name: &str, server: &Server, arguments: &[&str]) {
    let master = format!("http://{}", server.http_address());
    chromium::walk(&script(name), &[&[master.as_str()], arguments].concat());
}

#[test]
fn rates_are_those_of_one_run_between_two_near_looks() {
    chromium::node_test(&script("rates.mjs"));
}

#[test]
fn items_are_shown_as_they_were_written() {
    chromium::node_test(&script("raw.mjs"));
}

#[test]
fn spans_of_time_are_shown_as_they_can_be_written() {
    chromium::node_test(&script("times.mjs"));
}

#[test]
fn settings_are_written_as_texts_and_read_back() {
    chromium::node_test(&script("settings.mjs"));
}

#[test]
fn a_command_has_words_of_sites_as_they_are() {
    chromium::node_test(&script("shell.mjs"));
}

#[test]
fn lines_of_a_log_that_is_read_again_are_shown_once() {
    chromium::node_test(&script("latest.mjs"));
}

#[test]
fn an_answer_that_breaks_off_may_be_whole_later() {
    chromium::node_test(&script("api.mjs"));
}

#[test]
fn a_first_visit_leads_to_items() {
    let web = sites::chain(3).open();
    let server = Server::with_puppet();
    let start = web.url("/0").to_string();
    walk("first_visit.mjs", &server, &[&start, "desktop"]);
}

#[test]
fn a_first_visit_on_a_phone_leads_to_items() {
    let web = sites::chain(3).open();
    let server = Server::with_puppet();
    let start = web.url("/0").to_string();
    walk("first_visit.mjs", &server, &[&start, "phone"]);
}

#[test]
fn a_schedule_is_set_listed_and_removed() {
    let web = sites::chain(1).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    server.finished("books");
    walk("schedules.mjs", &server, &[]);
}

#[test]
fn changes_of_a_run_are_shown_with_old_values() {
    let web = edited_site::open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/"), &["--changes=2"]);
    server.add("plain", &web.url("/1"), &[]);
    server.finished("books");
    server.ok(&["resource", "restart", "books"]);
    server.finished("books");
    server.finished("plain");
    walk("changes.mjs", &server, &[web.url("/").as_str()]);
}

#[test]
fn settings_are_changed_after_a_preview() {
    let web = sites::chain(1).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    server.finished("books");
    walk("change_settings.mjs", &server, &[]);
}

#[test]
fn errors_fields_and_runs_are_looked_at_closely() {
    let (web, broken) = (edited_site::open(), broken_site());
    let server = Server::with_puppet();
    server.add("books", &web.url("/"), &["--changes=2"]);
    server.add("broken", &broken.url("/0"), &["--max-attempts=1"]);
    server.finished("books");
    server.ok(&["resource", "restart", "books"]);
    server.finished("books");
    server.finished("broken");
    walk("looks.mjs", &server, &[broken.url("/bad").as_str()]);
}

#[test]
fn what_stands_in_the_way_is_told_truly() {
    let web = sites::chain(1).open();
    let server = Server::with_puppet();
    // No worker has the label, so that nothing happens meanwhile.
    server.add("books", &web.url("/0"), &["--selector=gpu=true"]);
    walk("faults.mjs", &server, &[]);
}

#[test]
fn markup_of_sites_and_rules_stays_text() {
    let elsewhere = Site::new().page("/stolen", "").open();
    let stolen = elsewhere.url("/stolen");
    let markup = markup(&stolen);
    // A word that no line ends in, which must not make a view wider than the window. A link carries a part of it.
    const STATE: usize = 4_000;
    let long = format!("{markup}{}", "x".repeat(10_000));
    let links = json!([
        {"url": "/leaf?<script>window.ran=1</script>", "rule": "leaf", "state": &long[..STATE]},
        {"url": "/bad"},
    ]);
    let web = Site::new()
        .page("/0", links.to_string())
        .page("/leaf", "[]")
        // The rule tells what it does not know, in its log and as the reason of a dead letter.
        .page("/bad", json!([{"url": "/x", "rule": &long}]).to_string())
        .page(
            "/endless",
            json!([{"url": "/bad"}, {"url": "/hangs"}]).to_string(),
        )
        .handle("/hangs", |_| pending::<String>())
        .open();
    let server = Server::with_puppet();
    let param = format!("--param=note={long}");
    server.add(
        "evil",
        &web.url("/0"),
        &[&param, "--max-attempts=1", "--changes=1"],
    );
    server.add("endless", &web.url("/endless"), &[]);
    server.finished("evil");
    walk("hostile.mjs", &server, &[web.url("/bad").as_str()]);
    assert_eq!(elsewhere.count("/stolen"), 0);
}

#[test]
fn markup_in_items_and_descriptions_stays_text() {
    const N_PAGES: usize = 150;
    /// Pages, the first ones, that are as before in the second run.
    const N_BEFORE: usize = 60;
    let elsewhere = Site::new().page("/stolen", "").open();
    let long = format!("{}{}", markup(elsewhere.url("/stolen")), "x".repeat(10_000));
    // In the second run, the later pages lack the field whose name is a script. Their items are held.
    let is_changed = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&is_changed);
    let web = Site::new()
        .handle("/*", move |asked| {
            let is_changed = seen.load(Ordering::Relaxed);
            // Such as `/7-emit-page`; the path of robots.txt has no number.
            let number = asked.path[1..].split('-').next();
            let number: usize = number.and_then(|text| text.parse().ok()).unwrap_or(0);
            let item = match is_changed && number >= N_BEFORE {
                true => json!({"title": &long}),
                false => json!({"title": &long, FIELD: format!("{long}{is_changed}")}),
            };
            async move { item.to_string() }
        })
        .open();
    let server = Server::start();
    let plugin = server.home.path().join("hostile.wasm");
    fs::write(&plugin, guests::describing("markup")).expect("a file can be written");
    server.ok(&["plugin", "push", &plugin.display().to_string()]);
    let root = format!("--param=root={}", web.url("/"));
    let rules = format!("--param=rules={}", vec!["emit-page"; N_PAGES].join(","));
    let settings = ["--drift=normal", "--changes=2", "--concurrency=1"];
    let wild = ["resource", "add", "wild", "--plugin=hostile", &root, &rules];
    server.ok(&[&wild[..], &settings].concat());
    server.finished("wild");
    is_changed.store(true, Ordering::Relaxed);
    server.ok(&["resource", "restart", "wild"]);
    server.finished("wild");
    walk("wild.mjs", &server, &[FIELD]);
    assert_eq!(elsewhere.count("/stolen"), 0);
}

/// Opens a site with one page that is given up, `/bad`: the rule does not know the one that the page names.
fn broken_site() -> Web {
    Site::new()
        .page("/0", json!([{"url": "/bad"}]).to_string())
        .page("/bad", json!([{"url": "/x", "rule": "none"}]).to_string())
        .open()
}

#[test]
fn every_view_passes_axe_in_light_colours() {
    check_by_axe("light");
}

#[test]
fn every_view_passes_axe_in_dark_colours() {
    check_by_axe("dark");
}

/// Checks all views, in a wide window and on a phone, if axe can be had.
#[track_caller]
fn check_by_axe(colours: &str) {
    let Some(modules) = installed::by_npm("axe", AXE) else {
        return;
    };
    let library = modules.join("axe-core/axe.min.js").display().to_string();
    let web = edited_site::open();
    let broken = broken_site();
    let server = Server::with_puppet();
    server.add("books", &web.url("/"), &["--changes=2"]);
    server.add("broken", &broken.url("/0"), &["--max-attempts=1"]);
    server.finished("books");
    server.ok(&["resource", "restart", "books"]);
    server.finished("books");
    server.finished("broken");
    let yearly = ["--cron", "0 0 1 1 *", "--tz", "Europe/Paris"];
    server.ok(&[&["resource", "schedule", "books"], &yearly[..]].concat());
    let bad = broken.url("/bad");
    for form in ["desktop", "phone"] {
        walk("axe.mjs", &server, &[&library, colours, form, bad.as_str()]);
    }
}

#[test]
fn the_page_asks_for_a_token_and_keeps_to_its_role() {
    let guarded = Guarded::start_with(&[]);
    let viewer = guarded.token(&json!({"subject": "reader", "roles": ["viewer"]}));
    let puppet = guests::guest("puppet").display().to_string();
    let add = |arguments: &[&str]| guarded.server.ok_as(&guarded.admin, arguments);
    add(&["plugin", "push", &puppet]);
    // No worker has the label, so that nothing happens meanwhile.
    let resource = [
        "--plugin=puppet",
        "--param=start=http://a.test/",
        "--selector=gpu=true",
    ];
    for name in ["books", "team/books"] {
        add(&[&["resource", "add", name], &resource[..]].concat());
        add(&["resource", "schedule", name, "--cron", "0 0 1 1 *"]);
    }
    let team = json!({"subject": "team", "roles": ["viewer"], "namespaces": ["team"]});
    let team = guarded.token(&team);
    walk("login.mjs", &guarded.server, &[&viewer, &team]);
}
