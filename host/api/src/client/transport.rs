//! Connections of clients, and what their failures say.

use std::time::Duration;

use tonic::Status;
use tonic::transport::Endpoint;

const CONNECT_DEADLINE: Duration = Duration::from_secs(5);

const KEEPALIVE: Duration = Duration::from_secs(10);

/// Bytes of one answer; a page of resources can be large.
pub(super) const ANSWER_MAX: usize = 64 << 20;

pub(super) fn endpoint(url: String) -> Result<Endpoint, tonic::transport::Error> {
    Ok(Endpoint::from_shared(url)?
        .connect_timeout(CONNECT_DEADLINE)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .keep_alive_while_idle(true))
}

/// Returns the transport error if the status was made by this side and not by the other.
pub(super) fn transport_failure(status: &Status) -> Option<String> {
    std::error::Error::source(status).map(root_cause)
}

/// Returns the innermost cause: the part that a person can act on, such as "connection refused".
pub(super) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut error: &dyn std::error::Error = error;
    while let Some(cause) = error.source() {
        error = cause;
    }
    error.to_string()
}
