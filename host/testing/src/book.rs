//! Parts of the book that are written from the code: commands, calls over HTTP, the interface of gRPC, and the SDK for
//! Python.
//!
//! A test compares each part with what the code says now. With `UPDATE=1` in its environment it writes the part
//! anew, between the two comments that mark it. The rest of a chapter is written by hand.

use std::fs;
use std::path::Path;

/// Checks a part of a chapter, or writes it anew.
#[track_caller]
pub fn check(chapter: &str, part: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs/src")
        .join(chapter);
    let page = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let begin =
        format!("<!-- {part}: written by UPDATE=1 cargo test --workspace --lib the_book -->\n");
    let end = format!("<!-- end of {part} -->\n");
    let parts = page.split_once(&begin).and_then(|(before, rest)| {
        let (now, after) = rest.split_once(&end)?;
        Some((before, now, after))
    });
    let Some((before, now, after)) = parts else {
        panic!("{chapter} has no part between {begin}and {end}");
    };
    let text = format!("\n{}\n\n", text.trim());
    if now == text {
        return;
    }
    if is_update() {
        let page = [before, &begin, &text, &end, after].concat();
        fs::write(&path, page).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        return;
    }
    let mut pairs = text.lines().zip(now.lines());
    let first = pairs.find(|(code, book)| code != book);
    panic!(
        "{chapter}: {part} differs from the code; UPDATE=1 cargo test --workspace --lib the_book writes it anew. \
         The first lines that differ, code and book: {first:?}"
    );
}

/// Formats a text as a cell of a table: in one line, and without what Markdown would take for more than text.
pub fn cell(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    text.replace('|', "\\|")
        .replace('*', "\\*")
        .replace('<', "\\<")
}

/// Formats code as part of a cell of a table.
pub fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

#[expect(
    clippy::disallowed_methods,
    reason = "whoever runs the test says in the environment that the book is to be written"
)]
fn is_update() -> bool {
    std::env::var_os("UPDATE").is_some_and(|value| value == "1")
}
