//! Server of a test with a stream, and sinks that publish to it.

use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use crawler_message_sink::nats::{NatsSettings, NatsSink, NatsSinks, NatsTarget};
use crawler_model::crawl::{ItemKey, ItemRecord};
use crawler_model::id::{ResourceId, Run};
use crawler_model::resource::ShardId;
use crawler_sink::{Delivery, Sink as _, SinkError};
use crawler_tests::PATIENCE;
use crawler_tests::nats::Nats;
use serde_json::{Value, json};

/// Name of the stream.
const STREAM: &str = "CRAWLER";

/// Message in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) subject: String,
    /// Headers as they are sent.
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

impl Stored {
    /// Returns the value of a header.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        let mut lines = self.headers.lines();
        let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.unwrap_or_else(|| panic!("no {name} in {}", self.headers))
    }
}

/// Connection of the test itself.
pub(crate) struct Admin {
    client: async_nats::Client,
}

impl Admin {
    pub(crate) async fn connect(nats: &Nats) -> Self {
        let connected = async_nats::connect(nats.url()).await;
        Self {
            client: connected.expect("the server is there"),
        }
    }

    /// Calls the interface of JetStream.
    pub(crate) async fn ask(&self, call: &str, body: Value) -> Value {
        let subject = format!("$JS.API.{call}");
        let body = Bytes::from(body.to_string());
        let answer = self.client.request(subject, body).await;
        let answer = answer.unwrap_or_else(|e| panic!("{call}: {e}"));
        let answer: Value = serde_json::from_slice(&answer.payload).expect("it is JSON");
        assert_eq!(answer["error"], Value::Null, "{call}");
        answer
    }

    /// Publishes a message, and returns the answer of the stream.
    pub(crate) async fn publish(
        &self,
        subject: &'static str,
        headers: HeaderMap,
        body: &'static str,
    ) -> Value {
        let body = Bytes::from_static(body.as_bytes());
        let answer = self.client.request_with_headers(subject, headers, body);
        let answer = answer.await.unwrap_or_else(|e| panic!("{subject}: {e}"));
        serde_json::from_slice(&answer.payload).expect("it is JSON")
    }

    /// Makes the stream, with these fields among its settings.
    pub(crate) async fn add_stream(&self, settings: Value) {
        let mut config = json!({
            "name": STREAM, "subjects": ["crawler.>"], "retention": "limits", "storage": "file",
            "discard": "new", "num_replicas": 1, "max_consumers": -1, "max_msgs": -1, "max_bytes": -1,
            "max_age": 0, "max_msg_size": -1, "duplicate_window": 3_600_000_000_000_u64,
        });
        let known = config.as_object_mut().expect("it is an object");
        known.extend(settings.as_object().expect("it is an object").clone());
        self.ask(&format!("STREAM.CREATE.{STREAM}"), config).await;
    }

    /// Returns the messages of the stream, in order.
    pub(crate) async fn messages(&self) -> Vec<Stored> {
        let info = self.ask(&format!("STREAM.INFO.{STREAM}"), json!({})).await;
        let sequence = |name: &str| info["state"][name].as_u64().expect("it is a number");
        let (first, last) = (sequence("first_seq"), sequence("last_seq"));
        let mut messages = Vec::new();
        for n in first..=last {
            let call = format!("STREAM.MSG.GET.{STREAM}");
            let answer = self.ask(&call, json!({ "seq": n })).await;
            let message = &answer["message"];
            let bytes = |name: &str| {
                let text = message[name].as_str().unwrap_or_default();
                STANDARD.decode(text).expect("it is base64")
            };
            messages.push(Stored {
                subject: message["subject"].as_str().unwrap_or_default().to_owned(),
                headers: String::from_utf8(bytes("hdrs")).expect("headers are text"),
                body: bytes("data"),
            });
        }
        messages
    }

    /// Returns the numbers of the items in the stream, sorted.
    pub(crate) async fn numbers(&self) -> Vec<u64> {
        let messages = self.messages().await;
        let numbers = messages.iter().map(|message| {
            let record: ItemRecord = serde_json::from_slice(&message.body).expect("an item");
            record.fetched_at
        });
        let mut numbers: Vec<u64> = numbers.collect();
        numbers.sort();
        numbers
    }
}

/// Starts a server with a stream that has these fields among its settings.
pub(crate) async fn with_stream(settings: Value) -> Option<(Nats, Admin)> {
    let nats = Nats::start(&[])?;
    let admin = Admin::connect(&nats).await;
    admin.add_stream(settings).await;
    Some((nats, admin))
}

/// Settings of sinks that give a server little time.
pub(crate) fn settings() -> NatsSettings {
    NatsSettings {
        timeout: Duration::from_secs(20),
        ..NatsSettings::default()
    }
}

pub(crate) fn sinks(nats: &Nats, settings: NatsSettings) -> NatsSinks {
    let target = NatsTarget::parse(&nats.url(), None, None).expect("it is a URL");
    NatsSinks::new(target, settings).expect("the settings are in range")
}

/// Opens the sink of the only shard of `books`.
pub(crate) fn open(sinks: &NatsSinks) -> NatsSink {
    let spec = r#"{"name":"books","plugin":"books"}"#;
    let delivery = Delivery {
        sink: "events".parse().expect("it is a name"),
        shard: ShardId::only(ResourceId(7)),
        cluster: "c1".to_owned(),
        run: Run(1),
        storage_epoch: 1,
        spec: serde_json::from_str(spec).expect("it is a spec"),
        schemas: Vec::new(),
        other_kinds: None,
        marks: Vec::new(),
    };
    sinks.sink(&delivery)
}

/// Returns an item of the kind `thing` with this text, fetched at `n`.
pub(crate) fn item(n: u64, text: &str) -> ItemRecord {
    let json = json!({ "text": text }).to_string();
    ItemRecord {
        key: ItemKey(format!("key-{n:06}")),
        url: format!("http://a.test/{n}"),
        rule: "page".to_owned(),
        schema: "thing".to_owned(),
        run: Run(1),
        fetched_at: n,
        item: serde_json::value::RawValue::from_string(json).expect("an item is JSON"),
        change: None,
    }
}

pub(crate) fn items(n_items: u64) -> Vec<ItemRecord> {
    (1..=n_items).map(|n| item(n, "a text")).collect()
}

/// Writes items until the stream has all of them. Returns the number of those that were rejected.
pub(crate) async fn write_all(sink: &mut NatsSink, items: &[ItemRecord]) -> u64 {
    let begun = Instant::now();
    let (mut n_written, mut n_rejected) = (0, 0);
    while n_written < items.len() {
        match sink.write(n_written as u64, &items[n_written..]).await {
            Ok(written) => {
                n_written += written.n_items as usize;
                n_rejected += written.n_rejected;
            }
            Err(error @ SinkError::Retry { .. }) => {
                assert!(begun.elapsed() < PATIENCE, "{error}");
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    n_rejected
}

/// Writes items, none of which the sink may take for a reason whose message contains `why`.
pub(crate) async fn wait_for(sink: &mut NatsSink, items: &[ItemRecord], why: &str) {
    match sink.write(0, items).await {
        Err(error @ SinkError::Retry { .. }) => {
            let text = error.to_string();
            assert!(text.contains(why), "{text} instead of {why}");
        }
        other => panic!("{other:?} instead of {why}"),
    }
}
