//! Webhooks of a running `crawler up`.

use std::fs;
use std::sync::{Arc, Mutex};

use crawler_fetch::webhook::SigningKey;
use crawler_tests::PATIENCE;
use crawler_tests::process::Home;
use crawler_tests::until;
use crawler_tests::web::{Asked, Site, StatusCode};
use serde_json::Value;

use crate::server::{Server, text};

const SECRET: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const PREVIOUS_SECRET: &str = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Id and body of a call.
type Call = (String, Value);

/// Takes note of a call, and answers the first one with an error.
fn take(calls: &Mutex<Vec<Call>>, asked: &Asked) -> StatusCode {
    let header = |name: &str| {
        let value = asked
            .headers
            .get(name)
            .and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let at = header("webhook-timestamp").parse().expect("it is a number");
    let signatures = [SECRET, PREVIOUS_SECRET].map(|secret| {
        let key: SigningKey = secret.parse().expect("it is a secret");
        key.sign(&header("webhook-id"), at, &asked.body)
    });
    assert_eq!(header("webhook-signature"), signatures.join(" "));
    let body = serde_json::from_slice(&asked.body).expect("the body is JSON");
    let mut calls = calls.lock().expect("no test panics with it");
    calls.push((header("webhook-id"), body));
    match asked.nth {
        1 => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::NO_CONTENT,
    }
}

#[test]
fn a_receiver_is_told_of_resources_and_again_after_a_failure() {
    let calls = Arc::<Mutex<Vec<Call>>>::default();
    let noted = Arc::clone(&calls);
    let site = Site::new().handle("/hook", move |asked| {
        let status = take(&noted, &asked);
        async move { status }
    });
    let web = site.open();
    let heard = || calls.lock().unwrap().clone();

    let home = Home::new();
    let file = home.path().join("hooks.toml");
    let url = web.url("/hook");
    let config = format!(
        "[webhook.chat]\nurl = '{url}'\nsecret-file = 'secret'\nprevious-secret-file = 'previous'\n\
            allow-networks = ['127.0.0.0/8']\n"
    );
    fs::write(&file, config).unwrap();
    fs::write(home.path().join("secret"), SECRET).unwrap();
    fs::write(home.path().join("previous"), PREVIOUS_SECRET).unwrap();
    let file = file.display().to_string();
    let server = Server::start_in(home, &["--config", &file]);
    server.push("puppet", &[]);
    server.ok(&[
        "resource",
        "add",
        "books",
        "--plugin=puppet",
        "--param=start=http://a.test/",
        "--selector=gpu=true",
    ]);
    // A new webhook is told what happens from its start on, which may come after the addition.
    until("a call is made again", PATIENCE, || {
        server.ok(&["resource", "pause", "books"]);
        server.ok(&["resource", "resume", "books"]);
        (heard().len() >= 2).then_some(())
    });
    let told = heard();
    let (first, second) = (&told[0], &told[1]);
    assert_eq!(first, second, "it has the same id and body");
    assert!(first.0.starts_with("msg_"), "{first:?}");
    assert_eq!(first.1["data"]["resource"]["spec"]["name"], "books");

    server.ok(&["resource", "delete", "books"]);
    let last = until("the deletion is told", PATIENCE, || {
        let (_, last) = heard().pop()?;
        (text(&last["type"]) == "resource.deleted").then_some(last)
    });
    assert_eq!(last["data"]["name"], "books");
    assert_eq!(last["data"]["resource"], Value::Null);
    server.stop();
}
