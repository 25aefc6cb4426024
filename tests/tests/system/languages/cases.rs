//! A rule that does what its page says, in each language, with the expected outcomes.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

pub(super) const JAVASCRIPT: &str = include_str!("cases.js");
pub(super) const PYTHON: &str = include_str!("cases.py");

/// Returns the expected outcomes of the rule, in the form of saved calls: the same in both languages.
fn outcomes() -> Vec<(&'static str, Value)> {
    let item = |item: Value| json!({"items": [{"kind": "any", "item": item}], "requests": []});
    let error = |why: &str| json!({"items": [], "requests": [], "error": why});
    let shelf = |name: &str, books: Value| json!({"name": name, "books": books});
    vec![
        (
            "rows",
            item(json!({"shelves": [
                shelf("Ünë", json!([{"title": "Ä – b", "sale": true}, {"title": null, "sale": false}])),
                shelf("日本", json!([])),
            ], "tags": ["é", "€", "𝄞"], "none": [], "otherwise": 7, "not": true})),
        ),
        (
            "post",
            json!({"items": [], "requests": [
                {"rule": "parse", "url": "http://shelf.test/a", "method": "POST", "headers": [["x-n", "1"]],
                 "body": "ü=1", "state": "ß", "priority": -3},
                {"rule": "parse", "url": "http://shelf.test/b", "method": "POST", "headers": [["x-n", "1"]],
                 "body": "ü=1", "state": "ß", "priority": -3},
            ]}),
        ),
        (
            "apart",
            json!({"items": [], "requests": [
                {"rule": "parse", "url": "http://shelf.test/c"},
                {"rule": "parse", "url": "http://other.test/", "state": "not c"},
            ]}),
        ),
        (
            "pattern",
            error(
                "fatal: `(` is no regular expression for links: found open group without closing ')'",
            ),
        ),
        (
            "regex",
            error("error 0: TypeError: a regular expression for links is a text, not REGEX"),
        ),
        (
            "page",
            item(json!({
                "url": "http://shelf.test/", "requested": "http://shelf.test/", "status": 200, "headers": [],
                "header": null, "redirects": [], "fetched": 0, "charset": "UTF-8", "source": "valid",
                "truncated": false, "depth": 0, "state": "", "referrer": null, "attempt": 1, "text": "<h1>",
                "body": 60, "params": {"case": "page"}, "param": null,
            })),
        ),
        ("room", item(json!({"room": 80 << 20}))),
        ("skip", error("skip: 404")),
        ("retry", error("retry: later")),
        ("blocked", error("blocked: go away")),
        ("fatal", error("fatal: no")),
        (
            "null",
            error("error: TypeError: an address is a text, not NOTHING"),
        ),
        (
            "state",
            error("error: TypeError: state is a text, not NUMBER"),
        ),
        (
            "links",
            error(
                "error: TypeError: the links of a can only be followed; to read addresses use attr",
            ),
        ),
        (
            "returns",
            error(
                "error: TypeError: parse returned something: rules return nothing, and cannot be LAZY",
            ),
        ),
        (
            "schema",
            error("error: item 1, of schema strict: at /n: \"1\" is not of the kind integer"),
        ),
    ]
}

/// Writes calls with a page that names the case, and the expected outcomes in this language.
pub(super) fn write(folder: &Path, words: &[(&str, &str)]) {
    let html = "<h1>x</h1><a href=/c>c</a><a href=/c#d></a><a href=//other.test></a><i>é</i><i>€</i><i>𝄞</i>\
        <section><h2>Ünë</h2><p class=sale><b>Ä – b</b><p>nothing</section><section><h2>日本</h2></section>";
    fs::create_dir(folder.join("cases")).expect("a folder can be made");
    for (case, outcome) in outcomes() {
        let outcome = words
            .iter()
            .fold(outcome.to_string(), |outcome, (word, ours)| {
                outcome.replace(word, ours)
            });
        let outcome: Value = serde_json::from_str(&outcome).expect("it stays JSON");
        let call = json!({
            "rule": "parse",
            "params": {"case": case},
            "page": {"url": "http://shelf.test/", "body": "page.html"},
            "outcome": outcome,
        });
        let file = folder.join(format!("cases/{case}.call.json"));
        fs::write(file, call.to_string()).expect("a file can be written");
    }
    fs::write(folder.join("cases/page.html"), html).expect("a file can be written");
}
