//! Users who may publish under some subjects and not under others: what is denied holds back nothing else.

use std::path::Path;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use crawler_message_sink::nats::{NatsSecret, NatsSinks, NatsTarget};
use crawler_model::crawl::ItemRecord;
use crawler_sink::Sink as _;
use crawler_tests::PATIENCE;
use crawler_tests::nats::Nats;
use serde_json::{Value, json};

use super::server::{Admin, item, open, settings, wait_for, write_all};

/// Subject of items of the kind `thing`.
const THINGS: &str = "crawler.books.thing";
/// Subject of items of the kind `secret`.
const SECRETS: &str = "crawler.books.secret";

/// Writes the config of a server whose user `ann` may publish under these subjects alone. Who has no name may do all.
fn write_config(path: &Path, allowed: &[&str]) {
    let config = format!(
        r#"authorization {{
  users = [
    {{ user: "admin", password: "admin" }}
    {{ user: "ann", password: "secret", permissions: {{ publish: {{ allow: {allowed:?} }} }} }}
  ]
}}
no_auth_user: "admin"
"#
    );
    std::fs::write(path, config).expect("the folder is there");
}

/// Returns the sinks that publish as `ann`.
fn sinks_of_ann(nats: &Nats) -> NatsSinks {
    let url = nats.url().replace("nats://", "nats://ann@");
    let secret = NatsSecret::Password("secret".to_owned());
    let target = NatsTarget::parse(&url, Some(secret), None).expect("it is a URL");
    NatsSinks::new(target, settings()).expect("the settings are in range")
}

fn item_of_kind(n: u64, kind: &str) -> ItemRecord {
    ItemRecord {
        schema: kind.to_owned(),
        ..item(n, "a text")
    }
}

/// Returns the numbers of the items in the stream, sorted.
async fn numbers(admin: &Admin) -> Vec<u64> {
    let messages = admin.messages().await;
    let items = messages
        .iter()
        .filter(|m| m.subject.starts_with("crawler.books."));
    let numbers = items.map(|message| {
        let record: ItemRecord = serde_json::from_slice(&message.body).expect("an item");
        record.fetched_at
    });
    let mut numbers: Vec<u64> = numbers.collect();
    numbers.sort();
    numbers
}

/// Waits until the stream recognises no message that it has now: a marker that came after them is taken once more.
async fn wait_for_end_of_window(admin: &Admin, id: &str) {
    let begun = Instant::now();
    let mut n_taken = 0;
    while n_taken < 2 {
        assert!(begun.elapsed() < PATIENCE, "the window does not end");
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Msg-Id", id);
        let answer = admin.publish("crawler.marker", headers, "marker").await;
        match answer["duplicate"] == Value::Bool(true) {
            true => tokio::time::sleep(Duration::from_millis(20)).await,
            false => n_taken += 1,
        }
    }
}

#[tokio::test]
async fn a_denied_subject_holds_back_its_own_messages_alone() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("nats.conf");
    write_config(&config, &[THINGS]);
    let Some(nats) = Nats::start(&["-c", &config.display().to_string()]) else {
        return;
    };
    let admin = Admin::connect(&nats).await;
    let short = json!({ "duplicate_window": 200_000_000_u64 });
    admin.add_stream(short).await;
    let mut sink = open(&sinks_of_ann(&nats));
    let kinds = ["thing", "secret", "thing", "thing", "secret", "thing"];
    let all = (1..).zip(kinds).map(|(n, kind)| item_of_kind(n, kind));
    let all: Vec<ItemRecord> = all.collect();
    let written = sink.write(0, &all).await.expect("the first is stored");
    assert_eq!(written.n_items, 1);
    // Those behind are there as well, and stay there once when the stream has forgotten their ids.
    for id in ["marker-1", "marker-2"] {
        assert_eq!(numbers(&admin).await, [1, 3, 4, 6]);
        wait_for_end_of_window(&admin, id).await;
        wait_for(&mut sink, &all[1..], "the server refuses the user").await;
    }
    assert_eq!(numbers(&admin).await, [1, 3, 4, 6]);

    write_config(&config, &[THINGS, SECRETS]);
    nats.kill();
    nats.restart();
    write_all(&mut sink, &all[1..]).await;
    let admin = Admin::connect(&nats).await;
    assert_eq!(numbers(&admin).await, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn many_denied_subjects_leave_the_connection_to_others() {
    const N_DENIED: u64 = 300;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("nats.conf");
    write_config(&config, &[THINGS]);
    let Some(nats) = Nats::start(&["-c", &config.display().to_string()]) else {
        return;
    };
    let admin = Admin::connect(&nats).await;
    admin.add_stream(json!({})).await;
    let sinks = sinks_of_ann(&nats);
    let (mut sink, mut other) = (open(&sinks), open(&sinks));
    let last = N_DENIED + 2;
    let denied = (2..last).map(|n| item_of_kind(n, &format!("secret-{n}")));
    let first = item_of_kind(1, "thing");
    let all: Vec<ItemRecord> = std::iter::once(first)
        .chain(denied)
        .chain([item_of_kind(last, "thing")])
        .collect();
    let written = sink.write(0, &all).await.expect("the first is stored");
    assert_eq!(written.n_items, 1);
    assert_eq!(numbers(&admin).await, [1, last]);
    write_all(&mut other, &[item_of_kind(last + 1, "thing")]).await;
    wait_for(&mut sink, &all[1..], "the server refuses the user").await;
    assert_eq!(numbers(&admin).await, [1, last, last + 1]);
}
