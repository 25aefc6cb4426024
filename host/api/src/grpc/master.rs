//! The calls of a master: each is taken apart, made by [`Api`](crate::Api) for its caller, and answered.

use bytes::Bytes;
use crawler_proto as proto;
use futures::stream::{StreamExt as _, TryStreamExt as _};
use proto::crawler_master_server::CrawlerMaster;
use proto::{
    ExplainUrlRequest, FrontierStats, ListHostsRequest, ListHostsResponse, ListUrlsRequest,
    ListUrlsResponse, ResourceRequest, RestartRequest, RevokeJoinTokenRequest, UrlExplanation,
};
use tonic::{Request, Response, Streaming};

use super::answer::{Answer, Stream, answer, refused, stream};
use super::origin::origin;
use super::service::Master;
use super::upload::upload;
use crate::Peer;
use crate::convert;
use crate::push::PushRequest;

#[tonic::async_trait]
impl CrawlerMaster for Master {
    async fn add_resource(&self, request: Request<proto::ResourceSpec>) -> Answer<proto::NodeSpec> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let spec = convert::spec_request(request.into_inner()).map_err(refused)?;
        answer(api.add_resource(&origin, spec)).await
    }

    async fn delete_resource(&self, request: Request<proto::ResourceSpec>) -> Answer<()> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let spec = request.into_inner();
        let precondition = convert::precondition(spec.if_id, spec.if_generation);
        answer(api.delete_resource(&origin, &spec.name, spec.purge, precondition)).await
    }

    async fn get_resource(&self, request: Request<ResourceRequest>) -> Answer<proto::Resource> {
        let api = self.api(&request);
        answer(api.resource(&request.into_inner().name)).await
    }

    async fn update_resource(
        &self,
        request: Request<proto::ResourceSpec>,
    ) -> Answer<proto::Resource> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let spec = convert::spec_request(request.into_inner()).map_err(refused)?;
        answer(api.update_resource(&origin, spec)).await
    }

    async fn restart_resource(&self, request: Request<RestartRequest>) -> Answer<proto::Resource> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let changes = convert::restart_request(request.into_inner()).map_err(refused)?;
        answer(api.restart_resource(&origin, changes)).await
    }

    async fn pause_resource(&self, request: Request<ResourceRequest>) -> Answer<proto::Resource> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        answer(api.pause_resource(&origin, &request.into_inner().name, true)).await
    }

    async fn resume_resource(&self, request: Request<ResourceRequest>) -> Answer<proto::Resource> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        answer(api.pause_resource(&origin, &request.into_inner().name, false)).await
    }

    async fn set_schedule(
        &self,
        request: Request<proto::SetScheduleRequest>,
    ) -> Answer<proto::Schedule> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        answer(api.set_schedule(&origin, request.into_inner())).await
    }

    async fn get_schedule(&self, request: Request<ResourceRequest>) -> Answer<proto::Schedule> {
        let api = self.api(&request);
        answer(api.schedule(&request.into_inner().name)).await
    }

    async fn delete_schedule(&self, request: Request<ResourceRequest>) -> Answer<()> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        answer(api.delete_schedule(&origin, &request.into_inner().name)).await
    }

    async fn list_schedules(
        &self,
        request: Request<proto::ListSchedulesRequest>,
    ) -> Answer<proto::ListSchedulesResponse> {
        let api = self.api(&request);
        answer(api.schedules(request.into_inner())).await
    }

    async fn list_runs(
        &self,
        request: Request<ResourceRequest>,
    ) -> Answer<proto::ListRunsResponse> {
        let api = self.api(&request);
        answer(api.runs(&request.into_inner().name)).await
    }

    async fn diff_runs(&self, request: Request<proto::DiffRunsRequest>) -> Answer<proto::RunsDiff> {
        let api = self.api(&request);
        answer(api.diff_runs(request.into_inner())).await
    }

    async fn list_resources(
        &self,
        request: Request<proto::ListResourcesRequest>,
    ) -> Answer<proto::ListResourcesResponse> {
        let api = self.api(&request);
        answer(api.resources(request.into_inner())).await
    }

    async fn list_nodes(
        &self,
        request: Request<proto::ListNodesRequest>,
    ) -> Answer<proto::ListNodesResponse> {
        let api = self.api(&request);
        answer(api.nodes(request.into_inner())).await
    }

    async fn drain_node(
        &self,
        request: Request<proto::DrainNodeRequest>,
    ) -> Answer<proto::DrainNodeResponse> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let proto::DrainNodeRequest { id, undo } = request.into_inner();
        answer(api.drain_node(&origin, &id, undo)).await
    }

    type WatchNodesStream = Stream<proto::NodeEvent>;

    async fn watch_nodes(
        &self,
        request: Request<proto::WatchNodesRequest>,
    ) -> Answer<Self::WatchNodesStream> {
        let api = self.api(&request);
        stream(api.node_events()).await
    }

    type WatchResourcesStream = Stream<proto::ResourceEvent>;

    async fn watch_resources(
        &self,
        request: Request<proto::WatchResourcesRequest>,
    ) -> Answer<Self::WatchResourcesStream> {
        let api = self.api(&request);
        stream(api.resource_events(request.into_inner())).await
    }

    async fn push_plugin(
        &self,
        request: Request<Streaming<proto::PushPluginRequest>>,
    ) -> Answer<proto::Plugin> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let upload = upload(request.into_inner(), api.max_plugin_size());
        answer(Box::pin(api.push_plugin(&origin, upload))).await
    }

    async fn record_plugin(
        &self,
        request: Request<proto::RecordPluginRequest>,
    ) -> Answer<proto::Plugin> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let request = request.into_inner();
        let push = PushRequest {
            push_as: request.r#as,
            allow_breaking: request.allow_breaking,
        };
        answer(Box::pin(api.record_plugin(&origin, &push, &request.digest))).await
    }

    type FetchPluginStream = Stream<proto::PluginChunk>;

    async fn fetch_plugin(
        &self,
        request: Request<proto::FetchPluginRequest>,
    ) -> Answer<Self::FetchPluginStream> {
        let api = self.api(&request);
        let request = request.into_inner();
        let pieces = api.plugin_bytes(&request.digest, request.offset);
        let chunk = |piece: Bytes| proto::PluginChunk {
            chunk: piece.into(),
        };
        stream(async { Ok(pieces.await?.map_ok(chunk).boxed()) }).await
    }

    async fn get_plugin(&self, request: Request<proto::PluginRequest>) -> Answer<proto::Plugin> {
        let api = self.api(&request);
        answer(api.plugin(&request.into_inner().plugin)).await
    }

    async fn list_plugins(
        &self,
        request: Request<proto::ListPluginsRequest>,
    ) -> Answer<proto::ListPluginsResponse> {
        let api = self.api(&request);
        answer(api.plugins(request.into_inner())).await
    }

    async fn delete_plugin(&self, request: Request<proto::PluginRequest>) -> Answer<()> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        answer(api.delete_plugin(&origin, &request.into_inner().plugin)).await
    }

    type ReadItemsStream = Stream<proto::Item>;

    async fn read_items(
        &self,
        request: Request<proto::ReadItemsRequest>,
    ) -> Answer<Self::ReadItemsStream> {
        let api = self.api(&request);
        Box::pin(stream(api.items(request.into_inner()))).await
    }

    async fn list_changes(
        &self,
        request: Request<proto::ListChangesRequest>,
    ) -> Answer<proto::ListChangesResponse> {
        let api = self.api(&request);
        answer(api.changes(request.into_inner())).await
    }

    type ReadFileStream = Stream<proto::FileChunk>;

    async fn read_file(
        &self,
        request: Request<proto::ReadFileRequest>,
    ) -> Answer<Self::ReadFileStream> {
        let api = self.api(&request);
        let request = request.into_inner();
        let pieces = api.file(&request.name, &request.digest);
        let chunk = |piece: Bytes| proto::FileChunk {
            chunk: piece.into(),
        };
        stream(async { Ok(pieces.await?.map_ok(chunk).boxed()) }).await
    }

    type ReadEventsStream = Stream<proto::PastEvent>;

    async fn read_events(
        &self,
        request: Request<proto::ReadEventsRequest>,
    ) -> Answer<Self::ReadEventsStream> {
        let api = self.api(&request);
        stream(api.history(request.into_inner())).await
    }

    type ReadNodeEventsStream = Stream<proto::PastEvent>;

    async fn read_node_events(
        &self,
        request: Request<proto::ReadNodeEventsRequest>,
    ) -> Answer<Self::ReadNodeEventsStream> {
        let api = self.api(&request);
        stream(api.node_history(request.into_inner())).await
    }

    async fn get_frontier_stats(&self, request: Request<ResourceRequest>) -> Answer<FrontierStats> {
        let api = self.api(&request);
        answer(api.frontier_stats(&request.into_inner().name)).await
    }

    async fn get_statistics(
        &self,
        request: Request<ResourceRequest>,
    ) -> Answer<proto::RunStatistics> {
        let api = self.api(&request);
        answer(api.statistics(&request.into_inner().name)).await
    }

    async fn list_urls(&self, request: Request<ListUrlsRequest>) -> Answer<ListUrlsResponse> {
        let api = self.api(&request);
        let page = request.into_inner();
        answer(api.urls(&page.name, &page.state, page.page_size, &page.page_token)).await
    }

    async fn list_hosts(&self, request: Request<ListHostsRequest>) -> Answer<ListHostsResponse> {
        let api = self.api(&request);
        let page = request.into_inner();
        answer(api.hosts(&page.name, &page.state, page.page_size, &page.page_token)).await
    }

    async fn explain_url(&self, request: Request<ExplainUrlRequest>) -> Answer<UrlExplanation> {
        let api = self.api(&request);
        let (name, query) = convert::url_query(request.into_inner());
        answer(api.explain_url(&name, query)).await
    }

    async fn redrive_frontier(
        &self,
        request: Request<proto::RedriveRequest>,
    ) -> Answer<proto::RedriveResponse> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let proto::RedriveRequest { name, reason } = request.into_inner();
        answer(api.redrive_frontier(&origin, &name, reason)).await
    }

    async fn issue_token(
        &self,
        request: Request<proto::IssueTokenRequest>,
    ) -> Answer<proto::IssueTokenResponse> {
        let api = self.api(&request);
        answer(api.issue_token(request.into_inner())).await
    }

    async fn list_tokens(
        &self,
        request: Request<proto::ListTokensRequest>,
    ) -> Answer<proto::ListTokensResponse> {
        let api = self.api(&request);
        answer(api.tokens(request.into_inner())).await
    }

    async fn revoke_tokens(&self, request: Request<proto::RevokeTokensRequest>) -> Answer<()> {
        let api = self.api(&request);
        answer(api.revoke_tokens(request.into_inner())).await
    }

    async fn read_audit(
        &self,
        request: Request<proto::ReadAuditRequest>,
    ) -> Answer<proto::ReadAuditResponse> {
        let api = self.api(&request);
        answer(api.audit(request.into_inner())).await
    }

    async fn get_caller(&self, request: Request<proto::GetCallerRequest>) -> Answer<proto::Caller> {
        let api = self.api(&request);
        Ok(Response::new(api.whoami()))
    }

    async fn issue_join_token(
        &self,
        request: Request<proto::IssueJoinTokenRequest>,
    ) -> Answer<proto::IssueJoinTokenResponse> {
        let api = self.api(&request);
        answer(api.issue_join_token(request.into_inner())).await
    }

    async fn list_join_tokens(
        &self,
        request: Request<proto::ListJoinTokensRequest>,
    ) -> Answer<proto::ListJoinTokensResponse> {
        let api = self.api(&request);
        answer(api.join_tokens()).await
    }

    async fn revoke_join_token(&self, request: Request<RevokeJoinTokenRequest>) -> Answer<()> {
        let api = self.api(&request);
        answer(api.revoke_join_token(&request.into_inner().id)).await
    }

    async fn revoke_node(&self, request: Request<proto::RevokeNodeRequest>) -> Answer<()> {
        let api = self.api(&request);
        answer(api.revoke_node(&request.into_inner().id)).await
    }

    async fn join_cluster(
        &self,
        request: Request<proto::JoinClusterRequest>,
    ) -> Answer<proto::NodeCertificate> {
        let api = self.api(&request);
        answer(Box::pin(api.join_cluster(request.into_inner()))).await
    }

    async fn renew_certificate(
        &self,
        request: Request<proto::RenewCertificateRequest>,
    ) -> Answer<proto::NodeCertificate> {
        let api = self.api(&request);
        let shown = request.extensions().get::<Peer>();
        let shown = shown.and_then(|peer| peer.certificate.clone());
        answer(Box::pin(api.renew_certificate(shown, request.into_inner()))).await
    }

    type ReadLogsStream = Stream<proto::LogLine>;

    async fn read_logs(
        &self,
        request: Request<proto::ReadLogsRequest>,
    ) -> Answer<Self::ReadLogsStream> {
        let api = self.api(&request);
        let request = request.into_inner();
        stream(api.logs(&request.name, request.follow)).await
    }
}
