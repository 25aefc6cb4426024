//! Tools of plugin authors: a new plugin, its saved calls, a page that is fetched and kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crawler_tests::process::{Ended, Home, Process};
use crawler_tests::web::Site;
use crawler_tests::{PATIENCE, guests, repository};
use serde_json::{Value, json};

use crate::server::lines;

/// Time in which a plugin is built with all its dependencies, or an interpreter of megabytes is compiled, on a busy machine.
pub(crate) const BUILD: Duration = Duration::from_secs(600);

/// Starts a command. Its builds go into a folder that has the dependencies of the example plugins.
fn start(command: &mut Command) -> Process {
    command
        // The SDK lies at the same place each time, so that it is compiled once.
        .env(
            "XDG_CACHE_HOME",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"),
        )
        .env("CARGO_TARGET_DIR", repository().join("plugins/target"))
        .env("CARGO_NET_OFFLINE", "true");
    Process::start(command)
}

/// Runs a command that may build, to its end.
pub(crate) fn build(command: &mut Command) -> Ended {
    start(command).wait(BUILD)
}

/// Runs a command in the folder of plugin `bazaar`. No other test has a plugin of this name, because all are built
/// into one folder.
fn in_bazaar(home: &Home, arguments: &[&str]) -> Ended {
    build(
        home.command(arguments)
            .current_dir(home.path().join("bazaar")),
    )
}

/// Fetches the crates of plugins and their tests, so that nothing is fetched later.
pub(crate) fn fetch_crates() {
    let mut cargo = Command::new("cargo");
    let fetch = cargo.args(["fetch", "--quiet", "--locked", "--target=wasm32-wasip2"]);
    let native = format!("--target={}-unknown-linux-gnu", std::env::consts::ARCH);
    let fetched = fetch.arg(native).current_dir(repository().join("plugins"));
    let fetched = Process::start(fetched).wait(BUILD);
    assert_eq!(fetched.code, Some(0), "{}", fetched.stderr);
}

