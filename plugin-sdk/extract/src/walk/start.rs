//! The beginning of an element, as a visitor receives it.

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

    /// Name of the element, as written.
    pub fn name(&self) -> &'p str {
        match self.tag.made_up {
            Some(name) => name,
            None => &self.page[self.tag.name_start..self.tag.name_end],
        }
    }

    /// Hash of the name in lower case, by `names::hash`.
    pub(crate) fn hash(&self) -> u64 {
        self.tag.hash
    }

    /// Returns true if the element is no part of svg or math.
    pub fn is_html(&self) -> bool {
        self.is_html
    }

    /// Returns true if the element may have content. If not, its end is not told.
    pub fn has_content(&self) -> bool {
        self.has_content
    }

    /// Range of the start tag in the page; it is empty if the page leaves the tag out.
    pub fn span(&self) -> Range<usize> {
        self.tag.start..self.tag.end
    }

    /// Returns names and values as written, in any case, with entities. Of attributes that share a name, the first
    /// counts.
    pub fn attributes(&self) -> impl Iterator<Item = (&'p str, &'p str)> + use<'p> {
        tokens::attributes(self.page, &self.tag)
    }
}
