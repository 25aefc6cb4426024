//! Keeps web pages away from a listener that is for this machine alone.
//!
//! A page can let its own name lead to 127.0.0.1, and the browser then takes the answers for the
//! page's own. The request still carries that name, so a loopback listener answers only to
//! addresses and to `localhost`. Who listens elsewhere has names of its own, which are not judged.

use axum::extract::Request;
use axum::http::header;
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use crate::api::problem::Problem;

/// Passes on what was sent to an address or to `localhost`.
pub(super) async fn only(request: Request, next: Next) -> Response {
    let header = request.headers().get(header::HOST);
    let name = match (request.uri().authority(), header) {
        (Some(authority), _) => authority.as_str().to_owned(),
        (None, Some(host)) => String::from_utf8_lossy(host.as_bytes()).into_owned(),
        // No browser leaves it out.
        (None, None) => return next.run(request).await,
    };
    if is_local(&name) {
        return next.run(request).await;
    }
    let detail = format!("this listener is for this machine alone and does not answer to {name:?}");
    let hint = "write the address into the URL, as in http://127.0.0.1:8081/crawler/resource";
    Problem::invalid(detail, hint).into_response()
}

fn is_local(name: &str) -> bool {
    let Ok(authority) = name.parse::<Authority>() else {
        return false;
    };
    match url::Host::parse(authority.host()) {
        Ok(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Ok(url::Host::Ipv4(_) | url::Host::Ipv6(_)) => true,
        Err(_not_a_host) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loopback_listener_answers_to_addresses_and_localhost_only() {
        for name in [
            "127.0.0.1:8081",
            "[::1]:8081",
            "localhost",
            "LOCALHOST:1",
            "a.localhost",
        ] {
            assert!(is_local(name), "{name}");
        }
        for name in [
            "evil.test:8081",
            "localhost.evil.test",
            "127.0.0.1.evil.test",
            "",
            "a b",
        ] {
            assert!(!is_local(name), "{name}");
        }
    }
}
