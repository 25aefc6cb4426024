//! Guide to rules in JavaScript and Python, which a new plugin has in its folder: its author may have no clone of the
//! repository. It is the chapter `languages` of the SDK's documentation as plain Markdown.

use std::fs;
use std::path::Path;

use regex_lite::Regex;

/// Name of the file.
pub(super) const FILE: &str = "GUIDE.md";
/// First line, which tells the file from one that an author has written.
const TITLE: &str = "# Guide for authors of rules in JavaScript and Python";
/// Chapter of the documentation.
const CHAPTER: &str = include_str!("../../../../plugin-sdk/src/languages.md");
/// Link to an item of the SDK for Rust, which only the documentation can follow.
const LINK_OF_RUST: &str = r"\[(`[^`]*`)\]\(crate::[^)]*\)";

/// Returns the guide.
pub(super) fn text() -> String {
    let link = Regex::new(LINK_OF_RUST).expect("the pattern is well formed");
    format!("{TITLE}\n\n{}", link.replace_all(CHAPTER, "$1"))
}

/// Returns true if the path has a guide of any version of the program, or nothing.
pub(super) fn may_replace(path: &Path) -> bool {
    match fs::read_to_string(path) {
        Ok(text) => text.starts_with(TITLE),
        // A link that leads nowhere would be written through.
        Err(_) => path.symlink_metadata().is_err(),
    }
}
