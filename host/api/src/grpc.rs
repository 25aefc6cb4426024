//! The gRPC servers of masters and workers, with health and reflection, on one listener.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use crawler_proto as proto;
use futures::stream::{StreamExt as _, TryStreamExt as _};
use proto::crawler_master_server::{CrawlerMaster, CrawlerMasterServer};
use proto::crawler_worker_server::CrawlerWorkerServer;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Streaming};

use super::calls::Calls;
use super::connections::Connections;
use super::push::PushRequest;
use super::requests::Requests;
use super::tls::ServerTls;
use super::{Api, CALLS_MAX, REQUEST_MAX, convert};
use crawler_fetch::turns::Turns;
use crawler_master::control::frontier::UrlQuery;
use crawler_model::node::CallToken;
use crawler_worker::Crawls;

mod answer;
mod origin;
mod token_auth;
mod upload;
mod worker;

use answer::{Answer, Stream, answer, refused, stream};
use origin::origin;
use token_auth::TokenAuth;
use upload::upload;
use worker::Worker;

/// Bytes of a call with links: one link alone may have as many as a rule may ask for at once.
pub const LINKS_MAX: usize = 20 << 20;
/// Time after which a silent connection is pinged, and closed if it does not answer.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// Bytes that a client may send ahead of what is read of them, over one connection.
const WINDOW: u32 = 64 << 10;

/// Services of one listener.
#[derive(Clone, Default)]
pub struct Services {
    /// Calls of a master; `None` on a worker.
    pub master: Option<Api>,
    /// Calls of a worker; `None` on a master.
    pub worker: Option<WorkerService>,
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
}

