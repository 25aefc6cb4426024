//! Messages of a stream, as its readers see them.

use std::collections::BTreeSet;

use crawler_message_sink::nats::NatsSettings;
use crawler_model::crawl::ItemRecord;
use crawler_sink::{CheckSink as _, Sink as _};
use serde_json::json;

use super::server::{Admin, item, items, open, settings, sinks, with_stream, write_all};
use crawler_tests::nats::Nats;

#[tokio::test]
async fn each_item_is_a_message_in_order() {
    let Some((nats, admin)) = with_stream(json!({})).await else {
        return;
    };
    let mut sink = open(&sinks(&nats, settings()));
    assert_eq!(sink.write(0, &[]).await.expect("nothing to do").n_items, 0);
    let mut of_page = item(3, "a\nb");
    of_page.schema = "a.page".to_owned();
    let written = [item(1, "x"), item(2, "y"), of_page];
    write_all(&mut sink, &written).await;
    let messages = admin.messages().await;
    let subjects: Vec<&str> = messages.iter().map(|m| m.subject.as_str()).collect();
    let thing = "crawler.books.thing";
    assert_eq!(subjects, [thing, thing, "crawler.books.a%2Epage"]);
    for (message, item) in messages.iter().zip(&written) {
        let record: ItemRecord = serde_json::from_slice(&message.body).expect("an item");
        assert_eq!(record.key, item.key);
        assert_eq!(record.item.get(), item.item.get());
        assert!(!message.body.contains(&b'\n'));
    }
    let ids: BTreeSet<&str> = messages.iter().map(|m| m.header("Nats-Msg-Id")).collect();
    assert_eq!(ids.len(), 3);
}

#[tokio::test]
async fn items_that_come_again_are_there_once() {
    let Some((nats, admin)) = with_stream(json!({})).await else {
        return;
    };
    let few = NatsSettings {
        batch_items: 7,
        ..settings()
    };
    let all = items(100);
    let of_process = sinks(&nats, few);
    write_all(&mut open(&of_process), &all).await;
    // Another owner of the shard does not know how far the first one came.
    let (mut one, mut other) = (open(&of_process), open(&sinks(&nats, settings())));
    tokio::join!(write_all(&mut one, &all[30..]), write_all(&mut other, &all));
    assert_eq!(admin.numbers().await, (1..=100).collect::<Vec<u64>>());
}

#[tokio::test]
async fn an_item_that_is_too_large_is_kept_in_pieces() {
    // 1 MiB is the limit of the server; the others are those of the stream, the last of which is below the size of a piece.
    for (max_msg_size, n_bytes) in [(-1, 4 << 20), (100_000, 200_000), (10_000, 200_000)] {
        let limits = json!({ "max_msg_size": max_msg_size });
        let Some((nats, admin)) = with_stream(limits).await else {
            return;
        };
        let mut sink = open(&sinks(&nats, settings()));
        let large = item(2, &"é".repeat(n_bytes / 2));
        let written = [item(1, "x"), large.clone(), item(3, "z")];
        assert_eq!(write_all(&mut sink, &written).await, 1, "it is told");
        // All come again after a crash.
        write_all(&mut open(&sinks(&nats, settings())), &written).await;
        let messages = admin.messages().await;
        let (pieces, others): (Vec<_>, Vec<_>) = messages
            .into_iter()
            .partition(|message| message.subject == "crawler.rejects");
        assert_eq!(others.len(), 2, "the rest goes on");
        let bodies: Vec<&[u8]> = pieces.iter().map(|piece| &piece.body[..]).collect();
        let record: ItemRecord = serde_json::from_slice(&bodies.concat()).expect("all of it");
        assert_eq!(record.key, large.key);
        assert_eq!(record.item.get(), large.item.get());
        for (place, piece) in pieces.iter().enumerate() {
            let expected = format!("{} of {}", place + 1, pieces.len());
            assert_eq!(piece.header("Crawler-Piece"), expected);
            assert_eq!(piece.header("Crawler-Subject"), "crawler.books.thing");
            assert_eq!(piece.header("Crawler-Key"), large.key.0);
            let reason = piece.header("Crawler-Reason");
            assert!(
                reason.starts_with("the message is larger than "),
                "{reason}"
            );
        }
    }
}

#[tokio::test]
async fn a_check_tells_the_stream_and_leaves_nothing_behind() {
    let Some(nats) = Nats::start(&[]) else {
        return;
    };
    let admin = Admin::connect(&nats).await;
    let sinks = sinks(&nats, settings());
    let error = sinks.check().await.expect_err("there is no stream");
    let expected = format!(
        "cannot publish items to {}: no stream takes the subject; items wait until there is one \
         (crawler.*.*; make one with: nats stream add --subjects 'crawler.*.*' NAME)",
        nats.url()
    );
    assert_eq!(error.to_string(), expected);
    admin.add_stream(json!({})).await;
    let checked = sinks.check().await.expect("there is a stream");
    let expected = [
        "messages of items in stream CRAWLER, crawler.{resource}.{kind}, each recognised for 1h",
        "messages of items that are too large in stream CRAWLER, crawler.rejects, each recognised for 1h",
    ];
    assert_eq!(checked.would_create, expected);
    let info = admin.ask("STREAM.INFO.CRAWLER", json!({})).await;
    assert_eq!(info["state"]["messages"], 0);
}
