//! A crawl whose items go to the data root and to a stream, while the program and the server are killed.

use std::time::Duration;

use crawler_tests::closure::{Closure, Plan, Visit};
use crawler_tests::edited_site;
use crawler_tests::http::block_on;
use crawler_tests::nats::Nats;
use crawler_tests::process::Home;
use crawler_tests::random::Random;
use crawler_tests::up::Up;
use crawler_tests::{PATIENCE, guests, until};
use serde_json::{Value, json};

use super::server::Admin;

const N_PAGES: usize = 1_200;
/// Number of requests between two kills. All kills together come before the crawl can be over.
const BETWEEN: usize = 80;
/// Deadline of the crawl, with a program that was built without optimisation on a busy machine.
const DEADLINE: Duration = Duration::from_secs(600);

#[test]
fn kills_of_program_and_server_lose_and_double_no_message() {
    let Some(nats) = Nats::start(&[]) else {
        return;
    };
    block_on(async { Admin::connect(&nats).await.add_stream(json!({})).await });
    let mut random = Random::new("crawl into a stream");
    let closure = Closure::open(Plan {
        n_pages: N_PAGES,
        seed: random.below(1 << 32),
        max_depth: 40,
        pace: Duration::from_millis(20),
    });
    let home = Home::new();
    let config = format!(
        "[sink.events]\nurl = {:?}\nmax-wait = \"200ms\"\ntimeout = \"5s\"\n",
        nats.url()
    );
    home.write("crawler.toml", &config);
    home.ok(["sink", "check", "events"]);
    let mut up = Up::start(&home, &[]);
    let puppet = guests::guest("puppet").display().to_string();
    up.ok(["plugin", "push", &puppet]);
    let add = ["resource", "add", "web", "--plugin=puppet"];
    let add = add
        .into_iter()
        .chain(["--sink=lines,events", "--concurrency=8"]);
    up.ok(add.map(str::to_owned).chain(closure.arguments()));

    for kills_server in [false, true, false, true] {
        let target = closure.n_asked() + BETWEEN;
        assert!(closure.wait_for(target, PATIENCE), "the crawl halts");
        if kills_server {
            nats.kill();
            until("word of the sink", PATIENCE, || {
                let lines = up.process.stderr();
                let mut lines = lines.iter();
                let why = "cannot publish items to nats://";
                lines.any(|line| line.contains(why)).then_some(())
            });
            nats.restart();
        } else {
            up.process.kill();
            closure.begin_life();
            up = Up::start(&home, &[]);
        }
    }

    up.finished("web", DEADLINE);
    let mut in_lines = Visit::read(&up.ok(["items", "web"]));
    let mut in_stream = Visit::read(&published(&nats).join("\n"));
    up.stop();
    in_lines.sort();
    in_stream.sort();
    let known: Vec<Visit> = closure.items().into_iter().collect();
    assert_eq!(in_lines, known);
    assert_eq!(in_stream, known);
}

#[test]
fn changes_of_each_run_are_messages() {
    let Some(nats) = Nats::start(&[]) else {
        return;
    };
    block_on(async { Admin::connect(&nats).await.add_stream(json!({})).await });
    let home = Home::new();
    let config = format!("[sink.feed]\nurl = {:?}\nwhat = \"changes\"\n", nats.url());
    home.write("crawler.toml", &config);
    let up = Up::start(&home, &[]);
    let puppet = guests::guest("puppet").display().to_string();
    up.ok(["plugin", "push", &puppet]);
    let web = edited_site::open();
    let start = format!("--param=start={}", web.url("/"));
    let add = ["resource", "add", "web", "--plugin=puppet", "--changes=2"];
    up.ok(add.into_iter().chain(["--sink=lines,feed", &start]));
    up.finished("web", DEADLINE);
    up.ok(["resource", "restart", "web"]);
    up.finished("web", DEADLINE);
    up.stop();
    edited_site::check(&web, &records(&nats));
}

/// Returns all items in the stream, as JSON.
fn published(nats: &Nats) -> Vec<String> {
    let items = records(nats).into_iter();
    items.map(|record| record["item"].to_string()).collect()
}

/// Returns all records in the stream.
fn records(nats: &Nats) -> Vec<Value> {
    let messages = block_on(async { Admin::connect(nats).await.messages().await });
    let records = messages.iter();
    let records = records.map(|message| serde_json::from_slice(&message.body));
    records.map(|record| record.expect("a record")).collect()
}
