//! Rules that loop, hoard, recurse, trap, panic or flood: each costs its page and nothing else, and the log of the
//! resource tells what happened and where.

use std::collections::BTreeMap;

use crawler_tests::guests;
use crawler_tests::web::{Site, Web};

use crate::Differences;
use crate::server::Server;

/// Rules that are ended by the host, with the reason and the line in the log.
const KILLS: [(&str, &str, &str); 12] = [
    (
        "loop",
        "out-of-fuel",
        "the rule used up its fuel; limit fuel is 20000000; raise it with --limit fuel=VALUE; fuel 20000000, peak memory ",
    ),
    (
        "spin-on-host",
        "out-of-fuel",
        "the rule used up its fuel with host calls; limit fuel is 20000000; raise it with --limit fuel=VALUE; fuel ",
    ),
    ("alloc", "out-of-memory", "the rule wanted "),
    ("alloc-at-once", "out-of-memory", "the rule wanted "),
    (
        "recurse",
        "stack-overflow",
        "the rule recursed too deeply; its call stack is used up; fuel ",
    ),
    (
        "trap",
        "trapped",
        "wasm trap: wasm `unreachable` instruction executed; fuel ",
    ),
    (
        "panic",
        "trapped",
        r"the rule panicked at src/lib.rs:PLACE: no such \u{1b}[31mbook; fuel ",
    ),
    (
        "exit",
        "denied",
        "the rule called exit, which ends a process; return an error instead; fuel ",
    ),
    ("follow-flood", "out-of-fuel", "the rule used up its fuel"),
    ("log-flood", "out-of-fuel", "the rule used up its fuel"),
    (
        "item-flood",
        "over-budget",
        "100 calls of output were refused; the last one because: limit items is 10 for one call; raise it with --limit items=VALUE; fuel ",
    ),
    ("log-huge", "out-of-memory", "the rule wanted "),
];

/// Functions of the guest that the log shows below the line of a rule. Those of other rules are closures, which the
/// compiler makes parts of their callers.
const FUNCTIONS: [(&str, &str); 2] = [
    ("recurse", "    at hostile::memory::recurse ("),
    ("panic", "    at hostile::look_for_a_book"),
];

/// Opens a site with a page for every path.
fn site() -> Web {
    Site::new()
        .handle("/*", |_| async { axum::response::Html("<p>a page</p>") })
        .open()
}

fn start() -> Server {
    let server = Server::start();
    let hostile = guests::guest("hostile").display().to_string();
    server.ok(&["plugin", "push", &hostile]);
    server
}

/// Limits so narrow that nothing takes long, and that a busy machine never reaches first.
const LIMITS: [&str; 3] = [
    "--limit=fuel=20000000",
    "--limit=cpu=2s",
    "--limit=timeout=20s",
];

/// Crawls one page for each of these rules. Returns the exit code of the wait. It is 3 if a page is given up, because
/// each page is that of a root request.
fn crawl(server: &Server, name: &str, web: &Web, rules: &str, flags: &[&str]) -> Option<i32> {
    let (root, rules) = (
        format!("--param=root={}", web.url("/")),
        format!("--param=rules={rules}"),
    );
    let add = ["resource", "add", name, "--plugin=hostile", &root, &rules];
    let arguments: Vec<&str> = add.iter().chain(&LIMITS).chain(flags).copied().collect();
    server.ok(&arguments);
    let wait = ["resource", "wait", name, "--timeout=60s"];
    server.cli(&wait).code
}

