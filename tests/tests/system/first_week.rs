//! The first week of an author, command by command: a new plugin, a selector that breaks, and a crawl on a server.

use std::fs;
use std::time::Instant;

use crawler_tests::PATIENCE;
use crawler_tests::process::{Ended, Home};

use crate::devtools::{build, fetch_crates};
use crate::server::{Server, lines};

/// Runs a command in the folder of plugin `bodega`, a name that no other test has.
fn in_bodega(home: &Home, arguments: &[&str]) -> Ended {
    let mut command = home.command(arguments);
    build(command.current_dir(home.path().join("bodega")))
}

/// Replaces a text in the rules.
fn edit(home: &Home, from: &str, to: &str) {
    let source = home.path().join("bodega/src/lib.rs");
    let rules = fs::read_to_string(&source).expect("it was made");
    assert!(rules.contains(from), "{rules}");
    fs::write(&source, rules.replace(from, to)).expect("it is changed");
}

#[test]
fn an_author_notices_a_broken_selector_and_gets_a_table_of_items() {
    fetch_crates();
    let server = Server::start();
    let home = &server.home;
    let mut demo = home.start(["demo", "--site-only"]);
    let marks = "a crawl starts at ";
    let shop = demo.answer("the shop's start", PATIENCE, |line| line.starts_with(marks));
    let shop = shop.rsplit(' ').next().unwrap_or_default();
    let start = format!("--param=start={shop}");
    let crawl = ["run", ".", &start, "--allow-networks=127.0.0.0/8"];

    let began = Instant::now();
    home.ok(["plugin", "new", "bodega"]);
    let tested = in_bodega(home, &["plugin", "test"]);
    assert_eq!(tested.code, Some(0), "{}{}", tested.stdout, tested.stderr);
    let good = in_bodega(home, &crawl);
    assert_eq!(good.code, Some(0), "{}", good.stderr);
    assert_eq!(lines(&good.stdout).len(), 400);

    // The site is as before, and the rules are not.
    edit(home, "article h3 a", "article h4 a");
    let broken = in_bodega(home, &crawl);
    assert_eq!(broken.code, Some(0), "{}", broken.stderr);
    assert_eq!(broken.stdout, "");
    let mut told = broken.stderr.lines().map(str::trim_start);
    let unmatched = told.find(|line| line.starts_with("unmatched "));
    assert!(
        unmatched.is_some_and(|line| line.ends_with(": details")),
        "{}",
        broken.stderr
    );
    let strict = [&crawl[..], &["--fail-on=unmatched,items=0"]].concat();
    let broken = in_bodega(home, &strict);
    assert_eq!(broken.code, Some(3), "{}", broken.stderr);
    let tested = in_bodega(home, &["plugin", "test"]);
    assert_eq!(tested.code, Some(1), "{}", tested.stdout);

    edit(home, "article h4 a", "article h3 a");
    let tested = in_bodega(home, &["plugin", "test"]);
    assert_eq!(tested.code, Some(0), "{}{}", tested.stdout, tested.stderr);
    let master = format!("http://{}", server.grpc());
    let mut push = home.command(["plugin", "push", "bodega"]);
    let pushed = build(push.env("CRAWLER_MASTER", master));
    assert_eq!(pushed.code, Some(0), "{}", pushed.stderr);
    let text = format!("[[resource]]\nname = \"bodega\"\nparams = {{ start = {shop:?} }}\n");
    home.write("crawls.toml", &text);
    let applied = server.ok(&["apply", "-f", "crawls.toml"]);
    assert_eq!(applied, "resource bodega created\n");
    server.ok(&[
        "resource",
        "wait",
        "bodega",
        "--fail-on=dead=1,unmatched,items=0",
    ]);
    let table = server.ok(&["items", "bodega", "-o", "csv"]);
    let mut rows = table.lines();
    assert_eq!(rows.next(), Some("description,price,tags,title,url"));
    assert_eq!(rows.filter(|row| row.contains(",http://")).count(), 400);
    let seconds = began.elapsed().as_secs_f64();
    println!("{seconds:>6.1} s from a new plugin to a table of items (goal: 90 s)");
    demo.interrupt();
    demo.wait(PATIENCE);
}
