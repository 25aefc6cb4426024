//! Plans read from a document tree, in the simplest way: slow, and as right as scraper is.

use std::collections::{HashMap, HashSet};

use crawler_extract::{Captures, NONE, Plan, Take};
use scraper::node::Element;
use scraper::{ElementRef, Html, Node, Selector};

/// Rows and values, from either side.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Read {
    /// Parent of each row, for each group.
    pub(crate) groups: Vec<Vec<u32>>,
    /// Row and value of each capture, for each field.
    pub(crate) fields: Vec<Vec<(u32, String)>>,
}

/// Returns the captures of the engine.
pub(crate) fn of_captures(plan: &Plan, captures: &Captures) -> Read {
    let values = |field| {
        captures
            .values(field)
            .map(|(row, value)| (row, value.to_owned()))
            .collect()
    };
    Read {
        groups: captures.groups.clone(),
        fields: (0..plan.fields.len()).map(values).collect(),
    }
}

/// Returns the rows and values of the document tree.
pub(crate) fn of_tree(plan: &Plan, html: &Html) -> Read {
    let is_there = |e: &ElementRef<'_>| !e.ancestors().any(|n| is_named(n.value(), &["template"]));
    let elements: Vec<ElementRef<'_>> = html
        .root_element()
        .descendants()
        .filter_map(ElementRef::wrap)
        .filter(is_there)
        .collect();
    let tree = Tree { elements };
    let mut rows: Vec<Rows> = Vec::new();
    let mut read = Read {
        groups: Vec::new(),
        fields: Vec::new(),
    };
    for group in &plan.groups {
        let around = group.parent.map(|p| &rows[p as usize]);
        let owned = tree.owned(&group.selector, around);
        read.groups
            .push(owned.iter().map(|(row, _)| *row).collect());
        rows.push(
            owned
                .iter()
                .zip(0..)
                .map(|((_, element), row)| (key(element.value()), row))
                .collect(),
        );
    }
    for field in &plan.fields {
        let around = field.group.map(|g| &rows[g as usize]);
        let owned = if field.selector.is_empty() {
            let rows = around.unwrap();
            tree.elements
                .iter()
                .filter_map(|e| Some((*rows.get(&key(e.value()))?, *e)))
                .collect()
        } else {
            tree.owned(&field.selector, around)
        };
        let mut seen = HashSet::new();
        let values = owned
            .into_iter()
            .filter_map(|(row, element)| Some((row, taken(&field.take, element)?)));
        read.fields.push(
            values
                .filter(|(row, _)| !field.first || seen.insert(*row))
                .collect(),
        );
    }
    read
}

/// Rows, by the address of their element.
type Rows = HashMap<usize, u32>;

fn key(element: &Element) -> usize {
    std::ptr::from_ref(element).addr()
}

struct Tree<'a> {
    /// Elements in the order of the page.
    elements: Vec<ElementRef<'a>>,
}

impl<'a> Tree<'a> {
    /// Returns the elements that a selector matches inside of rows, with the row.
    fn owned(&self, selector: &str, rows: Option<&Rows>) -> Vec<(u32, ElementRef<'a>)> {
        let mut matched = HashSet::new();
        for part in parts(selector) {
            if let Some(part) = part.strip_prefix('>') {
                let selector = Selector::parse(&format!(":scope > {part}")).unwrap();
                for row in self
                    .elements
                    .iter()
                    .filter(|e| rows.unwrap().contains_key(&key(e.value())))
                {
                    matched.extend(row.select(&selector).map(|e| key(e.value())));
                }
            } else {
                let selector = Selector::parse(part).unwrap();
                matched.extend(
                    self.elements
                        .iter()
                        .filter(|e| selector.matches(e))
                        .map(|e| key(e.value())),
                );
            }
        }
        let row_of = |e: &ElementRef<'a>| match rows {
            None => Some(NONE),
            Some(rows) => e
                .ancestors()
                .find_map(|n| rows.get(&key(n.value().as_element()?)).copied()),
        };
        let matched = self
            .elements
            .iter()
            .filter(|e| matched.contains(&key(e.value())));
        matched.filter_map(|e| Some((row_of(e)?, *e))).collect()
    }
}

/// Returns the parts of a comma list.
pub(crate) fn parts(selector: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (i, c) in selector.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(selector[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(selector[start..].trim());
    parts
}

fn taken(take: &Take, element: ElementRef<'_>) -> Option<String> {
    match take {
        Take::Text => {
            let text = text(element, " ");
            let words = text
                .split([' ', '\t', '\n', '\r', '\x0c'])
                .filter(|w| !w.is_empty());
            Some(words.collect::<Vec<_>>().join(" "))
        }
        Take::TextRaw => Some(text(element, "")),
        Take::Inner => Some(element.inner_html()),
        Take::Attr(name) => element.attr(name).map(str::to_owned),
        Take::Present => Some(String::new()),
        Take::Tag => Some(element.value().name().to_ascii_lowercase()),
    }
}

const HIDDEN: [&str; 7] = [
    "script", "style", "noscript", "iframe", "xmp", "noembed", "noframes",
];

fn text(element: ElementRef<'_>, line_break: &str) -> String {
    let mut text = String::new();
    for node in element.descendants() {
        let in_template = node
            .ancestors()
            .take_while(|n| n.id() != element.id())
            .any(|n| is_named(n.value(), &["template"]));
        if in_template || node.parent().is_some_and(|p| is_named(p.value(), &HIDDEN)) {
            continue;
        }
        match node.value() {
            Node::Text(part) => text.push_str(part),
            _ if node.id() != element.id() && is_named(node.value(), &["br"]) => {
                text.push_str(line_break)
            }
            _ => {}
        }
    }
    // The content of a template belongs neither to an element around it nor to the template.
    if element.value().name() == "template" {
        String::new()
    } else {
        text
    }
}

fn is_named(node: &Node, names: &[&str]) -> bool {
    let is_one =
        |e: &Element| e.name.ns == *"http://www.w3.org/1999/xhtml" && names.contains(&e.name());
    node.as_element().is_some_and(is_one)
}
