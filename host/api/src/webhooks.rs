//! Webhooks over HTTP, by the Standard Webhooks specification (<https://www.standardwebhooks.com>, 1.0.0).
//!
//! Each call is a POST of JSON with three headers: `webhook-id`, by which a receiver recognizes an event that it has already,
//! `webhook-timestamp`, the time of the call in seconds since 1970, and `webhook-signature`, which has a signature of each key. Every status from 200 to 299
//! means that the receiver has taken the event. Redirects are not followed. `Retry-After` of an answer asks for a wait before
//! the next call.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use serde::Serialize;

use super::answer;
use crawler_fetch::http::post::{PostAnswer, PostClient, PostError};
use crawler_fetch::http::retry_after;
use crawler_master::webhooks::{PastWebhookEvent, SendError, SendWebhook, WebhookEvent};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::ResourceName;
use crawler_process::clock::Clock;
use crawler_proto as proto;

mod signature;

pub use signature::{SigningKey, SigningKeyError};

/// Way to one receiver.
pub struct HttpWebhook {
    /// Client that posts to the URL of the receiver.
    pub client: PostClient,
    /// Keys that the receiver may verify calls with: each call has a signature of every one.
    pub keys: Vec<SigningKey>,
    /// Longest time for an answer: setting `timeout` of the webhook.
    pub timeout: Duration,
    /// Clock of the times of calls.
    pub clock: Arc<dyn Clock>,
}

/// Body of a call, in the form that the specification recommends.
#[derive(Serialize)]
struct EventBody<T> {
    r#type: String,
    timestamp: String,
    data: T,
}

#[derive(Serialize)]
struct EventData<'a> {
    name: &'a str,
    resync: bool,
    /// The message as HTTP shows it; null if the resource is deleted.
    resource: Option<proto::Resource>,
}

#[derive(Serialize)]
struct PastEventData<'a> {
    /// Name of the resource; null if the event is about a node.
    name: Option<&'a str>,
    resync: bool,
    /// The message as HTTP shows it.
    event: proto::PastEvent,
}

impl<T: Serialize> EventBody<T> {
    fn bytes(&self) -> Bytes {
        let json = serde_json::to_vec(self);
        json.expect("messages have text for keys, and a vector takes every write")
            .into()
    }
}

/// Returns the text of a time.
fn timestamp(at: UnixMillis) -> String {
    let at = UNIX_EPOCH.checked_add(Duration::from_millis(at));
    humantime::format_rfc3339_millis(at.unwrap_or(UNIX_EPOCH)).to_string()
}

#[async_trait]
impl SendWebhook for HttpWebhook {
    fn body(&self, event: &WebhookEvent) -> Bytes {
        let resource = event.resource.as_deref().cloned();
        let body = EventBody {
            r#type: format!("resource.{}", event.kind.as_str()),
            timestamp: timestamp(event.noticed_at),
            data: EventData {
                name: event.name.as_str(),
                resync: event.resync,
                resource: resource.map(answer::resource),
            },
        };
        body.bytes()
    }

    fn past_body(&self, event: &PastWebhookEvent) -> Bytes {
        let told = event.told.clone();
        let about = match &told.node {
            Some(_) => "node",
            None => "resource",
        };
        let body = EventBody {
            r#type: format!("{about}.{}", told.event.kind),
            timestamp: timestamp(told.at),
            data: PastEventData {
                name: event.name.as_ref().map(ResourceName::as_str),
                resync: event.resync,
                event: answer::past_event_at(told, String::new()),
            },
        };
        body.bytes()
    }

    async fn send(&self, id: &str, body: Bytes) -> Result<(), SendError> {
        let timestamp = self.clock.unix_millis() / 1_000;
        let signatures = self.keys.iter().map(|key| key.sign(id, timestamp, &body));
        let signatures: Vec<String> = signatures.collect();
        let headers = vec![
            ("content-type", "application/json".to_owned()),
            ("webhook-id", id.to_owned()),
            ("webhook-timestamp", timestamp.to_string()),
            ("webhook-signature", signatures.join(" ")),
        ];
        let answer = self.client.post(headers, body, self.timeout).await;
        let why = match &answer {
            Ok(PostAnswer { status, .. }) => match status {
                200..=299 => return Ok(()),
                300..=399 => format!("status {status}, and redirects are not followed"),
                status => format!("status {status}"),
            },
            Err(error @ PostError::Address { .. }) => {
                format!("{error}; allow-networks of the webhook can allow it")
            }
            Err(error @ PostError::Timeout { .. }) => {
                format!("{error}, which is timeout of the webhook")
            }
            Err(error @ PostError::Failed(_)) => error.to_string(),
        };
        let asked = answer.ok().and_then(|answer| answer.retry_after);
        let now = self.clock.unix_millis();
        Err(SendError {
            why,
            retry_after: asked.and_then(|text| retry_after(&text, now)),
        })
    }
}

#[cfg(test)]
mod tests;
