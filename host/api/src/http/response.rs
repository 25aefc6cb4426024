//! Answers of HTTP: JSON, lines of it, or a file.

use std::io;

use axum::Json;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt as _, TryStreamExt as _};
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

/// Answers with a file of a site, or with a plugin. No browser shows it as a page of this address: it may be anything.
pub(super) fn file(pieces: BoxStream<'static, Result<Bytes, Problem>>) -> Answer {
    let head = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let pieces = pieces.map_err(io::Error::other);
    Ok((head, Body::from_stream(pieces)).into_response())
}
