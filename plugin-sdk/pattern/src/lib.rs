//! Regular expressions that come from a plugin, in the dialect of [`regex_lite`]. Nothing in them is trusted: the
//! compiled size is bounded, and the work of a search is known before it begins.

use regex_lite::{Regex, RegexBuilder};

/// Largest compiled size of a pattern, in bytes: a text is tried at all its states at once.
pub const SIZE_MAX: usize = 64 << 10;
/// Largest number of groups of a pattern, including the whole: matching takes memory for each at every state.
const GROUPS_MAX: usize = 8;
/// Bytes of a compiled pattern that are as much work for a byte of text as reading it.
const BYTES_PER_STATE: usize = 64;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    regex: Regex,
    size: usize,
}

/// Reason why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PatternError(String);

impl Pattern {
    /// Compiles a pattern.
    ///
    /// ```
    /// use crawler_pattern::Pattern;
    ///
    /// let pattern = Pattern::new(r"/books/\d+$")?;
    /// assert!(pattern.is_match("http://a.test/books/7"));
    /// assert_eq!(pattern.work("http://a.test/books/7"), 22 * pattern.work(""));
    /// # Ok::<(), crawler_pattern::PatternError>(())
    /// ```
    pub fn new(text: &str) -> Result<Self, PatternError> {
        // The compiled size is found by trying limits.
        let mut size = 1 << 10;
        let regex = loop {
            match RegexBuilder::new(text).size_limit(size).build() {
                Ok(regex) => break regex,
                Err(_) if size < SIZE_MAX => size *= 2,
                Err(error) => return Err(PatternError(error.to_string())),
            }
        };
        if regex.captures_len() > GROUPS_MAX {
            return Err(PatternError("write its groups as (?:…)".to_owned()));
        }
        Ok(Self { regex, size })
    }

    /// Text of the pattern, as it was written.
    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }

    /// Compiled size in bytes, rounded up to a power of two.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the work of searching a text, at most: 1 is that of reading a byte.
    pub fn work(&self, text: &str) -> u64 {
        let n_states = (self.size / BYTES_PER_STATE) as u64;
        n_states.saturating_mul(text.len() as u64 + 1)
    }

    /// Returns true if the pattern is found somewhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(text: &str, why: &str) {
        let error = Pattern::new(text).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn work_grows_with_the_pattern_and_the_text() {
        let (short, long) = (Pattern::new("a"), Pattern::new("a{100}"));
        let (short, long) = (short.unwrap(), long.unwrap());
        assert_eq!((short.size(), short.work("abc")), (1 << 10, 16 * 4));
        assert!(long.work("abc") >= 4 * short.work("abc"));
    }

    #[test]
    fn patterns_that_are_wrong_or_too_large_are_refused() {
        check_refused("(", "found open group without closing");
        check_refused("()()()()()()()()", "write its groups as (?:…)");
        check_refused("((a{100}){100}){100}", "exceeded");
    }
}
