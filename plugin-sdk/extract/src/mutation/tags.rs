//! Positions of the tags of a page.

use std::ops::Range;

use memchr::memchr_iter;

/// Tags that a browser takes for tags.
pub(super) use crate::walk::tokens::tags as real;

/// Returns everything that looks like a tag, even in a script, a comment or another tag.
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

/// Returns the name of a tag, as it is written.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(page: &str, expected: &[&str]) {
        let found: Vec<_> = real(page).into_iter().map(|tag| &page[tag]).collect();
        assert_eq!(found, expected, "{page}");
    }

    #[test]
    fn a_script_a_comment_and_an_attribute_have_no_tags() {
        let page = "<p title='</li>' x=\"a>b\">a < b</P><!-- <i> --><script>'</p>'</SCRIPT ><br/>";
        check(
            page,
            &[
                "<p title='</li>' x=\"a>b\">",
                "</P>",
                "<script>",
                "</SCRIPT >",
                "<br/>",
            ],
        );
        assert_eq!(all(page).len(), 8);
        check("<!--><i><!-- --!></i>", &["<i>", "</i>"]);
        check("<title></titles><b></title>", &["<title>", "</title>"]);
        check("<script><!--<script></script>", &["<script>"]);
        check("<plaintext></plaintext><b>", &["<plaintext>"]);
    }

    #[test]
    fn what_does_not_end_is_no_tag() {
        for page in ["<", "</", "<a", "<a b='>", "<!-- <b>", "<é>", "</é><", ""] {
            check(page, &[]);
        }
        check("é<a>é<b c=\"", &["<a>"]);
    }

    #[test]
    fn names_are_as_they_are_written() {
        assert_eq!(["</H2 x>", "<a-b/>", "<a>"].map(name), ["H2", "a-b", "a"]);
    }
}
