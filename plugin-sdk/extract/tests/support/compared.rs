//! Comparison of the engine's reading of a page with that of a document tree.

#![allow(dead_code, reason = "each test file takes what it needs of it")]

use std::time::Duration;

use crawler_extract::{Budget, CompiledPlan, Plan, PlanLimits, Take, extract};
use scraper::Html;

use super::reference::{self, Read};
use super::written;

pub(crate) fn read(plan: &Plan, page: &str) -> Read {
    let compiled =
        CompiledPlan::new(plan, &PlanLimits::default()).unwrap_or_else(|e| panic!("{e}"));
    let budget = Budget {
        deadline: Duration::from_secs(600),
        ..Budget::default()
    };
    let captures = extract(&compiled, page, &budget).unwrap();
    assert!(!captures.truncated);
    written::assert_sound(plan, &captures);
    reference::of_captures(plan, &captures)
}

/// Returns the values of the engine and of the tree. Serialisation differs, so inner HTML is parsed before it is
/// compared.
pub(crate) fn readings(plan: &Plan, page: &str, tree: &Html) -> (Read, Read) {
    let (ours, theirs) = (read(plan, page), reference::of_tree(plan, tree));
    if ours == theirs {
        return (ours, theirs);
    }
    // Inner HTML is parsed in the mode of the page, in which a table may stand in a `p` or not.
    let without_doctype = Html::parse_document("");
    let mode = if tree.quirks_mode == without_doctype.quirks_mode {
        ""
    } else {
        "<!doctype html>"
    };
    (normal(plan, ours, mode), normal(plan, theirs, mode))
}

fn normal(plan: &Plan, mut read: Read, mode: &str) -> Read {
    for (field, values) in plan.fields.iter().zip(&mut read.fields) {
        if field.take == Take::Inner {
            for (_, value) in values {
                let page = format!("{mode}{}{value}", around(value));
                *value = Html::parse_document(&page).html();
            }
        }
    }
    read
}

/// Returns the tags that have to be open for the parts of a table that the text begins with, which mean nothing
/// elsewhere.
fn around(inner: &str) -> &'static str {
    let tags = inner.split('<').skip(1).map(|tag| {
        let end = tag.find(|c: char| !c.is_ascii_alphanumeric());
        tag[..end.unwrap_or(tag.len())].to_ascii_lowercase()
    });
    for tag in tags {
        return match tag.as_str() {
            "td" | "th" => "<table><tbody><tr>",
            "tr" => "<table><tbody>",
            "tbody" | "thead" | "tfoot" | "caption" | "colgroup" => "<table>",
            "col" => "<table><colgroup>",
            "table" => "",
            _ => continue,
        };
    }
    ""
}

/// Returns the page without all those of these tags that HTML lets an author leave out, as minifiers write it.
pub(crate) fn omitted(page: &str) -> String {
    let tags = [
        "</li>",
        "</p>",
        "</td>",
        "</th>",
        "</tr>",
        "</dt>",
        "</dd>",
        "</option>",
        "<tbody>",
        "</tbody>",
        "</thead>",
    ];
    tags.iter()
        .fold(page.to_owned(), |page, tag| page.replace(tag, ""))
}
