//! HTTP with JSON: the same calls as gRPC, for curl and browsers.
//!
//! `http/routes.rs` lists the calls; the chapter "HTTP" of the book describes them.
//!
//! A call that changes something may carry an `Idempotency-Key`: if it is sent again under the same key, to
//! this master or another, it is carried out once.
//!
//! Errors are `application/problem+json`. A stream that breaks off is cut before its end, so that
//! no reader takes a part for the whole.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::SocketAddr;

use axum::body::{Body, to_bytes};
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use futures::stream::{BoxStream, StreamExt as _};
use serde::Serialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::connections::Connections;
use super::forward::Origin;
use super::problem::Problem;
use super::requests::Requests;
use super::spec::invalid;
use super::{Api, CALL_DEADLINE, PushRequest, REQUEST_MAX, Upload};
use crawler_master::{Code, ControlError};
use crawler_model::suggest;
use crawler_process::telemetry::chain;

mod body;
mod frontier;
mod lifecycle;
mod local;
pub mod profile;
mod routes;
mod server;

/// Header of a call that changes something: a call that is sent again under the same key is carried out once.
const IDEMPOTENCY_KEY: &str = "Idempotency-Key";

/// Serves until `stop` is cancelled and the calls in hand are done. Streams end as soon as `stop` is
/// cancelled.
pub async fn serve(
    listener: TcpListener,
    master: Option<Api>,
    requests: Requests,
    stop: CancellationToken,
) -> io::Result<()> {
    let is_local = listener.local_addr()?.ip().is_loopback();
    let router = match master {
        Some(api) => router(api),
        None => worker_router(),
    };
    let router = match is_local {
        true => router.layer(axum::middleware::from_fn(local::only)),
        false => router,
    };
    let router = router.layer(requests.of_http());
    let connections = Connections::of_http(listener, &requests.settings);
    server::serve(connections, router, requests.settings.stall_timeout, stop).await
}

/// Returns the routes of a process without a master.
fn worker_router() -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .fallback(no_master)
}

/// Returns all routes of a master.
pub(crate) fn router(api: Api) -> Router {
    routes::router()
        .route("/healthz", get(healthz))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(api)
}

type Answer = Result<Response, Problem>;
type PathPart = Result<Path<String>, PathRejection>;
type Params = Result<Query<BTreeMap<String, String>>, QueryRejection>;

async fn add_resource(State(api): State<Api>, request: Request) -> Answer {
    let origin = origin(&request)?;
    let spec = body::spec(&json_body(request, body::EXAMPLE).await?)?;
    answer(api.add_resource(&origin, spec).await)
}

async fn update_resource(State(api): State<Api>, request: Request) -> Answer {
    let origin = origin(&request)?;
    let spec = body::spec(&json_body(request, body::EXAMPLE).await?)?;
    answer(api.update_resource(&origin, spec).await)
}

async fn delete_resource(State(api): State<Api>, params: Params, request: Request) -> Answer {
    let origin = origin(&request)?;
    let params = known(params, &["purge"])?;
    let (name, purge) = body::deletion(&json_body(request, body::EXAMPLE).await?)?;
    let purge = purge || flag(&params, "purge")?;
    api.delete_resource(&origin, &name, purge).await?;
    answer(Ok(json!({})))
}

async fn list_resources(State(api): State<Api>, params: Params) -> Answer {
    let params = known(params, &["page_size", "page_token"])?;
    let page_size = number(&params, "page_size")?;
    let page_token = params.get("page_token").map(String::as_str);
    answer(
        api.resources(page_size, page_token.unwrap_or_default())
            .await,
    )
}

async fn get_resource(State(api): State<Api>, name: PathPart) -> Answer {
    answer(api.resource(&part(name)?).await)
}

async fn read_items(State(api): State<Api>, name: PathPart, params: Params) -> Answer {
    let params = known(params, &["follow", "envelope", "after"])?;
    let envelope = flag(&params, "envelope")?;
    let after = params.get("after").map_or("", String::as_str);
    let follow = flag(&params, "follow")?;
    let items = api.items(&part(name)?, follow, after).await?;
    lines(items, move |item| match envelope {
        true => serde_json::to_string(&item),
        false => Ok(item.json),
    })
}

async fn read_logs(State(api): State<Api>, name: PathPart, params: Params) -> Answer {
    let params = known(params, &["follow"])?;
    let logs = api.logs(&part(name)?, flag(&params, "follow")?).await?;
    lines(logs, |line| serde_json::to_string(&line))
}

async fn list_nodes(State(api): State<Api>, params: Params) -> Answer {
    let params = known(params, &["follow"])?;
    if flag(&params, "follow")? {
        let events = api.node_events().await?;
        return lines(events, |event| serde_json::to_string(&event));
    }
    answer(api.nodes().await)
}

async fn list_plugins(State(api): State<Api>) -> Answer {
    answer(api.plugins().await)
}

async fn get_plugin(State(api): State<Api>, plugin: PathPart) -> Answer {
    answer(api.plugin(&part(plugin)?).await)
}

async fn delete_plugin(State(api): State<Api>, plugin: PathPart, request: Request) -> Answer {
    let origin = origin(&request)?;
    api.delete_plugin(&origin, &part(plugin)?).await?;
    answer(Ok(json!({})))
}

