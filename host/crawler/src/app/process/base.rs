//! The parts of a process of a cluster, put together.
//!
//! They come together in three steps. [`Base::open`] takes the ports, and opens data root, store and engine.
//! [`Base::master`] and [`Base::worker`] make the nodes over them. [`Base::start`] answers calls from then on, joins
//! the cluster, and begins the work of the nodes once they are registered. `crawler master` and `crawler worker` have
//! one node each, over a store that processes share; `crawler up` has both, over a store of its own.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Drain, Process, STOP_GRACE, Scopes, ids, run_agent};
use crate::app::graceful_drain::GracefulDrain;
use crate::app::identity::Identity;
use crate::app::listeners::Listeners;
use crate::app::master_node::{MasterNode, MasterParts};
use crate::app::membership::{Member, Membership};
use crate::app::node_certificate::{Prepared, Renewal};
use crate::app::node_tls::NodeTls;
use crate::app::parts::{self, DataPlugins};
use crate::app::registration::Registration;
use crate::app::stop::spawn_until_stopped;
use crate::app::traces::Traces;
use crate::app::{access, data_root, metrics, own_nodes, shared_turns, sinks};
use crate::cli::exposure::Exposure;
use crate::cli::{ClusterWorkerOptions, MasterOptions, NodeOptions};
use crawler_access::ca::Authority;
use crawler_api::access::Access;
use crawler_api::client::GrpcWorkerCalls;
use crawler_api::grpc::WorkerService;
use crawler_api::nodes::{KnownNodes, OwnCluster};
use crawler_data::{DataRoot, STORE};
use crawler_fetch::address_policy::AddressPolicy;
use crawler_fetch::http::HttpFetcher;
use crawler_frontier::durable::DurableSettings;
use crawler_model::node::{Node, Role};
use crawler_plugin::engine::Engine;
use crawler_process::clock::Clock;
use crawler_process::task::TaskScope;
use crawler_store::Store;
use crawler_store::catalog::Catalog;
use crawler_store::counting_store::CountingStore;
use crawler_store::embedded::{EmbeddedStore, Settings as StoreSettings};
use crawler_store::keys::Keys;
use crawler_worker::lease_permit::Registered;
use crawler_worker::{AgentParts, Crawls, ShardOwners};

/// Store of a process.
pub(in crate::app) enum Backend {
    /// Store that other processes use too. It may be away for a while.
    Shared(Arc<dyn Store>),
    /// Store in the data root. Nobody else opens it, so this process is the whole cluster.
    Embedded,
}

/// Parts of a process that it has before it belongs to the cluster.
pub(in crate::app) struct Base {
    tls: NodeTls,
    /// Cluster of this process, once it is known.
    cluster: OwnCluster,
    /// Rule by which the nodes that call this process are known.
    known_nodes: KnownNodes,
    listeners: Listeners,
    data: Arc<DataRoot>,
    catalog: Catalog,
    /// Cancelled when the embedded store has failed. `None` if the store is shared.
    embedded_failed: Option<CancellationToken>,
    engine: Engine,
    clock: Arc<dyn Clock>,
    lease_ttl: Duration,
    exposure: Exposure,
    metrics: metrics::Sources,
    scopes: Scopes,
    /// Nodes that were made.
    members: Vec<Member>,
    identities: Vec<Identity>,
    /// Identity of the node, if it was needed before the ports were taken.
    identity: Option<Identity>,
    /// Keeps the certificate valid that the node got from the CA of its cluster.
    renewal: Option<Renewal>,
    /// CA of the cluster, in a master.
    authority: Option<Arc<Authority>>,
}

/// A worker that answers no calls yet.
pub(in crate::app) struct Worker {
    service: WorkerService,
    drain: Drain,
    /// Makes the agent's parts of the cluster's id and the lease of the worker.
    agent: Box<dyn FnOnce(String, Registered) -> AgentParts + Send>,
}

