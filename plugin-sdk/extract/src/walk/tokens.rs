//! Reads markup as the standard's tokenizer does: where a tag, a comment or a text that holds no tags begins and ends.
//!
//! Nothing here has a state. Who calls says where a `<` stands and what it stands in. Every function reads
//! its bytes once, from left to right.

use std::ops::Range;

use memchr::{memchr, memchr2, memmem};

use super::names::{self, Element, Kind};
use crate::steps;

/// What begins a CDATA section, and what ends it.
pub(super) const CDATA: &str = "<![CDATA[";
pub(super) const CDATA_END: &str = "]]>";

/// What a `<` begins.
#[derive(Debug)]
pub(super) enum Markup {
    Start(Tag),
    End(Tag),
    /// A document type, up to its end.
    Doctype(usize),
    /// A comment, or what counts as one, up to its end.
    Comment(usize),
    /// A `<` that is text, up to behind it.
    Text(usize),
    /// A CDATA section, up to its end.
    Cdata(usize),
    /// The page ends first.
    Unfinished(Tail),
}

/// What a page ends in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    /// A tag or a comment, of which nothing comes.
    Markup,
    /// `</` and nothing more, which is text.
    Slash,
    /// A CDATA section, which is text.
    Cdata,
}

/// A start tag or an end tag.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag {
    /// Where its `<` stands.
    pub(super) start: usize,
    pub(super) name_start: usize,
    pub(super) name_end: usize,
    /// Behind its `>`.
    pub(super) end: usize,
    /// Of its name in lower case.
    pub(super) hash: u64,
    /// It ends with `/>`.
    pub(super) self_closing: bool,
    /// Of an element that the page leaves out.
    pub(super) made_up: Option<&'static str>,
}

impl Tag {
    /// That of an element which the page leaves out before what stands at `at`.
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

    /// Its line in the table of elements.
    pub(super) fn element(&self, page: &[u8]) -> &'static Element {
        names::find(&page[self.name_start..self.name_end], self.hash)
    }
}

/// Reads what begins with the `<` at `at`. CDATA sections exist where `cdata` says so.
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

/// A comment whose `<!--` ends at `from`. It ends with `-->` or `--!>`, and `<!-->` and `<!--->` are whole.
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

/// None: the page ends before the tag does.
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

/// The name and the value of each attribute of a tag, as written.
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

/// The next attribute of a tag, or its end. `at` stands before, between or behind attributes.
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
        // The value is missing, the attribute is not.
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

/// The first byte from `at` on that is not white space. None: the page ends first.
#[inline]
fn spaces(page: &[u8], mut at: usize) -> Option<usize> {
    while is_space(*page.get(at)?) {
        at += 1;
    }
    Some(at)
}

/// White space of HTML, and of CSS: no vertical tab, and no other space than that of ASCII.
pub(crate) fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace()
}

/// The tags of a page: none in a script, a comment or another tag. Svg and math are read as HTML.
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

/// Where the text ends that an element of HTML holds instead of tags. None: it is none of those.
pub(super) fn text_end(page: &[u8], tag: &Tag, element: &Element) -> Option<usize> {
    let end = match element.kind {
        Kind::Raw => raw_end(page, tag.end, element.name.as_bytes()),
        Kind::Script => script_end(page, tag.end),
        Kind::Plaintext => None,
        _ => return None,
    };
    Some(end.unwrap_or(page.len()))
}

/// Where the end tag of an element stands whose text holds no tags. None: the page ends first.
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

/// Where the end tag of a script stands. None: the page ends first.
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

/// Whether `rest` is `before` and `name`, in any case, and the name ends there.
fn names_tag(rest: &[u8], before: &[u8], name: &[u8]) -> bool {
    let Some(rest) = rest.strip_prefix(before) else {
        return false;
    };
    let ends = rest
        .get(name.len())
        .is_some_and(|&byte| is_space(byte) || matches!(byte, b'/' | b'>'));
    ends && rest[..name.len()].eq_ignore_ascii_case(name)
}
