//! A node's registration, for as long as its process lives.
//!
//! A lease ends under a process that was stopped for a while, with a machine that slept or was too busy, or
//! while the store is away. The node then registers again as the same incarnation, so that it keeps what it
//! runs. Tasks that work in the node's name use the lease that [`Registration::registered`] tells.
//!
//! An id belongs to one process at a time. At its start a process waits as long as the record of an earlier
//! process may outlive that process, and then refuses. A process that finds another in its place ends.

use std::time::{Duration, UNIX_EPOCH};

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::graceful_drain::GracefulDrain;
use crawler_model::node::{Node, Role};
use crawler_process::retry::Backoff;
use crawler_process::task::TaskScope;
use crawler_process::telemetry;
use crawler_store::catalog::{Catalog, encode};
use crawler_store::changes::Changes;
use crawler_store::lease::{LeaseKeeper, Term};
use crawler_store::{Guard, LeaseId, Outcome, StoreError, Txn};

/// Interval at which a node looks at its own record, in case a watch has missed something.
const RESYNC: Duration = Duration::from_secs(60);

/// A node that is registered.
pub(super) struct Registration {
    catalog: Catalog,
    node: Node,
    ttl: Duration,
    lease: LeaseKeeper,
    registered: watch::Sender<Option<Term>>,
    /// State of the drain: the node registers as draining once it is to leave.
    graceful_drain: GracefulDrain,
    /// Scope of the task that renews the lease.
    scope: TaskScope,
}

/// Error of a node whose id belongs to another process.
#[derive(Debug, thiserror::Error)]
#[error(
    "another process is registered as {}: at {}, since {}; stop it, or choose another id with --id",
    holder.id,
    holder.address,
    since(holder)
)]
pub(super) struct Taken {
    holder: Box<Node>,
}

/// Reason why one try did not register the node.
#[derive(Debug, thiserror::Error)]
pub(super) enum RegisterError {
    #[error(transparent)]
    Taken(Taken),
    #[error("the record of {id} changes, or its answer was lost")]
    Raced { id: String },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RegisterError {
    /// Returns true if another try may register the node without anybody's help.
    pub(super) fn is_transient(&self) -> bool {
        match self {
            RegisterError::Taken(_) => false,
            RegisterError::Raced { .. } => true,
            RegisterError::Store(error) => {
                error.is_transient() || matches!(error, StoreError::LeaseGone)
            }
        }
    }
}

/// Returns true if a process cannot go on because another one has its id.
pub(super) fn is_id_taken(error: &anyhow::Error) -> bool {
    let is_taken = |cause: &(dyn std::error::Error + 'static)| {
        let registering = cause.downcast_ref::<RegisterError>();
        cause.is::<Taken>() || matches!(registering, Some(RegisterError::Taken(_)))
    };
    error.chain().any(is_taken)
}

fn since(holder: &Node) -> String {
    let since = UNIX_EPOCH.checked_add(Duration::from_millis(holder.started_at));
    since.map_or_else(
        || format!("{} ms after 1970", holder.started_at),
        |since| humantime::format_rfc3339_seconds(since).to_string(),
    )
}

impl Registration {
    /// Registers the node. If its id is taken, this waits for as long as the record of a killed process may
    /// stay. That is one lease time, a second one if etcd's leader changes meanwhile and gives each lease its
    /// whole time again, and the quarter of one that a store may be late.
    pub(super) async fn new(
        catalog: Catalog,
        node: Node,
        ttl: Duration,
        graceful_drain: GracefulDrain,
    ) -> Result<Self, RegisterError> {
        let scope = TaskScope::new();
        let deadline = Instant::now() + ttl * 9 / 4;
        let mut backoff = Backoff::new(ttl / 100, ttl / 20);
        let mut is_told = false;
        let lease = loop {
            match register(&catalog, &node, ttl, &scope).await {
                Ok(lease) => break lease,
                Err(RegisterError::Taken(taken)) if Instant::now() < deadline => {
                    if !std::mem::replace(&mut is_told, true) {
                        tracing::info!(
                            node = %node.id,
                            holder = taken.holder.address,
                            since = since(&taken.holder),
                            "the id is taken; waiting for as long as a process that is gone may hold it"
                        );
                    }
                }
                Err(RegisterError::Raced { .. }) => {}
                Err(error) => return Err(error),
            }
            tokio::time::sleep(backoff.next_delay()).await;
        };
        tracing::info!(node = %node.id, address = node.address, "joined");
        graceful_drain.registered(node.draining);
        Ok(Self {
            registered: watch::Sender::new(Some(lease.term())),
            catalog,
            node,
            ttl,
            lease,
            graceful_drain,
            scope,
        })
    }

    /// Returns the role of the node.
    pub(super) fn role(&self) -> Role {
        self.node.role
    }

    /// Returns the lease that the node is registered under; it is another one each time the node has
    /// registered again.
    pub(super) fn registered(&self) -> watch::Receiver<Option<Term>> {
        self.registered.subscribe()
    }

    /// Keeps the node registered until `stop`, and then removes its record. Ends before that if another
    /// process is registered under the id: this process must then end as well.
    pub(super) async fn keep(mut self, stop: CancellationToken) -> Result<(), Taken> {
        let kept = stop.run_until_cancelled_owned(self.keep_on()).await;
        if kept.is_none() && self.node.role == Role::Master {
            self.say_that_it_leaves().await;
        }
        self.release().await;
        kept.map_or(Ok(()), Err)
    }

