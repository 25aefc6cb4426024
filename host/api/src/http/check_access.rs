//! Finds out who calls, before anything of the call's body is read.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use tonic::Code;

use super::metrics::READS_METRICS;
use super::openapi::DESCRIBES;
use crate::access::methods::Method;
use crate::access::{Access, Caller, Headers};
use crate::caller_limits::CallerLimiter;
use crate::intake::Intake;
use crate::problem::Problem;
use crate::{Api, Peer};

/// Check in front of one call.
#[derive(Debug, Clone)]
pub(super) struct Check {
    intake: Intake,
    /// The call; `None`, which admits nobody, if the table of calls does not have it.
    method: Option<&'static Method>,
}

impl Check {
    /// Creates the check of the call that has this name over gRPC.
    pub(super) fn of(access: Access, limiter: CallerLimiter, call: &str) -> Self {
        Self {
            intake: Intake {
                access,
                limiter: Some(limiter),
            },
            method: Method::named(call),
        }
    }

    /// Creates the check in front of the OpenAPI document.
    pub(super) fn of_document(access: Access, limiter: CallerLimiter) -> Self {
        Self::in_front_of(&DESCRIBES, access, limiter)
    }

    /// Creates the check in front of the metrics of the process.
    pub(super) fn of_metrics(access: Access, limiter: CallerLimiter) -> Self {
        Self::in_front_of(&READS_METRICS, access, limiter)
    }

    fn in_front_of(method: &'static Method, access: Access, limiter: CallerLimiter) -> Self {
        let intake = Intake {
            access,
            limiter: Some(limiter),
        };
        Self {
            intake,
            method: Some(method),
        }
    }
}

/// Hands a call on if its caller has the right to it, with the caller as an extension.
pub(super) async fn check_access(
    State(check): State<Check>,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let authorization = request.headers().get(AUTHORIZATION);
    let peer = request.extensions().get::<Peer>();
    let shown = Headers {
        authorization: authorization.map(|value| value.as_bytes()),
        // Nodes call over gRPC.
        node: None,
        is_handed_on: false,
        certificate: peer.and_then(|peer| peer.certificate.as_deref()),
    };
    let address = peer.and_then(|peer| peer.address);
    let (caller, call) = check.intake.begin(check.method, shown, address)?;
    request.extensions_mut().insert(caller);
    let response = next.run(request).await;
    call.end(code(&response));
    Ok(response)
}

/// Returns the code of an answer. Those that are problems tell theirs.
fn code(response: &Response) -> Code {
    let told = response.extensions().get::<Code>().copied();
    told.unwrap_or_else(|| match response.status() {
        status if status.is_server_error() => Code::Internal,
        status if status.is_client_error() => Code::InvalidArgument,
        _ => Code::Ok,
    })
}

impl FromRequestParts<Api> for Api {
    type Rejection = Infallible;

    /// Returns the calls as the caller of this request may make them.
    async fn from_request_parts(parts: &mut Parts, api: &Api) -> Result<Self, Infallible> {
        let caller = parts.extensions.get::<Caller>();
        Ok(api.on_behalf_of(caller.cloned().unwrap_or_default()))
    }
}
