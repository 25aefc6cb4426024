//! Answers of HTTP: JSON, or lines of it.

use std::io;

use axum::Json;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use futures::stream::{BoxStream, StreamExt as _};
use serde::Serialize;

use crate::problem::Problem;

pub(super) type Answer = Result<Response, Problem>;

pub(super) fn answer<T: Serialize>(result: Result<T, Problem>) -> Answer {
    Ok(Json(result?).into_response())
}

pub(super) fn lines<T: Send + 'static>(
    stream: BoxStream<'static, Result<T, Problem>>,
    to_line: impl Fn(T) -> serde_json::Result<String> + Send + 'static,
) -> Answer {
    let lines = stream.map(move |value| {
        let mut line = to_line(value.map_err(io::Error::other)?)?;
        line.push('\n');
        Ok::<_, io::Error>(line)
    });
    let kind = [(header::CONTENT_TYPE, "application/jsonl")];
    Ok((kind, Body::from_stream(lines)).into_response())
}
