//! Placement of crawls on workers, as it is requested and shown at each door.

use crawler_tests::web::Method;
use serde_json::json;

use crate::server::Server;
use crate::sites;

#[test]
fn s21_a_resource_waits_for_labels_and_runs_once_a_worker_has_those_that_are_left() {
    let web = sites::chain(2).open();
    let server = Server::with_puppet();
    let start = format!("--param=start={}", web.url("/0"));
    let added = server.ok(&[
        "resource",
        "add",
        "books",
        "--plugin=puppet",
        &start,
        "--weight=5",
        "--selector=gpu=true",
        "--near=shop",
        "--apart=forum",
    ]);
    let waits = "0/1 workers: 1 lacks label gpu";
    assert_eq!(added, format!("resource books added; it waits: {waits}\n"));
    let shown = server.ok(&["resource", "get", "books"]);
    assert!(shown.contains(&format!("Pending: {waits}\n")), "{shown}");
    let placement = "placement  weight 5; on gpu=true; near shop; apart from forum\n";
    assert!(shown.contains(placement), "{shown}");

    let change = [
        "resource",
        "update",
        "books",
        "--selector=gpu=",
        "--selector=id=worker-1",
        "--selector=host=127.0.0.1",
        "--near=",
    ];
    assert_eq!(server.ok(&change), "resource books changed; generation 2\n");
    let books = server.finished("books");
    let expected = json!({
        "weight": 5,
        "selector": {"host": "127.0.0.1", "id": "worker-1"},
        "apart": "forum",
    });
    assert_eq!(books["spec"]["placement"], expected);
    assert_eq!(web.log().len(), 2);
}

#[test]
fn s21_what_cannot_be_meant_is_refused_over_http_and_grpc() {
    let server = Server::with_puppet();
    let name = r#""name":"books","plugin":"puppet""#;
    for (placement, flag, why) in [
        (
            r#"{"weight":0}"#,
            "--weight=0",
            "setting weight is 0; it goes from 1 to 1000",
        ),
        (
            r#"{"apart":"books"}"#,
            "--apart=books",
            "setting apart names books itself; name another resource",
        ),
        (
            r#"{"selector":{"gpu":""}}"#,
            "--selector=gpu=",
            "setting selector is no list of labels: label gpu has no value; write gpu=VALUE",
        ),
        (
            r#"{"shards":0}"#,
            "--shards=0",
            "setting shards is 0; it goes from 1 to 32",
        ),
        (
            r#"{"shards":33}"#,
            "--shards=33",
            "setting shards is 33; it goes from 1 to 32",
        ),
    ] {
        let body = format!(r#"{{{name},"placement":{placement}}}"#);
        let answer = server.http(Method::POST, "/crawler/resource", Some(&body));
        let detail = &answer.json()["detail"];
        assert_eq!((answer.status, detail), (400, &json!(why)));
        let ended = server.cli(&["resource", "add", "books", "--plugin=puppet", flag]);
        assert_eq!(ended.code, Some(1));
        assert!(ended.stderr.contains(why), "{}", ended.stderr);
    }
    assert_eq!(server.load(), 0);
}
