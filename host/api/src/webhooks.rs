//! Webhooks over HTTP: the JSON that tells of an event, and the calls that bring it to the receiver, which
//! [`crawler_fetch::webhook`] makes.

use std::time::{Duration, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use serde::Serialize;

use super::answer;
use crawler_fetch::webhook::WebhookClient;
use crawler_master::webhooks::{PastWebhookEvent, SendError, SendWebhook, WebhookEvent};
use crawler_model::crawl::UnixMillis;
use crawler_model::id::ResourceName;
use crawler_proto as proto;

/// Way to one receiver.
pub struct HttpWebhook(pub WebhookClient);

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
        let headers = vec![("content-type", "application/json".to_owned())];
        let called = self.0.call(id, headers, body).await;
        called.map_err(|error| SendError {
            why: error.why,
            retry_after: error.retry_after,
        })
    }
}

#[cfg(test)]
mod tests;
