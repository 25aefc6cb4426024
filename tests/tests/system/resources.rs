//! Additions and deletions over HTTP, and the records that they write.

use crawler_store::Store as _;
use crawler_store::embedded::{EmbeddedStore, Settings};
use crawler_tests::web::Method;
use crawler_tests::{PATIENCE, until};
use serde_json::{Value, json};

use crate::server::{Answer, Server, block_on, text};
use crate::sites::{self, Gate};

fn post(server: &Server, body: &str) -> Answer {
    server.http(Method::POST, "/crawler/resource", Some(body))
}

fn delete(server: &Server, body: &str) -> Answer {
    server.http(Method::DELETE, "/crawler/resource", Some(body))
}

#[test]
fn s10_a_name_that_exists_is_refused_and_nothing_is_changed() {
    let web = sites::chain(2).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &["--max-depth=9"]);
    server.finished("books");
    let before = server.get("/crawler/resource/books").text;
    let again = post(
        &server,
        r#"{"name":"books","plugin":"puppet","params":{"start":"http://a.test/"}}"#,
    );
    assert_eq!(
        again.problem(),
        "409 ALREADY_EXISTS: resource books exists already"
    );
    assert_eq!(
        again.json()["hint"],
        "change it with `crawler resource update books`, or delete it first"
    );
    let ended = server.cli(&["resource", "add", "books", "--plugin=puppet"]);
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("resource books exists already"),
        "{}",
        ended.stderr
    );
    assert_eq!(server.get("/crawler/resource/books").text, before);
    assert_eq!(web.log().len(), 2);
}

