//! Makes a process belong to a cluster.

use std::sync::Arc;
use std::time::Duration;

use futures::future::try_join_all;
use tokio::sync::oneshot;

use super::graceful_drain::GracefulDrain;
use super::parts;
use super::registration::{RegisterError, Registration};
use crawler_data::{DataError, DataRoot};
use crawler_model::node::Node;
use crawler_process::retry::Backoff;
use crawler_process::task::TaskScope;
use crawler_store::StoreError;
use crawler_store::catalog::Catalog;

/// Pauses between two tries, at first and at the most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// Parts that joining a cluster takes.
pub(super) struct Membership {
    /// Nodes of the process. They register in this order.
    pub(super) nodes: Vec<Node>,
    pub(super) catalog: Catalog,
    pub(super) data: Arc<DataRoot>,
    pub(super) lease_ttl: Duration,
    pub(super) graceful_drain: GracefulDrain,
    /// True if store and data root may be away for a while: joining waits for them.
    pub(super) waits: bool,
}

impl Membership {
    /// Joins the cluster, begins what needs that, and stays registered until `scope` is stopped; `end`
    /// follows then. The receiver gets the reason if the process cannot go on.
    pub(super) fn keep(
        self,
        scope: &TaskScope,
        begin: impl FnOnce(String, &[Registration]) + Send + 'static,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> oneshot::Receiver<anyhow::Error> {
        let stop = scope.stop_signal();
        let (failed, fault) = oneshot::channel();
        scope.spawn("membership", async move {
            let kept = match stop.run_until_cancelled(self.join()).await {
                Some(Ok((cluster, registrations))) => {
                    begin(cluster, &registrations);
                    let kept = registrations.into_iter().map(|r| r.keep(stop.clone()));
                    let kept = try_join_all(kept).await;
                    end.await;
                    kept.map(drop).map_err(anyhow::Error::from)
                }
                Some(Err(error)) => Err(error),
                None => Ok(()),
            };
            if let Err(error) = kept {
                let _nobody_waits = failed.send(error);
            }
        });
        fault
    }

    /// Returns the cluster's identity and the registrations of the nodes there. Waits for the store and for the
    /// data root if they may be away; an error is one that waiting does not mend.
    async fn join(&self) -> anyhow::Result<(String, Vec<Registration>)> {
        let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
        let mut is_late = false;
        loop {
            match self.try_join().await {
                Err(error) if self.waits && is_transient(&error) => {
                    let error = format!("{error:#}");
                    // The store may be connected in a moment.
                    match std::mem::replace(&mut is_late, true) {
                        true => tracing::warn!(error, "waiting to belong to the cluster"),
                        false => tracing::debug!(error, "waiting to belong to the cluster"),
                    }
                }
                joined => return joined,
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    async fn try_join(&self) -> anyhow::Result<(String, Vec<Registration>)> {
        let cluster = parts::cluster_id(&self.catalog).await?;
        self.data.bind_cluster(&cluster).await?;
        let mut registrations = Vec::new();
        for node in &self.nodes {
            let (catalog, graceful_drain) = (self.catalog.clone(), self.graceful_drain.clone());
            let registration =
                Registration::new(catalog, node.clone(), self.lease_ttl, graceful_drain);
            registrations.push(registration.await?);
        }
        Ok((cluster, registrations))
    }
}

fn is_transient(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let store = cause.downcast_ref::<StoreError>();
        let data = cause.downcast_ref::<DataError>();
        let register = cause.downcast_ref::<RegisterError>();
        store.is_some_and(StoreError::is_transient)
            || data.is_some_and(|e| e.is_transient())
            || register.is_some_and(RegisterError::is_transient)
    })
}
