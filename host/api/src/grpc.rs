//! The gRPC servers of masters and workers, with health and reflection, on one listener.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use crawler_proto as proto;
use proto::crawler_master_server::CrawlerMasterServer;
use proto::crawler_worker_server::CrawlerWorkerServer;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic_health::ServingStatus;

use super::access::Access;
use super::calls::Calls;
use super::connections::Connections;
use super::intake::Intake;
use super::nodes::KnownNodes;
use super::requests::Requests;
use super::tls::ServerTls;
use super::{Api, CALLS_MAX, REQUEST_MAX};
use crawler_fetch::turns::Turns;
use crawler_model::crawl::REQUEST_BYTES_MAX;
use crawler_model::node::CallToken;
use crawler_worker::links::MAX_CALL_BYTES;
use crawler_worker::{Crawls, ShardOwners};

mod answer;
mod check_access;
mod master;
mod node_auth;
mod origin;
mod refusals;
mod service;
mod token_auth;
mod upload;
mod worker;
mod worker_body;

use check_access::CheckAccess;
use node_auth::NodeAuth;
use refusals::Refusals;
use service::Master;
use token_auth::TokenAuth;
use worker::Worker;

/// Bytes of a message to a worker, checked before it is decoded. One link alone may have as many as all requests of a call
/// of a rule, and as many as several links have otherwise with what goes with it.
pub const LINKS_MAX: usize = REQUEST_BYTES_MAX + MAX_CALL_BYTES;
/// Time after which a silent connection is pinged, and closed if it does not answer.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// Time after which an encrypted connection takes no further calls, so that its client opens another one. Otherwise a node
/// whose connection lasts would show the certificate of the day on which it was opened. A certificate of a day is
/// renewed 8 hours before its end.
const ENCRYPTED_AGE: Duration = Duration::from_secs(60 * 60);
/// Bytes that a client may send ahead of what is read of them, over one connection.
const WINDOW: u32 = 64 << 10;
/// Name under which the health service tells whether the process belongs to the cluster.
pub(crate) const JOINED: &str = "joined";

/// Services of one listener.
#[derive(Clone, Default)]
pub struct Services {
    /// Calls of a master; `None` on a worker.
    pub master: Option<Api>,
    /// Calls of a worker; `None` on a master.
    pub worker: Option<WorkerService>,
    /// Cancelled when the process belongs to the cluster; the health service tells so under a name of its own.
    pub joined: CancellationToken,
}

/// Parts of a worker that answer calls.
#[derive(Clone)]
pub struct WorkerService {
    /// Crawls of this worker.
    pub crawls: Crawls,
    /// Token that callers show who bring links or ask for turns.
    pub call_token: CallToken,
    /// Turns of hosts that the worker shares with others; `None` if it shares none.
    pub turns: Option<Turns>,
    /// Owners of shards: a node brings links of its own shards only.
    pub owners: ShardOwners,
    /// Rule by which the worker knows the nodes that call it.
    pub nodes: KnownNodes,
}

/// Serves until `stop` is cancelled and the calls in hand are done. Streams end as soon as `stop` is
/// cancelled. With `tls`, connections are encrypted.
pub async fn serve(
    listener: TcpListener,
    services: Services,
    access: Access,
    requests: Requests,
    tls: Option<ServerTls>,
    stop: CancellationToken,
) -> io::Result<()> {
    let limiter = services.master.as_ref().map(Api::limiter);
    let tracer = services.master.as_ref().map(|api| api.parts.tracer.clone());
    let intake = Intake {
        access,
        limiter,
        tracer: tracer.unwrap_or_default(),
    };
    let (reporter, health) = tonic_health::server::health_reporter();
    let master = services
        .master
        .map(|api| CrawlerMasterServer::new(Master { api }).max_decoding_message_size(REQUEST_MAX));
    if master.is_some() {
        reporter.set_serving::<CrawlerMasterServer<Master>>().await;
    }
    let audit = match &intake.access {
        Access::Tokens { audit, .. } => Some(audit.clone()),
        Access::Open(_) => None,
    };
    let worker = services.worker.map(|service| {
        let node_auth = NodeAuth {
            nodes: service.nodes,
            refusals: Refusals::new(audit),
        };
        let worker = Worker {
            crawls: service.crawls,
            turns: service.turns,
            calls: Calls::new("worker"),
            stop: stop.clone(),
            node_auth: node_auth.clone(),
            owners: service.owners,
        };
        TokenAuth {
            worker: CrawlerWorkerServer::new(worker).max_decoding_message_size(LINKS_MAX),
            call_token: service.call_token,
            node_auth,
        }
    });
    if worker.is_some() {
        reporter.set_serving::<CrawlerWorkerServer<Worker>>().await;
    }
    reporter
        .set_service_status(JOINED, ServingStatus::NotServing)
        .await;
    let joined = services.joined;
    let tell_joined = async move {
        joined.cancelled().await;
        reporter
            .set_service_status(JOINED, ServingStatus::Serving)
            .await;
        std::future::pending::<Infallible>().await
    };
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let sound = "the descriptors are generated from the .proto files by the build";
    let stall_timeout = requests.settings.stall_timeout;
    let mut server = tonic::transport::Server::builder();
    if tls.is_some() {
        server = server.max_connection_age(ENCRYPTED_AGE);
    }
    let connections = Connections::of_grpc(listener, &requests.settings, tls);
    let incoming = connections.incoming(stall_timeout);
    let served = server
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .max_concurrent_streams(CALLS_MAX as u32)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .layer(CheckAccess { intake })
        .layer(requests.of_grpc())
        .add_service(health)
        .add_service(reflection().build_v1().expect(sound))
        .add_service(reflection().build_v1alpha().expect(sound))
        .add_optional_service(master)
        .add_optional_service(worker)
        .serve_with_incoming_shutdown(incoming, stop.cancelled_owned());
    tokio::select! {
        served = served => served.map_err(io::Error::other),
        never = tell_joined => match never {},
    }
}

#[cfg(test)]
mod tests;
