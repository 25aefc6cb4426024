//! Text of a page: decoded, folded, appended once.

use std::borrow::Cow;
use std::ops::Range;

use lol_html::html_content::{TextChunk, TextType};

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
        self.text.push_str(&text[..end]);
        let is_all = end == text.len();
        *n_left = if is_all { *n_left - end } else { 0 };
        is_all
    }

    /// The same with each run of white space as one space, also where the run began in an earlier text.
    pub(super) fn push_folded(&mut self, text: &str, n_left: &mut usize) -> bool {
        let mut rest = text;
        while !rest.is_empty() {
            let words = rest.trim_start_matches(is_space);
            let is_after_space = words.len() < rest.len();
            if is_after_space && !self.text.is_empty() && !self.text.ends_with(' ') {
                // A space that does not fit is missing only if a word follows, which does not fit then.
                self.push(" ", n_left);
            }
            let (word, behind) = words.split_at(words.find(is_space).unwrap_or(words.len()));
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

/// White space of HTML. A non-breaking space is none.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\x0c' | '\r')
}

/// A text node, as far as it was seen: lol_html hands it over in pieces that end anywhere, even inside of an
/// entity, so nothing is decoded before the last. The page is at hand, so the pieces need not be kept.
#[derive(Debug)]
pub(super) struct Node {
    range: Range<usize>,
    has_entities: bool,
}

impl Node {
    /// Adds a piece. What comes back is complete: the node itself, or one before it that this one ends.
    pub(super) fn grow(
        node: &mut Option<Self>,
        chunk: &TextChunk<'_>,
        page: &str,
    ) -> [Option<Self>; 2] {
        let mut complete = [None, None];
        let has_entities = match chunk.text_type() {
            TextType::Data | TextType::RCData => true,
            TextType::PlainText | TextType::CDataSection => false,
            // Scripts, style sheets, and what shows only where scripts do not run: no text of the page.
            TextType::RawText | TextType::ScriptData => return complete,
        };
        let bytes = chunk.source_location().bytes();
        // A character that came in two pieces is reported with the second.
        let start = page.floor_char_boundary(bytes.start);
        match node {
            Some(open) if open.has_entities == has_entities && start <= open.range.end => {
                open.range.end = open.range.end.max(bytes.end);
            }
            _ => {
                let fresh = Self {
                    range: start..bytes.end,
                    has_entities,
                };
                complete[0] = node.replace(fresh);
            }
        }
        if chunk.last_in_text_node() {
            complete[1] = node.take();
        }
        complete
    }

    /// Bytes of it, as written.
    pub(super) fn len(&self) -> usize {
        self.range.len()
    }

    pub(super) fn decoded<'a>(&self, page: &'a str) -> Cow<'a, str> {
        let text = page.get(self.range.clone()).unwrap_or_default();
        if self.has_entities {
            htmlize::unescape(text)
        } else {
            Cow::Borrowed(text)
        }
    }
}