impl Base {
    /// Takes the ports, and opens the data root, the store and the engine.
    pub(in crate::app) async fn open(
        options: &NodeOptions,
        backend: Backend,
        clock: Arc<dyn Clock>,
        Prepared {
            certified,
            authority,
        }: Prepared,
    ) -> anyhow::Result<Self> {
        let own = certified.as_ref().map(|certified| &certified.files);
        let mut tls = NodeTls::load(&options.config.tls, own)?;
        let mut scopes = Scopes::of(Traces::open(&options.config.traces, clock.clone())?);
        let ports = (options.grpc, options.http, options.pprof);
        let listeners = Listeners::take(ports, &options.requests, tls.server.clone()).await?;
        let data = Arc::new(data_root::open(&options.data, &options.config.data)?);
        data_root::probe(&data).await?;
        data_root::check_restored(&data).await?;
        let (store, embedded_failed): (Arc<dyn Store>, _) = match backend {
            Backend::Shared(store) => (store, None),
            Backend::Embedded => {
                // The leader must not act on the end of its own worker.
                scopes.election = Arc::new(TaskScope::under(&scopes.membership.stop_signal()));
                let folder = data_root::folder(&data)?.join(STORE);
                let store = EmbeddedStore::open(&folder, StoreSettings::default())?;
                let failed = store.failed();
                (Arc::new(store), Some(failed))
            }
        };
        let store = Arc::new(CountingStore::new(store));
        let store_counts = store.counts();
        let catalog = Catalog::new(store, Keys::default());
        if embedded_failed.is_some() {
            // Nothing has to be waited for, so a data root of another cluster is refused before anything begins.
            let cluster = parts::cluster_id(&catalog).await?;
            data.bind_cluster(&cluster).await?;
        }
        let engine = parts::engine(&options.engine).await?;
        let is_reached = options.exposure.asks_for_tokens(listeners.http_at);
        let sources = metrics::Process::new(&*clock, store_counts, &engine, scopes.tracer());
        let metrics = metrics::Sources::new(&options.metrics, is_reached, sources)?;
        let cluster = OwnCluster::default();
        let known_nodes = access::known_nodes(&cluster, &mut tls, &catalog, &scopes.listeners);
        let kept = certified.map(|certified| (certified.identity, certified.renewal));
        let (identity, renewal) = kept.unzip();
        Ok(Self {
            tls,
            cluster,
            known_nodes,
            listeners,
            data,
            catalog,
            embedded_failed,
            engine,
            clock,
            lease_ttl: options.lease_ttl,
            exposure: options.exposure.clone(),
            metrics,
            scopes,
            members: Vec::new(),
            identities: Vec::new(),
            identity,
            renewal,
            authority,
        })
    }

    /// Makes the master of this process. If it has no id yet, this waits for the store.
    pub(in crate::app) async fn master(
        &mut self,
        options: &MasterOptions,
    ) -> anyhow::Result<MasterNode> {
        let node = self.identify(Role::Master, &options.node).await?;
        self.members.push(Member {
            node: node.clone(),
            drain: GracefulDrain::new(),
        });
        let items = sinks::items(&self.data, options.node.config.data.parts());
        let no_ca = || Authority::new(None, self.catalog.clone(), self.clock.clone());
        let authority = self.authority.clone();
        Ok(MasterNode::new(MasterParts {
            node,
            catalog: self.catalog.clone(),
            cleanup: parts::cleanup(&self.data, items.clone()),
            items,
            data: self.data.clone(),
            admission: Arc::new(self.engine.clone()),
            workers: Arc::new(GrpcWorkerCalls::new(self.tls.client.clone())),
            tls: self.tls.client.clone(),
            authority: authority.unwrap_or_else(|| Arc::new(no_ca())),
            webhooks: parts::webhooks(&options.node.config, &self.clock)?,
            clock: self.clock.clone(),
            tracer: self.scopes.tracer(),
            options: options.clone(),
        }))
    }

