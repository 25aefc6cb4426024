//! Known differences between the tree of a browser and that of a walk, which stay.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::outline::{Node, add, browser, told, unwrap};

/// A known difference. Each changes one of the two trees, or both alike, in one way, after which they have to be
/// the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Exception {
    /// A browser ignores a part of a table that stands outside a table. The walk keeps it as written, since a page
    /// may be a part of a table.
    IgnoredTablePart,
    /// A browser moves content that may not stand in a table to the place before it. The walk keeps it where it is
    /// written.
    MovedOutOfTable,
    /// A browser opens a formatting element again in the blocks after the one that closed it. The walk opens it
    /// once.
    OpenedAgain,
    /// A browser moves a block out of the elements without rules that stand between it and a formatting element
    /// whose end tag crosses it. The walk keeps it where it is written.
    MovedOutOfPlain,
    /// A browser makes an empty `p` of a `</p>` that closes nothing. The walk leaves it out.
    MadeOfEndTag,
}

use Exception::{IgnoredTablePart, MadeOfEndTag, MovedOutOfPlain, MovedOutOfTable, OpenedAgain};

const EXCEPTIONS: [Exception; 5] = [
    IgnoredTablePart,
    MovedOutOfTable,
    OpenedAgain,
    MovedOutOfPlain,
    MadeOfEndTag,
];

/// Sets of exceptions, the smallest first.
static SETS: LazyLock<Vec<Vec<Exception>>> = LazyLock::new(|| {
    let set = |bits: usize| {
        let chosen = EXCEPTIONS.into_iter().enumerate();
        chosen
            .filter(|(n, _)| bits & 1 << n != 0)
            .map(|(_, exception)| exception)
            .collect()
    };
    let mut sets: Vec<Vec<Exception>> = (0..1 << EXCEPTIONS.len()).map(set).collect();
    sets.sort_by_key(Vec::len);
    sets
});

/// Checks that the trees of the pages are those of a browser. `expected` says how many pages need which exception:
/// it changes with every page that comes to need one, or does not need it any more.
pub(crate) fn check(pages: impl Iterator<Item = String>, expected: &[(Exception, usize)]) {
    let mut found: BTreeMap<Exception, usize> = BTreeMap::new();
    let mut faults = Vec::new();
    for page in pages {
        match difference(&page) {
            Ok(exceptions) => {
                for exception in exceptions {
                    *found.entry(*exception).or_default() += 1;
                }
            }
            Err(fault) => faults.push(fault),
        }
    }
    faults.sort_by_key(String::len);
    let first = &faults[..faults.len().min(12)];
    assert!(
        faults.is_empty(),
        "{} pages, such as:\n{}",
        faults.len(),
        first.join("\n\n")
    );
    assert_eq!(found, expected.iter().copied().collect());
}

/// Returns the fewest exceptions with which the two trees of a page are the same.
fn difference(page: &str) -> Result<&'static [Exception], String> {
    let (expected, found) = (browser(page), told(page));
    if expected == found {
        return Ok(&[]);
    }
    let same = |exceptions: &&[Exception]| {
        let (mut expected, mut found) = (expected.clone(), found.clone());
        for exception in *exceptions {
            apply(*exception, &mut expected, &mut found);
        }
        expected == found
    };
    SETS.iter()
        .map(Vec::as_slice)
        .find(same)
        .ok_or_else(|| format!("{page}\n  browser  {expected:?}\n  found    {found:?}"))
}

fn apply(exception: Exception, expected: &mut Vec<Node>, found: &mut Vec<Node>) {
    match exception {
        IgnoredTablePart => change(found, |nodes| unwrap(nodes, &is_misplaced)),
        MovedOutOfTable => change(found, moved_out_of_tables),
        OpenedAgain => {
            let formatting = |_: &str, name: &str| matches!(name, "a" | "b" | "i" | "nobr");
            change(expected, |nodes| unwrap(nodes, &formatting));
            change(found, |nodes| unwrap(nodes, &formatting));
        }
        MovedOutOfPlain => {
            let plain = |_: &str, name: &str| matches!(name, "span" | "x-y");
            change(expected, |nodes| unwrap(nodes, &plain));
            change(found, |nodes| unwrap(nodes, &plain));
        }
        MadeOfEndTag => {
            change(expected, without_empty_p);
            change(found, without_empty_p);
        }
    }
}

fn change(nodes: &mut Vec<Node>, to: impl Fn(Vec<Node>) -> Vec<Node>) {
    *nodes = to(std::mem::take(nodes));
}

/// Returns true if this is a part of a table whose parent is not the right one.
fn is_misplaced(parent: &str, name: &str) -> bool {
    const PARTS: [&str; 9] = [
        "caption", "colgroup", "col", "tbody", "thead", "tfoot", "tr", "td", "th",
    ];
    PARTS.contains(&name) && !is_part_of(parent, name)
}

fn is_part_of(parent: &str, name: &str) -> bool {
    match parent {
        "table" => matches!(name, "caption" | "colgroup" | "tbody" | "thead" | "tfoot"),
        "tbody" | "thead" | "tfoot" => name == "tr",
        "tr" => matches!(name, "td" | "th"),
        "colgroup" => name == "col",
        _ => false,
    }
}

/// Returns the tree with content that may not stand in a table moved to the place before it.
fn moved_out_of_tables(nodes: Vec<Node>) -> Vec<Node> {
    let mut out = Vec::new();
    for node in nodes {
        let Node::Element(name, children) = node else {
            add(&mut out, node);
            continue;
        };
        let mut children = moved_out_of_tables(children);
        if name == "table" {
            let mut moved = Vec::new();
            children = without_misplaced("table", children, &mut moved);
            for node in moved {
                add(&mut out, node);
            }
        }
        add(&mut out, Node::Element(name, children));
    }
    out
}

/// Returns the children of a part of a table that may stand there. The others go to `moved`.
fn without_misplaced(parent: &str, nodes: Vec<Node>, moved: &mut Vec<Node>) -> Vec<Node> {
    let mut out = Vec::new();
    for node in nodes {
        match node {
            Node::Element(name, children) if is_part_of(parent, &name) => {
                let children = match name.as_str() {
                    "caption" | "td" | "th" => children,
                    _ => without_misplaced(&name, children, moved),
                };
                add(&mut out, Node::Element(name, children));
            }
            // These may stand anywhere in a table. A form there is ended at once.
            Node::Element(name, children)
                if matches!(name.as_str(), "script" | "style" | "template")
                    || name == "form" && children.is_empty() =>
            {
                add(&mut out, Node::Element(name, children));
            }
            node => add(moved, node),
        }
    }
    out
}

fn without_empty_p(nodes: Vec<Node>) -> Vec<Node> {
    let mut out = Vec::new();
    for node in nodes {
        match node {
            Node::Element(name, children) => {
                let children = without_empty_p(children);
                if name != "p" || !children.is_empty() {
                    add(&mut out, Node::Element(name, children));
                }
            }
            text => add(&mut out, text),
        }
    }
    out
}
