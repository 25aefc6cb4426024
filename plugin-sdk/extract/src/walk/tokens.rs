//! Reads markup as the standard's tokenizer does: where a tag, a comment or a text that holds no tags begins and ends.
//!
//! Functions here have no state. The caller says where a `<` stands and what it stands in. Every function reads
//! its bytes once, from left to right.

use std::ops::Range;

use memchr::{memchr, memchr2, memmem};

use super::names::{self, Element, Kind};
use crate::steps;

/// Marks at the beginning and the end of a CDATA section.
pub(super) const CDATA: &str = "<![CDATA[";
pub(super) const CDATA_END: &str = "]]>";

/// Markup that a `<` begins.
#[derive(Debug)]
pub(super) enum Markup {
    Start(Tag),
    End(Tag),
    /// A document type, with its end.
    Doctype(usize),
    /// A comment, or markup that counts as one, with its end.
    Comment(usize),
    /// A `<` that is text, with the position behind it.
    Text(usize),
    /// A CDATA section, with its end.
    Cdata(usize),
    /// Markup that the end of the page cuts off.
    Unfinished(Tail),
}

/// Unfinished markup at the end of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// A tag or a comment, which is left out.
    Markup,
    /// `</` and nothing more, which is text.
    Slash,
    /// A CDATA section, which is text.
    Cdata,
}

/// A start tag or an end tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag {
    /// Position of its `<`.
    pub(super) start: usize,
    pub(super) name_start: usize,
    pub(super) name_end: usize,
    /// Position behind its `>`.
    pub(super) end: usize,
    /// Hash of its name in lower case.
    pub(super) hash: u64,
    /// True if it ends with `/>`.
    pub(super) self_closing: bool,
    /// Name of an element that the page leaves out.
    pub(super) made_up: Option<&'static str>,
}

impl Tag {
    /// Makes the tag of an element that the page leaves out at the position `at`.
    pub(super) fn made_up(at: usize, hash: u64, element: &'static Element) -> Self {
        Self {
            start: at,
            name_start: at,
            name_end: at,
            end: at,
            hash,
            self_closing: false,
            made_up: Some(element.name),
        }
    }

    /// Line of the name in the table of elements.
    pub(super) fn element(&self, page: &[u8]) -> &'static Element {
        names::find(&page[self.name_start..self.name_end], self.hash)
    }
}

/// Reads the markup that begins with the `<` at `at`. CDATA sections exist only if `cdata` is true.
#[inline]
pub(super) fn read(page: &[u8], at: usize, cdata: bool) -> Markup {
    match page.get(at + 1) {
        Some(byte) if byte.is_ascii_alphabetic() => {
            tag(page, at, at + 1).map_or(Markup::Unfinished(Tail::Markup), Markup::Start)
        }
        Some(b'/') => match page.get(at + 2) {
            Some(byte) if byte.is_ascii_alphabetic() => {
                tag(page, at, at + 2).map_or(Markup::Unfinished(Tail::Markup), Markup::End)
            }
            Some(_) => comment_up_to_angle(page, at + 2),
            None => Markup::Unfinished(Tail::Slash),
        },
        Some(b'!') => declaration(page, at + 2, cdata),
        Some(b'?') => comment_up_to_angle(page, at + 2),
        _ => Markup::Text(at + 1),
    }
}

fn declaration(page: &[u8], at: usize, cdata: bool) -> Markup {
    let rest = &page[at..];
    if rest.starts_with(b"--") {
        return comment(page, at + 2);
    }
    if rest
        .get(..7)
        .is_some_and(|word| word.eq_ignore_ascii_case(b"doctype"))
    {
        return match memchr(b'>', rest) {
            Some(end) => Markup::Doctype(at + end + 1),
            None => Markup::Unfinished(Tail::Markup),
        };
    }
    let cdata_start = &CDATA.as_bytes()[2..];
    if cdata && rest.starts_with(cdata_start) {
        let n = cdata_start.len();
        return match memmem::find(&rest[n..], CDATA_END.as_bytes()) {
            Some(end) => Markup::Cdata(at + n + end + CDATA_END.len()),
            None => Markup::Unfinished(Tail::Cdata),
        };
    }
    comment_up_to_angle(page, at)
}

