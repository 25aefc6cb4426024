//! Texts that are chosen, and cut, by a regular expression.

use std::ops::Range;
use std::sync::LazyLock;

use regex_lite::Regex;

/// A pattern of the author. What looks for it is a function of its own, so that guests without patterns carry
/// no engine for them.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    /// As written.
    pub text: &'static str,
    /// Where it is in a text.
    pub find: fn(&str) -> Option<Range<usize>>,
}

/// Where it is kept, compiled once in a call.
pub type Compiled = LazyLock<Regex>;

/// Compiles what the derive has seen to compile.
pub fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the derive has compiled it")
}

/// The first group of the first match, or all of the match.
pub fn find(regex: &Regex, text: &str) -> Option<Range<usize>> {
    let found = regex.captures(text)?;
    let part = found.get(1).or_else(|| found.get(0))?;
    Some(part.range())
}
