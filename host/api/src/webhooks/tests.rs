//! Tests of webhooks against a receiver on loopback.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::answer::tests::empty_resource;
use crawler_fetch::http::FetchSettings;
use crawler_fetch::http::post::PostClient;
use crawler_master::control::events::ToldEvent;
use crawler_master::webhooks::EventKind;
use crawler_model::event::{Event, EventKind as PastKind};
use crawler_model::id::Run;
use crawler_process::clock::Clock;
use crawler_process::task::TaskScope;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// Clock that stands still.
struct Noon;

impl Clock for Noon {
    fn unix_nanos(&self) -> u64 {
        1_614_265_330_000_000_000
    }
}

/// Receiver that notes requests, and answers each with this status and headers; none: never.
struct Receiver {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
    _tasks: TaskScope,
}

impl Receiver {
    async fn answering(status: Option<&'static str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tasks, heard) = (TaskScope::new(), Arc::<Mutex<Vec<String>>>::default());
        let noted = heard.clone();
        tasks.spawn("receiver", async move {
            let mut hung = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read_request(&mut stream).await;
                noted.lock().unwrap().push(request);
                match status {
                    Some(status) => {
                        let answer = format!(
                            "HTTP/1.1 {status}\r\nconnection: close\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n"
                        );
                        stream.write_all(answer.as_bytes()).await.unwrap();
                    }
                    None => hung.push(stream),
                }
            }
        });
        Self {
            address,
            heard,
            _tasks: tasks,
        }
    }

    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    fn webhook(&self, allow_networks: &[&str], timeout: Duration) -> HttpWebhook {
        let url = format!("http://{}/hook", self.address).parse().unwrap();
        let networks = allow_networks.iter().map(|text| text.parse().unwrap());
        let client = PostClient::new(url, networks.collect(), FetchSettings::default());
        HttpWebhook(WebhookClient {
            client: client.unwrap(),
            keys: vec![SECRET.parse().unwrap()],
            timeout,
            table: "webhook",
            clock: Arc::new(Noon),
        })
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut request = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&request).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        if stream.read_buf(&mut request).await.unwrap() == 0 {
            return text;
        }
    }
}

fn event(resource: Option<crawler_master::ResourceView>) -> WebhookEvent {
    WebhookEvent {
        id: "msg_1".to_owned(),
        kind: match resource {
            Some(_) => EventKind::Changed,
            None => EventKind::Deleted,
        },
        name: "team/books".parse().unwrap(),
        resource: resource.map(Box::new),
        resync: false,
        noticed_at: 1_614_265_330_123,
    }
}

#[tokio::test]
async fn an_event_of_a_history_has_its_kind_as_its_type() {
    let receiver = Receiver::answering(Some("200 OK")).await;
    let webhook = receiver.webhook(LOOPBACK, PATIENCE);
    let body = |name: Option<&str>, node: Option<&str>, kind: PastKind| -> Value {
        let told = ToldEvent {
            at: 1_614_265_330_123,
            event: Event::of(kind, Run(2)).because("text"),
            version: None,
            node: node.map(|node| node.parse().unwrap()),
        };
        let body = webhook.past_body(&PastWebhookEvent {
            id: "msg_1".to_owned(),
            name: name.map(|name| name.parse().unwrap()),
            told,
            resync: false,
        });
        serde_json::from_slice(&body).unwrap()
    };
    let killed = body(Some("team/books"), None, PastKind::RuleKilled);
    assert_eq!(killed["type"], "resource.rule-killed");
    assert_eq!(killed["timestamp"], "2021-02-25T15:02:10.123Z");
    assert_eq!(killed["data"]["name"], "team/books");
    assert_eq!(killed["data"]["event"]["why"], "text");
    let lost = body(None, Some("worker-1"), PastKind::Lost);
    assert_eq!(lost["type"], "node.lost");
    assert_eq!(lost["data"]["name"], Value::Null);
    assert_eq!(lost["data"]["event"]["node"], "worker-1");
}

const PATIENCE: Duration = Duration::from_secs(30);
const LOOPBACK: &[&str] = &["127.0.0.0/8"];

/// Sends an event to a receiver that answers so, and returns the outcome.
async fn outcome(status: Option<&'static str>, timeout: Duration) -> (Receiver, Option<String>) {
    let receiver = Receiver::answering(status).await;
    let webhook = receiver.webhook(LOOPBACK, timeout);
    let body = webhook.body(&event(None));
    let sent = webhook.send("msg_1", body).await;
    (receiver, sent.err().map(|error| error.why))
}

