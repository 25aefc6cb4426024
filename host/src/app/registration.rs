//! A node's registration, for as long as its process lives.
//!
//! A lease ends under a process that was stopped for a while, with a machine that slept or was too
//! busy. The node then registers again as the same incarnation, so that what it runs stays with it.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::model::node::Node;
use crate::retry::Backoff;
use crate::store::catalog::{Catalog, encode};
use crate::store::lease::LeaseKeeper;
use crate::store::{Outcome, Txn};
use crate::task::TaskScope;
use crate::telemetry;

/// A node that is registered.
pub(super) struct Registration {
    catalog: Catalog,
    node: Node,
    ttl: Duration,
    lease: LeaseKeeper,
    /// The renewals of the lease.
    scope: TaskScope,
}

impl Registration {
    /// Registers the node.
    pub(super) async fn new(catalog: Catalog, node: Node, ttl: Duration) -> anyhow::Result<Self> {
        let scope = TaskScope::new();
        let lease = register(&catalog, &node, ttl, &scope).await?;
        tracing::info!(node = %node.id, address = node.address, "joined");
        Ok(Self {
            catalog,
            node,
            ttl,
            lease,
            scope,
        })
    }

    /// Keeps it registered until `stop`, and takes it back then.
    pub(super) async fn keep(mut self, stop: CancellationToken) {
        while stop
            .run_until_cancelled(self.lease.lost().cancelled_owned())
            .await
            .is_some()
        {
            tracing::warn!(node = %self.node.id, "the lease was lost; registering again");
            match stop.run_until_cancelled(self.again()).await {
                Some(lease) => {
                    self.lease = lease;
                    tracing::info!(node = %self.node.id, "joined again");
                }
                None => break,
            }
        }
        if let Err(error) = self.lease.release().await {
            tracing::warn!(
                error = telemetry::chain(&error),
                "a lease could not be given back"
            );
        }
    }

    async fn again(&self) -> LeaseKeeper {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(10));
        loop {
            match register(&self.catalog, &self.node, self.ttl, &self.scope).await {
                Ok(lease) => return lease,
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::warn!(node = %self.node.id, error, "cannot register yet");
                }
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }
}

async fn register(
    catalog: &Catalog,
    node: &Node,
    ttl: Duration,
    scope: &TaskScope,
) -> anyhow::Result<LeaseKeeper> {
    let lease = LeaseKeeper::grant(catalog.store().clone(), ttl, scope).await?;
    let key = catalog.keys().node(node.role, &node.id);
    let txn = Txn::new().put_leased(key, encode(node), lease.id());
    match catalog.store().commit(txn).await? {
        Outcome::Done(_) => Ok(lease),
        Outcome::Lost(_) | Outcome::Unknown => {
            anyhow::bail!("node {} could not be registered", node.id)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::model::id::Incarnation;
    use crate::model::node::Role;
    use crate::store::embedded::{EmbeddedStore, Settings};
    use crate::store::keys::Keys;

    async fn registered(catalog: &Catalog) -> Option<Node> {
        let id = "worker-1".parse().unwrap();
        let key = catalog.keys().node(Role::Worker, &id);
        let record = catalog.read::<Node>(&key).await.unwrap();
        record.map(|record| record.value)
    }

    #[tokio::test]
    async fn f08_a_node_whose_lease_was_lost_registers_again_as_the_same_process() {
        let folder = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(folder.path(), Settings::default()).unwrap();
        let catalog = Catalog::new(Arc::new(store), Keys::default());
        let node = Node {
            id: "worker-1".parse().unwrap(),
            role: Role::Worker,
            address: "127.0.0.1:1".into(),
            incarnation: Incarnation(7),
            labels: BTreeMap::new(),
            capacity: 1,
            version: "0".into(),
            draining: false,
            started_at: 0,
        };
        let ttl = Duration::from_millis(600);
        let registration = Registration::new(catalog.clone(), node.clone(), ttl)
            .await
            .unwrap();
        catalog
            .store()
            .revoke_lease(registration.lease.id())
            .await
            .unwrap();
        assert_eq!(registered(&catalog).await, None);

        let stop = CancellationToken::new();
        let watched = async {
            while registered(&catalog).await.is_none() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            stop.cancel();
        };
        let both = async { tokio::join!(registration.keep(stop.clone()), watched) };
        tokio::time::timeout(Duration::from_secs(30), both)
            .await
            .expect("the node registers again");
        assert_eq!(registered(&catalog).await, None, "a stop takes it back");
    }
}