#[test]
fn a_new_plugin_passes_its_own_tests_without_a_network() {
    fetch_crates();
    let home = Home::new();
    let made = home.ok(["plugin", "new", "bazaar"]);
    assert!(
        made.starts_with("made bazaar, with its SDK in sdk\n"),
        "{made}"
    );

    let tested = in_bazaar(&home, &["plugin", "test", "--repeat=3", "-o", "json"]);
    assert_eq!(tested.code, Some(0), "{}", tested.stderr);
    let tested: Value = serde_json::from_str(&tested.stdout).expect("it is JSON");
    let calls = tested["calls"].as_array().expect("there are calls");
    let results = calls.iter().map(|call| (&call["call"], &call["result"]));
    let same = json!("same");
    assert_eq!(
        results.collect::<Vec<_>>(),
        [
            (&json!("detail"), &same),
            (&json!("list"), &same),
            (&json!("root"), &same)
        ]
    );
    let natively = build(
        Command::new("cargo")
            .arg("test")
            .current_dir(home.path().join("bazaar")),
    );
    assert_eq!(
        natively.code,
        Some(0),
        "{}{}",
        natively.stdout,
        natively.stderr
    );
    assert!(
        natively
            .stdout
            .contains("test saved_calls_give_what_they_gave ... ok"),
        "{}",
        natively.stdout
    );

    let checked = in_bazaar(&home, &["plugin", "check"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    for line in ["plugin     bazaar@0.1.0", "rules      list, detail"] {
        assert!(checked.stdout.contains(line), "{}", checked.stdout);
    }
    // The check shows size and compile time, in percent of their limits.
    for name in ["size ", "compiled "] {
        let row = checked.stdout.lines().find(|line| line.starts_with(name));
        assert!(
            row.is_some_and(|row| row.contains(" % of ")),
            "{}",
            checked.stdout
        );
    }
    // A page is not fetched for a rule that is not there.
    let url = "http://127.0.0.1:1/";
    let misspelt = in_bazaar(&home, &["plugin", "fetch", url, "--rule=detial"]);
    assert_eq!(misspelt.code, Some(1), "{}", misspelt.stderr);
    for part in [
        "the plugin has no rule detial: nothing was fetched",
        "did you mean \"detail\"?",
    ] {
        assert!(misspelt.stderr.contains(part), "{}", misspelt.stderr);
    }
    // The test shows fuel, memory and time of each call, too.
    let tested = in_bazaar(&home, &["plugin", "test"]);
    for name in ["detail ", "list ", "root "] {
        let row = tested.stdout.lines().find(|line| line.starts_with(name));
        let n_shares = row.map(|row| row.matches(" %)").count());
        assert_eq!(n_shares, Some(3), "{}", tested.stdout);
    }
    let compared = in_bazaar(&home, &["plugin", "diff", ".", "."]);
    assert_eq!(compared.code, Some(0), "{}", compared.stderr);
    for line in ["both declare the same\n", "\ndetail "] {
        assert!(compared.stdout.contains(line), "{}", compared.stdout);
    }

    // Each folder is built for itself, and the saved calls of the second are made.
    home.ok(["plugin", "new", "market"]);
    let source = home.path().join("market/src/lib.rs");
    let rules = fs::read_to_string(&source).expect("it was made");
    fs::write(&source, rules.replace("title: String", "heading: String")).expect("it is changed");
    let differ = in_bazaar(&home, &["plugin", "diff", ".", "../market"]);
    assert_eq!(differ.code, Some(1), "{}", differ.stdout);
    for line in [
        "item product.title",
        "reads product.heading",
        "\ndetail: - came of it in A, + in B:\n",
    ] {
        assert!(differ.stdout.contains(line), "{}", differ.stdout);
    }
    assert!(
        differ.stderr.contains("error: . and ../market differ "),
        "{}",
        differ.stderr
    );

    // The rules fit the shop that the program contains.
    let mut demo = home.start(["demo", "--site-only"]);
    let marks = "a crawl starts at ";
    let address = demo.answer("the shop's start", PATIENCE, |line| line.starts_with(marks));
    let address = format!("start={}", address.rsplit(' ').next().unwrap_or_default());
    let run = [
        "run",
        ".",
        "--param",
        &address,
        "--allow-networks=127.0.0.0/8",
    ];
    let run = in_bazaar(&home, &run);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(lines(&run.stdout).len(), 400);

    // A save rebuilds the source, and the next crawl uses the new build.
    let watch = [
        "run",
        ".",
        "--watch",
        "--param",
        &address,
        "--allow-networks=127.0.0.0/8",
    ];
    let mut watching = start(home.command(watch).current_dir(home.path().join("bazaar")));
    let is_new = |line: &str| line.contains("\"heading\":");
    let waits = |line: &str| line.starts_with("waiting for a change of ");
    watching.line("the end of the first crawl", BUILD, waits);
    assert!(!watching.stdout().iter().any(|line| is_new(line)));
    let source = home.path().join("bazaar/src/lib.rs");
    let rules = fs::read_to_string(&source).expect("it was made");
    fs::write(&source, rules.replace("title: String", "heading: String")).expect("it is changed");
    watching.answer("an item of the second crawl", BUILD, is_new);
    watching.interrupt();
    assert_eq!(watching.wait(PATIENCE).code, Some(130));
    demo.interrupt();
    demo.wait(PATIENCE);
}

/// Copies the saved calls of the plugin `books` into a folder that may be changed.
fn calls_of_books(home: &Home) -> PathBuf {
    let pages = home.path().join("pages");
    fs::create_dir(&pages).expect("the folder is new");
    let own = repository().join("plugins/books/pages");
    for entry in fs::read_dir(own).expect("books has saved calls") {
        let from = entry.expect("a folder can be listed").path();
        fs::copy(&from, pages.join(from.file_name().expect("it is a file"))).expect("it is copied");
    }
    pages
}

fn test(home: &Home, arguments: &[&str]) -> Ended {
    let books = guests::guest("books");
    let begin = ["plugin", "test", books.to_str().expect("it is text")];
    home.run(begin.iter().chain(arguments))
}

fn call(pages: &Path, name: &str) -> Value {
    let text = fs::read_to_string(pages.join(format!("{name}.call.json")));
    serde_json::from_str(&text.expect("the call is there")).expect("it is JSON")
}

#[test]
fn a_call_that_gives_something_else_fails_until_that_is_kept() {
    let home = Home::new();
    let pages = calls_of_books(&home);
    let all = test(&home, &[]);
    assert_eq!(all.code, Some(0), "{}", all.stderr);
    let book = pages.join("book.html");
    let html = fs::read_to_string(&book).expect("the page is there");
    fs::write(&book, html.replace("£12.34", "£13.00")).expect("it is changed");

    let differs = test(&home, &[]);
    assert_eq!(differs.code, Some(1));
    for line in [
        "-        \"price_pence\": 1234,",
        "+        \"price_pence\": 1300,",
    ] {
        assert!(differs.stdout.contains(line), "{}", differs.stdout);
    }
    assert_eq!(
        differs.stderr,
        "error: not all of 4 calls are as kept: 1 differs\n\
         hint: if that is as it should be, the same command with --update keeps it\n"
    );
    let before = call(&pages, "book");
    let kept = test(&home, &["--update"]);
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    let mut after = call(&pages, "book");
    assert_eq!(after["outcome"]["items"][0]["item"]["price_pence"], 1_300);
    after["outcome"]["items"][0]["item"]["price_pence"] = 1_234.into();
    assert_eq!(after, before);
    assert_eq!(test(&home, &[]).code, Some(0));

    // Limits that a call was kept with are those of later tests too.
    let kept = test(
        &home,
        &["--update", "--limit=fuel=2000000000", "--call=book"],
    );
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    assert_eq!(
        call(&pages, "book")["limits"],
        json!({"fuel": 2_000_000_000_u64})
    );
    assert_eq!(test(&home, &[]).code, Some(0));
    let edited = fs::read_to_string(pages.join("book.call.json")).expect("the call is there");
    fs::write(
        pages.join("book.call.json"),
        edited.replace("2000000000", "5000"),
    )
    .expect("it is changed");
    let ended = test(&home, &[]);
    assert!(
        ended.stdout.contains("book: ended (out-of-fuel): "),
        "{}",
        ended.stdout
    );

    // A limit that a call exceeds is reported.
    let limited = ["--limit=fuel=5000", "--call=book"];
    let limited = test(&home, &limited);
    assert_eq!(limited.code, Some(1));
    assert!(
        limited.stdout.contains("book: ended (out-of-fuel): "),
        "{}",
        limited.stdout
    );
}

#[test]
fn a_page_is_fetched_as_a_crawl_does_and_becomes_a_call() {
    let html = fs::read_to_string(repository().join("plugins/books/pages/book.html"));
    let web = Site::new()
        .page("/book/7.html", html.expect("the page is there"))
        .page("/robots.txt", "User-agent: *\nDisallow: /private")
        .open();
    let home = Home::new();
    let url = web.url("/book/7.html");
    let fetch = [
        "plugin",
        "fetch",
        url.as_str(),
        "--rule=detail",
        "--allow-networks=127.0.0.0/8",
    ];
    let saved = home.run(fetch);
    assert_eq!(saved.code, Some(0), "{}", saved.stderr);
    assert!(
        saved
            .stdout
            .contains("pages/detail-7.call.json: status 200"),
        "{}",
        saved.stdout
    );
    // The fetch obeys the robots.txt, as a crawl does.
    let private = web.url("/private").to_string();
    let private = home.run(fetch.map(|word| if word == url.as_str() { &private } else { word }));
    assert_eq!(private.code, Some(1));
    assert!(private.stderr.contains("robots.txt"), "{}", private.stderr);

    // An answer that no crawl hands to a rule cannot be saved as a call.
    let gone = web.url("/gone").to_string();
    let gone = home.run(fetch.map(|word| if word == url.as_str() { &gone } else { word }));
    assert_eq!(gone.code, Some(1));
    assert!(gone.stderr.contains("status 404"), "{}", gone.stderr);

    let again = home.run(fetch);
    assert_eq!(again.code, Some(1));
    assert!(
        again.stderr.contains("is there already"),
        "{}",
        again.stderr
    );
    let replaced = home.run(fetch.iter().chain(&["--replace"]));
    assert_eq!(replaced.code, Some(0), "{}", replaced.stderr);

    let new = test(&home, &[]);
    assert_eq!(new.code, Some(1));
    assert!(
        new.stdout.contains("detail-7: nothing was kept"),
        "{}",
        new.stdout
    );
    assert_eq!(test(&home, &["--update"]).code, Some(0));
    let kept = call(&home.path().join("pages"), "detail-7");
    assert_eq!(kept["outcome"]["items"][0]["item"]["url"], url.as_str());
    assert_eq!(test(&home, &["--repeat=20"]).code, Some(0));
}

#[test]
fn what_an_author_asks_for_in_vain_is_told_in_a_sentence() {
    let home = Home::new();
    home.write("file", "");
    let pages = calls_of_books(&home);
    let odd = r#"{"rule": "detial", "page": {"url": "http://a.test/", "body": "book.html"}}"#;
    fs::write(pages.join("odd.call.json"), odd).expect("a call is written");
    let books = guests::guest("books");
    let books = books.to_str().expect("it is text");
    let cases: [(&[&str], i32, &str); 12] = [
        (
            &["plugin", "new", "self"],
            1,
            "no crate can be called self: Rust or the SDK has the name",
        ),
        (
            &["plugin", "new", "7days"],
            1,
            "it has to begin with a letter",
        ),
        (&["plugin", "new", "a b"], 2, "plugin name \"a b\""),
        (&["plugin", "new", "file"], 1, "cannot write "),
        (
            &["plugin", "check", "file"],
            1,
            "file is neither a folder nor a .wasm file",
        ),
        (
            &["plugin", "test", books, "--pages=nowhere"],
            1,
            "there are no saved calls in nowhere",
        ),
        (
            &["plugin", "test", books, "--update", "--param=a=b"],
            2,
            "cannot be used with",
        ),
        (
            &["plugin", "fetch", "http://a.test/", "--rule=../x"],
            2,
            "the name of a rule, like detail",
        ),
        (
            &["plugin", "test", books, "--call=gone"],
            1,
            "there is no call gone: it would be pages/gone.call.json",
        ),
        (
            &["plugin", "test", books, "--repeat=0"],
            2,
            "0 is not in 1..=100000",
        ),
        (
            &["plugin", "fetch", "ftp://a.test/", "--rule=detail"],
            2,
            "only http and https are fetched",
        ),
        (
            &["plugin", "fetch", "http://127.0.0.1:1/", "--rule=detail"],
            1,
            "cannot fetch http://127.0.0.1:1/",
        ),
    ];
    for (arguments, code, expected) in cases {
        let ended = home.run(arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(expected),
            "{arguments:?}: {}",
            ended.stderr
        );
    }
    let odd = test(&home, &["--update"]);
    assert_eq!(odd.code, Some(1));
    let why = "odd: the plugin has no rule detial; it has list, detail";
    assert!(odd.stdout.contains(why), "{}", odd.stdout);
    assert!(call(&pages, "odd").get("outcome").is_none());
}

#[test]
fn calls_of_rules_that_are_gone_are_removed_when_asked_for() {
    let home = Home::new();
    let pages = calls_of_books(&home);
    let stale = r#"{"rule": "detial", "page": {"url": "http://a.test/", "body": "stale.html"}}"#;
    fs::write(pages.join("stale.call.json"), stale).expect("a call is written");
    fs::write(pages.join("stale.html"), "<p>").expect("a page is written");
    let told = test(&home, &[]);
    assert_eq!(told.code, Some(1));
    assert!(
        told.stderr.ends_with("hint: if these rules are gone for good, the same command with --prune removes their calls\n"),
        "{}",
        told.stderr
    );
    let pruned = test(&home, &["--prune"]);
    assert_eq!(pruned.code, Some(0), "{}", pruned.stderr);
    let line = "removed stale: the plugin has no rule detial\n";
    assert!(pruned.stdout.starts_with(line), "{}", pruned.stdout);
    assert!(!pages.join("stale.html").exists());
    let again = test(&home, &["--prune", "-o", "json"]);
    let again: Value = serde_json::from_str(&again.stdout).expect("it is JSON");
    assert_eq!(again["pruned"], json!([]));
    assert_eq!(again["calls"].as_array().map(Vec::len), Some(4));
}

#[test]
fn saved_calls_are_tried_again_on_each_save() {
    let home = Home::new();
    let pages = calls_of_books(&home);
    fs::copy(guests::guest("books"), home.path().join("books.wasm")).expect("it is copied");
    let mut watching = home.start(["plugin", "test", "books.wasm", "--watch"]);
    let is_last = |line: &str| line.starts_with("root ") && line.ends_with("same");
    watching.answer("the first trial", PATIENCE, is_last);
    let differs = |lines: Vec<String>| lines.iter().any(|line| line.ends_with("differs"));
    assert!(!differs(watching.stdout()));
    let waits = |line: &str| line.starts_with("waiting for a change of books.wasm");
    watching.line("the wait for a change", PATIENCE, waits);

    let book = pages.join("book.html");
    let html = fs::read_to_string(&book).expect("the page is there");
    fs::write(&book, html.replace("£12.34", "£13.00")).expect("it is changed");
    watching.answer("the second trial", PATIENCE, |line| {
        line.ends_with("differs")
    });
    watching.interrupt();
    assert_eq!(watching.wait(PATIENCE).code, Some(130));
}

#[test]
fn a_crawl_begins_again_on_each_save() {
    let web = Site::new().page("/", "[]").open();
    let home = Home::new();
    let mut puppet = fs::read(guests::guest("puppet")).expect("it is built");
    fs::write(home.path().join("puppet.wasm"), &puppet).expect("it is copied");
    let start = format!("start={}", web.url("/"));
    let run = [
        "run",
        "puppet.wasm",
        "--watch",
        "--allow-networks=127.0.0.0/8",
        "--param",
        &start,
    ];
    let mut watching = home.start(run);
    let waits = |line: &str| line.starts_with("waiting for a change of puppet.wasm");
    watching.line("the end of the first crawl", PATIENCE, waits);
    assert_eq!(web.log().len(), 1);
    // A custom section without a meaning makes another plugin that does the same.
    puppet.extend([0, 2, 1, b'x']);
    fs::write(home.path().join("puppet.wasm"), &puppet).expect("it is changed");
    web.wait_for("a second crawl", PATIENCE, |log| log.len() == 2);
    watching.interrupt();
    assert_eq!(watching.wait(PATIENCE).code, Some(130));
}
