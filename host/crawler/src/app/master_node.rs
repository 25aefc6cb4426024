//! The master of a process, whatever its store: the calls, the election and the leader's duties.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::metrics;
use crate::cli::MasterOptions;
use crawler_access::audit::{AuditLog, AuditSettings};
use crawler_access::ca::Authority;
use crawler_api::tls::ClientTls;
use crawler_api::{Api, ApiParts, CallerLimits};
use crawler_data::DataRoot;
use crawler_master::WorkerCalls;
use crawler_master::cleanup::DataCleanup;
use crawler_master::control::{Control, ControlParts};
use crawler_master::events::EventBounds;
use crawler_master::leader::{self, Leader};
use crawler_master::metrics::MasterMetrics;
use crawler_master::node_watch;
use crawler_master::reconcile::{DeletionSettings, ReconcileParts};
use crawler_master::replica::{Feeder, Replica};
use crawler_master::webhooks::Webhook;
use crawler_model::id::NodeId;
use crawler_model::node::{Contender, Node};
use crawler_plugin::Admit;
use crawler_process::clock::Clock;
use crawler_process::task::TaskScope;
use crawler_process::traces::Tracer;
use crawler_sink::items::ItemStore;
use crawler_store::breaker::BreakerStore;
use crawler_store::catalog::Catalog;
use crawler_store::election::{Election, Leadership};
use crawler_store::ids::IdIssuer;

/// Parts that a master is made of.
pub(super) struct MasterParts {
    /// Record under which the master registers.
    pub(super) node: Node,
    pub(super) catalog: Catalog,
    pub(super) data: Arc<DataRoot>,
    /// Removes the remains of deleted resources.
    pub(super) cleanup: Arc<dyn DataCleanup>,
    /// Reads the items of resources.
    pub(super) items: Arc<dyn ItemStore>,
    /// Checks plugins that are pushed.
    pub(super) admission: Arc<dyn Admit>,
    /// Makes calls to workers.
    pub(super) workers: Arc<dyn WorkerCalls>,
    /// Certificates for calls to the leader.
    pub(super) tls: ClientTls,
    /// CA that issues the certificates of nodes.
    pub(super) authority: Arc<Authority>,
    /// Receivers of events.
    pub(super) webhooks: Vec<Webhook>,
    pub(super) clock: Arc<dyn Clock>,
    /// Beginning of the traces of calls.
    pub(super) tracer: Tracer,
    pub(super) options: MasterOptions,
}

/// A master that answers calls. It contends for the lead from [`MasterNode::contend`] on.
pub(super) struct MasterNode {
    id: NodeId,
    uploads: usize,
    /// Bounds on the calls of each caller.
    limits: CallerLimits,
    /// Catalog for calls, which fail at once while the store is away.
    for_calls: Catalog,
    clock: Arc<dyn Clock>,
    tracer: Tracer,
    data: Arc<DataRoot>,
    audit: AuditSettings,
    tls: ClientTls,
    authority: Arc<Authority>,
    pub(super) control: Arc<Control>,
    election: Election,
    feeder: Feeder,
    leader: Leader,
}

