//! Where the tags of a page stand.

use std::ops::Range;

use memchr::{memchr_iter, memmem};

/// Elements whose text has no tags.
const RAW: [&str; 8] = [
    "iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp",
];

/// All that looks like a tag, in a script, a comment or another tag too.
pub(super) fn all(page: &str) -> Vec<Range<usize>> {
    let mut tags = Vec::new();
    let mut end = 0;
    for start in memchr_iter(b'<', page.as_bytes()) {
        if start >= end {
            let Some(found) = page[start..].find('>') else {
                break;
            };
            end = start + found + 1;
        }
        if begins(page, start) {
            tags.push(start..end);
        }
    }
    tags
}

/// The tags that a browser takes for such: none in a script, a comment or an attribute.
pub(super) fn real(page: &str) -> Vec<Range<usize>> {
    let mut tags = Vec::new();
    let mut at = 0;
    while let Some(start) = page[at..].find('<').map(|found| at + found) {
        if page[start..].starts_with("<!--") {
            let Some(end) = page[start..].find("-->") else {
                break;
            };
            at = start + end + 3;
            continue;
        }
        if !begins(page, start) {
            at = start + 1;
            continue;
        }
        let Some(end) = end(page, start) else {
            break;
        };
        let tag = start..end;
        at = end;
        let name = name(&page[tag.clone()]);
        if let Some(raw) = RAW.iter().find(|raw| name.eq_ignore_ascii_case(raw))
            && !is_end(&page[tag.clone()])
        {
            let Some(close) = raw_end(page, end, raw) else {
                break;
            };
            at = close;
        }
        tags.push(tag);
    }
    tags
}

/// The name of a tag, as it is written.
pub(super) fn name(tag: &str) -> &str {
    let inside = tag.strip_prefix('<').unwrap_or(tag);
    let inside = inside.strip_prefix('/').unwrap_or(inside);
    let end = inside.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    &inside[..end.unwrap_or(inside.len())]
}

pub(super) fn is_end(tag: &str) -> bool {
    tag.starts_with("</")
}

fn begins(page: &str, start: usize) -> bool {
    let inside = &page[start + 1..];
    let named = inside.strip_prefix('/').unwrap_or(inside);
    named.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Behind the `>` of a tag; one in quotes is none.
fn end(page: &str, start: usize) -> Option<usize> {
    let mut quote = None;
    let mut before = b' ';
    for (n, byte) in page.bytes().enumerate().skip(start + 1) {
        match quote {
            Some(open) if byte == open => quote = None,
            Some(_) => {}
            None if byte == b'>' => return Some(n + 1),
            None if matches!(byte, b'"' | b'\'') && before == b'=' => quote = Some(byte),
            None => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    None
}

/// Where the end tag of this raw text begins.
fn raw_end(page: &str, from: usize, name: &str) -> Option<usize> {
    let text = &page.as_bytes()[from..];
    let ends = memmem::find_iter(text, b"</");
    let is_same = |at: &usize| {
        let named = text.get(at + 2..at + 2 + name.len());
        named.is_some_and(|named| named.eq_ignore_ascii_case(name.as_bytes()))
    };
    ends.into_iter().find(is_same).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_a_comment_and_an_attribute_have_no_tags() {
        let page = "<p title='</li>' x=\"a>b\">a < b</P><!-- <i> --><script>'</p>'</SCRIPT ><br/>";
        let texts = real(page).into_iter().map(|tag| &page[tag]);
        let expected = [
            "<p title='</li>' x=\"a>b\">",
            "</P>",
            "<script>",
            "</SCRIPT >",
            "<br/>",
        ];
        assert_eq!(texts.collect::<Vec<_>>(), expected);
        assert_eq!(all(page).len(), 8);
        for unfinished in ["<", "</", "<a", "<a b='>", "<!-- <b>", "<script></", "é<é>"] {
            assert!(real(unfinished).len() < 2, "{unfinished}");
        }
        assert_eq!(["</H2 x>", "<a-b/>", "<a>"].map(name), ["H2", "a-b", "a"]);
    }
}
