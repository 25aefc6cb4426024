//! Plugins that misbehave: a page is lost, and nothing else.

use std::process::Command;

use crawler_tests::process::program;
use crawler_tests::web::Site;
use crawler_tests::{guests, skipped};
use serde_json::json;

use crate::server::{Server, text};
use crate::sites;

/// Adds a crawl of the guest `hostile` with one page for each of these rules.
fn add(server: &Server, web: &crawler_tests::web::Web, name: &str, rules: &[&str], more: &[&str]) {
    let root = format!("root={}", web.url("/"));
    let rules = format!("rules={}", rules.join(","));
    let add = [
        "resource",
        "add",
        name,
        "--plugin=hostile",
        "--param",
        &root,
        "--param",
        &rules,
    ];
    server.ok(&[&add, more].concat());
}

/// Returns a site with pages for rules; the link of such a page leads to nothing.
fn site() -> Site {
    Site::new().page("/*", "x").without("/next")
}

#[test]
fn f27_a_plugin_that_traps_on_one_page_stops_no_other() {
    let (web, chain) = (site().open(), sites::chain(20).open());
    let server = Server::with_puppet();
    server.push("hostile", &[]);
    server.add("good", &chain.url("/0"), &["--delay=20ms"]);
    // As many pages trap at once as are in flight, and others one after the other.
    add(
        &server,
        &web,
        "bad",
        &["trap", "ok", "trap", "trap", "ok", "trap", "nothing"],
        &["--concurrency=2"],
    );
    let bad = server.finished("bad");
    assert_eq!(bad["counts"]["dead_by_reason"], json!({"trapped": 4}));
    assert_eq!(bad["counts"]["parsed"], 3);
    let urls = ["/1-ok", "/4-ok"].map(|path| json!({"url": web.url(path)}));
    assert_eq!(server.items("bad"), urls);
    // The log names rule, reason, one of the pages and the number of the others.
    let logs = server.ok(&["resource", "logs", "bad"]);
    let traps = "-trap (and 3 more) ended by the host (trapped)";
    assert_eq!(logs.matches(traps).count(), 1, "{logs}");
    let site = web.url("/").to_string();
    assert!(logs.contains(&format!("error trap {site}")), "{logs}");
    server.finished("good");
    assert_eq!(server.items("good").len(), 20);
}

#[test]
fn f31_a_rule_that_never_ends_grabs_memory_or_panics_costs_its_page() {
    let (web, chain) = (site().open(), sites::chain(20).open());
    let server = Server::with_puppet();
    server.push("hostile", &[]);
    server.add("good", &chain.url("/0"), &["--delay=20ms"]);
    let rules = [
        "loop",
        "spin-on-host",
        "alloc",
        "alloc-at-once",
        "recurse",
        "panic",
        "exit",
        "follow-flood",
        "item-flood",
        "log-flood",
    ];
    let with_ok = [&["ok"], &rules[..], &["ok"]].concat();
    // The fuel is low, so that loops end by their count and not by the clock of a busy machine.
    let limits = [
        "--limit=fuel=20000000",
        "--limit=cpu=2s",
        "--limit=timeout=20s",
    ];
    add(&server, &web, "bad", &with_ok, &limits);
    let bad = server.finished("bad");
    let counts = &bad["counts"];
    assert_eq!(
        (&counts["dead"], &counts["parsed"]),
        (&json!(rules.len()), &json!(2)),
        "{counts}"
    );
    let reasons = counts["dead_by_reason"]
        .as_object()
        .expect("reasons are counted");
    for reason in ["out-of-fuel", "out-of-memory", "stack-overflow", "trapped"] {
        assert!(reasons.contains_key(reason), "{counts}");
    }
    assert_eq!(server.items("bad").len(), 2);
    server.finished("good");
    assert_eq!(server.items("good").len(), 20);
}

#[test]
fn f31_plugins_keep_their_names_and_cannot_collide() {
    let server = Server::with_puppet();
    let puppet = server.get("/crawler/plugin/puppet").json();
    let hostile = guests::guest("hostile").display().to_string();
    let other = server.cli(&["plugin", "push", &hostile, "--as=puppet@0.1.0"]);
    assert_eq!(other.code, Some(1));
    assert!(
        other
            .stderr
            .contains("plugin puppet@0.1.0 exists with other bytes"),
        "{}",
        other.stderr
    );
    assert_eq!(server.get("/crawler/plugin/puppet").json(), puppet);
    // The same bytes may be pushed again, and another version has its own.
    server.push("puppet", &[]);
    server.push("hostile", &["--as=puppet@0.2.0"]);
    let first = server.get("/crawler/plugin/puppet@0.1.0").json();
    let second = server.get("/crawler/plugin/puppet").json();
    assert_eq!(first, puppet);
    assert_eq!(second["version"], "0.2.0");
    assert_ne!(text(&first["digest"]), text(&second["digest"]));
}

#[test]
fn every_plugin_of_the_repository_compiles_while_confined() {
    let plugins = crawler_tests::repository().join("plugins");
    let folders = std::fs::read_dir(plugins).expect("it is there");
    let folders = folders.map(|folder| folder.expect("it can be listed").path());
    // Plugins in other languages are compiled by their own tests.
    let members: Vec<_> = folders
        .filter(|folder| folder.join("Cargo.toml").is_file())
        .collect();
    assert!(members.len() >= 4, "{members:?}");
    let mut lacking = None;
    for member in members {
        let name = member.file_name().expect("it has a name").to_string_lossy();
        let name = name.as_ref();
        let component = std::fs::File::open(guests::guest(name)).expect("it is built");
        let output = Command::new(program())
            .args(["__compile", "reserved", "1073741824", "60", "on"])
            .stdin(component)
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        if !said.is_empty() {
            lacking = Some(said.lines().collect::<Vec<_>>().join("; "));
        }
        // A refusal has no image; the output is the description and the machine code.
        assert!(output.stdout.len() > 100_000, "{name}: {said}");
    }
    if let Some(said) = lacking {
        let why = format!("this kernel lacks a part of it: {said}");
        skipped("confinement", &why);
    }
}
