//! Text of a page: white space folded, each part appended once.

use std::ops::Range;

use crate::steps;

/// Text that values of one kind go to. Captures are ranges in it.
#[derive(Debug, Default)]
pub(super) struct Segment {
    pub(super) text: String,
}

impl Segment {
    /// Appends as much of the text as there are bytes left, and subtracts them. Returns true if all of it fitted;
    /// if not, no bytes are left, so that nothing is appended after a gap.
    pub(super) fn push(&mut self, text: &str, n_left: &mut usize) -> bool {
        let end = text.floor_char_boundary(*n_left);
        steps::add(end);
        self.text.push_str(&text[..end]);
        let is_all = end == text.len();
        *n_left = if is_all { *n_left - end } else { 0 };
        is_all
    }

    /// Appends the text with each run of white space as one space, even if the run began in an earlier text.
    pub(super) fn push_folded(&mut self, text: &str, n_left: &mut usize) -> bool {
        let mut rest = text;
        while !rest.is_empty() {
            let words = rest.trim_ascii_start();
            let is_after_space = words.len() < rest.len();
            if is_after_space && !self.text.is_empty() && !self.text.ends_with(' ') {
                // A space that does not fit is missing only if a word follows, which does not fit either.
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

    /// Returns the range without the spaces at its ends.
    pub(super) fn trimmed(&self, range: Range<usize>) -> Range<usize> {
        let text = &self.text[range.clone()];
        let start = range.start + (text.len() - text.trim_start_matches(' ').len());
        start..start + text.trim_matches(' ').len()
    }
}
