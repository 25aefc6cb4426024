//! The beginning of an element, as a visitor is told of it.

use std::ops::Range;

use super::tokens::{self, Tag};

/// An element that begins.
#[derive(Debug, Clone, Copy)]
pub struct Start<'p> {
    page: &'p str,
    tag: Tag,
    is_html: bool,
    has_content: bool,
}

impl<'p> Start<'p> {
    pub(super) fn new(page: &'p str, tag: &Tag, is_html: bool, has_content: bool) -> Self {
        Self {
            page,
            tag: *tag,
            is_html,
            has_content,
        }
    }

    /// Its name, as written.
    pub fn name(&self) -> &'p str {
        match self.tag.made_up {
            Some(name) => name,
            None => &self.page[self.tag.name_start..self.tag.name_end],
        }
    }

    /// The hash of its name in lower case, by `names::hash`.
    pub(crate) fn hash(&self) -> u64 {
        self.tag.hash
    }

    /// Whether it is no part of svg or math.
    pub fn is_html(&self) -> bool {
        self.is_html
    }

    /// Whether something may be in it. If not, its end is not told.
    pub fn has_content(&self) -> bool {
        self.has_content
    }

    /// Where in the page its start tag stands: in no bytes where the page leaves it out.
    pub fn span(&self) -> Range<usize> {
        self.tag.start..self.tag.end
    }

    /// Names and values as written, in any case, with entities. Of those that share a name the first counts.
    pub fn attributes(&self) -> impl Iterator<Item = (&'p str, &'p str)> + use<'p> {
        tokens::attributes(self.page, &self.tag)
    }
}