#[test]
fn f14_adding_a_running_resource_again_neither_replaces_it_nor_counts_twice() {
    let gate = Gate::closed();
    let web = sites::gated_chain(3, 1, &gate).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    web.wait_for("second page", PATIENCE, |log| log.len() == 2);
    let before = server.resource("books");
    for _ in 0..3 {
        let start = web.url("/0");
        let body =
            format!(r#"{{"name":"books","plugin":"puppet","params":{{"start":"{start}"}}}}"#);
        assert_eq!(post(&server, &body).status, 409);
    }
    assert_eq!(server.load(), 1);
    let after = server.resource("books");
    for field in ["spec", "generation", "run", "plugin_digest"] {
        assert_eq!(before[field], after[field]);
    }
    gate.open();
    server.finished("books");
    until("load of nothing", PATIENCE, || {
        (server.load() == 0).then_some(())
    });
    assert_eq!((web.log().len(), server.items("books").len()), (3, 3));
}

#[test]
fn s12_the_request_of_the_course_is_answered_with_the_worker_that_crawls() {
    let server = Server::start();
    let course = r#"{"id":"zjx","name":"task-test-4"}"#;
    let without = post(&server, course);
    assert_eq!(
        without.problem(),
        "412 FAILED_PRECONDITION: there is no plugin task-test-4"
    );
    assert!(text(&without.json()["hint"]).contains("--as task-test-4@VERSION"));
    assert_eq!(
        server
            .http(Method::GET, "/crawler/resource/task-test-4", None)
            .status,
        404
    );

    server.push("puppet", &["--as=task-test-4@1.0.0"]);
    let added = post(&server, course);
    let worker = format!(r#"{{"id":"worker-1","Address":"{}"}}"#, server.grpc());
    assert_eq!(
        (added.status, added.kind.as_str()),
        (200, "application/json")
    );
    assert_eq!(added.text, worker);
    let camel = r#"{"id":"zjx","name":"camel","plugin":"task-test-4","assignedNode":"x|y","creationTime":"5"}"#;
    assert_eq!(post(&server, camel).text, worker);
    let spec = &server.resource("camel")["spec"];
    assert_eq!(
        text(&spec["assigned_node"]),
        format!("worker-1|{}", server.grpc())
    );
    assert_ne!(spec["id"], "zjx");
}

#[test]
fn s13_a_resource_is_deleted_by_name_and_an_unknown_one_is_told() {
    let server = Server::with_puppet();
    let added = post(&server, r#"{"name":"books","plugin":"puppet"}"#);
    assert_eq!(added.status, 200, "{added:?}");
    let deleted = delete(&server, r#"{"name":"books"}"#);
    assert_eq!((deleted.status, deleted.text.as_str()), (200, "{}"));
    let unknown = delete(&server, r#"{"name":"books"}"#);
    assert_eq!(
        unknown.problem(),
        "404 NOT_FOUND: there is no resource books"
    );
    let gone = server.http(Method::GET, "/crawler/resource/books", None);
    assert_eq!(gone.problem(), unknown.problem());
    let wrong = delete(&server, r#"{"name":"#);
    assert!(
        wrong
            .problem()
            .starts_with("400 INVALID_ARGUMENT: the body is not JSON"),
        "{wrong:?}"
    );
}

#[test]
fn a_resource_is_changed_paused_and_deleted_at_its_own_path() {
    let gate = Gate::closed();
    let web = sites::gated_chain(3, 1, &gate).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    let at = |method, end: &str, body| {
        let answer = server.http(method, &format!("/crawler/resource/books{end}"), body);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    };
    let changed = at(Method::PATCH, "", Some(r#"{"crawl":{"max_depth":7}}"#));
    assert_eq!(changed["spec"]["crawl"]["max_depth"], 7);
    assert_eq!(at(Method::POST, "/pause", None)["phase"], "Paused");
    assert_ne!(at(Method::POST, "/resume", None)["phase"], "Paused");
    let drained = server.http(Method::POST, "/crawler/node/worker-1/drain?undo", None);
    assert_eq!(drained.status, 200, "{drained:?}");
    let revoked = server.http(Method::POST, "/crawler/node/worker-1/revoke", None);
    assert_eq!(revoked.status, 200, "{revoked:?}");
    gate.open();
    let finished = server.finished("books");
    let id = finished["spec"]["id"].as_str().expect("it has an id");
    let items = format!("/crawler/resource/{id}/items");
    server.get(&items);
    assert_eq!(at(Method::DELETE, "?purge", None), json!({}));
    let gone = server.http(Method::GET, "/crawler/resource/books", None);
    assert_eq!(gone.status, 404, "{gone:?}");
    until("end of the items", PATIENCE, || {
        let gone = server.http(Method::GET, &items, None);
        (gone.status == 404).then_some(())
    });
}

#[test]
fn s14_the_record_in_the_store_is_json_that_a_person_can_read() {
    let web = sites::chain(1).open();
    let server = Server::with_puppet();
    server.add(
        "books",
        &web.url("/0"),
        &["--limit=memory=8MiB", "--delay=250ms"],
    );
    let resource = server.finished("books");
    let spec = resource["spec"].clone();
    let node = format!("worker-1|{}", server.grpc());
    assert!(text(&spec["id"]).parse::<u64>().is_ok(), "{spec}");
    let nanoseconds: u64 = text(&spec["creation_time"])
        .parse()
        .expect("a number as text");
    // Every other time is in milliseconds.
    assert_eq!(resource["added_at"], nanoseconds / 1_000_000);

    let home = server.stop();
    let folder = home.path().join("crawler-data/store");
    let listing = block_on(async {
        let store = EmbeddedStore::open(&folder, Settings::default()).expect("the store opens");
        store
            .list("/crawler/resources/")
            .await
            .expect("the store lists")
    });
    let keys: Vec<&str> = listing
        .entries
        .iter()
        .map(|entry| entry.key.as_str())
        .collect();
    assert_eq!(keys, ["/crawler/resources/books"]);
    let record: Value = serde_json::from_slice(&listing.entries[0].value).expect("JSON");
    // The ids are equal digit by digit: as a number, the id would change in a reader that knows floats only.
    assert_eq!(record["id"], spec["id"]);
    assert_eq!(record["creation_time"], json!(nanoseconds));
    assert_eq!(record["assigned_node"], node);
    assert_eq!(record["name"], "books");
    assert_eq!(record["params"], json!({"start": web.url("/0").as_str()}));
    assert_eq!(record["limits"], json!({"memory": 8 << 20}));
    assert_eq!(record["crawl"], json!({"delay_ms": 250}));
}

#[test]
fn f13_a_name_that_begins_another_is_another_name() {
    let web = sites::chain(1).open();
    let server = Server::with_puppet();
    server.add("ab", &web.url("/0"), &[]);
    server.finished("ab");
    let a = server.http(Method::GET, "/crawler/resource/a", None);
    assert_eq!(a.problem(), "404 NOT_FOUND: there is no resource a");
    assert_eq!(delete(&server, r#"{"name":"a"}"#).status, 404);
    server.add("a", &web.url("/0"), &[]);
    server.finished("a");
    assert_eq!(server.items("a").len(), 1);
    server.ok(&["resource", "delete", "a", "--purge"]);
    assert_eq!(server.finished("ab")["spec"]["name"], "ab");
    assert_eq!(server.items("ab").len(), 1);

    // Names of plugins are compared as a whole: `ab` exists, `a` does not.
    server.push("puppet", &["--as=ab@1.0.0"]);
    let refused = post(&server, r#"{"name":"c","plugin":"a"}"#);
    assert_eq!(
        refused.problem(),
        "412 FAILED_PRECONDITION: there is no plugin a"
    );
    server.push("puppet", &["--as=a@1.0.0"]);
    server.ok(&["plugin", "delete", "a@1.0.0"]);
    assert_eq!(
        server.http(Method::GET, "/crawler/plugin/a", None).status,
        404
    );
    assert_eq!(server.get("/crawler/plugin/ab").json()["name"], "ab");
}
