//! The OpenAPI document of the calls over HTTP, and a page that shows it.
//!
//! The document is made of the routes, the table of all calls, and the descriptors of the `.proto` file, whose comments
//! are its descriptions. It is told to every valid token, as gRPC tells its interface by reflection. The page has nothing
//! of the interface: it asks for the document as its reader would, and is told to everybody.

use std::sync::LazyLock;

use axum::http::{HeaderName, StatusCode, header};
use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::params::{ParamKind, QueryParam};
use super::routes::{Body, Content, Fields, Route, tables};
use crate::access::methods::{Method, Needs};
use crate::problem::Problem;
use crawler_model::access::{Right, Role};
use descriptors::Descriptors;
use schemas::Schemas;

mod descriptors;
mod schemas;

/// Access that the document needs.
pub(super) static DESCRIBES: Method = Method {
    name: "OpenApi",
    needs: Needs::Nothing,
};

/// Calls without a route of HTTP: nodes make them.
#[cfg(test)]
const GRPC_ONLY: [&str; 4] = [
    "WatchNodes",
    "RecordPlugin",
    "JoinCluster",
    "RenewCertificate",
];

/// Rules that no call repeats.
const ABOUT: &str = "The calls of a master of the crawler. A slash in a name is written as %2F in a path. Fields of a \
    body may be written in snake_case or camelCase, an unknown field or parameter is refused, `null` counts as absent, and \
    a whole number may be a string. Streams of JSON lines have one document a line, and server-sent events one as data, \
    described by `x-itemSchema`. A stream of lines that breaks off is cut before its end, and one of events ends with an \
    event `end`. Fields of answers are only ever added.";

/// Data of server-sent events.
const EVENTS: &str = "Data of an event. Those of the last event, `end`, are a problem.";

/// Reference to the schema of errors.
const PROBLEM: &str = "#/components/schemas/Problem";

/// Page that shows the document. It asks for nothing but the document.
const PAGE: &str = include_str!("openapi/page.html");

/// Answers with the document.
pub(super) async fn serve_document() -> ([(HeaderName, &'static str); 1], Bytes) {
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(document().to_string()));
    (
        [(header::CONTENT_TYPE, "application/json")],
        DOCUMENT.clone(),
    )
}

/// Answers with the page.
pub(super) async fn serve_page() -> ([(HeaderName, &'static str); 3], &'static str) {
    let head = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    ];
    (head, PAGE)
}

/// Returns the document.
fn document() -> Value {
    let descriptors = Descriptors::of_proto();
    let mut schemas = Schemas::new(&descriptors);
    let mut paths: Map<String, Value> = Map::new();
    let mut seen: Vec<&str> = Vec::new();
    for (table, routes) in tables() {
        let tag = table.trim_start_matches("calls about ");
        for route in &routes {
            let is_first = !seen.contains(&route.call);
            seen.push(route.call);
            let about = descriptors.about_call(route.call);
            let operation = operation(route, tag, is_first, about, &mut schemas);
            let path = paths
                .entry(route.path.to_owned())
                .or_insert_with(|| json!({}));
            path[route.method.as_str().to_lowercase()] = operation;
        }
    }
    let mut components = schemas.finish();
    components.insert("Problem".to_owned(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Crawler",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {}],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An access token. A listener for its own machine alone asks for none, unless the \
                        master was started with --require-tokens.",
                },
            },
        },
    })
}

/// Returns the description of one call.
fn operation(
    route: &Route,
    tag: &str,
    is_first: bool,
    about: &str,
    schemas: &mut Schemas<'_>,
) -> Value {
    let needs = Method::named(route.call).map_or(Needs::Nothing, |method| method.needs);
    let mut parameters: Vec<Value> = names_in(route.path).map(path_parameter).collect();
    parameters.extend(route.docs.query.iter().map(query_parameter));
    if takes_key(route, needs) {
        parameters.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "description": "A call that is sent again under the same key is carried out once.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 128},
        }));
    }
    let gives_events = |form: &Content| matches!(form, Content::Events(_));
    if route.docs.gives.iter().any(gives_events) {
        parameters.push(json!({
            "name": "Last-Event-ID",
            "in": "header",
            "description": "Id of the last event that the reader has, to resume after it.",
            "schema": {"type": "string"},
        }));
    }
    let mut operation = json!({
        "operationId": operation_id(route, is_first),
        "x-call": route.call,
        "tags": [tag],
        "summary": summary(about),
        "description": format!("{about}\n\n{}", told(needs)),
        "parameters": parameters,
        "responses": responses(route, schemas),
    });
    if let Some(body) = request_body(route.docs.takes, schemas) {
        operation["requestBody"] = body;
    }
    operation
}

