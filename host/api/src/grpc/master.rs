//! The calls of a master: each is taken apart, made by [`Api`](crate::Api) for its caller, and answered.

use bytes::Bytes;
use crawler_proto as proto;
use futures::stream::{StreamExt as _, TryStreamExt as _};
use proto::crawler_master_server::CrawlerMaster;
use proto::{
    Caller, DecideQuarantineRequest, DecideQuarantineResponse, DiffRunsRequest, DrainNodeRequest,
    DrainNodeResponse, ExplainUrlRequest, FetchPluginRequest, FileChunk, FrontierStats,
    GetCallerRequest, IssueJoinTokenRequest, IssueJoinTokenResponse, IssueTokenRequest,
    IssueTokenResponse, Item, JoinClusterRequest, ListChangesRequest, ListChangesResponse,
    ListHostsRequest, ListHostsResponse, ListJoinTokensRequest, ListJoinTokensResponse,
    ListNodesRequest, ListNodesResponse, ListPluginsRequest, ListPluginsResponse,
    ListQuarantineResponse, ListResourcesRequest, ListResourcesResponse, ListRunsResponse,
    ListSchedulesRequest, ListSchedulesResponse, ListTokensRequest, ListTokensResponse,
    ListUrlsRequest, ListUrlsResponse, LogLine, NodeCertificate, NodeEvent, NodeSpec, PastEvent,
    Plugin, PluginChunk, PluginRequest, PushPluginRequest, ReadAuditRequest, ReadAuditResponse,
    ReadEventsRequest, ReadFileRequest, ReadItemsRequest, ReadLogsRequest, ReadNodeEventsRequest,
    ReadQuarantineRequest, ReadQuarantineResponse, RecordPluginRequest, RedriveRequest,
    RedriveResponse, RenewCertificateRequest, Resource, ResourceEvent, ResourceRequest,
    ResourceSpec, RestartRequest, RevokeJoinTokenRequest, RevokeNodeRequest, RevokeTokensRequest,
    RunStatistics, RunsDiff, Schedule, SetScheduleRequest, UrlExplanation, WatchNodesRequest,
    WatchResourcesRequest,
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
    async fn add_resource(&self, request: Request<ResourceSpec>) -> Answer<NodeSpec> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let spec = convert::spec_request(request.into_inner()).map_err(refused)?;
        answer(api.add_resource(&origin, spec)).await
    }

    async fn delete_resource(&self, request: Request<ResourceSpec>) -> Answer<()> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let spec = request.into_inner();
        let precondition = convert::precondition(spec.if_id, spec.if_generation);
        answer(api.delete_resource(&origin, &spec.name, spec.purge, precondition)).await
    }

    async fn get_resource(&self, request: Request<ResourceRequest>) -> Answer<Resource> {
        let api = self.api(&request);
        answer(api.resource(&request.into_inner().name)).await
    }

    async fn update_resource(&self, request: Request<ResourceSpec>) -> Answer<Resource> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let spec = convert::spec_request(request.into_inner()).map_err(refused)?;
        answer(api.update_resource(&origin, spec)).await
    }

    async fn restart_resource(&self, request: Request<RestartRequest>) -> Answer<Resource> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let changes = convert::restart_request(request.into_inner()).map_err(refused)?;
        answer(api.restart_resource(&origin, changes)).await
    }

    async fn pause_resource(&self, request: Request<ResourceRequest>) -> Answer<Resource> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        answer(api.pause_resource(&origin, &request.into_inner().name, true)).await
    }

    async fn resume_resource(&self, request: Request<ResourceRequest>) -> Answer<Resource> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        answer(api.pause_resource(&origin, &request.into_inner().name, false)).await
    }

    async fn set_schedule(&self, request: Request<SetScheduleRequest>) -> Answer<Schedule> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        answer(api.set_schedule(&origin, request.into_inner())).await
    }

    async fn get_schedule(&self, request: Request<ResourceRequest>) -> Answer<Schedule> {
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
        request: Request<ListSchedulesRequest>,
    ) -> Answer<ListSchedulesResponse> {
        let api = self.api(&request);
        answer(api.schedules(request.into_inner())).await
    }

    async fn list_runs(&self, request: Request<ResourceRequest>) -> Answer<ListRunsResponse> {
        let api = self.api(&request);
        answer(api.runs(&request.into_inner().name)).await
    }

    async fn diff_runs(&self, request: Request<DiffRunsRequest>) -> Answer<RunsDiff> {
        let api = self.api(&request);
        answer(api.diff_runs(request.into_inner())).await
    }

    async fn list_resources(
        &self,
        request: Request<ListResourcesRequest>,
    ) -> Answer<ListResourcesResponse> {
        let api = self.api(&request);
        answer(api.resources(request.into_inner())).await
    }

    async fn list_nodes(&self, request: Request<ListNodesRequest>) -> Answer<ListNodesResponse> {
        let api = self.api(&request);
        answer(api.nodes(request.into_inner())).await
    }

    async fn drain_node(&self, request: Request<DrainNodeRequest>) -> Answer<DrainNodeResponse> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let DrainNodeRequest { id, undo } = request.into_inner();
        answer(api.drain_node(&origin, &id, undo)).await
    }

    type WatchNodesStream = Stream<NodeEvent>;

    async fn watch_nodes(
        &self,
        request: Request<WatchNodesRequest>,
    ) -> Answer<Self::WatchNodesStream> {
        let api = self.api(&request);
        stream(api.node_events()).await
    }

    type WatchResourcesStream = Stream<ResourceEvent>;

    async fn watch_resources(
        &self,
        request: Request<WatchResourcesRequest>,
    ) -> Answer<Self::WatchResourcesStream> {
        let api = self.api(&request);
        stream(api.resource_events(request.into_inner())).await
    }

    async fn push_plugin(&self, request: Request<Streaming<PushPluginRequest>>) -> Answer<Plugin> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let upload = upload(request.into_inner(), api.max_plugin_size());
        answer(Box::pin(api.push_plugin(&origin, upload))).await
    }

    async fn record_plugin(&self, request: Request<RecordPluginRequest>) -> Answer<Plugin> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let request = request.into_inner();
        let push = PushRequest {
            push_as: request.r#as,
            allow_breaking: request.allow_breaking,
        };
        answer(Box::pin(api.record_plugin(&origin, &push, &request.digest))).await
    }

    type FetchPluginStream = Stream<PluginChunk>;

    async fn fetch_plugin(
        &self,
        request: Request<FetchPluginRequest>,
    ) -> Answer<Self::FetchPluginStream> {
        let api = self.api(&request);
        let request = request.into_inner();
        let pieces = api.plugin_bytes(&request.digest, request.offset);
        let chunk = |piece: Bytes| PluginChunk {
            chunk: piece.into(),
        };
        stream(async { Ok(pieces.await?.map_ok(chunk).boxed()) }).await
    }

    async fn get_plugin(&self, request: Request<PluginRequest>) -> Answer<Plugin> {
        let api = self.api(&request);
        answer(api.plugin(&request.into_inner().plugin)).await
    }

    async fn list_plugins(
        &self,
        request: Request<ListPluginsRequest>,
    ) -> Answer<ListPluginsResponse> {
        let api = self.api(&request);
        answer(api.plugins(request.into_inner())).await
    }

    async fn delete_plugin(&self, request: Request<PluginRequest>) -> Answer<()> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        answer(api.delete_plugin(&origin, &request.into_inner().plugin)).await
    }

    type ReadItemsStream = Stream<Item>;

    async fn read_items(
        &self,
        request: Request<ReadItemsRequest>,
    ) -> Answer<Self::ReadItemsStream> {
        let api = self.api(&request);
        Box::pin(stream(api.items(request.into_inner()))).await
    }

    async fn list_changes(
        &self,
        request: Request<ListChangesRequest>,
    ) -> Answer<ListChangesResponse> {
        let api = self.api(&request);
        answer(api.changes(request.into_inner())).await
    }

    type ReadFileStream = Stream<FileChunk>;

    async fn read_file(&self, request: Request<ReadFileRequest>) -> Answer<Self::ReadFileStream> {
        let api = self.api(&request);
        let request = request.into_inner();
        let pieces = api.file(&request.name, &request.digest);
        let chunk = |piece: Bytes| FileChunk {
            chunk: piece.into(),
        };
        stream(async { Ok(pieces.await?.map_ok(chunk).boxed()) }).await
    }

    type ReadEventsStream = Stream<PastEvent>;

    async fn read_events(
        &self,
        request: Request<ReadEventsRequest>,
    ) -> Answer<Self::ReadEventsStream> {
        let api = self.api(&request);
        stream(api.history(request.into_inner())).await
    }

    type ReadNodeEventsStream = Stream<PastEvent>;

    async fn read_node_events(
        &self,
        request: Request<ReadNodeEventsRequest>,
    ) -> Answer<Self::ReadNodeEventsStream> {
        let api = self.api(&request);
        stream(api.node_history(request.into_inner())).await
    }

    async fn get_frontier_stats(&self, request: Request<ResourceRequest>) -> Answer<FrontierStats> {
        let api = self.api(&request);
        answer(api.frontier_stats(&request.into_inner().name)).await
    }

    async fn get_statistics(&self, request: Request<ResourceRequest>) -> Answer<RunStatistics> {
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

    async fn redrive_frontier(&self, request: Request<RedriveRequest>) -> Answer<RedriveResponse> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        let RedriveRequest { name, reason } = request.into_inner();
        answer(api.redrive_frontier(&origin, &name, reason)).await
    }

    async fn list_quarantine(
        &self,
        request: Request<ResourceRequest>,
    ) -> Answer<ListQuarantineResponse> {
        let api = self.api(&request);
        answer(api.quarantine(&request.into_inner().name)).await
    }

    async fn read_quarantine(
        &self,
        request: Request<ReadQuarantineRequest>,
    ) -> Answer<ReadQuarantineResponse> {
        let api = self.api(&request);
        answer(api.held_items(request.into_inner())).await
    }

    async fn decide_quarantine(
        &self,
        request: Request<DecideQuarantineRequest>,
    ) -> Answer<DecideQuarantineResponse> {
        let api = self.api(&request);
        let origin = origin(&request)?;
        answer(api.decide_quarantine(&origin, request.into_inner())).await
    }

    async fn issue_token(&self, request: Request<IssueTokenRequest>) -> Answer<IssueTokenResponse> {
        let api = self.api(&request);
        answer(api.issue_token(request.into_inner())).await
    }

    async fn list_tokens(&self, request: Request<ListTokensRequest>) -> Answer<ListTokensResponse> {
        let api = self.api(&request);
        answer(api.tokens(request.into_inner())).await
    }

    async fn revoke_tokens(&self, request: Request<RevokeTokensRequest>) -> Answer<()> {
        let api = self.api(&request);
        answer(api.revoke_tokens(request.into_inner())).await
    }

    async fn read_audit(&self, request: Request<ReadAuditRequest>) -> Answer<ReadAuditResponse> {
        let api = self.api(&request);
        answer(api.audit(request.into_inner())).await
    }

    async fn get_caller(&self, request: Request<GetCallerRequest>) -> Answer<Caller> {
        let api = self.api(&request);
        Ok(Response::new(api.whoami()))
    }

    async fn issue_join_token(
        &self,
        request: Request<IssueJoinTokenRequest>,
    ) -> Answer<IssueJoinTokenResponse> {
        let api = self.api(&request);
        answer(api.issue_join_token(request.into_inner())).await
    }

    async fn list_join_tokens(
        &self,
        request: Request<ListJoinTokensRequest>,
    ) -> Answer<ListJoinTokensResponse> {
        let api = self.api(&request);
        answer(api.join_tokens()).await
    }

    async fn revoke_join_token(&self, request: Request<RevokeJoinTokenRequest>) -> Answer<()> {
        let api = self.api(&request);
        answer(api.revoke_join_token(&request.into_inner().id)).await
    }

    async fn revoke_node(&self, request: Request<RevokeNodeRequest>) -> Answer<()> {
        let api = self.api(&request);
        answer(api.revoke_node(&request.into_inner().id)).await
    }

    async fn join_cluster(&self, request: Request<JoinClusterRequest>) -> Answer<NodeCertificate> {
        let api = self.api(&request);
        answer(Box::pin(api.join_cluster(request.into_inner()))).await
    }

    async fn renew_certificate(
        &self,
        request: Request<RenewCertificateRequest>,
    ) -> Answer<NodeCertificate> {
        let api = self.api(&request);
        let shown = request.extensions().get::<Peer>();
        let shown = shown.and_then(|peer| peer.certificate.clone());
        answer(Box::pin(api.renew_certificate(shown, request.into_inner()))).await
    }

    type ReadLogsStream = Stream<LogLine>;

    async fn read_logs(&self, request: Request<ReadLogsRequest>) -> Answer<Self::ReadLogsStream> {
        let api = self.api(&request);
        let request = request.into_inner();
        stream(api.logs(&request.name, request.follow)).await
    }
}
