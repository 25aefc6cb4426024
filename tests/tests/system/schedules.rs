//! Runs that begin by themselves.

use std::time::Duration;

use crawler_tests::web::Method;
use crawler_tests::{PATIENCE, until};
use serde_json::json;

use crate::server::Server;
use crate::sites;

#[test]
fn a_run_begins_by_its_schedule_after_a_kill() {
    let web = sites::chain(3).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    server.finished("books");
    let shown = ["resource", "schedule", "books"];
    let none = server.cli(&shown);
    assert_eq!(none.code, Some(1), "{}", none.stdout);
    let why = "error: resource books has no schedule\n";
    assert!(none.stderr.starts_with(why), "{}", none.stderr);
    let options = ["--cron", "* * * * *", "--overlap", "queue"];
    let set = server.ok(&[&shown[..], &options[..]].concat());
    let first = "resource books runs by schedule: * * * * * in UTC\n";
    assert!(set.starts_with(first), "{set}");

    let server = server.killed_and_started_again();
    let path = "/crawler/resource/books/schedule";
    // The next minute begins within a minute.
    let started = until("a run", PATIENCE + Duration::from_secs(60), || {
        let schedule = server.get(path).json();
        (schedule["last"]["outcome"] == "started").then_some(schedule)
    });
    assert_eq!(started["spec"]["overlap"], "queue");
    let due = started["last"]["due_at"].as_u64().expect("a time");
    assert_eq!(due % 60_000, 0);
    assert!(started["due_at"].as_u64().expect("a time") > due);
    assert!(started["last"]["run"].as_u64() >= Some(2), "{started}");

    let answer = server.http(Method::DELETE, path, None);
    assert_eq!((answer.status, answer.json()), (200, json!({})));
    let books = server.finished("books");
    // A run that the kill has cut short may have fetched its first page twice.
    let n_runs = books["run"].as_u64().expect("a number");
    assert!(web.count("/0") as u64 >= n_runs, "{books}");
    assert_eq!(server.http(Method::DELETE, path, None).status, 404);
    let runs = server.get("/crawler/resource/books/runs").json();
    let (latest, first) = (
        &runs["runs"][0],
        &runs["runs"].as_array().expect("a list")[1..],
    );
    assert_eq!(latest["run"], books["run"]);
    let first = first.last().expect("a run before");
    assert_eq!(
        (&first["run"], &first["outcome"]),
        (&json!(1), &json!("finished"))
    );
    assert_eq!(first["pages"], 3);
}
