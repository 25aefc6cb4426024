//! The OpenAPI document, compared with the answers of a running server.

use crawler_testing::schema::SchemaCheck;
use crawler_tests::process::Home;
use crawler_tests::web::Method;
use serde_json::Value;

use crate::server::{Answer, Server, lines, text};
use crate::sites;

/// Returns an answer to each kind of path, and values of parameters that are needed.
fn filled(path: &str, operation: &Value) -> String {
    let path = path
        .replace("{name}", "books")
        .replace("{plugin}", "puppet")
        .replace("{digest}", &"0".repeat(64));
    let parameters = operation["parameters"].as_array().expect("a list");
    let is_needed =
        |parameter: &&Value| parameter["in"] == "query" && parameter["required"] == true;
    let needed: Vec<String> = parameters
        .iter()
        .filter(is_needed)
        .map(|parameter| format!("{}=http://a.test/", text(&parameter["name"])))
        // Events have no end: the call is refused.
        .chain((path == "/crawler/events").then(|| "version=none".to_owned()))
        .collect();
    format!("{path}?{}", needed.join("&"))
}

/// Checks that the document describes an answer.
#[track_caller]
fn check(document: &Value, operation: &Value, path: &str, answer: &Answer) {
    let responses = &operation["responses"];
    let response = &responses[answer.status.to_string()];
    assert!(response.is_object(), "{path}: no {}", answer.status);
    let media = &response["content"][&answer.kind];
    assert!(media.is_object(), "{path}: no {}", answer.kind);
    let check = SchemaCheck::of(document);
    let faults = match answer.kind.as_str() {
        "application/octet-stream" => Vec::new(),
        "application/jsonl" => {
            let lines = lines(&answer.text);
            let faults = lines
                .iter()
                .map(|line| check.faults(&media["x-itemSchema"], line));
            faults.flatten().collect()
        }
        _ => check.faults(&media["schema"], &answer.json()),
    };
    assert!(faults.is_empty(), "{path}: {faults:#?}");
}

/// Returns the paths that can be read, with their operations.
fn reads(document: &Value) -> Vec<(&str, &Value)> {
    let paths = document["paths"].as_object().expect("it has paths");
    let reads = paths
        .iter()
        .map(|(path, operations)| (path.as_str(), &operations["get"]));
    reads
        .filter(|(_, operation)| operation.is_object())
        .collect()
}

#[test]
fn the_document_describes_what_a_server_answers() {
    let web = sites::chain(2).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &["--label=team=shop"]);
    server.finished("books");
    server.ok(&["resource", "schedule", "books", "--every", "1d"]);
    let document = server.get("/openapi.json").json();
    let reads = reads(&document);
    assert!(reads.len() > 15, "{}", reads.len());
    for (path, operation) in reads {
        let path = filled(path, operation);
        // A plugin is no text, and its bytes have a test of their own.
        if path.contains("/bytes") {
            continue;
        }
        let answer = server.http(Method::GET, &path, None);
        check(&document, operation, &path, &answer);
        let is_kept_file = path.contains("/files/");
        assert_eq!(answer.status == 404, is_kept_file, "{path}: {answer:?}");
    }
    let items = &document["paths"]["/crawler/resource/{name}/items"]["get"];
    let check_envelope = SchemaCheck::of(&document);
    for line in lines(&server.get("/crawler/resource/books/items?envelope").text) {
        let schema = &document["components"]["schemas"]["Item"];
        assert_eq!(check_envelope.faults(schema, &line), Vec::<String>::new());
    }
    for path in ["?envelope", "?limit=1", "?run=9", "?limit=none"] {
        let path = format!("/crawler/resource/books/items{path}");
        check(
            &document,
            items,
            &path,
            &server.http(Method::GET, &path, None),
        );
    }
}

#[test]
fn a_call_takes_the_parameters_that_the_document_has() {
    let web = sites::chain(1).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    server.finished("books");
    let document = server.get("/openapi.json").json();
    for (path, operation) in reads(&document) {
        let parameters = operation["parameters"].as_array().expect("a list");
        let queries = parameters.iter().filter(|one| one["in"] == "query");
        for parameter in queries {
            let name = text(&parameter["name"]);
            // The value says nothing that any parameter could mean, and streams do not begin.
            let path = format!("{}&{name}=%00", filled(path, operation));
            let answer = server.http(Method::GET, &path, None);
            assert!(
                !answer.text.contains("there is no parameter"),
                "{path}: {answer:?}"
            );
        }
    }
    let unknown = server.http(Method::GET, "/crawler/resource?colour=1", None);
    assert!(unknown.problem().contains("there is no parameter"));
}

#[test]
fn the_document_is_for_valid_tokens_and_its_page_for_everybody() {
    let server = Server::start_in(Home::new(), &["--require-tokens"]);
    let refused = server.http(Method::GET, "/openapi.json", None);
    assert!(refused.problem().starts_with("401 UNAUTHENTICATED"));
    let page = server.get("/docs");
    assert_eq!(page.kind, "text/html; charset=utf-8");
    for part in ["src=", "@import", "url(", "https://", "http://"] {
        assert!(!page.text.contains(part), "the page loads {part}");
    }
}