async fn push_plugin(State(api): State<Api>, params: Params, request: Request) -> Answer {
    let params = known(params, &["as", "allow_breaking"])?;
    let push = PushRequest {
        push_as: params.get("as").cloned().unwrap_or_default(),
        allow_breaking: flag(&params, "allow_breaking")?,
    };
    let origin = origin(&request)?;
    let max = api.max_plugin_size();
    let upload = async {
        check_type(
            request.headers(),
            "application/wasm",
            "--data-binary @FILE.wasm",
        )?;
        let too_large = || Problem::from(ControlError::PluginTooLarge { max });
        let limit = usize::try_from(max).unwrap_or(usize::MAX);
        let bytes = bytes_of(request, limit, too_large).await?;
        Ok(Upload {
            request: push,
            bytes,
        })
    };
    answer(Box::pin(api.push_plugin(&origin, upload)).await)
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn unknown_path(request: Request) -> Problem {
    let detail = format!("there is nothing at {}", request.uri().path());
    let hint =
        "resources are at /crawler/resource, plugins at /crawler/plugin, nodes at /crawler/node";
    Problem::new(Code::NotFound, detail, hint)
}

async fn no_master(request: Request) -> Problem {
    let detail = format!("a worker has nothing at {}", request.uri().path());
    Problem::new(Code::NotFound, detail, "ask a master")
}

async fn wrong_method(request: Request) -> Problem {
    let path = request.uri().path();
    Problem::invalid(format!("{path} does not take {}", request.method()), "")
        .with_status(StatusCode::METHOD_NOT_ALLOWED)
}

fn answer<T: Serialize>(result: Result<T, Problem>) -> Answer {
    Ok(Json(result?).into_response())
}

fn lines<T: Send + 'static>(
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

async fn json_body(request: Request, example: &str) -> Result<bytes::Bytes, Problem> {
    let example = format!("-d '{example}'");
    check_type(request.headers(), "application/json", &example)?;
    let too_large = || {
        let detail = format!("the body has more than {REQUEST_MAX} bytes");
        Problem::new(Code::ResourceExhausted, detail, "")
    };
    let body = bytes_of(request, REQUEST_MAX, too_large);
    match tokio::time::timeout(CALL_DEADLINE, body).await {
        Ok(bytes) => bytes,
        Err(_elapsed) => {
            let detail = format!("no body arrived within {} s", CALL_DEADLINE.as_secs());
            Err(Problem::invalid(detail, "").with_status(StatusCode::REQUEST_TIMEOUT))
        }
    }
}

async fn bytes_of(
    request: Request,
    max: usize,
    too_large: impl Fn() -> Problem,
) -> Result<bytes::Bytes, Problem> {
    // A body whose announced length is too large is refused before it is read.
    let announced = request.headers().get(header::CONTENT_LENGTH);
    let announced = announced.and_then(|n| n.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|n| n > max as u64) {
        return Err(too_large());
    }
    to_bytes(request.into_body(), max).await.map_err(|e| {
        if let Some(problem) = problem_in(&e) {
            return problem.clone();
        }
        let error = chain(&e);
        match error.contains("length limit exceeded") {
            true => too_large(),
            false => Problem::invalid(format!("the body did not arrive whole: {error}"), ""),
        }
    })
}

/// Returns the problem that ended a body, if this server caused it.
fn problem_in<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Problem> {
    match error.downcast_ref() {
        Some(problem) => Some(problem),
        None => problem_in(error.source()?),
    }
}

/// Checks the content type. It must be given: a page in a browser can send any other type to a local server
/// unasked.
fn check_type(headers: &HeaderMap, expected: &str, body: &str) -> Result<(), Problem> {
    let given = headers.get(header::CONTENT_TYPE);
    let given = given.map(|v| String::from_utf8_lossy(v.as_bytes()));
    let essence = given.as_deref().and_then(|v| v.split(';').next());
    if essence.is_some_and(|v| v.trim().eq_ignore_ascii_case(expected)) {
        return Ok(());
    }
    let detail = match given {
        Some(given) => format!("the body is of type {given}, not {expected}"),
        None => format!("the body has no type; it should be {expected}"),
    };
    let hint = format!("with curl: -H 'content-type: {expected}' {body}");
    Err(Problem::invalid(detail, hint).with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE))
}

/// Address that a request came from.
#[derive(Debug, Clone, Copy)]
struct Caller(SocketAddr);

/// Returns the origin of a call that changes something.
fn origin(request: &Request) -> Result<Origin, Problem> {
    let id = match request.headers().get(IDEMPOTENCY_KEY) {
        None => None,
        Some(id) => {
            let id = id.to_str().unwrap_or_default().parse();
            Some(id.map_err(|e| Problem::from(invalid(IDEMPOTENCY_KEY, e)))?)
        }
    };
    let caller = request.extensions().get::<Caller>();
    Ok(Origin::client(id, caller.map(|Caller(address)| *address)))
}

fn part(part: PathPart) -> Result<String, Problem> {
    match part {
        Ok(Path(part)) => Ok(part),
        Err(rejection) => Err(Problem::invalid(rejection.body_text(), "")),
    }
}

fn known(params: Params, known: &[&str]) -> Result<BTreeMap<String, String>, Problem> {
    let Query(params) = params.map_err(|e| Problem::invalid(e.body_text(), ""))?;
    match params.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(Problem::invalid(
            format!("there is no parameter {name:?} here"),
            suggest::hint(name, known),
        )),
        None => Ok(params),
    }
}

fn number(params: &BTreeMap<String, String>, name: &str) -> Result<u32, Problem> {
    let Some(text) = params.get(name) else {
        return Ok(0);
    };
    let wrong = |_| Problem::invalid(format!("{name} takes a whole number, not {text:?}"), "");
    text.parse().map_err(wrong)
}

fn flag(params: &BTreeMap<String, String>, name: &str) -> Result<bool, Problem> {
    match params.get(name).map(String::as_str) {
        None | Some("false" | "0") => Ok(false),
        Some("" | "true" | "1") => Ok(true),
        Some(text) => Err(Problem::invalid(
            format!("{name} takes true or false, not {text:?}"),
            "",
        )),
    }
}