    /// Makes the worker of this process, in the same way.
    pub(in crate::app) async fn worker(
        &mut self,
        options: &ClusterWorkerOptions,
        (address_policy, fetch): (Arc<AddressPolicy>, Arc<HttpFetcher>),
    ) -> anyhow::Result<Worker> {
        let node = Node {
            labels: options.labels.clone(),
            capacity: options.capacity,
            shares_turns: options.shared_turns,
            ..self.identify(Role::Worker, &options.node).await?
        };
        let drain = GracefulDrain::new();
        self.members.push(Member {
            node: node.clone(),
            drain: drain.clone(),
        });
        let (catalog, data, scopes) = (self.catalog.clone(), self.data.clone(), &self.scopes);
        let crawls = Crawls::telling_apart(options.node.metrics.resources);
        let service = WorkerService {
            crawls: crawls.clone(),
            call_token: node.call_token.clone(),
            owners: ShardOwners::new(catalog.clone()),
            nodes: self.known_nodes.clone(),
            turns: shared_turns::begin(
                &node,
                &catalog,
                &fetch,
                &self.tls.client,
                &scopes.membership,
            ),
        };
        let members = options.node.etcd.members();
        let others = options.node.config.endpoints();
        let always = members.chain(others).chain(self.listeners.addresses());
        let always = always.collect();
        let own_nodes = own_nodes::keep_updated(address_policy, catalog.clone(), always);
        spawn_until_stopped(&scopes.work, "own nodes", own_nodes);
        let (config, engine) = (&options.node.config.data, &options.node.engine);
        let frontiers = DurableSettings {
            min_age: options.node.frontier_min_age,
            ..data_root::frontier_settings(&data, config)
        };
        let cache = data_root::disk_cache(&data, config, &engine.state);
        let frontiers = parts::frontiers(&data, frontiers, cache);
        let memory = parts::memory(engine, &fetch, Some(&frontiers), &scopes.work);
        self.metrics.worker = Some(metrics::Worker {
            crawls: crawls.clone(),
            fetch: fetch.clone(),
            frontiers: frontiers.clone(),
            memory: memory.clone(),
        });
        // The master of an embedded store is in this process, and has the same data root.
        let is_apart = self.embedded_failed.is_none();
        let of_masters = || parts::plugins_of_masters(&catalog, engine, &self.tls.client);
        let masters = is_apart.then(of_masters);
        let links = Arc::new(GrpcWorkerCalls::new(self.tls.client.clone()));
        let (engine, clock) = (self.engine.clone(), self.clock.clone());
        let tracer = scopes.tracer();
        let limit_ceilings = options.node.limit_ceilings.clone();
        let sinks = sinks::sinks(
            &data,
            &options.node.config,
            format!("on worker {}", node.id),
        )?;
        Ok(Worker {
            service,
            drain: Drain {
                worker: node.id.clone(),
                within: options.drain_timeout,
                state: drain,
            },
            agent: Box::new(move |cluster, registered| AgentParts {
                node,
                registered,
                catalog,
                data: DataRoot::clone(&data),
                sinks,
                plugins: Arc::new(DataPlugins {
                    masters,
                    data,
                    engine,
                }),
                fetch,
                clock,
                cluster,
                frontiers,
                links,
                limit_ceilings,
                crawls,
                memory,
                tracer,
            }),
        })
    }

    async fn identify(&mut self, role: Role, options: &NodeOptions) -> anyhow::Result<Node> {
        let state = &options.engine.state;
        let identity = match self.identity.take() {
            Some(identity) => identity,
            None => Identity::find(role, &options.id, state, &self.catalog).await?,
        };
        let advertised = options.advertise.clone();
        let address = advertised.unwrap_or_else(|| self.listeners.grpc_at.to_string());
        let id = identity.id.clone();
        self.listeners.nodes.push(id.clone());
        self.identities.push(identity);
        Ok(Node {
            tls: self.tls.server.is_some(),
            pprof: self.listeners.pprof_at.clone(),
            ..parts::node(role, id, address, self.listeners.http_at, &*self.clock)
        })
    }

