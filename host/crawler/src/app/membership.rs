//! Makes a process belong to a cluster.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{FuturesUnordered, StreamExt as _};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::graceful_drain::GracefulDrain;
use super::parts;
use super::registration::{RegisterError, Registration};
use crawler_api::nodes::OwnCluster;
use crawler_data::{DataError, DataRoot};
use crawler_model::node::Node;
use crawler_process::retry::Backoff;
use crawler_process::task::TaskScope;
use crawler_store::StoreError;
use crawler_store::catalog::Catalog;

/// Pauses between two tries, at first and at the most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// A node of this process.
pub(super) struct Member {
    pub(super) node: Node,
    pub(super) drain: GracefulDrain,
}

/// Parts that joining a cluster takes.
pub(super) struct Membership {
    /// Nodes of the process. They register in this order.
    pub(super) members: Vec<Member>,
    pub(super) catalog: Catalog,
    /// Cluster of this process, which is told before a node registers: others may call the node from then on.
    pub(super) cluster: OwnCluster,
    pub(super) data: Arc<DataRoot>,
    pub(super) lease_ttl: Duration,
    /// True if store and data root may be away for a while: joining waits for them.
    pub(super) waits: bool,
}

impl Membership {
    /// Joins the cluster, begins what needs that, and stays registered until `scope` is stopped; `end`
    /// follows then. The receiver gets the reason if the process cannot go on. Nodes that can stay registered do so
    /// until `scope` is stopped, so that crawls end before their worker is gone.
    pub(super) fn keep(
        self,
        scope: &TaskScope,
        begin: impl FnOnce(String, &[Registration]) + Send + 'static,
        end: impl Future<Output = ()> + Send + 'static,
    ) -> oneshot::Receiver<anyhow::Error> {
        let stop = scope.stop_signal();
        let (failed, fault) = oneshot::channel();
        scope.spawn("membership", async move {
            match stop.run_until_cancelled(self.join()).await {
                Some(Ok((cluster, registrations))) => {
                    begin(cluster, &registrations);
                    keep_all(registrations, &stop, failed).await;
                    end.await;
                }
                Some(Err(error)) => {
                    let _nobody_waits = failed.send(error);
                }
                None => {}
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
            let mut registrations = Vec::new();
            match self.try_join(&mut registrations).await {
                Ok(cluster) => return Ok((cluster, registrations)),
                Err(error) if self.waits && is_transient(&error) => {
                    let error = format!("{error:#}");
                    // The store may be connected in a moment.
                    match std::mem::replace(&mut is_late, true) {
                        true => tracing::warn!(error, "waiting to belong to the cluster"),
                        false => tracing::debug!(error, "waiting to belong to the cluster"),
                    }
                }
                Err(error) => {
                    join_all(registrations.into_iter().map(Registration::release)).await;
                    return Err(error);
                }
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Registers the nodes one after the other, and returns the cluster's identity.
    async fn try_join(&self, registrations: &mut Vec<Registration>) -> anyhow::Result<String> {
        let cluster = parts::cluster_id(&self.catalog).await?;
        self.data.bind_cluster(&cluster).await?;
        self.cluster.tell(&cluster);
        for Member { node, drain } in &self.members {
            let (catalog, node, drain) = (self.catalog.clone(), node.clone(), drain.clone());
            let registration = Registration::new(catalog, node, self.lease_ttl, drain);
            registrations.push(registration.await?);
        }
        Ok(cluster)
    }
}

/// Keeps nodes registered until `stop`. Reports the first that cannot stay, at once.
async fn keep_all(
    registrations: Vec<Registration>,
    stop: &CancellationToken,
    failed: oneshot::Sender<anyhow::Error>,
) {
    let kept = registrations.into_iter();
    let mut kept: FuturesUnordered<_> = kept.map(|one| one.keep(stop.clone())).collect();
    let mut failed = Some(failed);
    while let Some(kept) = kept.next().await {
        if let Err(taken) = kept
            && let Some(failed) = failed.take()
        {
            let _nobody_waits = failed.send(taken.into());
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::node::Role;
    use crawler_process::clock::SystemClock;
    use crawler_store::Txn;
    use crawler_store::catalog::encode;
    use crawler_store::embedded::{EmbeddedStore, Settings};
    use crawler_store::keys::Keys;

    fn node(role: Role, id: &str) -> Node {
        let http = ([127, 0, 0, 1], 2).into();
        let address = "127.0.0.1:1".to_owned();
        parts::node(role, id.parse().unwrap(), address, http, &SystemClock)
    }

    fn membership(nodes: [Node; 2], catalog: &Catalog, data: &std::path::Path) -> Membership {
        Membership {
            members: nodes
                .map(|node| Member {
                    node,
                    drain: GracefulDrain::new(),
                })
                .into(),
            catalog: catalog.clone(),
            cluster: OwnCluster::default(),
            data: Arc::new(DataRoot::open(&data.display().to_string()).unwrap()),
            lease_ttl: Duration::from_secs(1),
            waits: false,
        }
    }

    fn catalog_in(folder: &std::path::Path) -> Catalog {
        let store = EmbeddedStore::open(&folder.join("store"), Settings::default()).unwrap();
        Catalog::new(Arc::new(store), Keys::default())
    }

    /// Gives the id of a node to another process.
    async fn take_id(catalog: &Catalog, role: Role, id: &str) {
        let holder = node(role, id);
        let held = Txn::new().put(catalog.keys().node(role, &holder.id), encode(&holder));
        catalog.store().commit(held).await.unwrap();
    }

    #[tokio::test]
    async fn no_node_stays_registered_when_another_one_cannot_register() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = catalog_in(folder.path());
        take_id(&catalog, Role::Worker, "worker-1").await;

        let master = node(Role::Master, "master-1");
        let key = catalog.keys().node(Role::Master, &master.id);
        let nodes = [master, node(Role::Worker, "worker-1")];
        let membership = membership(nodes, &catalog, &folder.path().join("data"));
        let scope = TaskScope::new();
        let begin = |_: String, _: &[Registration]| panic!("an id is taken");
        let error = membership.keep(&scope, begin, async {}).await.unwrap();
        assert!(crate::app::registration::is_id_taken(&error), "{error:#}");
        assert_eq!(catalog.read::<Node>(&key).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_worker_stays_registered_until_its_crawls_have_ended_when_the_master_loses_its_id() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = catalog_in(folder.path());
        let nodes = [
            node(Role::Master, "master-1"),
            node(Role::Worker, "worker-1"),
        ];
        let key = catalog.keys().node(Role::Worker, &nodes[1].id);
        let membership = membership(nodes, &catalog, &folder.path().join("data"));
        let scope = TaskScope::new();
        let (begun, has_begun) = oneshot::channel();
        let begin = |_: String, _: &[Registration]| begun.send(()).unwrap();
        let fault = membership.keep(&scope, begin, async {});
        has_begun.await.unwrap();

        take_id(&catalog, Role::Master, "master-1").await;
        fault.await.unwrap();
        assert!(catalog.read::<Node>(&key).await.unwrap().is_some());
        scope.stop(Duration::from_secs(10)).await;
        assert_eq!(catalog.read::<Node>(&key).await.unwrap(), None);
    }
}