/// Returns the id of a call, which no other route has: a call with a second route is named by what its path names.
fn operation_id(route: &Route, is_first: bool) -> String {
    match names_in(route.path).next() {
        Some(name) if !is_first => {
            let (first, rest) = name.split_at(1);
            format!("{}By{}{rest}", route.call, first.to_uppercase())
        }
        _ if is_first => route.call.to_owned(),
        _ => format!("{}ByBody", route.call),
    }
}

/// True if the call takes the header `Idempotency-Key`: it changes something other than tokens.
fn takes_key(route: &Route, needs: Needs) -> bool {
    let changes = route.method != axum::http::Method::GET;
    changes && needs != Needs::WholeCluster(Right::Administer)
}

/// Returns the names of the parts of a path that callers fill in.
fn names_in(path: &'static str) -> impl Iterator<Item = &'static str> {
    let parts = path.split('/');
    parts.filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

fn path_parameter(name: &'static str) -> Value {
    let about = match name {
        "plugin" => "NAME or NAME@VERSION of the plugin",
        "digest" => "Digest of the file: 64 hexadecimal digits",
        "id" => "Id of the worker",
        "token" => "Id of the token",
        _ => "Name of the resource",
    };
    json!({
        "name": name,
        "in": "path",
        "required": true,
        "description": about,
        "schema": {"type": "string"},
    })
}

fn query_parameter(param: &QueryParam) -> Value {
    let schema = match param.kind {
        ParamKind::Flag => json!({"enum": ["", "true", "1", "false", "0"], "default": "false"}),
        ParamKind::Number => json!({"type": "integer", "minimum": 0, "maximum": u32::MAX}),
        ParamKind::Positive => json!({"type": "integer", "minimum": 1}),
        ParamKind::Text => json!({"type": "string"}),
        ParamKind::Word(words) => json!({"type": "string", "enum": words}),
    };
    json!({
        "name": param.name,
        "in": "query",
        "required": param.is_required,
        "description": param.about,
        "schema": schema,
    })
}

fn request_body(body: Body, schemas: &mut Schemas<'_>) -> Option<Value> {
    let mut object = |fields: Fields, is_required: bool| {
        let schema = schemas.request(fields.message, fields.required, fields.optional);
        json!({
            "required": is_required,
            "content": {"application/json": {"schema": schema}},
        })
    };
    match body {
        Body::Nothing => None,
        Body::Object(fields) => Some(object(fields, true)),
        Body::Optional(fields) => Some(object(fields, false)),
        Body::Wasm => Some(json!({"required": true, "content": {"application/wasm": {}}})),
    }
}

fn responses(route: &Route, schemas: &mut Schemas<'_>) -> Value {
    let mut content = Map::new();
    for form in route.docs.gives {
        let (kind, media) = media(*form, schemas);
        content.insert(kind.to_owned(), media);
    }
    let mut responses = Map::new();
    responses.insert(
        "200".to_owned(),
        json!({"description": "The call was carried out.", "content": content}),
    );
    let usual = [
        (400, "the request cannot be meant"),
        (401, "there is no valid access token"),
        (403, "the token does not allow it, or another website asks"),
        (429, "the caller makes more calls than it may"),
    ];
    let of_body: &[(u16, &str)] = match route.docs.takes {
        Body::Nothing => &[],
        Body::Object(_) | Body::Optional(_) => &[
            (408, "no body arrived in time"),
            (413, "the body is too large"),
            (415, "the body is of another type"),
        ],
        Body::Wasm => &[(415, "the body is of another type")],
    };
    for (status, why) in usual.iter().chain(of_body).chain(route.docs.errors) {
        let reason = StatusCode::from_u16(*status).ok();
        let reason = reason.and_then(|status| status.canonical_reason());
        let reason = reason.unwrap_or_default();
        let description = match *why {
            "" => reason.to_owned(),
            why => format!("{reason}: {}", without_links(why)),
        };
        responses.insert(status.to_string(), refusal(&description));
    }
    let other = "The call was not carried out; `code` tells what the caller can do.";
    responses.insert("default".to_owned(), refusal(other));
    Value::Object(responses)
}

fn refusal(description: &str) -> Value {
    json!({
        "description": description,
        "content": {
            "application/problem+json": {"schema": {"$ref": PROBLEM}},
        },
    })
}

/// Returns the type of an answer, and its description.
fn media(form: Content, schemas: &mut Schemas<'_>) -> (&'static str, Value) {
    const LINES: &str = "application/jsonl";
    let lines = |item: Value| json!({"schema": {"type": "string"}, "x-itemSchema": item});
    match form {
        Content::Empty => (
            "application/json",
            json!({"schema": {"type": "object", "properties": {}}}),
        ),
        Content::Message(message) => (
            "application/json",
            json!({"schema": schemas.reference(message)}),
        ),
        Content::Lines(message) => (LINES, lines(schemas.reference(message))),
        Content::Items => {
            let envelope = schemas.reference("Item");
            let about = "An item as its rule made it, or with `envelope` all that is known of it.";
            let item = json!({"type": "object"});
            (
                LINES,
                lines(json!({"description": about, "anyOf": [envelope, item]})),
            )
        }
        Content::Events(message) => {
            let event = schemas.reference(message);
            let end = json!({"$ref": PROBLEM});
            (
                "text/event-stream",
                lines(json!({"description": EVENTS, "anyOf": [event, end]})),
            )
        }
        Content::Bytes => ("application/octet-stream", json!({})),
    }
}

/// Returns the schema of an error.
fn problem() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let mut code = text("What the caller can do about it.");
    code["enum"] = json!(Problem::code_names());
    json!({
        "type": "object",
        "description": "A call that was not carried out, as RFC 9457 describes problems.",
        "required": ["title", "status", "code", "detail", "hint"],
        "properties": {
            "title": text("Words for the status."),
            "status": {"type": "integer", "description": "Status of the answer."},
            "code": code,
            "detail": text("The fault, and the thing that it concerns."),
            "hint": text("The way out; empty if the detail says it all."),
        },
    })
}

/// Returns a sentence about what a call needs.
fn told(needs: Needs) -> String {
    let roles = |right: Right| {
        let roles = Role::ALL.into_iter().filter(|role| role.gives(right));
        let roles: Vec<&str> = roles.map(Role::as_str).collect();
        roles.join(", ")
    };
    match needs {
        Needs::Nothing => "Any valid token may call it.".to_owned(),
        Needs::OwnProof => "It is called without an access token.".to_owned(),
        Needs::Right(right) => format!(
            "Roles that may call it, for the names of their namespaces: {}.",
            roles(right)
        ),
        Needs::AnyName(right) => format!("Roles that may call it: {}.", roles(right)),
        Needs::WholeCluster(right) => format!(
            "Roles that may call it, if they are not limited to a namespace: {}.",
            roles(right)
        ),
    }
}

/// Returns the first sentence of a comment, without its full stop.
fn summary(about: &str) -> &str {
    let end = about.find(". ").unwrap_or(about.len());
    about[..end].trim_end_matches('.')
}

/// Returns a text of the book with the words of its links only.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        let Some((words, after)) = link.split_once("](") else {
            break;
        };
        plain.push_str(before);
        plain.push_str(words);
        rest = after.split_once(')').map_or("", |(_target, after)| after);
    }
    plain + rest
}

#[cfg(test)]
mod tests;
