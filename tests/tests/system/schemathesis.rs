//! schemathesis, which makes requests of an OpenAPI document, as a second opinion about the document and the calls.
//!
//! It asks as each role and without a token. No answer may be a fault of the server, or anything that the document does
//! not describe. What it asks follows from the document alone, and its report has the command that repeats a request.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crawler_tests::guests;
use crawler_tests::process::Process;
use crawler_tests::python::python;
use crawler_tests::web::Method;
use serde_json::{Value, json};

use crate::server::text;
use crate::sites;
use crate::tokens::{Guarded, ROLES};

const SCHEMATHESIS: &str = "schemathesis==4.32.5";
/// Checks of each answer: what other checks refuse is allowed here, such as a number that is a text.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
/// Time for the requests of one role, on a machine that does other things too.
const DEADLINE: Duration = Duration::from_secs(300);
/// Requests of one call with made-up values, by the administrator.
const MAX_EXAMPLES: &str = "10";

/// Returns the document without calls that have no end or take long, and with names of resources that are there.
fn document(guarded: &Guarded) -> Value {
    let answer = guarded.ask(&guarded.admin, Method::GET, "/openapi.json", None);
    let mut document = answer.json();
    let paths = document["paths"].as_object_mut().expect("it has paths");
    // Events are a stream without an end, a profile takes 30 s, and a plugin is compiled.
    paths.retain(|path, _| !path.contains("/events") && !path.contains("pprof"));
    paths["/crawler/plugin"]
        .as_object_mut()
        .expect("a path has operations")
        .remove("put");
    for operations in paths.values_mut() {
        let operations = operations.as_object_mut().expect("a path has operations");
        for (method, operation) in operations {
            let Some(parameters) = operation["parameters"].as_array_mut() else {
                continue;
            };
            parameters.retain(|parameter| parameter["name"] != "follow");
            for parameter in parameters {
                if let Some(known) = known(method, parameter) {
                    parameter["schema"] = json!({"type": "string", "enum": [known]});
                }
            }
        }
    }
    document
}

/// Returns a name for a parameter of a path, so that a call gets further than to its absence.
fn known(method: &str, parameter: &Value) -> Option<&'static str> {
    if parameter["in"] != "path" {
        return None;
    }
    match (text(&parameter["name"]), method) {
        ("name", "get") => Some("books"),
        // Only this one is deleted, so that other calls go on having something to read and to change.
        ("name", "delete") => Some("gone"),
        ("name", _) => Some("changing"),
        ("plugin", "get") => Some("puppet"),
        ("plugin", _) => Some("gone"),
        _ => None,
    }
}

/// Makes the requests of one caller. Returns the report if an answer is at fault.
fn report(python: &Path, home: &Path, url: &str, caller: (&str, Option<&str>)) -> Option<String> {
    let (name, token) = caller;
    let mut command = Command::new(python.with_file_name("schemathesis"));
    command
        .args(["run", "openapi.json", "--url", url, "--checks", CHECKS])
        .args(["--generation-deterministic", "--max-examples", MAX_EXAMPLES])
        .args(["--suppress-health-check", "all", "--warnings", "off"])
        .args(["--request-timeout", "30", "--workers", "1", "--no-color"])
        .current_dir(home)
        .env("HOME", home);
    // Others are refused before a value is looked at.
    let phases = match name {
        "admin" => "examples,coverage,fuzzing",
        _ => "examples,coverage",
    };
    command.args(["--phases", phases]);
    if let Some(token) = token {
        command.args(["--header", &format!("authorization: Bearer {token}")]);
    }
    let ended = Process::start(&mut command).wait(DEADLINE);
    (ended.code != Some(0)).then(|| format!("as {name}:\n{}\n{}", ended.stdout, ended.stderr))
}

#[test]
fn no_made_up_request_finds_a_fault_or_an_undescribed_answer() {
    let folder = tempfile::tempdir().unwrap();
    let Some(python) = python(folder.path(), "schemathesis", &[SCHEMATHESIS]) else {
        return;
    };
    let guarded = Guarded::start_with(&["--api-rate=0", "--api-concurrency=0"]);
    let admin = |arguments: &[&str]| guarded.server.ok_as(&guarded.admin, arguments);
    admin(&[
        "plugin",
        "push",
        &guests::guest("puppet").display().to_string(),
    ]);
    let web = sites::chain(2).open();
    let start = format!("--param=start={}", web.url("/0"));
    admin(&["resource", "add", "books", "--plugin=puppet", &start]);
    let waiting = "--selector=gpu=true";
    for name in ["changing", "gone"] {
        admin(&["resource", "add", name, "--plugin=puppet", &start, waiting]);
    }
    admin(&["resource", "wait", "books"]);
    let document = document(&guarded).to_string();
    fs::write(folder.path().join("openapi.json"), document).unwrap();
    let tokens = ROLES.map(|role| {
        let token = guarded.token(&json!({"subject": role, "roles": [role]}));
        (role, token)
    });
    let url = format!("http://{}", guarded.server.http_address());
    let callers = tokens
        .iter()
        .map(|(role, token)| (*role, Some(token.as_str())));
    let callers = [("nobody", None)].into_iter().chain(callers);
    let reports = callers.filter_map(|caller| report(&python, folder.path(), &url, caller));
    let reports: Vec<String> = reports.collect();
    assert!(reports.is_empty(), "{}", reports.join("\n"));
}
