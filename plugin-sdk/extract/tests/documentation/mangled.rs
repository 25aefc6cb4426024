//! Pages with mistakes: end tags that are missing or too many, and pages that break off.

use std::ops::Range;

use crate::random::Random;

/// The page without each 50th end tag of those that are `wanted`, by chance.
pub(crate) fn without_end_tags(
    page: &str,
    random: &mut Random,
    wanted: impl Fn(&str) -> bool,
) -> String {
    let mut mangled = String::new();
    let mut kept = 0;
    for tag in tags(page) {
        let name = page[tag.clone()].strip_prefix("</").map(name);
        if name.is_some_and(&wanted) && random.below(50) == 0 {
            mangled.push_str(&page[kept..tag.start]);
            kept = tag.end;
        }
    }
    mangled + &page[kept..]
}

/// Names of end tags that a page need not have.
const NAMES: [&str; 32] = [
    "a", "b", "body", "br", "button", "caption", "code", "dd", "details", "div", "em", "form",
    "h2", "head", "html", "li", "ol", "option", "p", "pre", "section", "select", "span", "strong",
    "summary", "svg", "table", "tbody", "td", "title", "tr", "ul",
];

/// The page with an end tag behind each 200th tag, by chance: one that the page has, or any other.
pub(crate) fn with_stray_end_tags(
    page: &str,
    random: &mut Random,
    wanted: impl Fn(&str) -> bool,
) -> String {
    let tags = tags(page);
    let own = tags
        .iter()
        .filter_map(|tag| page[tag.clone()].strip_prefix("</"));
    let own: Vec<&str> = own.map(name).filter(|name| wanted(name)).collect();
    let others: Vec<&str> = NAMES.into_iter().filter(|name| wanted(name)).collect();
    let mut mangled = String::new();
    let mut kept = 0;
    for tag in tags.into_iter().filter(|_| !own.is_empty()) {
        if random.below(200) == 0 {
            let names = if random.below(2) == 0 { &own } else { &others };
            mangled.push_str(&page[kept..tag.end]);
            mangled.push_str(&format!("</{}>", random.pick(names)));
            kept = tag.end;
        }
    }
    mangled + &page[kept..]
}

/// The page without all tags that are `unwanted`.
pub(crate) fn without_tags(page: &str, unwanted: impl Fn(&str) -> bool) -> String {
    let mut mangled = String::new();
    let mut kept = 0;
    for tag in tags(page) {
        let inside = &page[tag.start + 1..tag.end];
        if unwanted(name(inside.strip_prefix('/').unwrap_or(inside))) {
            mangled.push_str(&page[kept..tag.start]);
            kept = tag.end;
        }
    }
    mangled + &page[kept..]
}

/// The page up to a place of chance.
pub(crate) fn cut_off(page: &str, random: &mut Random) -> String {
    page[..page.floor_char_boundary(random.below(page.len()))].to_owned()
}

/// Where the tags of a page stand. What looks like one in a script or a comment is taken along: mangling it is
/// one more way to mangle the page.
fn tags(page: &str) -> Vec<Range<usize>> {
    let starts = page.match_indices('<').map(|(start, _)| start);
    let tag = |start: usize| {
        let inside = &page[start + 1..];
        let named = inside.strip_prefix('/').unwrap_or(inside);
        let is_tag = named.starts_with(|c: char| c.is_ascii_alphabetic());
        let end = start + 1 + inside.find('>')? + 1;
        is_tag.then_some(start..end)
    };
    starts.filter_map(tag).collect()
}

fn name(tag: &str) -> &str {
    let end = tag.find(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    &tag[..end.unwrap_or(tag.len())]
}