impl MasterNode {
    pub(super) fn new(parts: MasterParts) -> Self {
        let MasterParts {
            node,
            catalog,
            data,
            cleanup,
            items,
            admission,
            workers,
            tls,
            authority,
            webhooks,
            clock,
            tracer,
            options,
        } = parts;
        let MasterOptions {
            node: options,
            calls,
            compaction,
            placement,
        } = options;
        let id = node.id.clone();
        let contender = Contender {
            id: node.id,
            address: node.address,
            tls: node.tls,
        };
        let (election, election_status) =
            Election::new(catalog.clone(), contender, options.lease_ttl);
        let strategy = placement.strategy;
        let (replica, feeder) = Replica::new(catalog.clone(), strategy);
        // Callers wait for their answers. All other parts go on trying by themselves.
        let breaker = BreakerStore::new(catalog.store().clone(), calls.breaker);
        let for_calls = Catalog::new(Arc::new(breaker), catalog.keys().clone());
        let sinks = &options.config.sinks;
        let control = Arc::new(Control::new(ControlParts {
            election_status,
            catalog: for_calls.clone(),
            data: data.clone(),
            items,
            sinks: sinks.iter().map(|sink| sink.name.clone()).collect(),
            change_sinks: sinks
                .iter()
                .filter(|sink| sink.feed.needs_changes())
                .map(|sink| sink.name.clone())
                .collect(),
            admission,
            ids: IdIssuer::new(for_calls.clone(), clock.clone()),
            clock: clock.clone(),
            workers: workers.clone(),
            replica: replica.clone(),
            limit_ceilings: options.limit_ceilings,
            max_plugin_size: options.engine.plugin_size,
            strategy,
            frontier_readers: calls.frontier_readers,
        }));
        let reconcile = ReconcileParts {
            catalog,
            cleanup,
            clock: clock.clone(),
            deletion: DeletionSettings {
                frontier_min_age: options.frontier_min_age,
            },
            workers,
            replica,
            placement,
            lease_ttl: options.lease_ttl,
            counts: Arc::default(),
        };
        let leader = Leader {
            reconcile,
            compaction,
            event_bounds: EventBounds::of(calls.keep_events),
            webhooks,
            control: control.clone(),
        };
        Self {
            id,
            uploads: calls.uploads,
            limits: calls.limits,
            for_calls,
            clock,
            tracer,
            data,
            audit: options.exposure.audit,
            tls,
            authority,
            control,
            election,
            feeder,
            leader,
        }
    }

    /// Returns the parts that the metrics of this master and of its calls are read from.
    pub(super) fn metrics(&self, api: &Api) -> metrics::Master {
        let reconcile = &self.leader.reconcile;
        metrics::Master {
            parts: MasterMetrics {
                replica: reconcile.replica.clone(),
                counts: reconcile.counts.clone(),
            },
            election_status: self.control.election_status().clone(),
            calls: api.call_counts(),
        }
    }

    /// Returns the record of who did what, which is written until `scope` is stopped.
    pub(super) fn audit(&self, scope: &TaskScope) -> AuditLog {
        let (objects, clock) = (self.data.object_store(), self.clock.clone());
        let (audit, write) =
            AuditLog::new(objects, &self.id, self.audit, clock, scope.stop_signal());
        scope.spawn("audit record", write);
        audit
    }

    /// Returns the calls, for the listeners; streams end with `scope`.
    pub(super) fn api(&self, audit: AuditLog, scope: &TaskScope) -> Api {
        let (id, control) = (self.id.clone(), self.control.clone());
        let parts = ApiParts {
            catalog: self.for_calls.clone(),
            audit,
            tls: self.tls.clone(),
            clock: self.clock.clone(),
            authority: self.authority.clone(),
            limits: self.limits,
            tracer: self.tracer.clone(),
        };
        Api::new(id, control, parts, self.uploads, scope.stop_signal())
    }

    /// Stands for election, and carries out the leader's duties while it leads, until `scope` is stopped.
    pub(super) fn contend(self, scope: &TaskScope) {
        let stop = scope.stop_signal();
        let node_watch = node_watch::run(self.leader.reconcile.catalog.clone(), stop.clone());
        scope.spawn("node watch", node_watch);
        scope.spawn("replica", self.feeder.run(stop.clone()));
        let election_status = self.control.election_status().clone();
        // The lead is given away once the duties have ended, whose last writes need it.
        let election_stop = CancellationToken::new();
        let duties_end = election_stop.clone().drop_guard();
        let duties = Box::pin(self.leader.run(stop.clone()));
        scope.spawn("leader", async move {
            let _duties_end = duties_end;
            duties.await;
        });
        scope.spawn(
            "log of the leader",
            leader::log_changes(election_status, stop),
        );
        scope.spawn("election", self.election.run(election_stop));
    }
}

/// Waits until this master leads.
pub(super) async fn until_leading(control: &Control) -> Leadership {
    let mut election_status = control.election_status().clone();
    loop {
        let leads =
            election_status.wait_for(|election_status| election_status.leadership().is_some());
        let leadership = leads
            .await
            .map(|election_status| election_status.leadership().cloned());
        match leadership {
            Ok(Some(leadership)) => return leadership,
            // The lead is lost again already.
            Ok(None) => {}
            // The election has ended because the process ends.
            Err(_) => std::future::pending().await,
        }
    }
}
