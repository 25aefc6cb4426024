//! Known differences that a page has, found by its tree alone: every start tag and every text gets a number, and
//! the tree that html5ever builds is searched for the numbers. The engine's reading of the page plays no part.

#![allow(dead_code, reason = "each test file takes what it needs of it")]

use std::cell::Cell;
use std::collections::BTreeSet;

use lol_html::html_content::{ContentType, TextType};
use lol_html::{RewriteStrSettings, doc_text, element, rewrite_str};
use scraper::{ElementRef, Html, Node};

/// Reason why a tree may differ from the page as written. Each is a row of the table of differences in the
/// author's guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// A formatting element was left open, or its end tag crosses a block: a browser opens it again.
    OpenedAgain,
    /// Something stands in a table where only parts of a table may: a browser moves it before the table.
    MovedOutOfTable,
    /// A browser ignores a start tag: a part of a table outside a table, a form in a form, a second body.
    IgnoredTag,
    /// A browser makes an empty element of a `</p>` or `</br>` that closes nothing.
    MadeOfEndTag,
    /// A browser adds an `html`, `head` or `body` that is left out.
    MadeUpRoot,
}

const NUMBER: &str = "data-number";
/// A character that no page has, before and after the number of a text.
pub(crate) const EDGE: char = '\u{e000}';

/// Returns the classes that a page belongs to. A page of none has every element and every text once and in the
/// order in which they are written, and adds no elements but those that this crate adds as well.
#[track_caller]
pub(crate) fn classes(page: &str) -> BTreeSet<Class> {
    classes_of_any(page).unwrap_or_else(|why| panic!("{why}: {page}"))
}

/// Returns the classes of any page. It is an error if the numbers themselves change its tree, or get lost in it.
pub(crate) fn classes_of_any(page: &str) -> Result<BTreeSet<Class>, String> {
    // A number behind the beginning of a tag would make it a tag.
    let page = page.trim_end_matches('/').trim_end_matches('<');
    let (page, n_numbers) = numbered(page)?;
    let mut classes = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut see = |number: usize| {
        if seen.last().is_some_and(|last| number < *last) && !seen.contains(&number) {
            classes.insert(Class::MovedOutOfTable);
        }
        if !seen.insert(number) {
            classes.insert(Class::OpenedAgain);
        }
    };
    let mut made_up = BTreeSet::new();
    for node in Html::parse_document(&page).tree.root().descendants() {
        match node.value() {
            Node::Element(element) => match element.attr(NUMBER) {
                Some(number) => see(parsed(number)?),
                None => {
                    let element = ElementRef::wrap(node).expect("its value says so");
                    made_up.extend(class_of_made_up(element)?);
                }
            },
            // Texts that a browser joins have several numbers.
            Node::Text(text) => {
                for number in text.split(EDGE).skip(1).step_by(2) {
                    see(parsed(number)?);
                }
            }
            _ => {}
        }
    }
    if seen.len() < n_numbers {
        classes.insert(Class::IgnoredTag);
    }
    classes.extend(made_up);
    Ok(classes)
}

fn parsed(number: &str) -> Result<usize, String> {
    let parsed = number.parse();
    parsed.map_err(|_| format!("{number:?} is not one of the numbers"))
}

/// Returns the class of an added element. `None` if this crate adds it too, or if it is a body in which there is
/// nothing.
fn class_of_made_up(element: ElementRef<'_>) -> Result<Option<Class>, String> {
    let has_content = || {
        element.children().any(|child| match child.value() {
            Node::Element(element) => element.attr(NUMBER).is_some(),
            Node::Text(text) => text.contains(EDGE),
            _ => false,
        })
    };
    Ok(match element.value().name() {
        "tbody" | "tr" | "colgroup" => None,
        "p" | "br" => Some(Class::MadeOfEndTag),
        "html" | "head" | "body" => has_content().then_some(Class::MadeUpRoot),
        name => return Err(format!("an element {name} has no number")),
    })
}

/// Returns the page with a number at every start tag and behind every text that is not white space, and the count
/// of numbers.
fn numbered(page: &str) -> Result<(String, usize), String> {
    let n_numbers = Cell::new(0);
    let next = || n_numbers.replace(n_numbers.get() + 1).to_string();
    let mut has_words = false;
    let settings = RewriteStrSettings::new()
        .with_strict(false)
        .append_element_content_handler(element!("*", |element| {
            element.set_attribute(NUMBER, &next())?;
            Ok(())
        }))
        .append_document_content_handler(doc_text!(|chunk| {
            let is_text = matches!(chunk.text_type(), TextType::Data | TextType::RCData);
            has_words |= is_text && !chunk.as_str().trim_ascii().is_empty();
            if chunk.last_in_text_node() && std::mem::take(&mut has_words) {
                let number = format!("{EDGE}{}{EDGE}", next());
                chunk.after(&number, ContentType::Text);
            }
            Ok(())
        }));
    let page = rewrite_str(page, settings).map_err(|why| why.to_string())?;
    Ok((page, n_numbers.get()))
}
