//! One process: a master or a worker, made of the parts that real ones have.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::calls::SimWorkerCalls;
use super::rules::{self, OnePlugin};
use super::services::Services;
use super::times::LEASE_TTL;
use super::web::Web;
use super::world::SimWorld;
use crate::app::cluster;
use crate::app::graceful_drain::GracefulDrain;
use crate::app::master_node::{MasterNode, MasterParts};
use crate::app::registration::{RegisterError, Registration};
use crate::cli::{CallOptions, MasterOptions, NodeOptions};
use crawler_access::ca::Authority;
use crawler_api::tls::ClientTls;
use crawler_data::DataRoot;
use crawler_master::control::Control;
use crawler_master::housekeeping::Compaction;
use crawler_master::reconcile::PlacementSettings;
use crawler_model::id::{Incarnation, NodeId};
use crawler_model::node::{CallToken, Node as Registered, Role};
use crawler_model::plugin::LimitOverrides;
use crawler_plugin::{Admit, Admitted, PluginError};
use crawler_process::clock::Clock;
use crawler_process::memory::Memory;
use crawler_process::retry::Backoff;
use crawler_process::task::TaskScope;
use crawler_process::task::process::Process;
use crawler_sink::parts::PartSettings;
use crawler_store::catalog::Catalog;
use crawler_store::keys::Keys;
use crawler_worker::{AgentParts, Crawls, agent};

/// Minimum age of the remains of deleted resources: longer than any process is stopped, or any client repeats
/// its call, whatever the clocks are set to.
pub(super) const FRONTIER_MIN_AGE: Duration = Duration::from_secs(15 * 60);
/// Time that a worker that is told to stop may take to give its shards away.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(8);
/// Time that each part of a process may take to stop.
const STOP_GRACE: Duration = Duration::from_secs(15);

/// Clock of a machine, which faults may set.
pub(super) struct MachineClock {
    began: Instant,
    ahead_millis: AtomicI64,
}

impl MachineClock {
    pub(super) fn new() -> Self {
        Self {
            began: Instant::now(),
            ahead_millis: AtomicI64::new(0),
        }
    }

    pub(super) fn set_by(&self, millis: i64) {
        self.ahead_millis.fetch_add(millis, Ordering::Relaxed);
    }
}

impl Clock for MachineClock {
    fn unix_nanos(&self) -> u64 {
        let passed = i64::try_from(self.began.elapsed().as_nanos()).unwrap();
        let ahead = self.ahead_millis.load(Ordering::Relaxed) * 1_000_000;
        u64::try_from(1_700_000_000_000_000_000 + passed + ahead).unwrap()
    }
}

/// A process that was started. Dropping it kills it: nothing else holds its scopes.
pub(super) struct Node {
    pub(super) label: String,
    pub(super) process: Process,
    /// Cancelled when the process cannot go on because another one has its id.
    pub(super) ended: CancellationToken,
    pub(super) part: Part,
    pub(super) calls: Arc<TaskScope>,
    id: NodeId,
    catalog: Catalog,
    graceful_drain: GracefulDrain,
    work: Arc<TaskScope>,
    election: Arc<TaskScope>,
    membership: Arc<TaskScope>,
}

pub(super) enum Part {
    Master(Arc<Control>),
    Worker(Crawls),
}

impl Node {
    /// Starts a process under this id.
    pub(super) fn start(
        services: &Arc<Services>,
        role: Role,
        id: &NodeId,
        incarnation: u64,
        clock: Arc<MachineClock>,
    ) -> Self {
        let label = format!("{id}#{incarnation}");
        let process = Process::default();
        let registered = Registered {
            id: id.clone(),
            role,
            address: label.clone(),
            http: String::new(),
            pprof: String::new(),
            incarnation: Incarnation(incarnation),
            labels: BTreeMap::new(),
            capacity: if role == Role::Worker { 100 } else { 0 },
            version: "0".to_owned(),
            interface: "0.1.0".to_owned(),
            draining: false,
            started_at: clock.unix_millis(),
            call_token: CallToken::default(),
            shares_turns: false,
            tls: false,
        };
        let start = Start {
            services: services.clone(),
            catalog: Catalog::new(Arc::new(services.store_link(&label)), Keys::default()),
            registered,
            clock,
            label: label.clone(),
            ended: CancellationToken::new(),
            graceful_drain: GracefulDrain::new(),
        };
        let (ended, graceful_drain) = (start.ended.clone(), start.graceful_drain.clone());
        let catalog = start.catalog.clone();
        let (work, membership) = (Arc::<TaskScope>::default(), Arc::<TaskScope>::default());
        let election = Arc::<TaskScope>::default();
        let part = process.enter(|| match role {
            Role::Master => start.master(&membership, election.clone()),
            Role::Worker => start.worker(&work, &membership),
        });
        if let Part::Worker(crawls) = &part {
            let reached = (process.clone(), crawls.clone());
            services
                .workers
                .lock()
                .unwrap()
                .insert(label.clone(), reached);
        }
        Self {
            label,
            process,
            ended,
            part,
            calls: Arc::default(),
            id: id.clone(),
            catalog,
            graceful_drain,
            work,
            election,
            membership,
        }
    }

    /// Reports a violation if a task of the process has panicked.
    pub(super) fn judge_panic(&self, world: &SimWorld) {
        if self.has_panicked() {
            world.violation(format_args!("a task of {} has panicked", self.label));
        }
    }

    fn has_panicked(&self) -> bool {
        let scopes = [&self.calls, &self.work, &self.membership, &self.election];
        scopes.iter().any(|scope| scope.failed().is_cancelled())
    }

