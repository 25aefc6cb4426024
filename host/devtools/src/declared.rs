//! Compares the declarations of two plugins: rules, params, items, plans for reading pages, limits and hosts.

use std::collections::BTreeMap;

use crawler_extract::{Plan, Take};
use serde::Serialize;
use serde_json::Value;

use crawler_model::plugin::{Description, Schema};

/// Value of a declaration that has no details.
const DECLARED: &str = "declared";
/// Name of the plan behind `page.links()`, which every plugin has from its SDK and no author declares.
const LINKS_PLAN: &str = "page.links";
/// Form of an item whose schema allows anything or cannot be read.
const ANYTHING: &str = "any object";
/// Value of a schema whose difference is in nothing that is listed.
const OTHERWISE: &str = "another schema";

/// A declaration that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Name of the declaration: `rule list`, `item book.price`, `reads List.next`.
    pub name: String,
    /// Declaration of the first plugin. If `None`, it has none.
    pub before: Option<String>,
    /// Declaration of the second plugin. If `None`, it has none.
    pub after: Option<String>,
}

/// Returns the declarations that differ, by name. Names and versions of the plugins, and numbers of rules, do
/// not count.
pub fn differences(before: &Description, after: &Description) -> Vec<Difference> {
    let (one, mut other) = (declared(before), declared(after));
    let mut differences = Vec::new();
    for (name, before) in one {
        let after = other.remove(&name);
        if after.as_ref() != Some(&before) {
            differences.push(Difference {
                name,
                before: Some(before),
                after,
            });
        }
    }
    differences.extend(other.into_iter().map(|(name, after)| Difference {
        name,
        before: None,
        after: Some(after),
    }));
    differences.extend(unlisted(before, after, &differences));
    differences.sort_by(|one, other| one.name.cmp(&other.name));
    differences
}

/// Returns the items whose schemas differ though no field does: in a pattern, a bound, a field within a
/// field.
fn unlisted(before: &Description, after: &Description, listed: &[Difference]) -> Vec<Difference> {
    let mut unlisted = Vec::new();
    for one in &before.schemas {
        let is_other = |other: &Schema| other.name == one.name && value(other) != value(one);
        let name = format!("item {}", one.name);
        let is_listed = listed.iter().any(|difference| {
            let field = difference.name.strip_prefix(&name);
            field.is_some_and(|field| field.is_empty() || field.starts_with('.'))
        });
        if after.schemas.iter().any(is_other) && !is_listed {
            unlisted.push(Difference {
                name,
                before: Some(DECLARED.to_owned()),
                after: Some(OTHERWISE.to_owned()),
            });
        }
    }
    unlisted
}

/// Returns a schema as a JSON value, so that white space makes no difference.
fn value(schema: &Schema) -> Result<Value, &str> {
    serde_json::from_str(&schema.json_schema).map_err(|_| schema.json_schema.as_str())
}

fn declared(description: &Description) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for rule in &description.rules {
        all.insert(format!("rule {rule}"), DECLARED.to_owned());
    }
    for host in &description.hosts {
        all.insert(format!("host {host}"), DECLARED.to_owned());
    }
    for (name, n) in &description.limits {
        all.insert(format!("limit {name}"), n.to_string());
    }
    for param in description.params.iter().flatten() {
        let value = match &param.default {
            Some(default) => format!("default {default:?}"),
            None if param.required => "has to be given".to_owned(),
            None => "may be missing".to_owned(),
        };
        all.insert(format!("param {}", param.name), value);
    }
    for schema in &description.schemas {
        let name = format!("item {}", schema.name);
        let read = schema.read().ok().flatten();
        for (field, kinds, is_required) in read.iter().flat_map(|read| read.properties()) {
            let missing = if is_required { "" } else { ", may be missing" };
            all.insert(format!("{name}.{field}"), kinds + missing);
        }
        let whole = if read.is_some() { DECLARED } else { ANYTHING };
        all.insert(name, whole.to_owned());
    }
    let plans = description.plans.iter();
    for plan in plans.filter(|plan| plan.name != LINKS_PLAN) {
        reads(plan, &mut all);
    }
    all
}

