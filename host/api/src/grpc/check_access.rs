//! Finds out who calls, before anything of the call's body is read.
//!
//! Calls of a worker have a check of their own, [`TokenAuth`](super::token_auth::TokenAuth). The health of a process is
//! told to everybody: whoever starts and stops processes asks for it. All other calls need the access that the table
//! of calls asks for, and to see the interface itself, by reflection, takes a valid token.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use futures::future::Either;
use hyper::header::{AUTHORIZATION, HeaderMap};
use hyper::{Request, Response};
use tonic::{Code, Status};
use tower::{Layer, Service};

use crate::Peer;
use crate::access::Headers;
use crate::access::methods::{Method, Needs};
use crate::intake::Intake;
use crate::metadata::{FORWARDED, NODE_SECRET, TRACE_PARENT};
use crawler_process::traces::Span;

/// Paths of the calls of a worker.
const WORKER: &str = "/CrawlerWorker/";
/// Paths of the calls about health.
const HEALTH: &str = "/grpc.health.v1.Health/";
/// Paths of the calls about the interface.
const REFLECTION: &str = "/grpc.reflection.";
/// Access that reflection needs.
static REFLECTS: Method = Method {
    name: "ServerReflectionInfo",
    needs: Needs::Nothing,
};

/// Answer to a call that has come through the intake.
type Answer<R> = Pin<Box<dyn Future<Output = Result<Response<R>, Infallible>> + Send>>;

/// Layer that hands on calls whose caller has the right to them, with the caller as an extension.
#[derive(Clone)]
pub(super) struct CheckAccess {
    pub(super) intake: Intake,
}

/// Services behind the check.
#[derive(Clone)]
pub(super) struct Checked<S> {
    intake: Intake,
    services: S,
}

impl<S> Layer<S> for CheckAccess {
    type Service = Checked<S>;

    fn layer(&self, services: S) -> Checked<S> {
        Checked {
            intake: self.intake.clone(),
            services,
        }
    }
}

impl<S, B, R> Service<Request<B>> for Checked<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = Infallible>,
    S::Future: Send + 'static,
    R: Default + 'static,
{
    type Response = Response<R>;
    type Error = Infallible;
    type Future = Either<S::Future, Answer<R>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.services.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let path = request.uri().path();
        if path.starts_with(WORKER) || path.starts_with(HEALTH) {
            return Either::Left(self.services.call(request));
        }
        let method = match path.starts_with(REFLECTION) {
            true => Some(&REFLECTS),
            false => Method::at(path),
        };
        let value = |name: &str| request.headers().get(name).map(|value| value.as_bytes());
        let shown = Headers {
            authorization: value(AUTHORIZATION.as_str()),
            node: value(NODE_SECRET),
            is_handed_on: request.headers().contains_key(FORWARDED),
            certificate: peer(&request).and_then(|peer| peer.certificate.as_deref()),
            trace_parent: value(TRACE_PARENT),
        };
        let address = peer(&request).and_then(|peer| peer.address);
        match self.intake.begin(method, shown, address) {
            Ok((caller, mut call)) => {
                let span = call.take_span();
                note_call(&span, request.uri().path());
                request.extensions_mut().insert(caller);
                let answer = self.services.call(request);
                Either::Right(Box::pin(async move {
                    let answered = async {
                        let response = answer.await.unwrap_or_else(|never| match never {});
                        call.end(code(response.headers()));
                        Ok(response)
                    };
                    span.around(pin!(answered)).await
                }))
            }
            Err(problem) => {
                let refused = problem.to_status();
                Either::Right(Box::pin(async move { Ok(refused.into_http()) }))
            }
        }
    }
}

/// Notes in the span of a call which one it is, by the conventions for gRPC
/// (<https://opentelemetry.io/docs/specs/semconv/rpc/grpc/>).
fn note_call(span: &Span, path: &str) {
    span.note(|notes| {
        notes.text("rpc.system", "grpc");
        if let Some((service, method)) = path.trim_start_matches('/').split_once('/') {
            notes
                .text("rpc.service", service)
                .text("rpc.method", method);
        }
    });
}

/// Returns the code of an answer. One that is a message, or a stream that is open, has none among its headers.
fn code(headers: &HeaderMap) -> Code {
    let status = headers.get(Status::GRPC_STATUS);
    status.map_or(Code::Ok, |status| Code::from_bytes(status.as_bytes()))
}

/// Returns the client that a request came from.
fn peer<B>(request: &Request<B>) -> Option<&Peer> {
    request.extensions().get()
}
