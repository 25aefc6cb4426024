//! Server-sent events of resources, read as they come.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use crawler_tests::process::Home;
use crawler_tests::web::Method;
use crawler_tests::{PATIENCE, until};
use serde_json::Value;

use crate::server::{Server, lines, text};
use crate::sites;

/// Reader of the events of one connection.
struct Events {
    lines: std::io::Lines<BufReader<TcpStream>>,
}

impl Events {
    /// Asks for events of all resources; a reader that comes back names the last one that it has.
    fn of(server: &Server, last: Option<&str>) -> Self {
        Self::at("/crawler/events", server, last)
    }

    fn at(path: &str, server: &Server, last: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(server.http_address()).expect("HTTP listens");
        let patience = stream.set_read_timeout(Some(PATIENCE));
        patience.expect("a time that is not zero is taken");
        let last = last.map(|id| format!("last-event-id: {id}\r\n"));
        let head = format!(
            "GET {path} HTTP/1.1\r\nhost: localhost\r\n{}\r\n",
            last.unwrap_or_default()
        );
        stream.write_all(head.as_bytes()).expect("HTTP listens");
        let lines = BufReader::new(stream).lines();
        Self { lines }
    }

    /// Returns the next event: its name, its id and its data.
    fn next(&mut self) -> (String, Option<String>, Value) {
        let (mut event, mut id) = (String::new(), None);
        loop {
            let line = self.lines.next().expect("the stream goes on");
            let line = line.expect("a line comes in time");
            if let Some(name) = line.strip_prefix("event: ") {
                event = name.to_owned();
            } else if let Some(version) = line.strip_prefix("id: ") {
                id = Some(version.to_owned());
            } else if let Some(data) = line.strip_prefix("data: ") {
                let data = serde_json::from_str(data).expect("data is JSON");
                return (event, id, data);
            }
        }
    }

    /// Passes over events until one has this name and is about this resource; returns its id.
    fn until(&mut self, name: &str, resource: &str) -> Option<String> {
        loop {
            let (event, id, data) = self.next();
            if event == name && text(&data["name"]) == resource {
                return id;
            }
            // It comes only after a long silence.
            assert_ne!(event, "heartbeat", "no {name} of {resource}");
        }
    }
}

fn add(server: &Server, name: &str) {
    // No worker has the label, so that nothing happens meanwhile.
    server.ok(&[
        "resource",
        "add",
        name,
        "--plugin=puppet",
        "--param=start=http://a.test/",
        "--selector=gpu=true",
    ]);
}

#[test]
fn events_tell_what_is_there_what_changes_and_what_was_missed() {
    let server = Server::with_puppet();
    add(&server, "books");
    let mut events = Events::of(&server, None);
    let (event, id, _) = events.next();
    assert_eq!((event.as_str(), id.as_deref()), ("begin", Some("0")));
    let (event, id, data) = events.next();
    assert_eq!((event.as_str(), id), ("added", None));
    assert_eq!(data["resource"]["spec"]["name"], "books");
    let complete = events.until("complete", "").expect("it has an id");
    server.ok(&["resource", "pause", "books"]);
    events.until("changed", "books");
    drop(events);
    add(&server, "shop");
    server.ok(&["resource", "delete", "books"]);
    let mut events = Events::of(&server, Some(&complete));
    let mut found = Vec::new();
    loop {
        let (event, _, data) = events.next();
        assert_ne!(event, "begin", "the reader has come back in time");
        assert_ne!(event, "heartbeat", "{found:?}");
        found.push(format!("{event} {}", text(&data["name"])));
        if found.contains(&"deleted books".to_owned()) && found.contains(&"added shop".to_owned()) {
            break;
        }
    }
    let refused = server.http(Method::GET, "/crawler/events?version=none", None);
    assert!(refused.problem().starts_with("400 INVALID_ARGUMENT"));
}

