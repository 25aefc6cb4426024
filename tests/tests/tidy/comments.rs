//! Doc comments open with their subject or with a verb, not with a fragment that leans on the name below.
//!
//! Only the first word of a comment is judged. The rest of the rules of style is left to readers.

use super::{read, report, rust_files};

/// Words that open a fragment.
const FRAGMENTS: [&str; 12] = [
    "Of", "As", "What", "So", "Those", "How", "Whether", "Why", "Which", "Who", "Where", "When",
];

/// Places where doc comments of fields and variants are more than comments: help texts, or descriptions in the schema
/// of an item.
const TEXTS: [&str; 3] = ["host/crawler/src/cli/", "plugins/", "tests/guests/"];
/// Places where all doc comments are such texts.
const ONLY_TEXTS: [&str; 2] = ["plugin-sdk/tests/item.rs", "plugin-sdk/tests/ui/"];

#[test]
fn doc_comments_open_with_their_subject() {
    let files = rust_files();
    let is_in = |file: &str, places: &[&str]| places.iter().any(|place| file.starts_with(place));
    let judged = files.iter().filter(|file| !is_in(file, &ONLY_TEXTS));
    let mut faults = Vec::new();
    for file in judged {
        for n in fragments(&read(file), !is_in(file, &TEXTS)) {
            faults.push(format!(
                "{file}:{n}: opens with a fragment; begin with a noun (\"Id of the resource\") or a verb (\"Returns the id\")"
            ));
        }
    }
    report(&faults);
}

#[test]
fn a_fragment_is_found_at_the_opening_only() {
    let text =
        "//! Of this\n\n/// Id of\n/// What\nid: u8,\n/// As stored.\nb: u8,\n/// Whatever.\n";
    assert_eq!(fragments(text, true), [1, 6]);
    assert_eq!(fragments("/// Id.\n///\n/// What follows\n", true), [3]);
    let text = "/// What it is\nstruct A {\n    /// What is in it\n    b: u8,\n}\n";
    assert_eq!(fragments(text, true), [1, 3]);
    assert_eq!(fragments(text, false), [1]);
}

/// Numbers of the lines at which a paragraph of a doc comment opens with a fragment. Comments of fields and variants are
/// looked at if `within_items` is true.
fn fragments(text: &str, within_items: bool) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_within = false;
    for (n, line) in (1..).zip(text.lines()) {
        let is_judged = within_items || !line.starts_with(' ');
        let line = line.trim_start();
        let comment = line.strip_prefix("///").or(line.strip_prefix("//!"));
        let word = comment.and_then(|comment| comment.split_whitespace().next());
        if is_judged && !is_within && word.is_some_and(|word| FRAGMENTS.contains(&word)) {
            found.push(n);
        }
        is_within = word.is_some();
    }
    found
}
