//! Plans and captures written short, for tests.
//!
//! ```text
//! rows < ul > li                  a group
//! rows/cells < td                 a group inside of another
//! .title = h1                     a field of the page, text
//! rows.link = first a -> @href    a field of a group: first, drop (not kept), then the selector
//! rows.all = -> inner             the row itself; also raw, present, tag
//! ```

#![allow(dead_code, reason = "each test file takes what it needs of it")]

use std::fmt::Write;

use crawler_extract::{Captures, Field, Group, NONE, Plan, Take};

/// Reads a plan from its lines; blank ones do not count.
pub(crate) fn plan(text: &str) -> Plan {
    let mut plan = Plan {
        name: "test".to_owned(),
        ..Plan::default()
    };
    for line in text.lines().map(str::trim).filter(|l| !l.is_empty()) {
        if let Some((name, selector)) = line.split_once(" < ") {
            let (parent, name) = name.rsplit_once('/').unwrap_or(("", name));
            let group = Group {
                name: name.to_owned(),
                parent: index(&plan, parent),
                selector: selector.to_owned(),
            };
            plan.groups.push(group);
            continue;
        }
        let (name, rest) = line
            .split_once(" =")
            .unwrap_or_else(|| panic!("no group and no field: {line}"));
        let (group, name) = name
            .split_once('.')
            .unwrap_or_else(|| panic!("no dot: {line}"));
        let (rest, take) = rest.rsplit_once("->").unwrap_or((rest, "text"));
        let (mut selector, mut first, mut keep) = (rest.trim(), false, true);
        if let Some(rest) = selector.strip_prefix("first") {
            (selector, first) = (rest.trim(), true);
        }
        if let Some(rest) = selector.strip_prefix("drop") {
            (selector, keep) = (rest.trim(), false);
        }
        let take = match take.trim() {
            "text" => Take::Text,
            "raw" => Take::TextRaw,
            "inner" => Take::Inner,
            "present" => Take::Present,
            "tag" => Take::Tag,
            attribute => Take::Attr(attribute.trim_start_matches('@').to_owned()),
        };
        let field = Field {
            name: name.to_owned(),
            group: index(&plan, group),
            selector: selector.to_owned(),
            take,
            first,
            keep,
        };
        plan.fields.push(field);
    }
    plan
}

fn index(plan: &Plan, group: &str) -> Option<u32> {
    if group.is_empty() {
        return None;
    }
    let found = plan.groups.iter().position(|g| g.name == group);
    Some(u32::try_from(found.unwrap_or_else(|| panic!("no group {group}"))).unwrap())
}

/// Writes captures as lines: the parents of the rows of each group, and row and value of each capture of each
/// field.
pub(crate) fn shown(plan: &Plan, captures: &Captures) -> String {
    let mut text = String::new();
    let row = |row: u32| {
        if row == NONE {
            "-".to_owned()
        } else {
            row.to_string()
        }
    };
    for (group, parents) in plan.groups.iter().zip(&captures.groups) {
        let parents: Vec<String> = parents.iter().map(|p| row(*p)).collect();
        writeln!(text, "{}: {}", group.name, parents.join(" ")).unwrap();
    }
    for (i, field) in plan.fields.iter().enumerate() {
        let value = |(at, value): (u32, &str)| format!("{} {value:?}", row(at));
        let values: Vec<String> = captures.values(i).map(value).collect();
        writeln!(text, "{}: {}", field.name, values.join(", ")).unwrap();
    }
    if let Some(base) = &captures.base {
        writeln!(text, "base {base}").unwrap();
    }
    if captures.truncated {
        writeln!(text, "truncated").unwrap();
    }
    text
}

/// Checks that captures are sound: every number points at something.
pub(crate) fn assert_sound(plan: &Plan, captures: &Captures) {
    assert_eq!(captures.groups.len(), plan.groups.len());
    assert_eq!(captures.columns.len(), plan.fields.len());
    let n_rows = |group: Option<u32>| group.map_or(0, |g| captures.groups[g as usize].len());
    let assert_row = |row: u32, group: Option<u32>| match group {
        None => assert_eq!(row, NONE),
        Some(_) => assert!((row as usize) < n_rows(group)),
    };
    for (group, parents) in plan.groups.iter().zip(&captures.groups) {
        parents
            .iter()
            .for_each(|parent| assert_row(*parent, group.parent));
    }
    assert!(captures.text.is_char_boundary(captures.n_kept as usize));
    for (field, column) in plan.fields.iter().zip(&captures.columns) {
        column
            .rows
            .iter()
            .for_each(|row| assert_row(*row, field.group));
        assert_eq!(column.spans.len(), 2 * column.rows.len());
        for span in column.spans.chunks(2) {
            assert!(
                captures
                    .text
                    .get(span[0] as usize..span[1] as usize)
                    .is_some()
            );
            assert!(!field.keep || span[1] <= captures.n_kept);
        }
        if field.first {
            let mut rows = column.rows.clone();
            rows.sort_unstable();
            rows.dedup();
            assert_eq!(rows.len(), column.rows.len());
        }
    }
}
