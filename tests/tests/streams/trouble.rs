//! Trouble that servers make for those who publish: they are away, are killed, are slow, and have no stream or no room.

use std::sync::Arc;
use std::time::Duration;

use crawler_message_sink::nats::{NatsSecret, NatsSettings, NatsSinks, NatsTarget};
use crawler_sink::{CheckSink as _, Sink as _, SinkError};
use crawler_tests::nats::Nats;
use serde_json::json;

use super::server::{Admin, items, open, settings, sinks, wait_for, with_stream, write_all};

#[tokio::test]
async fn a_server_that_is_away_at_the_start_is_waited_for() {
    let Some((nats, _)) = with_stream(json!({})).await else {
        return;
    };
    nats.kill();
    let mut sink = open(&sinks(&nats, settings()));
    wait_for(&mut sink, &items(1), "the server cannot be reached").await;
    nats.restart();
    write_all(&mut sink, &items(1)).await;
    assert_eq!(Admin::connect(&nats).await.numbers().await, [1]);
}

#[tokio::test]
async fn a_restarted_server_has_each_item_once() {
    let Some((nats, _)) = with_stream(json!({})).await else {
        return;
    };
    let mut sink = open(&sinks(&nats, settings()));
    let all = items(3);
    write_all(&mut sink, &all[..2]).await;
    nats.kill();
    nats.restart();
    // The second item comes again: nobody knows that it was acknowledged.
    write_all(&mut sink, &all[1..]).await;
    assert_eq!(Admin::connect(&nats).await.numbers().await, [1, 2, 3]);
}

#[tokio::test]
async fn kills_in_the_middle_of_batches_lose_and_double_nothing() {
    const N_ITEMS: u64 = 5_000;
    let Some((nats, _)) = with_stream(json!({})).await else {
        return;
    };
    let few = NatsSettings {
        batch_items: 100,
        ..settings()
    };
    let all = items(N_ITEMS);
    let mut sink = open(&sinks(&nats, few));
    let nats = Arc::new(nats);
    let killed = Arc::clone(&nats);
    let kills = std::thread::spawn(move || {
        for _ in 0..4 {
            crawler_tests::pass(Duration::from_millis(300));
            killed.kill();
            crawler_tests::pass(Duration::from_millis(100));
            killed.restart();
        }
    });
    let (mut n_written, mut n_failed) = (0, 0);
    while n_written < all.len() || !kills.is_finished() {
        if n_written == all.len() {
            // They come again while there are kills.
            n_written = 0;
        }
        match sink.write(n_written as u64, &all[n_written..]).await {
            Ok(written) => n_written += written.n_items as usize,
            Err(SinkError::Retry { .. }) => {
                n_failed += 1;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    kills.join().expect("the server starts again");
    assert!(n_failed > 0, "nothing has happened");
    let numbers = Admin::connect(&nats).await.numbers().await;
    assert_eq!(numbers, (1..=N_ITEMS).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_stream_that_is_missing_or_removed_is_waited_for() {
    let Some(nats) = Nats::start(&[]) else {
        return;
    };
    let admin = Admin::connect(&nats).await;
    let mut sink = open(&sinks(&nats, settings()));
    let why = "no stream takes the subject; items wait until there is one (crawler.books.thing)";
    wait_for(&mut sink, &items(2), why).await;
    admin.add_stream(json!({})).await;
    write_all(&mut sink, &items(2)).await;
    admin.ask("STREAM.DELETE.CRAWLER", json!({})).await;
    wait_for(&mut sink, &items(3)[2..], why).await;
    admin.add_stream(json!({})).await;
    write_all(&mut sink, &items(3)[2..]).await;
    assert_eq!(admin.numbers().await, [3]);
}

#[tokio::test]
async fn a_slow_server_is_named_and_then_given_fewer_items() {
    let Some((nats, admin)) = with_stream(json!({})).await else {
        return;
    };
    let hurried = NatsSettings {
        timeout: Duration::from_secs(1),
        ..settings()
    };
    let mut sink = open(&sinks(&nats, hurried));
    let all = items(10);
    write_all(&mut sink, &all[..1]).await;
    nats.freeze();
    wait_for(&mut sink, &all, "does not acknowledge items in time").await;
    // A new connection is accepted by the kernel, and nobody answers there.
    wait_for(&mut sink, &all, "the server cannot be reached").await;
    nats.thaw();
    let written = loop {
        match sink.write(0, &all).await {
            Ok(written) => break written,
            Err(SinkError::Retry { .. }) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(error) => panic!("{error}"),
        }
    };
    assert!(written.n_items < 10, "{} items at once", written.n_items);
    write_all(&mut sink, &all).await;
    assert_eq!(admin.numbers().await, (1..=10).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_full_stream_is_named_and_takes_the_rest_later() {
    let Some((nats, admin)) = with_stream(json!({ "max_msgs": 3 })).await else {
        return;
    };
    let mut sink = open(&sinks(&nats, settings()));
    let all = items(5);
    let written = sink.write(0, &all).await.expect("there is some room");
    assert_eq!(written.n_items, 3);
    wait_for(&mut sink, &all[3..], "the stream has no room left").await;
    admin.ask("STREAM.PURGE.CRAWLER", json!({})).await;
    write_all(&mut sink, &all[3..]).await;
    assert_eq!(admin.numbers().await, [4, 5]);
}

#[tokio::test]
async fn a_user_who_is_refused_is_told_so() {
    let Some(nats) = Nats::start(&["--user", "ann", "--pass", "secret"]) else {
        return;
    };
    let of = |password: &str| {
        let url = nats.url().replace("nats://", "nats://ann@");
        let secret = NatsSecret::Password(password.to_owned());
        let target = NatsTarget::parse(&url, Some(secret), None).expect("it is a URL");
        NatsSinks::new(target, settings()).expect("the settings are in range")
    };
    let mut sink = open(&of("wrong"));
    wait_for(&mut sink, &items(1), "the server refuses the user").await;
    let mut nobody = open(&sinks(&nats, settings()));
    wait_for(&mut nobody, &items(1), "the server refuses the user").await;
    // The user is let in, and looks for a stream.
    let error = of("secret").check().await.expect_err("there is no stream");
    assert!(error.to_string().contains("no stream takes"), "{error}");
}
