//! Saved calls, made again natively.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crawler_plugin_sdk::prelude::*;
use crawler_plugin_sdk::testing::check_saved;

#[derive(Item, serde::Serialize)]
struct Heading {
    text: String,
    depth: u32,
}

/// A plugin whose rules repeat the content of a page.
pub struct Notes;

#[plugin(
    items(Heading),
    name = "notes",
    params(start(about = "First note", default = "http://notes.test/first"))
)]
impl Notes {
    fn root(crawl: &mut Crawl) -> Result {
        let start = crawl.config().require("start")?;
        crawl.follow(start, Self::NOTE)
    }

    #[rule]
    fn note(page: &Page, crawl: &mut Crawl) -> Result {
        match page.status() {
            203 => return Err(RuleError::skip("gone\u{1b}[2J")),
            204 => panic!("no content at {}", page.url()),
            _ => {}
        }
        let text = page.text().lines().next().require("a line")?.to_owned();
        crawl.emit(&Heading {
            text,
            depth: page.depth(),
        })?;
        crawl.request(
            Request::new("post", "next", Self::NOTE)
                .body(vec![0xff])
                .state(page.state()),
        )?;
        crawl.follow("http://:bad:/", Self::NOTE)
    }
}

const ROOT: &str = r#"{"params": {"start": "http://notes.test/"}, "outcome": {"items": [],
    "requests": [{"rule": "note", "url": "http://notes.test/"}]}}"#;
const NOTE: &str = r#"{"rule": "note", "page": {"url": "http://notes.test/1", "body": "1.txt", "depth": 2,
    "state": {"hex": "00"}}, "outcome": {
    "items": [{"kind": "heading", "item": {"text": "Milk", "depth": 2}}],
    "requests": [{"rule": "note", "url": "http://notes.test/next", "method": "POST",
        "body": {"hex": "ff"}, "state": "\u0000"}],
    "bad-urls": 1}}"#;

/// Returns the message about a folder with these files; it is empty if all is well.
fn said(files: &[(&str, &[u8])]) -> String {
    let folder = tempfile::tempdir().expect("there is a temporary folder");
    for (name, bytes) in files {
        fs::write(folder.path().join(name), bytes).expect("a file is written");
    }
    let check = AssertUnwindSafe(|| check_saved::<Notes>(folder.path()));
    match catch_unwind(check) {
        Ok(()) => String::new(),
        Err(panic) => panic
            .downcast_ref::<String>()
            .expect("it is a text")
            .clone(),
    }
}

#[test]
fn calls_that_give_what_was_kept_pass() {
    let gone = r#"{"rule": "note", "page": {"url": "http://notes.test/2", "body": "1.txt", "status": 203},
        "outcome": {"error": "skip: gone\\u{1b}[2J"}}"#;
    let files: [(&str, &[u8]); 4] = [
        ("root.call.json", ROOT.as_bytes()),
        ("note.call.json", NOTE.as_bytes()),
        ("gone.call.json", gone.as_bytes()),
        ("1.txt", b"Milk\nand bread"),
    ];
    assert_eq!(said(&files), "");
}

#[test]
fn params_that_a_call_does_not_give_have_their_defaults() {
    let root = ROOT.replace(r#""start": "http://notes.test/""#, "");
    let kept = root.replace("http://notes.test/", "http://notes.test/first");
    assert_eq!(said(&[("root.call.json", kept.as_bytes())]), "");
    assert_eq!(said(&[("root.call.json", ROOT.as_bytes())]), "");
}

#[test]
fn a_difference_names_the_file_and_the_place() {
    let files: [(&str, &[u8]); 2] = [
        ("note.call.json", NOTE.as_bytes()),
        ("1.txt", b"Bread\nand milk"),
    ];
    let said = said(&files);
    assert!(said.contains("note.call.json:\n"), "{said}");
    let line = "  /items/0/item/text: kept \"Milk\", found \"Bread\"";
    assert_eq!(
        said.lines()
            .filter(|line| line.starts_with("  "))
            .collect::<Vec<_>>(),
        [line]
    );
}

#[test]
fn more_and_fewer_than_were_kept_are_differences() {
    let more = NOTE.replace(r#""bad-urls": 1"#, r#""error": "skip: gone""#);
    let fewer = NOTE.replace(
        r#""requests": [{"#,
        r#""requests": [{"rule": "x", "url": "y"}, {"#,
    );
    let body: (&str, &[u8]) = ("1.txt", b"Milk");
    let text = said(&[("note.call.json", more.as_bytes()), body]);
    assert!(text.contains("/bad-urls: kept 0, found 1"), "{text}");
    assert!(
        text.contains("/error: kept \"skip: gone\", found null"),
        "{text}"
    );
    let text = said(&[("note.call.json", fewer.as_bytes()), body]);
    assert!(text.contains("/requests/1: kept {"), "{text}");
    assert!(text.contains("found nothing"), "{text}");
}

#[test]
fn what_cannot_be_compared_is_a_failure_and_not_passed_over() {
    let outcome = NOTE.find(", \"outcome\"").unwrap();
    let cases = [
        (format!("{}}}", &NOTE[..outcome]), "nothing was kept"),
        (
            NOTE.replace(r#""rule": "note", "page""#, r#""rule": "nota", "page""#),
            "no rule \"nota\"",
        ),
        (
            NOTE.replace(r#""depth": 2,"#, r#""depth": 2, "sate": "","#),
            "unknown field `sate`",
        ),
        (NOTE.replace("\"ff\"", "\"0g\""), "it is no saved call"),
        (
            NOTE.replace("\"1.txt\"", "\"../1.txt\""),
            "is no file beside the call's",
        ),
        (
            NOTE.replace(
                "\"body\": \"1.txt\"",
                "\"body\": \"1.txt\", \"status\": 204",
            ),
            "the rule panicked: no content at http://notes.test/1",
        ),
        (
            ROOT.replace("http://notes.test/\"}, \"out", "/relative\"}, \"out"),
            "is relative, and in root",
        ),
        (r#"{"rule": "note"}"#.to_owned(), "nothing was kept"),
        (
            r#"{"rule": "note", "outcome": {}}"#.to_owned(),
            "a rule is called with a page",
        ),
        ("{".to_owned(), "it is no saved call"),
    ];
    for (text, expected) in cases {
        let text = said(&[("note.call.json", text.as_bytes()), ("1.txt", b"Milk")]);
        assert!(text.contains(expected), "{text}");
    }
    let text = said(&[("note.call.json", NOTE.as_bytes())]);
    assert!(text.contains("cannot read 1.txt"), "{text}");
    assert!(said(&[]).contains("has no saved calls"));
}

#[test]
fn a_page_that_is_decoded_is_left_to_the_sandbox_but_not_all_of_them() {
    let decoded = NOTE.replace(r#""depth": 2"#, r#""depth": 2, "charset": "windows-1252""#);
    let root: (&str, &[u8]) = ("root.call.json", ROOT.as_bytes());
    let text: (&str, &[u8]) = ("1.txt", b"caf\xe9");
    assert_eq!(said(&[("note.call.json", NOTE.as_bytes()), text, root]), "");
    let other: (&str, &[u8]) = ("1.txt", b"Bread");
    let note: (&str, &[u8]) = ("note.call.json", decoded.as_bytes());
    assert_eq!(said(&[note, other, root]), "");
    let none = said(&[note, other]);
    assert!(none.contains("no call of "), "{none}");
}
