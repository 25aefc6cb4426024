//! The document has every call and nothing else, refers to nothing that is not there, and describes the answers of
//! `answers.json`. A test of the whole system compares it with a running server.

use std::collections::BTreeSet;

use super::*;
use crate::access::methods::METHODS;
use crawler_testing::schema::SchemaCheck;

/// Answers of `answers.json`, up to a comma in the name, and their messages.
const ANSWERS: [(&str, &str); 23] = [
    ("changes", "ListChangesResponse"),
    ("drained", "DrainNodeResponse"),
    ("explanation", "UrlExplanation"),
    ("hosts", "ListHostsResponse"),
    ("item", "Item"),
    ("log line", "LogLine"),
    ("node", "Node"),
    ("node event", "NodeEvent"),
    ("nodes", "ListNodesResponse"),
    ("past event", "PastEvent"),
    ("placed", "NodeSpec"),
    ("plugin", "Plugin"),
    ("plugins", "ListPluginsResponse"),
    ("redriven", "RedriveResponse"),
    ("resource", "Resource"),
    ("resources", "ListResourcesResponse"),
    ("runs", "ListRunsResponse"),
    ("runs diff", "RunsDiff"),
    ("schedule", "Schedule"),
    ("schedules", "ListSchedulesResponse"),
    ("statistics", "RunStatistics"),
    ("stats", "FrontierStats"),
    ("urls", "ListUrlsResponse"),
];

/// Returns all operations of a document.
fn operations(document: &Value) -> Vec<&Value> {
    let paths = document["paths"].as_object().expect("it has paths");
    let operations = paths.values().filter_map(Value::as_object);
    operations.flat_map(Map::values).collect()
}

fn words<'a>(operations: &[&'a Value], word: &str) -> Vec<&'a str> {
    let words = operations.iter().map(|operation| &operation[word]);
    words.filter_map(Value::as_str).collect()
}

#[test]
fn the_document_has_every_call_and_nothing_else() {
    let document = document();
    let operations = operations(&document);
    let found: BTreeSet<&str> = words(&operations, "x-call").into_iter().collect();
    let all = METHODS.iter().map(|method| method.name);
    let expected: BTreeSet<&str> = all.filter(|name| !GRPC_ONLY.contains(name)).collect();
    assert_eq!(found, expected);
    let ids = words(&operations, "operationId");
    assert_eq!(ids.len(), operations.len());
    let ids: BTreeSet<&str> = ids.into_iter().collect();
    assert_eq!(
        ids.len(),
        operations.len(),
        "an id stands for one operation"
    );
    for summary in words(&operations, "summary") {
        assert!(!summary.is_empty());
    }
}

#[test]
fn every_part_of_the_document_is_there_and_used() {
    let document = document();
    let mut used = BTreeSet::new();
    collect_references(&document, &mut used);
    for reference in &used {
        let target = document.pointer(reference.trim_start_matches('#'));
        assert!(target.is_some_and(Value::is_object), "{reference}");
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in schemas.keys() {
        let reference = format!("#/components/schemas/{name}");
        assert!(used.contains(&reference), "nothing refers to {name}");
    }
}

fn collect_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(target) if name == "$ref" => {
                        found.insert(target.clone());
                    }
                    _ => collect_references(value, found),
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                collect_references(value, found);
            }
        }
        _ => {}
    }
}

#[test]
fn the_document_describes_every_answer() {
    let document = document();
    let answers: Map<String, Value> =
        serde_json::from_str(include_str!("../../answer/answers.json")).unwrap();
    let check = SchemaCheck::of(&document);
    let mut n_checked = 0;
    for (name, answer) in &answers {
        let form = name.split(',').next().unwrap_or_default();
        let Some((_, message)) = ANSWERS.iter().find(|(known, _)| *known == form) else {
            continue;
        };
        let schema = &document["components"]["schemas"][*message];
        let faults = check.faults(schema, answer);
        assert!(faults.is_empty(), "{name}: {faults:#?}");
        n_checked += 1;
    }
    assert!(n_checked > 25, "{n_checked}");
}

#[test]
fn a_body_has_the_fields_that_it_is_said_to_have() {
    let document = document();
    let body = |path: &str, method: &str| {
        let body = &document["paths"][path][method]["requestBody"];
        let schema = &body["content"]["application/json"]["schema"];
        let fields = schema["properties"].as_object().map(Map::keys);
        let mut fields: Vec<&str> = fields.into_iter().flatten().map(String::as_str).collect();
        fields.sort_unstable();
        fields.join(" ")
    };
    assert_eq!(
        body("/crawler/resource", "delete"),
        "if_generation if_id name purge"
    );
    assert_eq!(
        body("/crawler/access/token", "post"),
        "namespaces roles subject valid_for_ms"
    );
    let added = body("/crawler/resource", "post");
    assert_eq!(
        added.split(' ').count(),
        crate::http::body::CHANGES.len() + 1,
        "{added}"
    );
    assert_eq!(body("/crawler/resource/{name}/pause", "post"), "");
}

#[test]
fn texts_of_the_book_lose_their_links() {
    assert_eq!(
        without_links("has [fewer](#a) and [b](c)"),
        "has fewer and b"
    );
    assert_eq!(without_links("a [b"), "a [b");
    assert_eq!(summary("Lists nodes. And more."), "Lists nodes");
    assert_eq!(summary("Lists nodes."), "Lists nodes");
}