/// Serves until `stop` is cancelled and the calls in hand are done. Streams end as soon as `stop` is
/// cancelled. With `tls`, connections are encrypted.
pub async fn serve(
    listener: TcpListener,
    services: Services,
    requests: Requests,
    tls: Option<ServerTls>,
    stop: CancellationToken,
) -> io::Result<()> {
    let (reporter, health) = tonic_health::server::health_reporter();
    let master = services
        .master
        .map(|api| CrawlerMasterServer::new(Master { api }).max_decoding_message_size(REQUEST_MAX));
    if master.is_some() {
        reporter.set_serving::<CrawlerMasterServer<Master>>().await;
    }
    let worker = services.worker.map(|service| {
        let worker = Worker {
            crawls: service.crawls,
            turns: service.turns,
            calls: Calls::new("worker"),
            stop: stop.clone(),
        };
        TokenAuth {
            worker: CrawlerWorkerServer::new(worker).max_decoding_message_size(LINKS_MAX),
            call_token: service.call_token,
        }
    });
    if worker.is_some() {
        reporter.set_serving::<CrawlerWorkerServer<Worker>>().await;
    }
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(proto::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let sound = "the descriptors are generated from the .proto files by the build";
    let stall_timeout = requests.settings.stall_timeout;
    let connections = Connections::of_grpc(listener, &requests.settings, tls);
    let incoming = connections.incoming(stall_timeout);
    tonic::transport::Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .max_concurrent_streams(CALLS_MAX as u32)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .layer(requests.of_grpc())
        .add_service(health)
        .add_service(reflection().build_v1().expect(sound))
        .add_service(reflection().build_v1alpha().expect(sound))
        .add_optional_service(master)
        .add_optional_service(worker)
        .serve_with_incoming_shutdown(incoming, stop.cancelled_owned())
        .await
        .map_err(io::Error::other)
}

struct Master {
    api: Api,
}

#[tonic::async_trait]
impl CrawlerMaster for Master {
    async fn add_resource(&self, request: Request<proto::ResourceSpec>) -> Answer<proto::NodeSpec> {
        let origin = origin(&request)?;
        let spec = convert::spec_request(request.into_inner()).map_err(refused)?;
        answer(self.api.add_resource(&origin, spec)).await
    }

    async fn delete_resource(&self, request: Request<proto::ResourceSpec>) -> Answer<()> {
        let origin = origin(&request)?;
        let proto::ResourceSpec {
            name,
            purge,
            if_id,
            if_generation,
            ..
        } = request.into_inner();
        let precondition = convert::precondition(if_id, if_generation);
        let deleted = self
            .api
            .delete_resource(&origin, &name, purge, precondition);
        answer(deleted).await
    }

    async fn get_resource(
        &self,
        request: Request<proto::ResourceRequest>,
    ) -> Answer<proto::Resource> {
        answer(self.api.resource(&request.into_inner().name)).await
    }

    async fn update_resource(
        &self,
        request: Request<proto::ResourceSpec>,
    ) -> Answer<proto::Resource> {
        let origin = origin(&request)?;
        let spec = convert::spec_request(request.into_inner()).map_err(refused)?;
        answer(self.api.update_resource(&origin, spec)).await
    }

    async fn restart_resource(
        &self,
        request: Request<proto::RestartRequest>,
    ) -> Answer<proto::Resource> {
        let origin = origin(&request)?;
        let changes = convert::restart_request(request.into_inner()).map_err(refused)?;
        answer(self.api.restart_resource(&origin, changes)).await
    }

    async fn pause_resource(
        &self,
        request: Request<proto::ResourceRequest>,
    ) -> Answer<proto::Resource> {
        let origin = origin(&request)?;
        let name = request.into_inner().name;
        answer(self.api.pause_resource(&origin, &name, true)).await
    }

    async fn resume_resource(
        &self,
        request: Request<proto::ResourceRequest>,
    ) -> Answer<proto::Resource> {
        let origin = origin(&request)?;
        let name = request.into_inner().name;
        answer(self.api.pause_resource(&origin, &name, false)).await
    }

    async fn list_resources(
        &self,
        request: Request<proto::ListResourcesRequest>,
    ) -> Answer<proto::ListResourcesResponse> {
        let request = request.into_inner();
        answer(self.api.resources(request.page_size, &request.page_token)).await
    }

    async fn list_nodes(
        &self,
        _request: Request<proto::ListNodesRequest>,
    ) -> Answer<proto::ListNodesResponse> {
        answer(self.api.nodes()).await
    }

    async fn drain_node(
        &self,
        request: Request<proto::DrainNodeRequest>,
    ) -> Answer<proto::DrainNodeResponse> {
        let origin = origin(&request)?;
        let proto::DrainNodeRequest { id, undo } = request.into_inner();
        answer(self.api.drain_node(&origin, &id, undo)).await
    }

    type WatchNodesStream = Stream<proto::NodeEvent>;

    async fn watch_nodes(
        &self,
        _request: Request<proto::WatchNodesRequest>,
    ) -> Answer<Self::WatchNodesStream> {
        stream(self.api.node_events()).await
    }

    async fn push_plugin(
        &self,
        request: Request<Streaming<proto::PushPluginRequest>>,
    ) -> Answer<proto::Plugin> {
        let origin = origin(&request)?;
        let upload = upload(request.into_inner(), self.api.max_plugin_size());
        answer(Box::pin(self.api.push_plugin(&origin, upload))).await
    }

    async fn record_plugin(
        &self,
        request: Request<proto::RecordPluginRequest>,
    ) -> Answer<proto::Plugin> {
        let origin = origin(&request)?;
        let request = request.into_inner();
        let push = PushRequest {
            push_as: request.r#as,
            allow_breaking: request.allow_breaking,
        };
        let recorded = self.api.record_plugin(&origin, &push, &request.digest);
        answer(Box::pin(recorded)).await
    }

    type FetchPluginStream = Stream<proto::PluginChunk>;

    async fn fetch_plugin(
        &self,
        request: Request<proto::FetchPluginRequest>,
    ) -> Answer<Self::FetchPluginStream> {
        let request = request.into_inner();
        let pieces = self.api.plugin_bytes(&request.digest, request.offset);
        let pieces = pieces.await.map_err(|p| p.to_status())?;
        let chunks = pieces.map(|piece| match piece {
            Ok(piece) => Ok(proto::PluginChunk {
                chunk: piece.into(),
            }),
            Err(problem) => Err(problem.to_status()),
        });
        Ok(Response::new(chunks.boxed()))
    }

    async fn get_plugin(&self, request: Request<proto::PluginRequest>) -> Answer<proto::Plugin> {
        answer(self.api.plugin(&request.into_inner().plugin)).await
    }

    async fn list_plugins(
        &self,
        _request: Request<proto::ListPluginsRequest>,
    ) -> Answer<proto::ListPluginsResponse> {
        answer(self.api.plugins()).await
    }

    async fn delete_plugin(&self, request: Request<proto::PluginRequest>) -> Answer<()> {
        let origin = origin(&request)?;
        answer(
            self.api
                .delete_plugin(&origin, &request.into_inner().plugin),
        )
        .await
    }

    type ReadItemsStream = Stream<proto::Item>;

    async fn read_items(
        &self,
        request: Request<proto::ReadItemsRequest>,
    ) -> Answer<Self::ReadItemsStream> {
        stream(self.api.items(request.into_inner())).await
    }

    type ReadFileStream = Stream<proto::FileChunk>;

    async fn read_file(
        &self,
        request: Request<proto::ReadFileRequest>,
    ) -> Answer<Self::ReadFileStream> {
        let request = request.into_inner();
        let pieces = self.api.file(&request.name, &request.digest);
        let chunk = |piece: Bytes| proto::FileChunk {
            chunk: piece.into(),
        };
        stream(async { Ok(pieces.await?.map_ok(chunk).boxed()) }).await
    }

    async fn get_frontier_stats(
        &self,
        request: Request<proto::ResourceRequest>,
    ) -> Answer<proto::FrontierStats> {
        answer(self.api.frontier_stats(&request.into_inner().name)).await
    }

    async fn get_statistics(
        &self,
        request: Request<proto::ResourceRequest>,
    ) -> Answer<proto::RunStatistics> {
        answer(self.api.statistics(&request.into_inner().name)).await
    }

    async fn list_urls(
        &self,
        request: Request<proto::ListUrlsRequest>,
    ) -> Answer<proto::ListUrlsResponse> {
        let proto::ListUrlsRequest {
            name,
            state,
            page_size,
            page_token,
        } = request.into_inner();
        answer(self.api.urls(&name, &state, page_size, &page_token)).await
    }

    async fn list_hosts(
        &self,
        request: Request<proto::ListHostsRequest>,
    ) -> Answer<proto::ListHostsResponse> {
        let proto::ListHostsRequest {
            name,
            state,
            page_size,
            page_token,
        } = request.into_inner();
        answer(self.api.hosts(&name, &state, page_size, &page_token)).await
    }

    async fn explain_url(
        &self,
        request: Request<proto::ExplainUrlRequest>,
    ) -> Answer<proto::UrlExplanation> {
        let request = request.into_inner();
        let query = UrlQuery {
            url: request.url,
            method: request.method,
            body: request.body.into(),
        };
        answer(self.api.explain_url(&request.name, query)).await
    }

    async fn redrive_frontier(
        &self,
        request: Request<proto::RedriveRequest>,
    ) -> Answer<proto::RedriveResponse> {
        let origin = origin(&request)?;
        let proto::RedriveRequest { name, reason } = request.into_inner();
        answer(self.api.redrive_frontier(&origin, &name, reason)).await
    }

    type ReadLogsStream = Stream<proto::LogLine>;

    async fn read_logs(
        &self,
        request: Request<proto::ReadLogsRequest>,
    ) -> Answer<Self::ReadLogsStream> {
        let request = request.into_inner();
        stream(self.api.logs(&request.name, request.follow)).await
    }
}

#[cfg(test)]
mod tests;
