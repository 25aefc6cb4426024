//! Calls to workers by masters and other workers: late, lost, or without an answer.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;

use super::fault::Fault;
use super::services::Services;
use crawler_master::{WorkerCallError, WorkerCalls};
use crawler_model::id::{ResourceId, ResourceName};
use crawler_model::node::Node;
use crawler_model::status::{CrawlStatus, LogLine};
use crawler_worker::links::{LINK_DELIVERY_DEADLINE, LinkDelivery, LinkDeliveryError, SendLinks};

/// Reaches all workers, by their addresses.
pub(super) struct SimWorkerCalls {
    pub(super) services: Arc<Services>,
}

#[async_trait]
impl WorkerCalls for SimWorkerCalls {
    async fn status(
        &self,
        worker: &Node,
        name: Option<&ResourceName>,
    ) -> Result<Vec<CrawlStatus>, WorkerCallError> {
        let (world, address) = (&self.services.world, worker.address.as_str());
        tokio::time::sleep(world.way()).await;
        let worker = self.services.workers.lock().unwrap().get(address).cloned();
        let Some((process, crawls)) = worker.filter(|_| !world.fault(Fault::Unreached, 3)) else {
            return Err(WorkerCallError {
                address: address.to_owned(),
                why: "no connection".to_owned(),
            });
        };
        if process.is_stopped() {
            std::future::pending::<()>().await;
        }
        Ok(crawls.status(name))
    }

    async fn logs(
        &self,
        _worker: &Node,
        _resource: ResourceId,
        _follow: bool,
    ) -> Result<BoxStream<'static, Result<LogLine, WorkerCallError>>, WorkerCallError> {
        Ok(Box::pin(futures::stream::empty()))
    }
}

#[async_trait]
impl SendLinks for SimWorkerCalls {
    async fn send(&self, worker: &Node, links: LinkDelivery) -> Result<u64, LinkDeliveryError> {
        let (world, address) = (&self.services.world, worker.address.as_str());
        tokio::time::sleep(world.way()).await;
        let worker = self.services.workers.lock().unwrap().get(address).cloned();
        let lost = || LinkDeliveryError::NotNow(format!("{address} does not answer"));
        let (process, crawls) = worker
            .filter(|_| !world.fault(Fault::Unreached, 3))
            .ok_or_else(lost)?;
        if process.is_stopped() {
            tokio::time::sleep(LINK_DELIVERY_DEADLINE).await;
            return Err(lost());
        }
        let given = crawls.deliver(links).await;
        tokio::time::sleep(world.way()).await;
        match world.fault(Fault::LostGive, 5) {
            true => Err(lost()),
            false => given,
        }
    }
}