#[test]
fn f31_a_rule_that_is_ended_costs_one_page_and_is_told_with_all_there_is_to_know() {
    let (mut server, web) = (start(), site());
    let rules: Vec<&str> = KILLS
        .iter()
        .flat_map(|(rule, ..)| [*rule, "nothing"])
        .collect();
    let code = crawl(
        &server,
        "bad",
        &web,
        &rules.join(","),
        &["--concurrency=1", "--limit=memory=4MiB", "--limit=items=10"],
    );
    assert_eq!(code, Some(3));

    let resource = server.json("/crawler/resource/bad");
    let mut by_reason: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, reason, _) in KILLS {
        *by_reason.entry(reason).or_default() += 1;
    }
    let counts = &resource["counts"];
    assert_eq!(
        counts["dead_by_reason"],
        serde_json::json!(by_reason),
        "{counts}"
    );
    assert_eq!(
        counts["parsed"],
        KILLS.len(),
        "a good page is parsed after each: {counts}"
    );
    let shown = server.ok(&["resource", "get", "bad"]);
    for (why, n) in by_reason {
        let line = format!("{n} {why}, for example {}", web.url("/"));
        assert!(shown.contains(&line), "{line:?} is not in {shown}");
    }

    let log = server.ok(&["resource", "logs", "bad"]);
    let mut differences = Differences::default();
    for (n, (rule, reason, cause)) in KILLS.iter().enumerate() {
        let page = web.url(&format!("/{}-{rule}", 2 * n));
        let start = format!(" error {rule} {page} ended by the host ({reason}): ");
        let (start_of_cause, end_of_cause) = cause.split_once("PLACE").unwrap_or((cause, ""));
        let entry = log.split_once(&start).map_or("not told", |(_, rest)| rest);
        let line = entry.lines().next().unwrap_or_default();
        let is_told = line.starts_with(start_of_cause)
            && line.contains(end_of_cause)
            && line.contains("; fuel ")
            && line.contains(", peak memory ");
        if !is_told {
            differences.compare(&start, line, cause);
        }
        // Functions of the rule's author follow, unless the compiler has inlined them; none of libraries.
        let traced = entry.lines().skip(1);
        let traced = traced.take_while(|line| line.starts_with("    at "));
        let traced: Vec<&str> = traced.collect();
        let is_foreign =
            |line: &&&str| ["at std::", "at core::"].iter().any(|at| line.contains(at));
        if let Some(foreign) = traced.iter().find(is_foreign) {
            differences.compare(&start, foreign, "    at a function of the guest");
        }
        for (_, function) in FUNCTIONS.iter().filter(|(of, _)| of == rule) {
            let n_told = traced.iter().filter(|line| line.starts_with(function));
            if n_told.count() != 1 {
                differences.compare(&start, &traced.join("\n"), function);
            }
        }
        let given_up = format!(" warn {rule} {page} given up after attempt 1: {reason}\n");
        if !log.contains(&given_up) {
            differences.compare(&start, "", &given_up);
        }
    }
    differences.assert_none();
    let n_told = log.matches("no such ").count();
    assert_eq!(n_told, 1, "the message of the panic: {log}");
    assert!(log.is_ascii() && !log.contains('\u{1b}'), "{log}");
    assert!(server.process.is_running());
}

#[test]
fn f31_many_hostile_calls_at_once_leave_the_memory_of_the_process_bounded() {
    let (mut server, web) = (start(), site());
    assert_eq!(crawl(&server, "warm", &web, "nothing", &[]), Some(0));
    let before = server.memory();
    let mut rules: Vec<&str> = KILLS.iter().map(|(rule, ..)| *rule).collect();
    rules.extend(["item-huge", "write-secret"]);
    let n_rules = rules.len();
    let rules = rules.repeat(6).join(",");
    let code = crawl(
        &server,
        "bad",
        &web,
        &rules,
        &["--concurrency=16", "--limit=fuel=100000000"],
    );
    assert_eq!(code, Some(3));
    let counts = server.json("/crawler/resource/bad")["counts"].clone();
    let pages = |name: &str| counts[name].as_u64().unwrap_or(0);
    let n_pages = pages("parsed") + pages("other_done") + pages("dead");
    assert_eq!(n_pages, 6 * n_rules as u64, "{counts}");
    let n_hoarded = counts["dead_by_reason"]["out-of-memory"].as_u64();
    assert!(
        n_hoarded >= Some(12),
        "each hoard ends at the limit: {counts}"
    );
    let grown = server.memory().saturating_sub(before);
    assert!(grown < 200 << 20, "grown by {grown} bytes");
    assert_eq!(crawl(&server, "good", &web, "ok", &[]), Some(0));
    assert_eq!(server.json("/crawler/resource/good")["counts"]["dead"], 0);
    assert!(server.process.is_running());
}

#[test]
fn f31_a_root_that_does_not_end_or_gives_nothing_fails_the_resource_with_the_reason() {
    let server = start();
    let mut differences = Differences::default();
    let cases = [
        (
            "loop",
            "root was ended (out-of-fuel): the rule used up its fuel; limit fuel is 20000000; raise it with --limit fuel=VALUE",
        ),
        (
            "page",
            "root was ended (denied): the plugin asked for a page in root, where there is none",
        ),
        (
            "next",
            r#"root gave up: fatal: refused: url "next" is relative, and in root there is no page to resolve it against"#,
        ),
        (
            "ftp://a.test/",
            "root asked for ftp://a.test/; only http and https are fetched",
        ),
    ];
    for (n, (root, reason)) in cases.iter().enumerate() {
        let (name, param) = (format!("r{n}"), format!("--param=root={root}"));
        let add = ["resource", "add", &name, "--plugin=hostile", &param];
        let arguments: Vec<&str> = add.iter().chain(&LIMITS).copied().collect();
        server.ok(&arguments);
        let waited = server.cli(&["resource", "wait", &name]);
        let expected = format!(
            "1: resource {name} failed: {reason} | `crawler resource logs {name}` shows what led to it"
        );
        differences.compare(root, &crate::server::failure(&waited), &expected);
        let resource = server.json(&format!("/crawler/resource/{name}"));
        let found = format!("{}: {}", resource["phase"], resource["reason"]);
        let expected = format!("\"Failed\": {}", serde_json::json!(reason));
        differences.compare(root, &found, &expected);
        let log = server.ok(&["resource", "logs", &name]);
        if !log.contains(&format!(" error the crawl failed: {reason}\n")) {
            differences.compare(root, &log, reason);
        }
    }
    differences.assert_none();
}
