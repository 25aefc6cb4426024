//! The repaired page: the page itself until the first change, a copy with the changes from then on.

use std::borrow::Cow;

/// Changes have to be made from left to right.
pub(super) struct Output<'p> {
    page: &'p str,
    /// How much of the page is in `text`, or left out of it on purpose.
    copied: usize,
    text: String,
    changed: bool,
    /// The last that was done was to leave something out.
    seam: bool,
}

impl<'p> Output<'p> {
    pub(super) fn new(page: &'p str) -> Self {
        Self {
            page,
            copied: 0,
            text: String::new(),
            changed: false,
            seam: false,
        }
    }

    pub(super) fn insert(&mut self, at: usize, text: &str) {
        self.copy_to(at);
        self.seam = false;
        self.text.push_str(text);
    }

    pub(super) fn insert_start_tag(&mut self, at: usize, name: &str) {
        self.insert(at, "<");
        self.text.push_str(name);
        self.text.push('>');
    }

    pub(super) fn insert_end_tag(&mut self, at: usize, name: &str) {
        self.insert(at, "</");
        self.text.push_str(name);
        self.text.push('>');
    }

    pub(super) fn leave_out(&mut self, from: usize, to: usize) {
        self.copy_to(from);
        self.copied = to;
        self.seam = true;
    }

    fn copy_to(&mut self, at: usize) {
        if !self.changed {
            self.changed = true;
            self.text.reserve(self.page.len() + self.page.len() / 8);
        }
        let piece = &self.page[self.copied..at];
        if let (true, Some(&next)) = (self.seam, piece.as_bytes().first()) {
            self.seam = false;
            if joins(self.text.as_bytes(), next) {
                self.text.push_str("<!---->");
            }
        }
        self.text.push_str(piece);
        self.copied = at;
    }

    pub(super) fn finish(mut self) -> Cow<'p, str> {
        if !self.changed {
            return Cow::Borrowed(self.page);
        }
        self.copy_to(self.page.len());
        Cow::Owned(self.text)
    }
}

/// The longest name of an entity has 31 letters.
const LONGEST_ENTITY: usize = 40;

/// Whether text that a tag kept apart would become a tag, a comment or an entity without it.
fn joins(before: &[u8], next: u8) -> bool {
    if before.ends_with(b"<") {
        return next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?');
    }
    if !next.is_ascii_alphanumeric() && !matches!(next, b'#' | b';') {
        return false;
    }
    let in_entity = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'#';
    let length = before
        .iter()
        .rev()
        .take(LONGEST_ENTITY)
        .take_while(in_entity)
        .count();
    before[..before.len() - length].ends_with(b"&")
}
