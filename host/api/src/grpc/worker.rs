//! The calls that a worker answers for masters and other workers.

use crawler_proto as proto;
use futures::stream::StreamExt as _;
use proto::crawler_worker_server::CrawlerWorker;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::answer::{Answer, Stream, refused};
use super::node_auth::{CallingNode, NodeAuth};
use crate::calls::Calls;
use crate::convert::crawl::{line_message, status_message};
use crate::convert::links::links;
use crate::convert::turns::{answer_message, asks};
use crate::problem::Problem;
use crate::spec::resource_name;
use crawler_fetch::turns::Turns;
use crawler_master::Code;
use crawler_model::id::ResourceId;
use crawler_worker::links::LinkDeliveryError;
use crawler_worker::{Crawls, ShardOwners};

pub(super) struct Worker {
    pub(super) crawls: Crawls,
    pub(super) turns: Option<Turns>,
    pub(super) calls: Calls,
    pub(super) stop: CancellationToken,
    pub(super) node_auth: NodeAuth,
    pub(super) owners: ShardOwners,
}

#[tonic::async_trait]
impl CrawlerWorker for Worker {
    async fn get_status(
        &self,
        request: Request<proto::WorkerStatusRequest>,
    ) -> Answer<proto::WorkerStatus> {
        let _permit = self.calls.call().map_err(|p| p.to_status())?;
        let name = match request.into_inner().name.as_str() {
            "" => None,
            name => Some(resource_name(name).map_err(refused)?),
        };
        let crawls = self.crawls.status(name.as_ref());
        let crawls = crawls.into_iter().map(status_message).collect();
        Ok(Response::new(proto::WorkerStatus { crawls }))
    }

    type ReadLogsStream = Stream<proto::LogLine>;

    async fn read_logs(
        &self,
        request: Request<proto::WorkerLogsRequest>,
    ) -> Answer<Self::ReadLogsStream> {
        let permit = self.calls.stream().map_err(|p| p.to_status())?;
        let request = request.into_inner();
        let resource = ResourceId(request.resource_id);
        let lines = self.crawls.logs(resource, request.follow);
        let lines = lines.map(move |line| {
            // The permit lives as long as the stream, so that the stream counts.
            let _counts = &permit;
            Ok(line_message(line))
        });
        let lines = lines.take_until(self.stop.clone().cancelled_owned());
        Ok(Response::new(lines.boxed()))
    }

    async fn apply_links(
        &self,
        request: Request<proto::ApplyLinksRequest>,
    ) -> Answer<proto::ApplyLinksAnswer> {
        let _permit = self.calls.call().map_err(|p| p.to_status())?;
        let node = request.extensions().get::<CallingNode>().cloned();
        let links = links(request.into_inner()).map_err(untaken)?;
        let delivered = match &node {
            Some(node) => {
                let (crawls, owners) = (&self.crawls, &self.owners);
                crawls.deliver_of(node.id(), owners, links).await
            }
            None => self.crawls.deliver(links).await,
        };
        let last = delivered.map_err(|error| {
            if let (LinkDeliveryError::NotOwner(why), Some(node)) = (&error, &node) {
                let problem = Problem::new(Code::Unavailable, why.as_str(), "").passes();
                self.node_auth.refused("ApplyLinks", node, problem);
            }
            untaken(error)
        })?;
        Ok(Response::new(proto::ApplyLinksAnswer { last }))
    }

    async fn take_turns(
        &self,
        request: Request<proto::TakeTurnsRequest>,
    ) -> Answer<proto::TakeTurnsAnswer> {
        let _permit = self.calls.call().map_err(|p| p.to_status())?;
        let node = request.extensions().get::<CallingNode>().cloned();
        let asks = asks(request.into_inner()).map_err(Status::invalid_argument)?;
        let sender = &asks.from.worker;
        let checked = self
            .node_auth
            .check_sender("TakeTurns", node.as_ref(), sender);
        checked.map_err(|problem| problem.to_status())?;
        let Some(turns) = &self.turns else {
            let why =
                "this worker shares no turns of hosts: it was started with --shared-turns off";
            return Err(Status::failed_precondition(why));
        };
        let answers = turns.receive(asks);
        let answers = answers.map_err(|error| Status::invalid_argument(error.to_string()))?;
        let answers = answers.into_iter().map(answer_message).collect();
        Ok(Response::new(proto::TakeTurnsAnswer { answers }))
    }
}

/// Returns the status of links that were not taken. Only those that nobody would take are not sent again.
fn untaken(error: LinkDeliveryError) -> Status {
    match error {
        LinkDeliveryError::Refused(why) => Status::invalid_argument(why),
        LinkDeliveryError::NotNow(why) | LinkDeliveryError::NotOwner(why) => {
            Status::unavailable(why)
        }
    }
}