fn reads(plan: &Plan, all: &mut BTreeMap<String, String>) {
    let name = format!("reads {}", plan.name);
    let group = |n: Option<u32>| plan.groups.get(n? as usize).map(|group| &group.name);
    for row in &plan.groups {
        let within = match group(row.parent) {
            Some(parent) => format!(", in rows {parent}"),
            None => String::new(),
        };
        let rows = format!("{name}: rows {}", row.name);
        all.insert(rows, format!("{}{within}", row.selector));
    }
    for field in &plan.fields {
        let selector = match field.selector.as_str() {
            "" => "the row",
            selector => selector,
        };
        let take = match &field.take {
            Take::Text => "text".to_owned(),
            Take::TextRaw => "raw".to_owned(),
            Take::Inner => "inner".to_owned(),
            Take::Attr(name) => format!("@{name}"),
            Take::Present => "present".to_owned(),
            Take::Tag => "tag".to_owned(),
        };
        let mut text = format!("{selector} -> {take}");
        if field.first {
            text += ", first";
        }
        if !field.keep {
            text += ", only followed";
        }
        if let Some(group) = group(field.group) {
            text += &format!(", in rows {group}");
        }
        all.insert(format!("{name}.{}", field.name), text);
    }
    all.insert(name, DECLARED.to_owned());
}

#[cfg(test)]
mod tests {
    use crawler_extract::{Field, Group};

    use super::*;
    use crawler_model::plugin::Param;

    fn description() -> Description {
        let plan = Plan {
            name: "List".to_owned(),
            groups: vec![Group {
                name: "Book".to_owned(),
                parent: None,
                selector: "article".to_owned(),
            }],
            fields: vec![Field {
                name: "next".to_owned(),
                group: Some(0),
                selector: "a.next".to_owned(),
                take: Take::Attr("href".to_owned()),
                first: true,
                keep: false,
            }],
        };
        Description {
            name: "shop".parse().unwrap(),
            version: "1.0.0".parse().unwrap(),
            rules: vec!["list".into()],
            schemas: vec![Schema {
                name: "book".to_owned(),
                json_schema: r#"{"type": "object", "required": ["title"],
                    "properties": {"title": {"type": "string"}, "n": {"type": "integer"}}}"#
                    .to_owned(),
            }],
            plans: vec![plan],
            hosts: vec!["a.test".to_owned()],
            params: None,
            limits: [("fuel".to_owned(), 5)].into(),
        }
    }

    const PARAMS: &str = r#"{"type": "object", "properties": {"login": {"type": "string"},
        "start": {"type": "string", "default": "http://a.test/"}},
        "required": ["login"], "additionalProperties": false}"#;

    #[track_caller]
    fn check(change: impl FnOnce(&mut Description), expected: &[(&str, &str, &str)]) {
        let before = description();
        let mut after = before.clone();
        change(&mut after);
        let found = differences(&before, &after);
        let or_nothing = |text: &Option<String>| text.clone().unwrap_or_default();
        let found: Vec<_> = found
            .iter()
            .map(|d| (d.name.clone(), or_nothing(&d.before), or_nothing(&d.after)))
            .collect();
        let found: Vec<_> = found
            .iter()
            .map(|(name, before, after)| (name.as_str(), before.as_str(), after.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_declared_is_compared_by_name() {
        check(|_| {}, &[]);
        check(|d| d.version = "2.0.0".parse().unwrap(), &[]);
        check(
            |d| {
                d.rules = vec!["detail".into()];
                d.hosts.clear();
                d.limits.insert("fuel".to_owned(), 6);
                d.params = Some(Param::read(PARAMS).unwrap());
            },
            &[
                ("host a.test", "declared", ""),
                ("limit fuel", "5", "6"),
                ("param login", "", "has to be given"),
                ("param start", "", "default \"http://a.test/\""),
                ("rule detail", "", "declared"),
                ("rule list", "declared", ""),
            ],
        );
    }

    #[test]
    fn what_the_sdk_reads_of_links_is_not_declared_by_anybody() {
        let add = |d: &mut Description| {
            let mut links = d.plans[0].clone();
            links.name = "page.links".to_owned();
            d.plans.push(links);
        };
        check(add, &[]);
    }

    #[test]
    fn selectors_and_fields_are_told() {
        check(
            |d| {
                d.plans[0].groups[0].selector = "li".to_owned();
                d.plans[0].fields[0].keep = true;
            },
            &[
                (
                    "reads List.next",
                    "a.next -> @href, first, only followed, in rows Book",
                    "a.next -> @href, first, in rows Book",
                ),
                ("reads List: rows Book", "article", "li"),
            ],
        );
        let other = |from: &'static str, to: &'static str| {
            move |d: &mut Description| {
                let schema = &mut d.schemas[0].json_schema;
                *schema = schema.replace(from, to);
            }
        };
        check(
            other("[\"title\"]", "[\"n\"]"),
            &[
                ("item book.n", "integer, may be missing", "integer"),
                ("item book.title", "string", "string, may be missing"),
            ],
        );
        check(
            other("\"string\"", "\"string\", \"maxLength\": 5"),
            &[("item book", "declared", "another schema")],
        );
        check(
            |d| d.schemas[0].json_schema.clear(),
            &[
                ("item book", "declared", "any object"),
                ("item book.n", "integer, may be missing", ""),
                ("item book.title", "string", ""),
            ],
        );
    }
}
