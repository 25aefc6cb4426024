//! Text of a page: folded, appended once.

use std::ops::Range;

use crate::steps;

/// Where values of one kind go. Captures are ranges in it.
#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) text: String,
}

impl Segment {
    /// Appends as much of the text as there are bytes left, and takes them off. Whether it was all; if not,
    /// none are left, so that nothing is appended after a gap.
    pub(super) fn push(&mut self, text: &str, n_left: &mut usize) -> bool {
        let end = text.floor_char_boundary(*n_left);
        steps::add(end);
        self.text.push_str(&text[..end]);
        let is_all = end == text.len();
        *n_left = if is_all { *n_left - end } else { 0 };
        is_all
    }

    /// The same with each run of white space as one space, also where the run began in an earlier text.
    pub(super) fn push_folded(&mut self, text: &str, n_left: &mut usize) -> bool {
        let mut rest = text;
        while !rest.is_empty() {
            let words = rest.trim_ascii_start();
            let is_after_space = words.len() < rest.len();
            if is_after_space && !self.text.is_empty() && !self.text.ends_with(' ') {
                // A space that does not fit is missing only if a word follows, which does not fit then.
                self.push(" ", n_left);
            }
            let end = words.find(|c: char| c.is_ascii_whitespace());
            let (word, behind) = words.split_at(end.unwrap_or(words.len()));
            if !self.push(word, n_left) {
                return false;
            }
            rest = behind;
        }
        true
    }

    /// The range without the spaces at its ends.
    pub(super) fn trimmed(&self, range: Range<usize>) -> Range<usize> {
        let text = &self.text[range.clone()];
        let start = range.start + (text.len() - text.trim_start_matches(' ').len());
        start..start + text.trim_matches(' ').len()
    }
}
