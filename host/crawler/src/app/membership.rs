//! Makes a process belong to a cluster, and adds what its config file asks for.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::leaving::Leaving;
use super::registration::{RegisterError, Registration};
use super::{master_node, parts, seeding};
use crate::config::FileConfig;
use crawler_data::{DataError, DataRoot};
use crawler_master::control::Control;
use crawler_model::node::Node;
use crawler_process::retry::Backoff;
use crawler_process::task::TaskScope;
use crawler_store::StoreError;
use crawler_store::catalog::Catalog;

/// Pauses between two tries, at first and at the most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// Parts that joining a cluster takes.
pub(super) struct Member {
    pub(super) node: Node,
    pub(super) catalog: Catalog,
    pub(super) data: Arc<DataRoot>,
    pub(super) lease_ttl: Duration,
    pub(super) leaving: Leaving,
}

impl Member {
    /// Joins the cluster, begins what needs that, and stays registered until `scope` is stopped; `end`
    /// follows then. The receiver gets the reason if the process cannot go on.
    pub(super) fn keep(
        self,
        scope: &TaskScope,
        begin: impl FnOnce(String, &Registration) + Send + 'static,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> oneshot::Receiver<anyhow::Error> {
        let stop = scope.stop_signal();
        let (failed, fault) = oneshot::channel();
        scope.spawn("membership", async move {
            let kept = match stop.run_until_cancelled(self.join()).await {
                Some(Ok((cluster, registration))) => {
                    begin(cluster, &registration);
                    let kept = registration.keep(stop).await;
                    end.await;
                    kept.map_err(anyhow::Error::from)
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

    /// Returns the cluster's identity and this node's registration there; waits for the store and for the
    /// data root. An error is one that waiting does not mend.
    async fn join(&self) -> anyhow::Result<(String, Registration)> {
        let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
        let mut is_late = false;
        loop {
            match self.try_join().await {
                Err(error) if is_transient(&error) => {
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

    async fn try_join(&self) -> anyhow::Result<(String, Registration)> {
        let cluster = parts::cluster_id(&self.catalog).await?;
        self.data.bind_cluster(&cluster).await?;
        let (catalog, node) = (self.catalog.clone(), self.node.clone());
        let registration = Registration::new(catalog, node, self.lease_ttl).await?;
        Ok((cluster, registration.with_leaving(self.leaving.clone())))
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

/// Adds what the config file asks for whenever this master begins to lead.
pub(super) async fn seed_when_leading(control: Arc<Control>, config: FileConfig) {
    if config.plugins.is_empty() && config.resources.is_empty() {
        return;
    }
    let mut backoff = Backoff::new(PAUSES.0, PAUSES.1);
    loop {
        let leadership = master_node::until_leading(&control).await;
        match seeding::seed(&control, &config).await {
            Ok(()) => {
                backoff.reset();
                leadership.lost().cancelled().await;
            }
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "what the config file asks for is not there yet");
                tokio::time::sleep(backoff.next_delay()).await;
            }
        }
    }
}
