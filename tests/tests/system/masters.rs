//! Choice of the master that a command calls: several may be named, and if one breaks off, the next is called.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crawler_tests::guests;
use crawler_tests::process::{Ended, Process};
use crawler_tests::web::Site;

use crate::server::Server;

/// Returns a URL where nobody listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    format!("http://{}", listener.local_addr().expect("it listens"))
}

/// A connection to a master that breaks when the master answers a call; the call itself is carried out.
struct Breaking {
    url: String,
    n_broken: Arc<AtomicUsize>,
}

impl Breaking {
    fn before(master: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it listens"));
        let n_broken = Arc::new(AtomicUsize::new(0));
        let (master, counted) = (master.to_owned(), n_broken.clone());
        // The thread ends with the test's process.
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, master) = (
                    client.expect("a client has come"),
                    TcpStream::connect(&master).expect("the master listens"),
                );
                let counted = counted.clone();
                thread::spawn(move || break_at_the_answer(client, master, &counted));
            }
        });
        Self { url, n_broken }
    }
}

/// Passes on the bytes of both sides up to the first frame of HEADERS from the master.
fn break_at_the_answer(client: TcpStream, master: TcpStream, counted: &AtomicUsize) {
    const HEADERS: u8 = 1;
    let asking = thread::spawn({
        let (mut from, mut to) = (
            client.try_clone().expect("it is open"),
            master.try_clone().expect("it is open"),
        );
        move || std::io::copy(&mut from, &mut to)
    });
    let (mut from, mut to) = (&master, &client);
    loop {
        let mut frame = vec![0; 9];
        if from.read_exact(&mut frame).is_err() {
            break;
        }
        if frame[3] == HEADERS {
            counted.fetch_add(1, Ordering::Relaxed);
            break;
        }
        let length = u32::from_be_bytes([0, frame[0], frame[1], frame[2]]);
        let mut rest = vec![0; usize::try_from(length).expect("a length fits")];
        from.read_exact(&mut rest).expect("frames are whole");
        frame.extend(rest);
        if to.write_all(&frame).is_err() {
            break;
        }
    }
    for side in [&client, &master] {
        // The side may be gone already.
        let _gone = side.shutdown(Shutdown::Both);
    }
    // The rest of the other direction is dropped.
    let _cut = asking.join();
}

fn run(server: &Server, masters: &[&str], arguments: &[&str]) -> Ended {
    let mut command = server.home.command(arguments);
    command.env("CRAWLER_MASTER", masters.join(","));
    Process::start(&mut command).wait(crawler_tests::PATIENCE)
}

#[test]
fn a_master_that_is_away_is_passed_over_and_where_all_are_each_is_named() {
    let server = Server::start();
    let master = format!("http://{}", server.grpc());
    let (one, other) = (nobody(), nobody());
    let list = run(&server, &[&one, &other, &master], &["node", "list"]);
    assert_eq!(list.code, Some(0), "{}", list.stderr);
    assert!(list.stdout.contains("master-1"), "{}", list.stdout);
    let both = format!("{one},{other}");
    let list = server.cli(&["node", "list", "--master", &both]);
    assert_eq!(list.code, Some(1));
    let expected = format!(
        "error: cannot reach the master at {one}, {other}: Connection refused (os error 111)\n"
    );
    assert!(list.stderr.starts_with(&expected), "{}", list.stderr);
    // A refusal is an answer: no other master is asked.
    let get = run(&server, &[&master, &one], &["resource", "get", "nothing"]);
    assert!(
        get.stderr.contains("there is no resource nothing"),
        "{}",
        get.stderr
    );
    let list = run(&server, &[&master, "there"], &["node", "list"]);
    assert!(
        list.stderr.contains("\"there\" is not the URL of a master"),
        "{}",
        list.stderr
    );
}

#[test]
fn f14_a_change_whose_answer_was_lost_is_asked_of_the_next_master_and_done_once() {
    let web = Site::new().page("/*", "[]").open();
    let server = Server::start();
    let master = format!("http://{}", server.grpc());
    let start = format!("start={}", web.url("/"));
    let puppet = guests::guest("puppet").display().to_string();
    let add = [
        "resource",
        "add",
        "a",
        "--plugin=puppet",
        "--param",
        &start,
        "--max-pages=1",
    ];
    let changes: [&[&str]; 6] = [
        &["plugin", "push", &puppet],
        &add,
        &["resource", "update", "a", "--weight=3"],
        &["resource", "restart", "a"],
        &["resource", "delete", "a"],
        &["plugin", "delete", "puppet@0.1.0"],
    ];
    for change in changes {
        let run_before = (change[1] == "restart").then(|| {
            let over = server.finished("a");
            over["run"].as_u64().unwrap()
        });
        let breaking = Breaking::before(server.grpc());
        let changed = run(&server, &[&breaking.url, &master], change);
        assert_eq!(changed.code, Some(0), "{change:?}: {}", changed.stderr);
        assert_eq!(breaking.n_broken.load(Ordering::Relaxed), 1, "{change:?}");
        if let Some(run) = run_before {
            assert_eq!(server.resource("a")["run"], run + 1);
        }
    }
    // A call that was never sent before does not count as done.
    let gone = server.cli(&["plugin", "delete", "puppet@0.1.0"]);
    assert_eq!(gone.code, Some(1), "{}", gone.stdout);
    let plugins = server.get("/crawler/plugin").json();
    assert_eq!(plugins["plugins"].as_array().unwrap().len(), 0);
    // If it is the only one, such a master is an error that names it.
    let breaking = Breaking::before(server.grpc());
    let list = run(&server, &[&breaking.url], &["node", "list"]);
    assert_eq!(list.code, Some(1));
    let expected = format!("error: cannot reach the master at {}: ", breaking.url);
    assert!(list.stderr.starts_with(&expected), "{}", list.stderr);
    // A read is simply repeated at the next master.
    let list = run(&server, &[&breaking.url, &master], &["node", "list"]);
    assert_eq!(list.code, Some(0), "{}", list.stderr);
}
