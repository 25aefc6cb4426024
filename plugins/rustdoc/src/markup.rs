//! HTML as a sequence of texts and tags: what a rule without a tree needs, and nothing else.
//!
//! Fast where pages are long: text, comments and quoted values are searched through, not read
//! byte by byte. Of the many named characters only those that generators write are decoded.

use std::borrow::Cow;

/// A piece of a page.
#[derive(Debug, PartialEq)]
pub(crate) enum Part<'a> {
    /// Between two tags, not decoded.
    Text(&'a str),
    /// A start tag, and the attribute that links.
    Start {
        name: &'a str,
        href: Option<&'a str>,
    },
    /// The name of an end tag.
    End(&'a str),
}

/// The pieces of a page, in order.
pub(crate) struct Parts<'a> {
    rest: &'a str,
    /// The element whose content is text, however much it looks like tags.
    raw: Option<&'a str>,
}

const RAW: [&str; 8] = [
    "script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes",
];

impl<'a> Parts<'a> {
    pub(crate) fn of(html: &'a str) -> Self {
        Self {
            rest: html,
            raw: None,
        }
    }

    /// Everything up to `at`, which becomes the rest.
    fn take(&mut self, at: Option<usize>) -> &'a str {
        let (taken, rest) = self.rest.split_at(at.unwrap_or(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Up to and with `end`.
    fn skip_past(&mut self, end: &str) {
        let at = self.rest.find(end).map(|at| at + end.len());
        self.take(at);
    }

    /// The content of a raw element: up to its end tag.
    fn take_raw(&mut self, name: &str) -> &'a str {
        let is_end = |at: &usize| {
            let tag = self.rest.as_bytes().get(at + 2..at + 2 + name.len());
            tag.is_some_and(|tag| tag.eq_ignore_ascii_case(name.as_bytes()))
        };
        let at = self.rest.match_indices("</").map(|(at, _)| at).find(is_end);
        self.take(at)
    }

    /// Up to and with `>`; the value of `href` on the way.
    fn take_attributes(&mut self) -> Option<&'a str> {
        let mut href = None;
        loop {
            self.take(find(self.rest, |c| !is_space(c) && c != b'/'));
            if self.rest.is_empty() || self.rest.starts_with('>') {
                self.rest = self.rest.strip_prefix('>').unwrap_or_default();
                return href;
            }
            let name = self.take(find(self.rest, |c| {
                is_space(c) || matches!(c, b'=' | b'>' | b'/')
            }));
            let value = self.take_value();
            if name.eq_ignore_ascii_case("href") && href.is_none() {
                href = value;
            }
        }
    }

    /// `= value`, `= 'value'` or `= "value"`, if there is one.
    fn take_value(&mut self) -> Option<&'a str> {
        self.take(find(self.rest, |c| !is_space(c)));
        self.rest = self.rest.strip_prefix('=')?;
        self.take(find(self.rest, |c| !is_space(c)));
        let Some(quote @ (b'"' | b'\'')) = self.rest.bytes().next() else {
            return Some(self.take(find(self.rest, |c| is_space(c) || c == b'>')));
        };
        self.rest = &self.rest[1..];
        let value = self.take(find(self.rest, |c| c == quote));
        self.rest = self.rest.get(1..).unwrap_or_default();
        Some(value)
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        if let Some(name) = self.raw.take() {
            return Some(Part::Text(self.take_raw(name)));
        }
        let tag = self.rest.strip_prefix('<');
        let Some(tag) = tag else {
            let text = self.take(find(self.rest, |c| c == b'<'));
            return (!text.is_empty()).then_some(Part::Text(text));
        };
        let (tag, is_end) = match tag.strip_prefix('/') {
            Some(tag) => (tag, true),
            None => (tag, false),
        };
        if !tag.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Some(self.no_tag());
        }
        self.rest = tag;
        let name = self.take(find(tag, |c| is_space(c) || matches!(c, b'>' | b'/')));
        let href = self.take_attributes();
        if is_end {
            return Some(Part::End(name));
        }
        self.raw = RAW
            .iter()
            .any(|raw| name.eq_ignore_ascii_case(raw))
            .then_some(name);
        Some(Part::Start { name, href })
    }
}

impl<'a> Parts<'a> {
    /// A comment, a declaration, or a `<` that stands for itself.
    fn no_tag(&mut self) -> Part<'a> {
        if self.rest.starts_with("<!--") {
            self.skip_past("-->");
        } else if self.rest.starts_with("<!")
            || self.rest.starts_with("<?")
            || self.rest.starts_with("</")
        {
            self.skip_past(">");
        } else {
            return Part::Text(self.take(Some(1)));
        }
        Part::Text("")
    }
}

/// Where the first such byte is. As only ASCII is told apart, that is never inside a character.
fn find(text: &str, is_end: impl Fn(u8) -> bool) -> Option<usize> {
    text.bytes().position(is_end)
}

fn is_space(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
}

/// Text or value with `&amp;`, `&lt;`, `&gt;`, `&quot;`, `&apos;`, `&nbsp;` and numbers decoded.
pub(crate) fn decode(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find('&') else {
        return text.into();
    };
    let (plain, mut rest) = text.split_at(first);
    let mut decoded = plain.to_owned();
    while let Some(reference) = rest.strip_prefix('&') {
        let name = reference.split_once(';').map(|(name, _)| name);
        match name.and_then(|name| Some((name, character(name)?))) {
            Some((name, character)) => {
                decoded.push(character);
                rest = &reference[name.len() + 1..];
            }
            None => {
                decoded.push('&');
                rest = reference;
            }
        }
        let (plain, next) = rest.split_at(rest.find('&').unwrap_or(rest.len()));
        decoded.push_str(plain);
        rest = next;
    }
    decoded.into()
}

fn character(name: &str) -> Option<char> {
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => '\u{a0}',
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code)?
        }
    })
}
