//! Tools that show authors which mistakes of pages a rule withstands, and how two plugins differ.

use std::fs;
use std::path::{Path, PathBuf};

use crawler_tests::process::{Ended, Home};
use crawler_tests::up::Up;
use crawler_tests::{guests, repository};
use serde_json::{Value, json};

/// Runs `plugin test` of the plugin `books` on its own saved calls.
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
    // One call alone gives the same result as among all, and another seed gives a different one.
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
    // The fuel is enough for the page as it is, and not for one with more tags.
    let limit = format!("--limit=fuel={}", fuel + 1);
    assert_eq!(test(&home, &["--call=book", &limit]).code, Some(0));
    // A call that the host ends on the page itself is not compared.
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

/// Returns the plugin `books`, and a copy with another text in the place of one that it has.
fn two_plugins(home: &Home, from: &str, to: &str) -> [String; 2] {
    let books = fs::read(guests::guest("books")).expect("it is built");
    let mut other = books.clone();
    assert_eq!(from.len(), to.len());
    let places = books.windows(from.len()).enumerate();
    let places: Vec<usize> = places
        .filter(|(_, bytes)| *bytes == from.as_bytes())
        .map(|(place, _)| place)
        .collect();
    assert!(!places.is_empty(), "books has no {from:?}");
    for place in places {
        other[place..place + to.len()].copy_from_slice(to.as_bytes());
    }
    [("one.wasm", books), ("other.wasm", other)].map(|(name, bytes)| {
        fs::write(home.path().join(name), bytes).expect("it is written");
        name.to_owned()
    })
}

fn diff(home: &Home, arguments: &[&str]) -> Ended {
    home.run(["plugin", "diff"].iter().chain(arguments))
}

#[test]
fn two_plugins_are_compared_by_what_they_declare_and_do() {
    let home = Home::new();
    let [one, other] = two_plugins(&home, "ul.tags li", "ul.tags l1");
    let pages = format!("--pages={}", text(&pages()));
    let same = diff(&home, &[&one, &one, &pages]);
    assert_eq!(same.code, Some(0), "{}", same.stderr);
    for line in ["both declare the same\n", "\nbook ", "\nroot "] {
        assert!(same.stdout.contains(line), "{line}: {}", same.stdout);
    }

    let differs = diff(&home, &[&one, &other, &pages]);
    assert_eq!(differs.code, Some(1), "{}", differs.stdout);
    for line in [
        "reads book.tags  ul.tags li -> text  ul.tags l1 -> text\n",
        "\nbook: - came of it in A, + in B:\n",
        "\n-          \"fiction\",\n",
    ] {
        assert!(differs.stdout.contains(line), "{line}: {}", differs.stdout);
    }
    assert_eq!(
        differs.stderr,
        "error: one.wasm and other.wasm differ (declarations: 1, calls: 1 of 4)\n"
    );
    let answer = parsed(&diff(&home, &[&one, &other, &pages, "-o", "json"]));
    assert_eq!(
        (&answer["same"], &answer["breaking"]),
        (&json!(false), &json!([]))
    );
    let book = &answer["calls"][0];
    assert_eq!(
        (&book["call"], &book["result"]),
        (&json!("book"), &json!("differs"))
    );
    assert_eq!(book["items"], json!({"gone": 0, "changed": 1, "new": 0}));
    assert_eq!(book["fields"], json!({"book.tags": 1}));
    assert!(
        book["a"]["fuel"].as_u64() > book["b"]["fuel"].as_u64(),
        "{book}"
    );
    let only = diff(&home, &[&one, &other, &pages, "--call=list"]);
    assert!(only.stderr.contains("calls: 0 of 1)"), "{}", only.stderr);

    // Without saved calls, only the declarations are compared.
    let declared = diff(&home, &[&one, &text(&guests::guest("puppet"))]);
    assert_eq!(declared.code, Some(1));
    for line in [
        "rule list",
        "readers of A's items could stumble in B's:\n  item book: there are none of it any more\n",
        "no saved calls: ",
    ] {
        assert!(
            declared.stdout.contains(line),
            "{line}: {}",
            declared.stdout
        );
    }
    let hint = "hint: readers of items could stumble";
    assert!(declared.stderr.contains(hint), "{}", declared.stderr);
}

#[test]
fn a_plugin_that_was_pushed_is_compared_by_name_and_by_digest() {
    let home = Home::new();
    let [one, other] = two_plugins(&home, r"(\d+\.\d\d)$", r"(\d+\.\d\d)!");
    let up = Up::start(&home, &[]);
    let pushed = up.ok(["plugin", "push", &one, "-o", "json"]);
    let pushed: Value = serde_json::from_str(&pushed).expect("it is JSON");
    let digest = pushed["digest"].as_str().expect("it is a text");
    let name = format!(
        "books@{}",
        pushed["version"].as_str().expect("it is a text")
    );
    let again = up.ok(["plugin", "push", &one]);
    assert!(again.starts_with(&format!("unchanged {name} (")), "{again}");
    let pages = format!("--pages={}", text(&pages()));
    for first in ["books", &name, digest] {
        let same = up.cli(["plugin", "diff", first, &one, &pages]);
        assert_eq!(same.code, Some(0), "{}", same.stderr);
    }
    let differs = up.cli(["plugin", "diff", &name, &other, &pages]);
    assert_eq!(differs.code, Some(1));
    assert!(
        differs.stdout.contains("\nboth declare the same\n"),
        "{}",
        differs.stdout
    );
    assert!(
        differs.stdout.contains("\n+  \"error\": "),
        "{}",
        differs.stdout
    );
    for (first, expected) in [
        ("gone", "error: "),
        ("gone.wasm", "error: cannot find a plugin at gone.wasm"),
        (&"0".repeat(64), "error: "),
    ] {
        let refused = up.cli(["plugin", "diff", first, &one]);
        assert_eq!(refused.code, Some(1), "{first}");
        assert!(refused.stderr.starts_with(expected), "{}", refused.stderr);
        assert!(refused.stdout.is_empty(), "{}", refused.stdout);
    }
    up.stop();
}
