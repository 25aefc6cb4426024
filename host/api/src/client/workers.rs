//! The calls of masters and workers to workers, over connections that are kept.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use crawler_proto as proto;
use futures::stream::{BoxStream, StreamExt as _};
use proto::crawler_worker_client::CrawlerWorkerClient;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status, Streaming};

use super::connector::Callee;
use super::transport::{ANSWER_MAX, Server, transport_failure};
use crate::convert::links::links_message;
use crate::convert::{crawl, turns};
use crate::metadata::CALL_TOKEN;
use crate::tls::ClientTls;
use crawler_fetch::turns::call::{Answer, AskTurns, TurnCallError, TurnRequests};
use crawler_master::{WORKER_CALL_DEADLINE, WorkerCallError, WorkerCalls};
use crawler_model::id::{NodeId, ResourceId, ResourceName};
use crawler_model::node::Node;
use crawler_model::status::{CrawlStatus, LogLine};
use crawler_process::telemetry::chain;
use crawler_worker::links::{LINK_DELIVERY_DEADLINE, LinkDelivery, LinkDeliveryError, SendLinks};

/// Connections kept to workers; above this number all are dropped and made anew.
const CHANNELS_MAX: usize = 1_024;

/// The calls of masters and workers to workers. Connections are kept and made again when they break. The default
/// calls plain workers only.
#[derive(Debug, Default)]
pub struct GrpcWorkerCalls {
    tls: ClientTls,
    /// Connections by the URLs and ids of workers.
    channels: Mutex<HashMap<(String, NodeId), Channel>>,
}

impl GrpcWorkerCalls {
    /// Creates a client without connections. Workers that speak TLS are called with the certificates in `tls`.
    pub fn new(tls: ClientTls) -> Self {
        Self {
            tls,
            channels: Mutex::default(),
        }
    }

    fn worker(&self, worker: &Node) -> Result<CrawlerWorkerClient<Channel>, WorkerCallError> {
        let key = (worker.url(), worker.id.clone());
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        let channel = match channels.get(&key) {
            Some(channel) => channel.clone(),
            None => {
                let callee = Callee::Worker(worker.id.clone());
                let server = Server::at(worker.url(), &self.tls, callee);
                let server = server.map_err(|e| no_answer(&worker.address, chain(&e)))?;
                let channel = server.connect_lazy();
                if channels.len() >= CHANNELS_MAX {
                    channels.clear();
                }
                channels.insert(key, channel.clone());
                channel
            }
        };
        Ok(CrawlerWorkerClient::new(channel).max_decoding_message_size(ANSWER_MAX))
    }
}

#[async_trait]
impl WorkerCalls for GrpcWorkerCalls {
    async fn status(
        &self,
        worker: &Node,
        name: Option<&ResourceName>,
    ) -> Result<Vec<CrawlStatus>, WorkerCallError> {
        let address = worker.address.as_str();
        let name = name.map(ToString::to_string).unwrap_or_default();
        let request = with_token(worker, proto::WorkerStatusRequest { name });
        let request = request.map_err(|why| no_answer(address, why))?;
        let mut client = self.worker(worker)?;
        let call = client.get_status(request);
        let status = worker_call(address, call).await?;
        let crawls = status.crawls.into_iter().map(crawl::status);
        let crawls = crawls.collect::<Result<_, _>>();
        crawls.map_err(|e| no_answer(address, e.to_string()))
    }

    async fn logs(
        &self,
        worker: &Node,
        resource: ResourceId,
        follow: bool,
    ) -> Result<BoxStream<'static, Result<LogLine, WorkerCallError>>, WorkerCallError> {
        let address = worker.address.as_str();
        let request = with_token(
            worker,
            proto::WorkerLogsRequest {
                resource_id: resource.0,
                follow,
            },
        );
        let request = request.map_err(|why| no_answer(address, why))?;
        let mut client = self.worker(worker)?;
        let call = client.read_logs(request);
        let lines: Streaming<proto::LogLine> = worker_call(address, call).await?;
        let address = address.to_owned();
        let lines = lines.map(move |line| match line {
            Ok(line) => Ok(crawl::line(line)),
            Err(status) => Err(no_answer(&address, why(&status))),
        });
        Ok(lines.boxed())
    }
}

#[async_trait]
impl SendLinks for GrpcWorkerCalls {
    async fn send(&self, worker: &Node, links: LinkDelivery) -> Result<u64, LinkDeliveryError> {
        let address = worker.address.as_str();
        let not_now = |e: WorkerCallError| LinkDeliveryError::NotNow(e.to_string());
        let request =
            with_token(worker, links_message(links)).map_err(LinkDeliveryError::Refused)?;
        let mut client = self.worker(worker).map_err(not_now)?;
        let call = client.apply_links(request);
        match tokio::time::timeout(LINK_DELIVERY_DEADLINE, call).await {
            Ok(Ok(answer)) => Ok(answer.into_inner().last),
            Ok(Err(status)) if status.code() == Code::InvalidArgument => {
                Err(LinkDeliveryError::Refused(status.message().to_owned()))
            }
            Ok(Err(status)) => Err(not_now(no_answer(address, why(&status)))),
            Err(_elapsed) => {
                let seconds = LINK_DELIVERY_DEADLINE.as_secs();
                Err(not_now(no_answer(
                    address,
                    format!("no answer within {seconds} s"),
                )))
            }
        }
    }
}

#[async_trait]
impl AskTurns for GrpcWorkerCalls {
    async fn ask(&self, owner: &Node, asks: TurnRequests) -> Result<Vec<Answer>, TurnCallError> {
        let address = owner.address.as_str();
        let unanswered = |error: WorkerCallError| TurnCallError {
            why: error.to_string(),
        };
        let request = with_token(owner, turns::asks_message(asks));
        let request = request.map_err(|why| unanswered(no_answer(address, why)))?;
        let mut client = self.worker(owner).map_err(unanswered)?;
        match client.take_turns(request).await {
            Ok(answer) => {
                let answers = answer.into_inner().answers;
                Ok(answers.into_iter().map(turns::answer).collect())
            }
            Err(status) => Err(unanswered(no_answer(address, why(&status)))),
        }
    }
}

/// Returns a request that carries the token of the worker that is called. A worker of a version without
/// tokens has an empty one, and asks for none.
fn with_token<T>(worker: &Node, message: T) -> Result<Request<T>, String> {
    let token = worker.call_token.expose().parse::<AsciiMetadataValue>();
    let mut token = token.map_err(|_| "its token is not ASCII".to_owned())?;
    token.set_sensitive(true);
    let mut request = Request::new(message);
    request.metadata_mut().insert(CALL_TOKEN, token);
    Ok(request)
}

async fn worker_call<T>(
    address: &str,
    call: impl Future<Output = Result<Response<T>, Status>>,
) -> Result<T, WorkerCallError> {
    match tokio::time::timeout(WORKER_CALL_DEADLINE, call).await {
        Ok(Ok(response)) => Ok(response.into_inner()),
        Ok(Err(status)) => Err(no_answer(address, why(&status))),
        Err(_elapsed) => {
            let seconds = WORKER_CALL_DEADLINE.as_secs();
            Err(no_answer(address, format!("no answer within {seconds} s")))
        }
    }
}

fn no_answer(address: &str, why: String) -> WorkerCallError {
    WorkerCallError {
        address: address.to_owned(),
        why,
    }
}

fn why(status: &Status) -> String {
    match transport_failure(status) {
        Some(failure) => failure.for_nodes(),
        None => status.message().to_owned(),
    }
}
