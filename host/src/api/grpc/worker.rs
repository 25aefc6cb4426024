//! What a worker answers masters and other workers.

use crawler_proto as proto;
use futures::stream::StreamExt as _;
use proto::crawler_worker_server::CrawlerWorker;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::{Answer, Stream, WorkerDoor, refused};
use crate::api::calls::Calls;
use crate::api::client::CALL_TOKEN;
use crate::api::spec::resource_name;
use crate::model::id::ResourceId;
use crate::worker::receive::{GiveError, GivenLinks};

pub(super) struct Worker {
    pub(super) door: WorkerDoor,
    pub(super) calls: Calls,
    pub(super) stop: CancellationToken,
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
        let crawls = self.door.crawls.status(name.as_ref());
        let crawls = crawls.into_iter().map(Into::into).collect();
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
        let lines = self.door.crawls.logs(resource, request.follow);
        let lines = lines.map(move |line| {
            // The stream counts for as long as it is there.
            let _counts = &permit;
            Ok(line.into())
        });
        let lines = lines.take_until(self.stop.clone().cancelled_owned());
        Ok(Response::new(lines.boxed()))
    }

    async fn apply_links(
        &self,
        request: Request<proto::ApplyLinksRequest>,
    ) -> Answer<proto::ApplyLinksAnswer> {
        let _permit = self.calls.call().map_err(|p| p.to_status())?;
        let status = |error: GiveError| match error {
            GiveError::Refused(why) => Status::invalid_argument(why),
            GiveError::NotNow(why) => Status::unavailable(why),
        };
        let shown = request.metadata().get(CALL_TOKEN);
        if !shown.is_some_and(|shown| self.door.call_token.is(shown.as_bytes())) {
            return Err(Status::unauthenticated(
                "links are taken from workers of the cluster only, which find the token in the store",
            ));
        }
        let links = GivenLinks::try_from(request.into_inner()).map_err(status)?;
        let last = self.door.crawls.give(links).await.map_err(status)?;
        Ok(Response::new(proto::ApplyLinksAnswer { last }))
    }
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;
    use crate::model::node::CallToken;
    use crate::worker::Crawls;

    #[tokio::test]
    async fn r14_links_are_taken_from_callers_who_know_the_token() {
        let call_token = CallToken::of([7; 32]);
        let worker = Worker {
            door: WorkerDoor {
                crawls: Crawls::default(),
                call_token: call_token.clone(),
            },
            calls: Calls::new("worker"),
            stop: CancellationToken::new(),
        };
        let code = async |shown: Option<&CallToken>| {
            let mut request = Request::new(proto::ApplyLinksRequest {
                resource_id: 1,
                from: 1,
                first: 1,
                ..proto::ApplyLinksRequest::default()
            });
            if let Some(shown) = shown {
                let shown = shown.expose().parse().unwrap();
                request.metadata_mut().insert(CALL_TOKEN, shown);
            }
            worker.apply_links(request).await.unwrap_err().code()
        };
        assert_eq!(code(None).await, Code::Unauthenticated);
        let other = CallToken::of([8; 32]);
        assert_eq!(code(Some(&other)).await, Code::Unauthenticated);
        // Nothing is crawled here.
        assert_eq!(code(Some(&call_token)).await, Code::Unavailable);
    }
}