/// Reads a comment whose `<!--` ends at `from`. It ends with `-->` or `--!>`; `<!-->` and `<!--->` are whole.
fn comment(page: &[u8], from: usize) -> Markup {
    let text = &page[from..];
    let mut at = 0;
    while let Some(angle) = memchr(b'>', &text[at..]) {
        let before = &text[..at + angle];
        at += angle + 1;
        let ends = before.is_empty()
            || before == b"-"
            || before.ends_with(b"--")
            || before.ends_with(b"--!");
        if ends {
            return Markup::Comment(from + at);
        }
    }
    Markup::Unfinished(Tail::Markup)
}

fn comment_up_to_angle(page: &[u8], from: usize) -> Markup {
    match memchr(b'>', &page[from..]) {
        Some(end) => Markup::Comment(from + end + 1),
        None => Markup::Unfinished(Tail::Markup),
    }
}

/// Reads a tag. `None` if the page ends before the tag does.
#[inline]
fn tag(page: &[u8], start: usize, name_start: usize) -> Option<Tag> {
    let mut hash = names::HASH_START;
    let mut at = name_start;
    let name_end = loop {
        match *page.get(at)? {
            b'>' | b'/' | b' ' | b'\n' | b'\t' | b'\r' | b'\x0c' => break at,
            byte => hash = names::hash_byte(hash, byte),
        }
        at += 1;
    };
    loop {
        match attribute(page, at)? {
            Step::Attribute(attribute) => at = attribute.end,
            Step::Close { end, self_closing } => {
                return Some(Tag {
                    start,
                    name_start,
                    name_end,
                    end,
                    hash,
                    self_closing,
                    made_up: None,
                });
            }
        }
    }
}

/// An attribute of a tag, as ranges of the page.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attribute {
    name: (usize, usize),
    value: (usize, usize),
    end: usize,
}

enum Step {
    Attribute(Attribute),
    Close { end: usize, self_closing: bool },
}

/// Returns the name and the value of each attribute of a tag, as written.
pub(super) fn attributes<'p>(
    page: &'p str,
    tag: &Tag,
) -> impl Iterator<Item = (&'p str, &'p str)> + use<'p> {
    steps::add(tag.end - tag.name_end);
    let mut at = tag.made_up.is_none().then_some(tag.name_end);
    std::iter::from_fn(move || match attribute(page.as_bytes(), at?)? {
        Step::Attribute(attribute) => {
            at = Some(attribute.end);
            let (name, value) = (attribute.name, attribute.value);
            Some((&page[name.0..name.1], &page[value.0..value.1]))
        }
        Step::Close { .. } => None,
    })
}

/// Reads the next attribute of a tag, or its end. `at` stands before, between or behind attributes.
#[inline]
fn attribute(page: &[u8], mut at: usize) -> Option<Step> {
    let mut slash = false;
    let name_start = loop {
        match *page.get(at)? {
            b' ' | b'\n' | b'\t' | b'\r' | b'\x0c' => slash = false,
            b'/' => slash = true,
            b'>' => {
                return Some(Step::Close {
                    end: at + 1,
                    self_closing: slash,
                });
            }
            _ => break at,
        }
        at += 1;
    };
    // The first character belongs to the name, even if it is `=`.
    at += 1;
    let name_end = loop {
        match *page.get(at)? {
            b'=' | b'>' | b'/' | b' ' | b'\n' | b'\t' | b'\r' | b'\x0c' => break at,
            _ => at += 1,
        }
    };
    at = spaces(page, at)?;
    let bare = Step::Attribute(Attribute {
        name: (name_start, name_end),
        value: (name_end, name_end),
        end: at,
    });
    if page[at] != b'=' {
        return Some(bare);
    }
    at = spaces(page, at + 1)?;
    let (value, end) = match page[at] {
        quote @ (b'"' | b'\'') => {
            let value_end = at + 1 + memchr(quote, &page[at + 1..])?;
            ((at + 1, value_end), value_end + 1)
        }
        // The value is missing, but the attribute is there.
        b'>' => ((at, at), at),
        _ => {
            let rest = &page[at..];
            let length = rest
                .iter()
                .position(|&byte| byte == b'>' || is_space(byte))?;
            ((at, at + length), at + length)
        }
    };
    Some(Step::Attribute(Attribute {
        name: (name_start, name_end),
        value,
        end,
    }))
}

