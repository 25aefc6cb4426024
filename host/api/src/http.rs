//! HTTP with JSON: the same calls as gRPC, for curl and browsers.
//!
//! `http/routes.rs` lists the calls; the chapter "HTTP" of the book describes them. `http/page.rs` has the page that browsers
//! show at `/`.
//!
//! A call that changes something may carry an `Idempotency-Key`: if it is sent again under the same key, to
//! this master or another, it is carried out once.
//!
//! Errors are `application/problem+json`. A stream that breaks off is cut before its end, so that
//! no reader takes a part for the whole.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::http::HeaderMap;
use axum::middleware;
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Api;
use super::access::Access;
use super::connections::Connections;
use super::intake::Intake;
use super::problem::Problem;
use super::requests::Requests;
use super::tls::ServerTls;
use check_access::{Check, check_access};
use crawler_master::Code;

mod body;
mod check_access;
mod events;
mod frontier;
mod handlers;
mod lifecycle;
mod local;
mod metrics;
mod misses;
mod openapi;
mod page;
mod params;
pub mod profile;
mod quarantine;
mod request;
mod response;
mod routes;
mod server;
mod tokens;

pub use metrics::{Metrics, MetricsAccess, Scrape};

/// Serves until `stop` is cancelled and the calls in hand are done. Streams end as soon as `stop` is
/// cancelled. The metrics of the process are told too, if there are any. With `tls`, connections are encrypted.
pub async fn serve(
    listener: TcpListener,
    master: Option<Api>,
    access: Access,
    metrics: Option<Metrics>,
    requests: Requests,
    tls: Option<ServerTls>,
    stop: CancellationToken,
) -> io::Result<()> {
    let is_local = listener.local_addr()?.ip().is_loopback();
    let router = match master {
        Some(api) => router(api, &access, metrics),
        None => worker_router(metrics),
    };
    let router = match is_local {
        true => router.layer(middleware::from_fn(local::only)),
        false => router,
    };
    let router = router.layer(requests.of_http());
    let connections = Connections::of_http(listener, &requests.settings, tls);
    server::serve(connections, router, requests.settings.stall_timeout, stop).await
}

/// Returns the routes of a process without a master.
fn worker_router(metrics: Option<Metrics>) -> Router {
    let router = Router::new()
        .route("/healthz", get(healthz))
        .fallback(no_master);
    let Some(metrics) = metrics else {
        return router;
    };
    let answer = move |headers: HeaderMap| async move { metrics.answer_of_worker(&headers).await };
    router.route("/metrics", get(answer))
}

/// Returns all routes of a master.
pub(crate) fn router(api: Api, access: &Access, metrics: Option<Metrics>) -> Router {
    let paths: Arc<[&str]> = routes::paths().into();
    let unknown_path = |request: Request| async move { misses::path(&paths, request.uri().path()) };
    let intake = Intake::of_master(&api, access.clone());
    let check = Check::of_document(intake.clone());
    let check = middleware::from_fn_with_state(check, check_access);
    let mut calls = routes::router(&intake);
    if let Some(metrics) = metrics {
        let check = Check::of_metrics(intake);
        let check = middleware::from_fn_with_state(check, check_access);
        let answer = move || async move { metrics.answer().await };
        calls = calls.route("/metrics", get(answer).route_layer(check));
    }
    let calls = page::add_to(calls)
        .route("/healthz", get(healthz))
        .route("/docs", get(openapi::serve_page))
        .route(
            "/openapi.json",
            get(openapi::serve_document).route_layer(check),
        )
        .fallback(unknown_path)
        .with_state(api);
    misses::naming_methods(calls)
}

async fn healthz() -> &'static str {
    "ok\n"
}

async fn no_master(request: Request) -> Problem {
    let detail = format!("a worker has nothing at {}", request.uri().path());
    Problem::new(Code::NotFound, detail, "ask a master")
}
