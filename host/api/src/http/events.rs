//! Events of resources as server-sent events, which clients in most languages read and resume with the id of the last one.
//!
//! The name of an event is its kind, its data are the message `ResourceEvent` or `PastEvent`, and its id is its version, if
//! a reader can go on from there. A stream that the master ends has a last event `end` with the problem as data. A stream
//! that is silent has comments, which readers pass over: without them, neither side would notice that the other is gone.

use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{self, StreamExt as _};
use serde::Serialize;

use super::params;
use super::request::{Params, PathPart, flag, known, part, positive, text};
use super::response::{Answer, lines};
use crate::{Api, Stream};
use crawler_proto::{
    PastEvent, ReadEventsRequest, ReadNodeEventsRequest, ResourceEvent, WatchResourcesRequest,
};

/// Header in which a reader that comes back names the last event that it has.
const LAST_EVENT_ID: &str = "last-event-id";
/// Time without an event after which a reader gets a comment. Resources have a heartbeat before that.
const SILENCE: Duration = Duration::from_secs(20);
/// A comment without text.
const COMMENT: &str = ":\n\n";

pub(super) async fn watch_resources(api: Api, params: Params, request: Request) -> Answer {
    let params = known(params, &params::EVENTS)?;
    let message = WatchResourcesRequest {
        name_prefix: text(&params, "prefix"),
        after: last_version(request.headers(), text(&params, "version")),
    };
    let events = api.resource_events(message).await?;
    Ok(streamed(events, |event: &ResourceEvent| {
        written(event, &event.event, &event.version)
    }))
}

/// Answers with the events of a resource: as lines, or as server-sent events if the reader follows.
pub(super) async fn read_events(
    api: Api,
    name: PathPart,
    params: Params,
    request: Request,
) -> Answer {
    let params = known(params, &params::HISTORY)?;
    let follow = flag(&params, "follow")?;
    let message = ReadEventsRequest {
        name: part(name)?,
        follow,
        since: positive(&params, "since")?,
        after: last_version(request.headers(), text(&params, "version")),
    };
    past_events(api.history(message).await?, follow)
}

/// Answers with the events of all nodes, in the same way.
pub(super) async fn read_node_events(api: Api, params: Params, request: Request) -> Answer {
    events_of(api, String::new(), params, request.headers().clone()).await
}

/// Answers with the events of one node, in the same way.
pub(super) async fn read_events_of_node(
    api: Api,
    id: PathPart,
    params: Params,
    request: Request,
) -> Answer {
    events_of(api, part(id)?, params, request.headers().clone()).await
}

async fn events_of(api: Api, node: String, params: Params, headers: HeaderMap) -> Answer {
    let params = known(params, &params::NODE_HISTORY)?;
    let follow = flag(&params, "follow")?;
    let message = ReadNodeEventsRequest {
        node,
        follow,
        since: positive(&params, "since")?,
        after: last_version(&headers, text(&params, "version")),
    };
    past_events(api.node_history(message).await?, follow)
}

fn past_events(events: Stream<PastEvent>, follow: bool) -> Answer {
    if !follow {
        return lines(events, |event| serde_json::to_string(&event));
    }
    Ok(streamed(events, |event: &PastEvent| {
        written(event, &event.kind, &event.version)
    }))
}

/// Returns the version up to which a reader has all events, which a header or the parameter tells.
fn last_version(headers: &HeaderMap, param: String) -> String {
    let last = headers.get(LAST_EVENT_ID);
    match last.map(|id| id.to_str().unwrap_or_default().trim()) {
        // A reader that was cut off before any id has none to name.
        None | Some("") => param,
        Some(id) => id.to_owned(),
    }
}

/// Answers with events as they come.
fn streamed<T: Send + 'static>(
    events: Stream<T>,
    write: impl Fn(&T) -> serde_json::Result<String> + Send + 'static,
) -> Response {
    let events = events.map(move |event| match event {
        Ok(event) => write(&event),
        Err(problem) => Ok(format!("event: end\ndata: {}\n\n", problem.to_json())),
    });
    let head = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
        // nginx would gather events until a buffer is full.
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (head, Body::from_stream(with_comments(events))).into_response()
}

/// Adds a comment after each silence.
fn with_comments(
    events: impl stream::Stream<Item = serde_json::Result<String>> + Send + Unpin + 'static,
) -> impl stream::Stream<Item = serde_json::Result<String>> + Send + 'static {
    stream::unfold(events, |mut events| async move {
        let next = match tokio::time::timeout(SILENCE, events.next()).await {
            Ok(next) => next?,
            Err(_silent) => Ok(COMMENT.to_owned()),
        };
        Some((next, events))
    })
}

/// Writes an event. JSON has no line breaks, so its data are one line.
fn written(event: &impl Serialize, name: &str, version: &str) -> serde_json::Result<String> {
    let id = match version {
        "" => String::new(),
        version => format!("id: {version}\n"),
    };
    let data = serde_json::to_string(event)?;
    Ok(format!("event: {name}\n{id}data: {data}\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_silent_stream_has_comments_and_loses_no_event() {
        let text = "event: paused\ndata: {}\n\n";
        let late = stream::once(async move {
            tokio::time::sleep(SILENCE * 5 / 2).await;
            Ok::<String, serde_json::Error>(text.to_owned())
        });
        let told = with_comments(late.boxed()).map(Result::unwrap);
        let told: Vec<String> = told.collect().await;
        assert_eq!(told, [COMMENT, COMMENT, text]);
    }

    #[test]
    fn an_event_has_a_name_perhaps_an_id_and_one_line_of_data() {
        let mut event = ResourceEvent {
            event: "deleted".to_owned(),
            name: "shop".to_owned(),
            resource: None,
            version: String::new(),
        };
        let data = r#"{"event":"deleted","name":"shop","resource":null,"version":"#;
        let text = written(&event, "deleted", "").unwrap();
        assert_eq!(text, format!("event: deleted\ndata: {data}\"\"}}\n\n"));
        event.version = "7-0".to_owned();
        let text = written(&event, "deleted", "7-0").unwrap();
        assert_eq!(
            text,
            format!("event: deleted\nid: 7-0\ndata: {data}\"7-0\"}}\n\n")
        );
    }
}
