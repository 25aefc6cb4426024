//! Calls of a master over gRPC, each on a connection of its own, because masters come and go meanwhile.

use crawler_proto::crawler_master_client::CrawlerMasterClient;
use crawler_proto::{
    FrontierStats, Hold, ListNodesRequest, ListResourcesRequest, Node, PastEvent,
    ReadNodeEventsRequest, Resource, ResourceRequest, RunStatistics, RunSummary,
};
use crawler_tests::PATIENCE;
use crawler_tests::http::block_on;
use tonic::transport::Channel;
use tonic::{Request, Status};

type Client = CrawlerMasterClient<Channel>;

async fn client(master: &str) -> Result<Client, Status> {
    let client = Client::connect(format!("http://{master}")).await;
    client.map_err(|e| Status::unavailable(e.to_string()))
}

fn request<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(PATIENCE);
    request
}

fn of_resource(name: &str) -> Request<ResourceRequest> {
    request(ResourceRequest {
        name: name.to_owned(),
    })
}

/// Returns all resources, as the list has them: without their last errors.
pub(super) fn listed(master: &str) -> Result<Vec<Resource>, Status> {
    block_on(async {
        let all = request(ListResourcesRequest::default());
        let listed = client(master).await?.list_resources(all).await?;
        Ok(listed.into_inner().resources)
    })
}

/// Returns all resources, each as it is told alone.
pub(super) fn resources(master: &str) -> Result<Vec<Resource>, Status> {
    let listed = listed(master)?;
    let names = listed.iter().map(|one| one.spec().name);
    names.map(|name| resource(master, &name)).collect()
}

pub(super) fn resource(master: &str, name: &str) -> Result<Resource, Status> {
    block_on(async {
        let told = client(master)
            .await?
            .get_resource(of_resource(name))
            .await?;
        Ok(told.into_inner())
    })
}

pub(super) fn nodes(master: &str) -> Result<Vec<Node>, Status> {
    block_on(async {
        let all = request(ListNodesRequest::default());
        let listed = client(master).await?.list_nodes(all).await?;
        Ok(listed.into_inner().nodes)
    })
}

/// Returns what happened to nodes, the latest last.
pub(super) fn node_events(master: &str) -> Result<Vec<PastEvent>, Status> {
    block_on(async {
        let all = request(ReadNodeEventsRequest::default());
        let mut stream = client(master)
            .await?
            .read_node_events(all)
            .await?
            .into_inner();
        let mut events = Vec::new();
        while let Some(event) = stream.message().await? {
            events.push(event);
        }
        Ok(events)
    })
}

pub(super) fn frontier(master: &str, name: &str) -> Result<FrontierStats, Status> {
    block_on(async {
        let told = client(master)
            .await?
            .get_frontier_stats(of_resource(name))
            .await?;
        Ok(told.into_inner())
    })
}

pub(super) fn statistics(master: &str, name: &str) -> Result<RunStatistics, Status> {
    block_on(async {
        let told = client(master)
            .await?
            .get_statistics(of_resource(name))
            .await?;
        Ok(told.into_inner())
    })
}

/// Returns the present run and those before it, the latest first.
pub(super) fn runs(master: &str, name: &str) -> Result<Vec<RunSummary>, Status> {
    block_on(async {
        let told = client(master).await?.list_runs(of_resource(name)).await?;
        Ok(told.into_inner().runs)
    })
}

/// Returns the held items of a resource, by kind and host.
pub(super) fn holds(master: &str, name: &str) -> Result<Vec<Hold>, Status> {
    block_on(async {
        let told = client(master)
            .await?
            .list_quarantine(of_resource(name))
            .await?;
        Ok(told.into_inner().holds)
    })
}