    /// Starts a task that goes on for as long as the process belongs to the cluster.
    pub(in crate::app) fn spawn(
        &self,
        name: &'static str,
        work: impl Future<Output = ()> + Send + 'static,
    ) {
        spawn_until_stopped(&self.scopes.membership, name, work);
    }

    /// Starts the process. It answers calls when this returns, and belongs to the cluster later.
    pub(in crate::app) fn start(
        self,
        master: Option<MasterNode>,
        worker: Option<Worker>,
    ) -> Process {
        let mut scopes = self.scopes;
        let (grpc, http) = (self.listeners.grpc_at, self.listeners.http_at);
        let audit = master.as_ref();
        let audit = audit.map(|master| master.audit(&scopes.listeners));
        if let Some(renewal) = self.renewal {
            let kept_valid = renewal.run(self.tls.client.clone(), audit.clone());
            spawn_until_stopped(&scopes.membership, "node certificate", kept_valid);
        }
        let api = master.as_ref().zip(audit.clone());
        let api = api.map(|(master, audit)| master.api(audit, &scopes.listeners));
        let service = worker.as_ref().map(|worker| worker.service.clone());
        let (exposure, catalog) = (&self.exposure, &self.catalog);
        // A worker answers nodes only, which show its own token.
        let asks = [grpc, http].map(|address| exposure.asks_for_tokens(address));
        let is_needed = asks.contains(&true) || exposure.first_token.is_some();
        let nodes = self.known_nodes;
        let guarded = audit.filter(|_| is_needed).map(|audit| Access::Tokens {
            gate: access::gate(exposure, catalog, &self.clock, &scopes.listeners),
            audit,
            nodes: nodes.clone(),
        });
        let access = |address| {
            let guarded = guarded.clone();
            let guarded = guarded.filter(|_| exposure.asks_for_tokens(address));
            guarded.unwrap_or_else(|| Access::Open(nodes.clone()))
        };
        let joined = CancellationToken::new();
        let mut metrics = self.metrics;
        let of_master = master.as_ref().zip(api.as_ref());
        metrics.master = of_master.map(|(master, api)| master.metrics(api));
        let (leases, metrics) = (metrics.leases(), metrics.open());
        let (told, has_joined, scope) = (joined.clone(), joined.clone(), &scopes.listeners);
        self.listeners
            .open(api, service, access, metrics, told, scope);
        for (identity, member) in self.identities.iter().zip(&self.members) {
            identity.keep(member.node.role, &self.catalog, &scopes.membership);
        }
        let membership = Membership {
            members: self.members,
            catalog: self.catalog.clone(),
            cluster: self.cluster,
            data: self.data,
            lease_ttl: self.lease_ttl,
            waits: self.embedded_failed.is_none(),
        };
        let (drain, agent) = worker.map(|worker| (worker.drain, worker.agent)).unzip();
        let (election, work) = (scopes.election.clone(), scopes.work.clone());
        let (ended, tracer) = (scopes.election.clone(), scopes.tracer());
        let begin = move |cluster: String, registrations: &[Registration]| {
            tracer.tell_home(&cluster);
            let held = |r: &Registration| (r.role().to_string(), r.registered());
            // Nodes register anew under the same registration.
            leases.get_or_init(|| registrations.iter().map(held).collect());
            let control = master.map(|master| {
                let control = master.control.clone();
                master.contend(&election);
                control
            });
            let worker = registrations.iter().find(|r| r.role() == Role::Worker);
            if let (Some(agent), Some(worker)) = (agent, worker) {
                let parts = agent(cluster, worker.registered());
                work.spawn("agent", run_agent(parts, control, work.stop_signal()));
            }
            has_joined.cancel();
        };
        scopes.traces.begin(ids(&self.identities));
        let end = async move { drop(ended.stop(STOP_GRACE).await) };
        Process {
            grpc,
            http,
            fault: membership.keep(&scopes.membership, begin, end),
            identities: self.identities,
            catalog: self.catalog,
            joined,
            drain,
            scopes,
            store_failed: self.embedded_failed.unwrap_or_default(),
        }
    }
}
