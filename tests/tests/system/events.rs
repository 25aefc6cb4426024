//! Server-sent events of resources, read as they come.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use crawler_tests::process::Home;
use crawler_tests::web::Method;
use crawler_tests::{PATIENCE, until};
use serde_json::Value;

use crate::server::{Server, text};

/// Reader of the events of one connection.
struct Events {
    lines: std::io::Lines<BufReader<TcpStream>>,
}

impl Events {
    /// Asks for events; a reader that comes back names the last one that it has.
    fn of(server: &Server, last: Option<&str>) -> Self {
        let mut stream = TcpStream::connect(server.http_address()).expect("HTTP listens");
        let patience = stream.set_read_timeout(Some(PATIENCE));
        patience.expect("a time that is not zero is taken");
        let last = last.map(|id| format!("last-event-id: {id}\r\n"));
        let head = format!(
            "GET /crawler/events HTTP/1.1\r\nhost: localhost\r\n{}\r\n",
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