    /// Says in the record that the process is to end, so that it does not count as lost. A worker has said so when it began
    /// to drain.
    async fn say_that_it_leaves(&self) {
        let node = Node {
            draining: true,
            ..self.node.clone()
        };
        let say = async {
            let guard = own_or_nobodys(&self.catalog, &node).await?;
            write(&self.catalog, &node, guard, self.lease.id()).await
        };
        let why = match tokio::time::timeout(self.ttl / 10, say).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => telemetry::chain(&error),
            Err(_elapsed) => "no answer in time".to_owned(),
        };
        tracing::debug!(node = %self.node.id, error = why, "leaves without saying so");
    }

    /// Removes the record of the node; failures are logged.
    pub(super) async fn release(self) {
        if let Err(error) = self.lease.release().await {
            tracing::warn!(
                error = telemetry::chain(&error),
                "a lease could not be given back"
            );
        }
    }

    async fn keep_on(&mut self) -> Taken {
        loop {
            tokio::select! {
                biased;
                () = self.drain_requested(), if !self.node.draining => {
                    self.node.draining = true;
                    self.graceful_drain.registered(true);
                    continue;
                }
                () = self.lease.lost().cancelled_owned() => {
                    tracing::warn!(
                        node = %self.node.id,
                        "the lease was lost: nothing is done in its name until the node is registered again"
                    );
                }
                record = self.replaced() => match record {
                    Some(holder) => return Taken { holder: Box::new(holder) },
                    None => tracing::warn!(node = %self.node.id, "the record was removed; registering again"),
                },
            }
            match self.again().await {
                Ok(lease) => {
                    self.lease = lease;
                    self.registered.send_replace(Some(self.lease.term()));
                    tracing::info!(node = %self.node.id, "joined again");
                }
                Err(taken) => return taken,
            }
        }
    }

    /// Waits until the node is to leave, and says so in its record, under the lease that it has.
    async fn drain_requested(&self) {
        self.graceful_drain.requested().await;
        let node = self.node_now();
        let mut backoff = self.backoff();
        loop {
            let guard = own_or_nobodys(&self.catalog, &node).await;
            let written = match guard {
                Ok(guard) => write(&self.catalog, &node, guard, self.lease.id()).await,
                Err(error) => Err(error),
            };
            let Err(error) = written else {
                return;
            };
            let error = telemetry::chain(&error);
            tracing::debug!(node = %node.id, error, "cannot register as draining yet");
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    /// Returns the record under which the node is to be registered at this moment.
    fn node_now(&self) -> Node {
        Node {
            draining: self.graceful_drain.is_requested(),
            ..self.node.clone()
        }
    }

    /// Waits until the record is not this process's any more, and returns what is there now.
    async fn replaced(&self) -> Option<Node> {
        let mut backoff = self.backoff();
        loop {
            match self.replaced_as_seen().await {
                Ok(present) => return present,
                Err(error) => {
                    let error = telemetry::chain(&error);
                    tracing::debug!(node = %self.node.id, error, "the record cannot be read");
                }
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }

    async fn replaced_as_seen(&self) -> Result<Option<Node>, StoreError> {
        let key = self.catalog.keys().node(self.node.role, &self.node.id);
        let mut changes = Changes::below(&self.catalog, &key, RESYNC).await?;
        loop {
            let present = self.catalog.read::<Node>(&key).await?;
            let present = present.map(|record| record.value);
            if present.as_ref().map(|n| n.incarnation) != Some(self.node.incarnation) {
                return Ok(present);
            }
            changes.next().await?;
        }
    }

    /// Returns the back-off. A store that is back gives each lease its whole time once more: the node must be
    /// registered again well before that is over.
    fn backoff(&self) -> Backoff {
        Backoff::new(self.ttl / 50, self.ttl / 10)
    }

    async fn again(&self) -> Result<LeaseKeeper, Taken> {
        let mut backoff = self.backoff();
        loop {
            match register(&self.catalog, &self.node_now(), self.ttl, &self.scope).await {
                Ok(lease) => return Ok(lease),
                Err(RegisterError::Taken(taken)) => return Err(taken),
                Err(error) => {
                    let error = telemetry::chain(&error);
                    tracing::warn!(node = %self.node.id, error, "cannot register yet");
                }
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }
}

/// Tries once to register the node; the record of another process is not overwritten.
async fn register(
    catalog: &Catalog,
    node: &Node,
    ttl: Duration,
    scope: &TaskScope,
) -> Result<LeaseKeeper, RegisterError> {
    let guard = own_or_nobodys(catalog, node).await?;
    let lease = LeaseKeeper::grant(catalog.store().clone(), ttl, scope).await?;
    write(catalog, node, guard, lease.id()).await?;
    Ok(lease)
}

/// Returns a guard that holds while the node's id is its own, or free.
async fn own_or_nobodys(catalog: &Catalog, node: &Node) -> Result<Guard, RegisterError> {
    let key = catalog.keys().node(node.role, &node.id);
    match catalog.read::<Node>(&key).await? {
        None => Ok(Guard::Absent(key)),
        // It was written under a lease that is lost, or by a try whose answer was lost.
        Some(present) if present.value.incarnation == node.incarnation => {
            Ok(Guard::RevisionIs(key, present.revision))
        }
        Some(present) => {
            let holder = Box::new(present.value);
            Err(RegisterError::Taken(Taken { holder }))
        }
    }
}

async fn write(
    catalog: &Catalog,
    node: &Node,
    guard: Guard,
    lease: LeaseId,
) -> Result<(), RegisterError> {
    let key = catalog.keys().node(node.role, &node.id);
    let txn = Txn::new().guard(guard).put_leased(key, encode(node), lease);
    match catalog.store().commit(txn).await? {
        Outcome::Done(_) => Ok(()),
        Outcome::Lost(_) | Outcome::Unknown => Err(RegisterError::Raced {
            id: node.id.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests;
