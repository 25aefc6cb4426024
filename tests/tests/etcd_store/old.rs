//! A server that reports an old version, and can do nothing else.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::codegen::{Body, BoxFuture, Service, StdError, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use super::*;

#[derive(Clone, PartialEq, prost::Message)]
struct StatusRequest {}

#[derive(Clone, PartialEq, prost::Message)]
struct StatusResponse {
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Debug, Clone)]
struct OldServer {
    version: &'static str,
}

impl NamedService for OldServer {
    const NAME: &'static str = "etcdserverpb.Maintenance";
}

impl UnaryService<StatusRequest> for OldServer {
    type Response = StatusResponse;
    type Future = BoxFuture<Response<StatusResponse>, Status>;

    fn call(&mut self, _request: Request<StatusRequest>) -> Self::Future {
        let version = self.version.to_owned();
        Box::pin(async { Ok(Response::new(StatusResponse { version })) })
    }
}

impl<B> Service<http::Request<B>> for OldServer
where
    B: Body + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move {
            let codec = ProstCodec::<StatusResponse, StatusRequest>::default();
            Ok(Grpc::new(codec).unary(server, request).await)
        })
    }
}

/// Starts the server. It runs as long as the guard that is returned beside its address.
pub(crate) async fn old_server(version: &'static str) -> (SocketAddr, (TaskScope, DropGuard)) {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let incoming = TcpIncoming::bind(any).expect("a free port");
    let address = incoming.local_addr().expect("a bound port has an address");
    let stop = CancellationToken::new();
    let tasks = TaskScope::under(&stop);
    tasks.spawn("old server", async move {
        let server = tonic::transport::Server::builder().add_service(OldServer { version });
        let served = server.serve_with_incoming(incoming).await;
        served.expect("a server runs until it is dropped");
    });
    (address, (tasks, stop.drop_guard()))
}
