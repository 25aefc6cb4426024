//! Texts that are chosen, and cut, by a regular expression.

use std::ops::Range;
use std::sync::LazyLock;

use regex_lite::Regex;

/// A pattern of the author. The search is a function of its own, so that guests without patterns carry no engine
/// for them.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    /// Text of the pattern, as written.
    pub text: &'static str,
    /// Returns the part of a text that the pattern chooses.
    pub find: fn(&str) -> Option<Range<usize>>,
}

/// A compiled pattern, kept for the rest of the call.
pub type Compiled = LazyLock<Regex>;

/// Compiles a pattern that the derive has checked.
pub fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the derive has compiled it")
}

/// Returns the range of the first group of the first match, or of the whole match.
pub fn find(regex: &Regex, text: &str) -> Option<Range<usize>> {
    let found = regex.captures(text)?;
    let part = found.get(1).or_else(|| found.get(0))?;
    Some(part.range())
}
