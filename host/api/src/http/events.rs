//! Events of resources as server-sent events, which clients in most languages read and resume with the id of the last one.
//!
//! The name of an event is its kind, its data are the message `ResourceEvent`, and its id is its version, if a reader can go
//! on from there. A stream that the master ends has a last event `end` with the problem as data.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderName, header};
use axum::response::IntoResponse as _;
use futures::stream::StreamExt as _;

use super::params;
use super::request::{Params, known, text};
use super::response::Answer;
use crate::Api;
use crawler_proto::{ResourceEvent, WatchResourcesRequest};

/// Header in which a reader that comes back names the last event that it has.
const LAST_EVENT_ID: &str = "last-event-id";

pub(super) async fn watch_resources(api: Api, params: Params, request: Request) -> Answer {
    let params = known(params, &params::EVENTS)?;
    let last = request.headers().get(LAST_EVENT_ID);
    let after = match last.map(|id| id.to_str().unwrap_or_default().trim()) {
        // A reader that was cut off before any id has none to name.
        None | Some("") => text(&params, "version"),
        Some(id) => id.to_owned(),
    };
    let message = WatchResourcesRequest {
        name_prefix: text(&params, "prefix"),
        after,
    };
    let events = api.resource_events(message).await?;
    let events = events.map(|event| match event {
        Ok(event) => written(&event),
        Err(problem) => Ok(format!("event: end\ndata: {}\n\n", problem.to_json())),
    });
    let head = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // nginx would gather events until a buffer is full.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    Ok((head, Body::from_stream(events)).into_response())
}

/// Writes an event. JSON has no line breaks, so its data are one line.
fn written(event: &ResourceEvent) -> serde_json::Result<String> {
    let id = match event.version.as_str() {
        "" => String::new(),
        version => format!("id: {version}\n"),
    };
    let data = serde_json::to_string(event)?;
    Ok(format!("event: {}\n{id}data: {data}\n\n", event.event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_a_name_perhaps_an_id_and_one_line_of_data() {
        let mut event = ResourceEvent {
            event: "deleted".to_owned(),
            name: "shop".to_owned(),
            resource: None,
            version: String::new(),
        };
        let data = r#"{"event":"deleted","name":"shop","resource":null,"version":"#;
        let text = written(&event).unwrap();
        assert_eq!(text, format!("event: deleted\ndata: {data}\"\"}}\n\n"));
        event.version = "7-0".to_owned();
        let text = written(&event).unwrap();
        assert_eq!(
            text,
            format!("event: deleted\nid: 7-0\ndata: {data}\"7-0\"}}\n\n")
        );
    }
}
