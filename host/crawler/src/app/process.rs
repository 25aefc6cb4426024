//! A process of a cluster: a master, a worker, or both in one.
//!
//! [`Base`] puts the parts of a process together; its [`start`](Base::start) returns the running process.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures::future::select_all;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::graceful_drain::GracefulDrain;
use super::identity::Identity;
use super::master_node;
use super::registration::is_id_taken;
use super::supervisor::Supervisor;
use super::traces::Traces;
use crawler_master::control::Control;
use crawler_model::id::NodeId;
use crawler_process::task::TaskScope;
use crawler_process::traces::Tracer;
use crawler_store::catalog::Catalog;
use crawler_worker::{AgentParts, agent};

mod base;

pub(super) use base::{Backend, Base};

/// Time that everything may take to end after a stop.
const STOP_GRACE: Duration = Duration::from_secs(15);

/// A running process of a cluster. It ends with [`Process::stop`]; dropping it ends it without grace.
pub(super) struct Process {
    /// Address of gRPC.
    pub(super) grpc: SocketAddr,
    /// Address of HTTP.
    pub(super) http: SocketAddr,
    identities: Vec<Identity>,
    catalog: Catalog,
    /// Cancelled when all nodes of this process belong to the cluster.
    joined: CancellationToken,
    /// Drain of the worker, if the process has one.
    drain: Option<Drain>,
    scopes: Scopes,
    /// Cancelled when the store of this process has failed.
    store_failed: CancellationToken,
    /// Receives the reason why the process cannot go on.
    fault: oneshot::Receiver<anyhow::Error>,
}

/// Drain of a worker, before its process ends.
struct Drain {
    worker: NodeId,
    /// Time that the worker may take to give its shards away.
    within: Duration,
    state: GracefulDrain,
}

/// Scopes of the tasks, in the order in which they end.
#[derive(Default)]
struct Scopes {
    /// Tasks of crawls.
    work: Arc<TaskScope>,
    /// Tasks of the registrations.
    membership: TaskScope,
    /// Tasks of the election and of the leader's duties. They begin and end with the registrations.
    election: Arc<TaskScope>,
    /// Tasks of the calls, and of what calls need.
    listeners: TaskScope,
    /// Task that sends what all others have recorded.
    traces: Traces,
}

impl Scopes {
    fn of(traces: Traces) -> Self {
        Self {
            traces,
            ..Self::default()
        }
    }

    /// Returns the beginning of all traces of the process.
    fn tracer(&self) -> Tracer {
        self.traces.tracer.clone()
    }
}

impl Process {
    /// Goes on until a stop, an error of `beside`, or a fault, and then ends the process. The supervisor is told when it
    /// is ready and when it ends, and up to its end that it goes on.
    pub(super) async fn serve(
        self,
        beside: impl Future<Output = anyhow::Result<Infallible>>,
        supervisor: &Supervisor,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let status = format!("{} grpc={} http={}", self.ids(), self.grpc, self.http);
        let told = supervisor.keep_told(self.joined.clone(), &status);
        tokio::select! {
            result = Box::pin(self.serve_to_end(beside, supervisor, stop)) => result,
            never = told => match never {},
        }
    }

    async fn serve_to_end(
        mut self,
        beside: impl Future<Output = anyhow::Result<Infallible>>,
        supervisor: &Supervisor,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let (drain, catalog) = (self.drain.take(), self.catalog.clone());
        let stopped = async {
            stop.cancelled().await;
            supervisor.stopping();
            if let Some(Drain {
                worker,
                within,
                state,
            }) = drain
            {
                state.give_all_away(&catalog, &worker, within).await;
            }
        };
        let result = tokio::select! {
            result = beside => result.map(|never| match never {}),
            () = stopped => Ok(()),
            error = self.fault() => Err(error),
        };
        supervisor.stopping();
        tracing::info!("stopping");
        if result.as_ref().is_err_and(is_id_taken) {
            self.identities.iter().for_each(Identity::forget);
        }
        self.stop().await;
        result
    }

    /// Returns the ids of the nodes of this process, for messages.
    pub(super) fn ids(&self) -> String {
        ids(&self.identities)
    }

    /// Waits until the process cannot go on, and returns the reason.
    pub(super) async fn fault(&mut self) -> anyhow::Error {
        let Scopes {
            work,
            membership,
            election,
            listeners,
            traces,
        } = &self.scopes;
        let scopes: [&TaskScope; 5] = [work, membership, election, listeners, &traces.scope];
        let failed = scopes.map(TaskScope::failed);
        let failed = failed.iter().chain([&self.store_failed]);
        let failed = select_all(failed.map(|failed| Box::pin(failed.cancelled())));
        tokio::select! {
            biased;
            _ = failed => anyhow::anyhow!("a part of the program failed; the log above tells which"),
            Ok(error) = &mut self.fault => error,
        }
    }

    /// Ends crawls, gives the leases back, answers the calls in hand, sends the last spans, and closes the store.
    pub(super) async fn stop(self) {
        self.scopes.work.stop(STOP_GRACE).await;
        self.scopes.membership.stop(STOP_GRACE).await;
        self.scopes.listeners.stop(STOP_GRACE).await;
        self.scopes.traces.stop().await;
    }
}

/// Returns the ids of these nodes, for people.
fn ids(identities: &[Identity]) -> String {
    let ids = identities.iter().map(|identity| identity.id.as_str());
    ids.collect::<Vec<_>>().join(",")
}

/// Runs the agent of a worker until `stop`. If the process has a master too, this waits until it leads.
async fn run_agent(parts: AgentParts, master: Option<Arc<Control>>, stop: CancellationToken) {
    // The process may have been stopped while it joined.
    if stop.is_cancelled() {
        return;
    }
    if let Some(control) = master {
        let leads = master_node::until_leading(&control);
        if stop.run_until_cancelled(leads).await.is_none() {
            return;
        }
    }
    agent::run(Arc::new(parts), stop).await;
}

#[cfg(test)]
mod tests;