/// Returns the first byte from `at` on that is not white space. `None` if the page ends first.
#[inline]
fn spaces(page: &[u8], mut at: usize) -> Option<usize> {
    while is_space(*page.get(at)?) {
        at += 1;
    }
    Some(at)
}

/// Returns true for white space of HTML: no vertical tab, and of all spaces only that of ASCII.
pub(crate) fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace()
}

/// Returns the tags of a page: none in a script, a comment or another tag. Svg and math are read as HTML.
pub(crate) fn tags(page: &str) -> Vec<Range<usize>> {
    let bytes = page.as_bytes();
    let mut tags = Vec::new();
    let mut at = 0;
    while let Some(found) = memchr(b'<', &bytes[at..]) {
        at += found;
        at = match read(bytes, at, false) {
            Markup::Start(tag) => {
                tags.push(at..tag.end);
                text_end(bytes, &tag, tag.element(bytes)).unwrap_or(tag.end)
            }
            Markup::End(tag) => {
                tags.push(at..tag.end);
                tag.end
            }
            Markup::Doctype(end)
            | Markup::Comment(end)
            | Markup::Text(end)
            | Markup::Cdata(end) => end,
            Markup::Unfinished(_) => break,
        };
    }
    tags
}

/// Returns the end of the text that some HTML elements hold instead of tags. `None` for other elements.
pub(super) fn text_end(page: &[u8], tag: &Tag, element: &Element) -> Option<usize> {
    let end = match element.kind {
        Kind::Raw => raw_end(page, tag.end, element.name.as_bytes()),
        Kind::Script => script_end(page, tag.end),
        Kind::Plaintext => None,
        _ => return None,
    };
    Some(end.unwrap_or(page.len()))
}

/// Returns the position of the end tag of an element whose text holds no tags. `None` if the page ends first.
fn raw_end(page: &[u8], from: usize, name: &[u8]) -> Option<usize> {
    let mut at = from;
    while let Some(found) = memchr(b'<', &page[at..]) {
        at += found;
        if names_tag(&page[at + 1..], b"/", name) {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// Returns the position of the end tag of a script. `None` if the page ends first.
fn script_end(page: &[u8], from: usize) -> Option<usize> {
    #[derive(PartialEq, Eq)]
    enum State {
        Code,
        /// Behind `<!--`.
        Escaped,
        /// Behind `<!--` and `<script`.
        Double,
    }
    let mut state = State::Code;
    let mut at = from;
    loop {
        let rest = &page[at..];
        let found = match state {
            State::Code => memchr(b'<', rest),
            State::Escaped | State::Double => memchr2(b'<', b'-', rest),
        };
        at += found?;
        let rest = &page[at..];
        if rest[0] == b'-' {
            at += 1;
            if rest.starts_with(b"--") {
                at = behind_dashes(page, at);
                if page.get(at) == Some(&b'>') {
                    state = State::Code;
                }
            }
            continue;
        }
        let ends = names_tag(&rest[1..], b"/", b"script");
        at += 1;
        match state {
            State::Code | State::Escaped if ends => return Some(at - 1),
            State::Code if rest.starts_with(b"<!--") => {
                at = behind_dashes(page, at + 1);
                if page.get(at) != Some(&b'>') {
                    state = State::Escaped;
                }
            }
            State::Escaped if names_tag(&rest[1..], b"", b"script") => {
                at += b"script".len() + 1;
                state = State::Double;
            }
            State::Double if ends => {
                at += b"/script".len() + 1;
                state = State::Escaped;
            }
            _ => {}
        }
    }
}

fn behind_dashes(page: &[u8], at: usize) -> usize {
    at + page[at..].iter().take_while(|&&byte| byte == b'-').count()
}

/// Returns true if `rest` is `before` and `name`, in any case, and the name ends there.
fn names_tag(rest: &[u8], before: &[u8], name: &[u8]) -> bool {
    let Some(rest) = rest.strip_prefix(before) else {
        return false;
    };
    let ends = rest
        .get(name.len())
        .is_some_and(|&byte| is_space(byte) || matches!(byte, b'/' | b'>'));
    ends && rest[..name.len()].eq_ignore_ascii_case(name)
}