#[tokio::test]
async fn a_call_has_id_time_and_signature_and_tells_the_resource() {
    let receiver = Receiver::answering(Some("200 OK")).await;
    let webhook = receiver.webhook(LOOPBACK, PATIENCE);
    let body = webhook.body(&event(Some(empty_resource())));
    webhook.send("msg_1", body.clone()).await.unwrap();
    let heard = receiver.heard();
    let (head, sent) = heard[0].split_once("\r\n\r\n").unwrap();
    assert_eq!(sent.as_bytes(), &body[..]);
    assert!(head.starts_with("POST /hook HTTP/1.1\r\n"), "{head}");
    let signature = webhook.0.keys[0].sign("msg_1", 1_614_265_330, &body);
    for line in [
        "content-type: application/json".to_owned(),
        "webhook-id: msg_1".to_owned(),
        "webhook-timestamp: 1614265330".to_owned(),
        format!("webhook-signature: {signature}"),
    ] {
        assert!(head.lines().any(|found| found == line), "{line} in {head}");
    }
    let sent: Value = serde_json::from_str(sent).unwrap();
    assert_eq!(sent["type"], "resource.changed");
    assert_eq!(sent["timestamp"], "2021-02-25T15:02:10.123Z");
    assert_eq!(sent["data"]["name"], "team/books");
    assert_eq!(sent["data"]["resync"], false);
    let shown = serde_json::to_string(&answer::resource(empty_resource())).unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(sent["data"]["resource"], shown);
    let deleted: Value = serde_json::from_slice(&webhook.body(&event(None))).unwrap();
    assert_eq!(deleted["type"], "resource.deleted");
    assert_eq!(deleted["data"]["resource"], Value::Null);
}

#[tokio::test]
async fn a_call_has_a_signature_of_each_key() {
    let receiver = Receiver::answering(Some("200 OK")).await;
    let mut webhook = receiver.webhook(LOOPBACK, PATIENCE);
    let previous = "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".parse();
    webhook.0.keys.push(previous.unwrap());
    webhook.send("msg_1", Bytes::new()).await.unwrap();
    let heard = receiver.heard();
    let mut lines = heard[0].lines();
    let found = lines.find_map(|line| line.strip_prefix("webhook-signature: "));
    let found: Vec<&str> = found.unwrap().split(' ').collect();
    let keys = webhook.0.keys.iter();
    let expected = keys.map(|key| key.sign("msg_1", 1_614_265_330, b""));
    assert_eq!(found, expected.collect::<Vec<String>>());
}

#[tokio::test]
async fn only_a_status_of_success_means_that_the_event_was_taken() {
    for (status, why) in [
        ("204 No Content", None),
        (
            "302 Found",
            Some("status 302, and redirects are not followed"),
        ),
        ("410 Gone", Some("status 410")),
        ("500 Internal Server Error", Some("status 500")),
    ] {
        let (receiver, failed) = outcome(Some(status), PATIENCE).await;
        assert_eq!(failed.as_deref(), why, "{status}");
        assert_eq!(receiver.heard().len(), 1, "{status}: one call is made");
    }
}

#[tokio::test]
async fn a_wait_that_the_receiver_asks_for_is_told() {
    // The clock of the webhook stands still at 15:02:10.
    for (asked, seconds) in [
        ("120", Some(120)),
        ("Thu, 25 Feb 2021 15:03:10 GMT", Some(60)),
        ("soon", None),
    ] {
        let status = format!("503 Busy\r\nRetry-After: {asked}");
        let receiver = Receiver::answering(Some(status.leak())).await;
        let webhook = receiver.webhook(LOOPBACK, PATIENCE);
        let error = webhook.send("msg_1", Bytes::new()).await.unwrap_err();
        assert_eq!(error.why, "status 503");
        let expected = seconds.map(Duration::from_secs);
        assert_eq!(error.retry_after, expected, "{asked}");
    }
}

#[tokio::test]
async fn a_receiver_that_hangs_or_is_private_is_told_with_the_setting() {
    let (_receiver, why) = outcome(None, Duration::from_millis(200)).await;
    let expected = "no answer within 200ms, which is timeout of the webhook";
    assert_eq!(why.as_deref(), Some(expected));
    let receiver = Receiver::answering(Some("200 OK")).await;
    let webhook = receiver.webhook(&[], PATIENCE);
    let error = webhook.send("msg_1", Bytes::new()).await.unwrap_err();
    assert_eq!(
        error.why,
        "127.0.0.1 is at 127.0.0.1, which is not a public address; allow-networks of the webhook can allow it"
    );
    assert_eq!(receiver.heard(), [""; 0]);
}
