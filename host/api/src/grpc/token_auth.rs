//! Checks the node and the token of calls by masters and other workers before their bodies are read.
//!
//! A body of links becomes many times larger in memory than it was on the wire, a caller that asks for turns
//! decides when others crawl, and logs tell what is crawled. Callers that do not know the token of this worker are
//! therefore refused before any of the body is read. A certificate that names a node is checked first. The bodies of the
//! others are bounded before they are decoded.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use futures::future::Either;
use hyper::{Request, Response};
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;

use super::node_auth::NodeAuth;
use super::worker_body::{Bound, CheckedBody};
use crate::metadata::CALL_TOKEN;
use crawler_model::node::CallToken;

/// Service of a worker that requires its token.
#[derive(Clone)]
pub(super) struct TokenAuth<S> {
    pub(super) worker: S,
    pub(super) call_token: CallToken,
    pub(super) node_auth: NodeAuth,
}

impl<S: NamedService> NamedService for TokenAuth<S> {
    const NAME: &'static str = S::NAME;
}

impl<S, R> Service<Request<Body>> for TokenAuth<S>
where
    S: Service<Request<Body>, Response = Response<R>, Error = Infallible>,
    R: Default,
{
    type Response = Response<R>;
    type Error = Infallible;
    type Future = Either<S::Future, Ready<Result<Response<R>, Infallible>>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.worker.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let node = match self.node_auth.caller(&request) {
            Ok(node) => node,
            Err(problem) => return Either::Right(ready(Ok(problem.to_status().into_http()))),
        };
        let shown = request.headers().get(CALL_TOKEN);
        let knows_token = || shown.is_some_and(|shown| self.call_token.is(shown.as_bytes()));
        if !knows_token() {
            let refused = Status::unauthenticated(
                "the calls of a worker are for nodes of the cluster only, which find its token in the store",
            );
            return Either::Right(ready(Ok(refused.into_http())));
        }
        if let Some(node) = node {
            request.extensions_mut().insert(node);
        }
        let bound = Bound::at(request.uri().path());
        let request = request.map(|body| Body::new(CheckedBody::new(bound, body)));
        Either::Left(self.worker.call(request))
    }
}
