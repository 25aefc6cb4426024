//! Finds out who calls, before anything of the call's body is read.
//!
//! Calls of a worker have a check of their own, [`TokenAuth`](super::token_auth::TokenAuth). The health of a process is
//! told to everybody: whoever starts and stops processes asks for it. All other calls need the access that the table
//! of calls asks for, and to see the interface itself, by reflection, takes a valid token.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::task::{Context, Poll};

use futures::future::Either;
use hyper::header::AUTHORIZATION;
use hyper::{Request, Response};
use tower::{Layer, Service};

use crate::Peer;
use crate::access::methods::{Method, Needs};
use crate::access::{Access, Headers};
use crate::metadata::NODE_SECRET;

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

/// Layer that hands on calls whose caller has the right to them, with the caller as an extension.
#[derive(Clone)]
pub(super) struct CheckAccess {
    pub(super) access: Access,
}

/// Services behind the check.
#[derive(Clone)]
pub(super) struct Checked<S> {
    access: Access,
    services: S,
}

impl<S> Layer<S> for CheckAccess {
    type Service = Checked<S>;

    fn layer(&self, services: S) -> Checked<S> {
        Checked {
            access: self.access.clone(),
            services,
        }
    }
}

impl<S, B, R> Service<Request<B>> for Checked<S>
where
    S: Service<Request<B>, Response = Response<R>, Error = Infallible>,
    R: Default,
{
    type Response = Response<R>;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Response<R>, Infallible>>>;

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
        };
        let caller = self.access.caller(method, shown, address(&request));
        match caller {
            Ok(caller) => {
                request.extensions_mut().insert(caller);
                Either::Left(self.services.call(request))
            }
            Err(problem) => Either::Right(ready(Ok(problem.to_status().into_http()))),
        }
    }
}

/// Returns the address that a request came from.
fn address<B>(request: &Request<B>) -> Option<SocketAddr> {
    request.extensions().get::<Peer>()?.address
}