#[test]
fn what_happened_to_a_resource_is_read_and_followed() {
    let path = "/crawler/resource/books/events";
    let web = sites::chain(2).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    server.finished("books");
    let listed = lines(&server.get(path).text);
    let kinds: Vec<&str> = listed.iter().map(|event| text(&event["kind"])).collect();
    assert_eq!(kinds, ["added", "placed", "finished"]);
    assert!(text(&listed[1]["worker"]).starts_with("worker-"));
    assert_eq!(listed[2]["pages"], 2, "{:?}", listed[2]);
    // The next leader reads the same.
    let server = server.killed_and_started_again();
    assert_eq!(lines(&server.get(path).text), listed);
    let table = server.ok(&["resource", "events", "books"]);
    assert!(table.starts_with("TIME"), "{table}");
    assert_eq!(table.lines().count(), 4, "{table}");

    let follow = format!("{path}?follow");
    let mut events = Events::at(&follow, &server, None);
    for expected in kinds {
        assert_eq!(events.next().0, expected);
    }
    server.ok(&["resource", "pause", "books"]);
    let (kind, paused, _) = events.next();
    assert_eq!(kind, "paused");
    drop(events);
    server.ok(&["resource", "resume", "books"]);
    let mut events = Events::at(&follow, &server, paused.as_deref());
    assert_eq!(events.next().0, "resumed");
    server.ok(&["resource", "delete", "books"]);
    assert_eq!(events.next().0, "deleted");
    let refused = server.http(Method::GET, path, None);
    assert!(refused.problem().starts_with("404 NOT_FOUND"));
    server.add("books", &web.url("/0"), &[]);
    let refused = server.http(Method::GET, &format!("{path}?version=none"), None);
    assert!(refused.problem().starts_with("400 INVALID_ARGUMENT"));
    // An event of another life is none of this one: the reader begins anew.
    let mut events = Events::at(&follow, &server, paused.as_deref());
    assert_eq!(events.next().0, "added");
}

#[test]
fn what_happened_to_nodes_is_read_and_followed() {
    let server = Server::with_puppet();
    let read = |path: &str| lines(&server.get(path).text);
    let kinds = |path: &str| -> Vec<String> {
        let events = read(path);
        let word = |event: &Value| format!("{} {}", text(&event["node"]), text(&event["kind"]));
        events.iter().map(word).collect()
    };
    let all = "/crawler/node/events";
    until("the node joins", PATIENCE, || {
        let kinds = kinds(all);
        let has = |word: &str| kinds.iter().any(|kind| kind.ends_with(word));
        (has(" joined") && has(" leads")).then_some(())
    });
    let joined = kinds(all)
        .into_iter()
        .find(|kind| kind.starts_with("worker-"));
    let joined = joined.expect("there is a worker");
    let (worker, _) = joined.split_once(' ').expect("it has a node and a kind");
    let path = format!("/crawler/node/{worker}/events");
    let mut events = Events::at(&format!("{path}?follow"), &server, None);
    assert_eq!(events.next().0, "joined");
    server.ok(&["node", "drain", worker]);
    assert_eq!(events.next().0, "draining");
    assert_eq!(events.next().0, "drained");
    let table = server.ok(&["node", "events", worker]);
    assert!(table.starts_with("TIME"), "{table}");
    assert!(table.contains("draining"), "{table}");
    let refused = server.http(Method::GET, "/crawler/node/worker-99/events", None);
    assert!(refused.problem().starts_with("404 NOT_FOUND"));
}

#[test]
fn a_master_that_stops_ends_events_with_the_reason() {
    let server = Server::with_puppet();
    let mut events = Events::of(&server, None);
    events.until("complete", "");
    let stopped = std::thread::spawn(|| server.stop());
    loop {
        let (event, _, data) = events.next();
        assert_ne!(event, "heartbeat");
        if event == "end" {
            assert_eq!(data["code"], "UNAVAILABLE", "{data}");
            break;
        }
    }
    stopped.join().expect("it stops");
}

#[test]
fn one_caller_has_a_bounded_number_of_streams_open() {
    let server = Server::start_in(Home::new(), &["--api-streams=2"]);
    server.push("puppet", &[]);
    add(&server, "books");
    let open = [0, 1].map(|_| {
        let mut events = Events::of(&server, None);
        events.until("complete", "");
        events
    });
    let refused = server.http(Method::GET, "/crawler/events", None);
    let problem = refused.problem();
    assert!(problem.starts_with("429 RESOURCE_EXHAUSTED"), "{problem}");
    assert!(problem.contains("--api-streams"), "{problem}");
    // Calls that end are not bounded by it, and a stream that has ended leaves its place.
    server.ok(&["resource", "get", "books"]);
    let [first, _second] = open;
    drop(first);
    until("a place for a stream", PATIENCE, || {
        let items = server.http(Method::GET, "/crawler/resource/books/items", None);
        (items.status == 200).then_some(())
    });
}