    /// Ends the process as a signal does: its shards are given away, then crawls end, then its registration.
    pub(super) async fn stop(self) {
        let (graceful_drain, catalog, id) = (
            self.graceful_drain.clone(),
            self.catalog.clone(),
            self.id.clone(),
        );
        let within = match self.part {
            Part::Worker(_) => DRAIN_TIMEOUT,
            Part::Master(_) => Duration::ZERO,
        };
        let (work, membership, calls) = (
            self.work.clone(),
            self.membership.clone(),
            self.calls.clone(),
        );
        let (told, stopped) = oneshot::channel();
        self.process.enter(|| {
            self.calls.spawn("stop", async move {
                graceful_drain.give_all_away(&catalog, &id, within).await;
                work.stop(STOP_GRACE).await;
                membership.stop(STOP_GRACE).await;
                let _nobody_waits = told.send(());
            });
        });
        let _killed = stopped.await;
        drop(calls);
    }
}

struct Start {
    services: Arc<Services>,
    catalog: Catalog,
    registered: Registered,
    clock: Arc<MachineClock>,
    label: String,
    ended: CancellationToken,
    graceful_drain: GracefulDrain,
}

impl Start {
    fn master(self, membership: &TaskScope, election: Arc<TaskScope>) -> Part {
        let services = &self.services;
        let master = MasterNode::new(MasterParts {
            node: self.registered.clone(),
            catalog: self.catalog.clone(),
            data: services.data.clone(),
            cleanup: Arc::new(services.sinks.clone()),
            items: crate::app::sinks::items(&services.data, PartSettings::default()),
            admission: Arc::new(NoPlugins),
            workers: Arc::new(SimWorkerCalls {
                services: services.clone(),
            }),
            tls: ClientTls::default(),
            authority: Arc::new(Authority::new(
                None,
                self.catalog.clone(),
                self.clock.clone(),
            )),
            webhooks: Vec::new(),
            clock: self.clock.clone(),
            tracer: Default::default(),
            options: MasterOptions {
                node: NodeOptions {
                    lease_ttl: LEASE_TTL,
                    frontier_min_age: FRONTIER_MIN_AGE,
                    ..cluster::tests::options(Path::new(""), self.registered.id.as_str())
                },
                calls: CallOptions::default(),
                compaction: Some(Compaction {
                    keep: 50,
                    interval: Duration::from_secs(20),
                }),
                placement: PlacementSettings::default(),
            },
        });
        let control = master.control.clone();
        let stop = membership.stop_signal();
        membership.spawn("membership", async move {
            let Some(registration) = self.join(&stop).await else {
                return;
            };
            master.contend(&election);
            let kept = registration.keep(stop).await;
            election.stop(STOP_GRACE).await;
            if kept.is_err() {
                self.ended.cancel();
            }
        });
        Part::Master(control)
    }

    fn worker(self, work: &TaskScope, membership: &TaskScope) -> Part {
        let crawls = Crawls::default();
        let services = &self.services;
        let world = services.world.clone();
        let (label, clock) = (self.label.clone(), self.clock.clone());
        let (crawls_told, catalog) = (crawls.clone(), self.catalog.clone());
        let (node, services) = (self.registered.clone(), services.clone());
        let (starts, started) = oneshot::channel();
        let stop = work.stop_signal();
        work.spawn("agent", async move {
            let Some(Ok(registered)) = stop.run_until_cancelled(started).await else {
                return;
            };
            let parts = AgentParts {
                node,
                registered,
                catalog,
                data: DataRoot::clone(&services.data),
                sinks: Arc::new(services.sinks.clone()),
                plugins: Arc::new(OnePlugin {
                    world: world.clone(),
                }),
                fetch: Arc::new(Web::new(world, clock.clone(), label)),
                clock,
                cluster: "sim".to_owned(),
                frontiers: services.frontiers.clone(),
                links: Arc::new(SimWorkerCalls { services }),
                limit_ceilings: LimitOverrides::default(),
                memory: Memory::unwatched(),
                tracer: Default::default(),
                crawls: crawls_told,
            };
            agent::run(Arc::new(parts), stop).await;
        });
        let stop = membership.stop_signal();
        membership.spawn("membership", async move {
            let Some(registration) = self.join(&stop).await else {
                return;
            };
            let _stopped = starts.send(registration.registered());
            if registration.keep(stop).await.is_err() {
                self.ended.cancel();
            }
        });
        Part::Worker(crawls)
    }

    /// Registers the process. Returns `None` if it is told to stop before that, or if another process has the
    /// id.
    async fn join(&self, stop: &CancellationToken) -> Option<Registration> {
        let mut backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(5));
        loop {
            let (catalog, node) = (self.catalog.clone(), self.registered.clone());
            let graceful_drain = self.graceful_drain.clone();
            let joining = Registration::new(catalog, node, LEASE_TTL, graceful_drain);
            let joined = stop.run_until_cancelled(joining);
            match joined.await? {
                Ok(registration) => return Some(registration),
                Err(error) if RegisterError::is_transient(&error) => {}
                Err(_taken) => {
                    self.ended.cancel();
                    return None;
                }
            }
            tokio::time::sleep(backoff.next_delay()).await;
        }
    }
}

/// Admission that is never asked: nobody pushes plugins.
struct NoPlugins;

#[async_trait]
impl Admit for NoPlugins {
    async fn admit(&self, _bytes: Bytes) -> Result<Admitted, PluginError> {
        Err(PluginError::Host {
            doing: "look at a plugin",
            why: format!("there is only {}", rules::description().name),
        })
    }
}
