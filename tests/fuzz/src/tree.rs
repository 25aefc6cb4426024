//! Pages that a plan and a document tree read alike.

use std::collections::BTreeSet;

use crawler_extract::{CompiledPlan, PlanLimits, Take};
use scraper::{Html, Selector};

#[path = "../../../plugin-sdk/extract/tests/support/compared.rs"]
mod compared;
#[path = "../../../plugin-sdk/extract/tests/support/marked.rs"]
mod marked;
#[path = "../../../plugin-sdk/extract/tests/support/reference.rs"]
mod reference;
#[path = "../../../plugin-sdk/extract/tests/support/written.rs"]
mod written;

/// Largest number of tags; with more, an end tag may be too far from its start tag.
const MOST_TAGS: usize = 60;
/// Elements that the author's guide names as read differently from a browser, and that the tree does not show.
/// They are known by the first letters of their tags.
const OTHERWISE: [&str; 15] = [
    "image",
    "frame",
    "svg",
    "math",
    "pre",
    "listing",
    "textarea",
    "form",
    "plaintext",
    "noscript",
    "iframe",
    "noembed",
    "xmp",
    "html",
    "head",
];

/// Checks that a plan reads a page like its tree. The first line has selectors, separated by `|`: of rows, and of
/// the values that are read of them and of the whole page. Selectors that either side does not know are left out.
/// The page is the rest, in a `body`.
///
/// If the page belongs to no class of difference that the author's guide names, all values that are read of it are
/// those of its document tree.
pub fn reads_as_its_tree(data: &[u8]) {
    is_compared(data);
}

/// Checks the same, and returns true if anything was compared.
pub fn is_compared(data: &[u8]) -> bool {
    let (line, content) = super::first_line(data);
    let (Ok(line), Ok(content)) = (str::from_utf8(line), str::from_utf8(content)) else {
        return false;
    };
    let takes = [
        Take::Text,
        Take::TextRaw,
        Take::Tag,
        Take::Attr("class".to_owned()),
        Take::Present,
    ];
    let mut selectors = line.split('|').filter(|s| both_know(s)).peekable();
    if selectors.peek().is_none() || is_read_otherwise(content) {
        return false;
    }
    let plan = super::plan(selectors, &takes);
    let page = format!("<!doctype html><html><head></head><body>{content}");
    if marked::classes_of_any(&page) != Ok(BTreeSet::new()) {
        return false;
    }
    let tree = Html::parse_document(&page);
    if has_one_in_another_of_its_name(&tree) {
        return false;
    }
    let (ours, theirs) = compared::readings(&plan, &page, &tree);
    assert_eq!(ours, theirs, "{page}\n{plan:#?}");
    true
}

/// Returns true if both the crawler and the tree know a selector.
fn both_know(selector: &str) -> bool {
    let plan = super::plan([selector].into_iter(), &[Take::Present]);
    // A part that begins with a combinator is no selector of its own.
    let is_selector = |part: &&str| Selector::parse(part).is_ok();
    Selector::parse(selector).is_ok()
        && reference::parts(selector).iter().all(is_selector)
        && CompiledPlan::new(&plan, &PlanLimits::default()).is_ok()
}

/// Returns true if a page may belong to a class of difference that its tree does not show, or has text that its
/// numbers would change.
fn is_read_otherwise(content: &str) -> bool {
    let mut tags = content.split('<').skip(1);
    let is_otherwise = |tag: &str| {
        let name = tag.trim_start_matches('/').to_ascii_lowercase();
        OTHERWISE
            .iter()
            .any(|otherwise| name.starts_with(otherwise))
    };
    // A number cannot stand behind text that may begin a tag.
    content.ends_with(['<', '/'])
        || content.contains(['\r', '\0', marked::EDGE])
        || content.matches('<').count() > MOST_TAGS
        || tags.any(is_otherwise)
}

/// Returns true if a formatting element is left open in another of its name; in a browser, the second end tag ends
/// it.
fn has_one_in_another_of_its_name(tree: &Html) -> bool {
    const FORMATTING: [&str; 14] = [
        "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt",
        "u",
    ];
    let elements = tree.tree.root().descendants();
    let name = |node: &scraper::Node| node.as_element().map(|element| element.name().to_owned());
    elements
        .filter_map(|node| Some((node, name(node.value())?)))
        .any(|(node, own)| {
            FORMATTING.contains(&own.as_str())
                && node
                    .ancestors()
                    .any(|around| name(around.value()).is_some_and(|name| name == own))
        })
}
