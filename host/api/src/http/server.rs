//! HTTP/1 on one listener, with bounds on how long a client may keep a connection.

use std::io;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::UPLOAD_DEADLINE;
use crate::connections::{Connection, Connections};
use crawler_process::task::TaskScope;

/// Bytes of the head of a request, and of the buffers that read or write ahead.
const BUFFER_MAX: usize = 64 << 10;

/// Serves until `stop` is cancelled and the calls in hand are done. A connection is closed if the head of the
/// next request does not arrive within `stall_timeout`.
pub(super) async fn serve(
    mut connections: Connections,
    router: Router,
    stall_timeout: Duration,
    stop: CancellationToken,
) -> io::Result<()> {
    let scope = TaskScope::new();
    while let Some(connection) = stop.run_until_cancelled(connections.accept()).await {
        let served = one(connection, router.clone(), stall_timeout, stop.clone());
        scope.spawn("HTTP connection", served);
    }
    drop(connections);
    scope.stop(UPLOAD_DEADLINE).await;
    Ok(())
}

async fn one(
    connection: Connection,
    router: Router,
    stall_timeout: Duration,
    stop: CancellationToken,
) {
    let peer = connection.peer();
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer.clone());
        router.clone().oneshot(request)
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(stall_timeout)
        .max_buf_size(BUFFER_MAX)
        .serve_connection(TokioIo::new(connection), service);
    let mut served = std::pin::pin!(served);
    let ended = match stop.run_until_cancelled(served.as_mut()).await {
        Some(ended) => ended,
        None => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "an HTTP connection broke");
    }
}

#[cfg(test)]
mod tests;
