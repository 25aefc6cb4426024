//! How those who write rules see what a rule withstands.

use std::path::{Path, PathBuf};

use crawler_tests::process::{Ended, Home};
use crawler_tests::{guests, repository};
use serde_json::{Value, json};

/// `plugin test` of the plugin `books` on its own saved calls.
fn test(home: &Home, arguments: &[&str]) -> Ended {
    let (books, pages) = (text(&guests::guest("books")), text(&pages()));
    let begin = ["plugin", "test", &books, "--pages", &pages];
    home.run(begin.iter().chain(arguments))
}

fn pages() -> PathBuf {
    repository().join("plugins/books/pages")
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

fn parsed(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).expect("it is JSON")
}

#[test]
fn a_rule_is_tried_on_pages_with_mistakes() {
    let home = Home::new();
    let mangled = test(&home, &["--mangle=20", "--seed=7"]);
    assert_eq!(mangled.code, Some(0), "{}", mangled.stderr);
    let (_, table) = mangled
        .stdout
        .split_once("\n\n")
        .expect("there are two tables");
    assert!(
        table.starts_with("on mangled copies of the pages (--mangle=20 --seed=7):\nCALL "),
        "{table}"
    );
    let has_row = |call: &str, mistake: &str, same: &str| {
        let is_row = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.starts_with(&[call, mistake]) && line.contains(same)
        };
        assert!(
            table.lines().any(is_row),
            "{call} {mistake} {same}: {table}"
        );
    };
    has_row("book", "optional-end-tags", "1 of 1");
    has_row("list", "optional-end-tags", "1 of 1");
    has_row("book", "cut-off", "gives up");
    assert!(
        table.contains("\nwithout a page of HTML: root\n"),
        "{table}"
    );
    assert!(table.contains("\nbook, cut-off, copy "), "{table}");

    let again = test(&home, &["--mangle=20", "--seed=7", "-o", "json"]);
    let all = parsed(&again);
    assert_eq!(all["seed"], 7);
    let book = all["calls"].as_array().expect("there are calls");
    let book = book.iter().find(|call| call["call"] == "book");
    let book = &book.expect("there is a call")["mangled"];
    assert_eq!(book[0]["mistake"], "optional-end-tags");
    assert_eq!(
        (&book[0]["copies"], &book[0]["same"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(book[3]["mistake"], "cut-off");
    assert_eq!(book[3]["copies"], 20);
    // One call makes the same of it as all of them, and another seed something else.
    let alone = |seed: &str| {
        let alone = test(&home, &["--mangle=20", seed, "-o", "json", "--call=book"]);
        parsed(&alone)["calls"][0]["mangled"].clone()
    };
    assert_eq!(alone("--seed=7"), *book);
    assert_ne!(alone("--seed=8"), *book);
}

#[test]
fn a_call_that_the_sandbox_ends_on_a_mangled_page_fails() {
    let home = Home::new();
    let usual = parsed(&test(&home, &["--call=book", "-o", "json"]));
    let fuel = usual["calls"][0]["fuel"].as_u64().expect("it is a number");
    // Enough for the page as it is, and not for one with more tags.
    let limit = format!("--limit=fuel={}", fuel + 1);
    assert_eq!(test(&home, &["--call=book", &limit]).code, Some(0));
    // What the host ends on the page itself is compared with nothing.
    let less = format!("--limit=fuel={}", fuel - 1);
    let never = test(&home, &["--call=book", &less, "--mangle"]);
    let line = "\nwithout an outcome on the page itself: book\n";
    assert!(never.stdout.contains(line), "{}", never.stdout);
    assert!(!never.stdout.contains("of HTML"), "{}", never.stdout);
    let ended = test(&home, &["--call=book", &limit, "--mangle", "--seed=1"]);
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("ended (out-of-fuel): "),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stderr.starts_with("error: the sandbox ended "),
        "{}",
        ended.stderr
    );
    for (arguments, expected) in [
        (["--mangle", "--update"], "cannot be used with"),
        (["--seed=1", "--call=book"], "--mangle"),
        (["--mangle=0", "--call=book"], "0 is not in 1..=10000"),
    ] {
        let refused = test(&home, &arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?}");
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
}
