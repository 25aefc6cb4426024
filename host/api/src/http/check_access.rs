//! Finds out who calls, before anything of the call's body is read.

use std::convert::Infallible;
use std::pin::pin;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::HeaderValue;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::Response;
use tonic::Code;

use super::metrics::READS_METRICS;
use super::openapi::DESCRIBES;
use crate::access::methods::Method;
use crate::access::{Caller, Headers};
use crate::intake::Intake;
use crate::metadata::TRACE_PARENT;
use crate::problem::Problem;
use crate::{Api, Peer};
use crawler_process::traces;

/// Check in front of one call.
#[derive(Debug, Clone)]
pub(super) struct Check {
    intake: Intake,
    /// The call; `None`, which admits nobody, if the table of calls does not have it.
    method: Option<&'static Method>,
}

impl Check {
    /// Creates the check of the call that has this name over gRPC.
    pub(super) fn of(intake: Intake, call: &str) -> Self {
        Self {
            intake,
            method: Method::named(call),
        }
    }

    /// Creates the check in front of the OpenAPI document.
    pub(super) fn of_document(intake: Intake) -> Self {
        Self {
            intake,
            method: Some(&DESCRIBES),
        }
    }

    /// Creates the check in front of the metrics of the process.
    pub(super) fn of_metrics(intake: Intake) -> Self {
        Self {
            intake,
            method: Some(&READS_METRICS),
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
        trace_parent: request
            .headers()
            .get(TRACE_PARENT)
            .map(HeaderValue::as_bytes),
    };
    let address = peer.and_then(|peer| peer.address);
    let (caller, mut call) = check.intake.begin(check.method, shown, address)?;
    let span = call.take_span();
    span.note(|notes| {
        notes
            .text("http.request.method", request.method())
            .text("url.path", request.uri().path());
    });
    request.extensions_mut().insert(caller);
    let answered = async {
        let response = next.run(request).await;
        traces::note(|notes| {
            notes.number("http.response.status_code", response.status().as_u16());
        });
        call.end(code(&response));
        Ok(response)
    };
    span.around(pin!(answered)).await
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
