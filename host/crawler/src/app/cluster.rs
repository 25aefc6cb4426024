//! `crawler master` and `crawler worker`: processes that share a store and a data root.
//!
//! A process answers calls from its start; one that has no id yet, from the moment at which it has one. It belongs to
//! the cluster once the store is connected, the data root was found to be this cluster's, and its id is registered; each of them it waits for, and
//! says what it waits for. A master contends then, and a worker looks at its assignments.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::doors::Doors;
use super::identity::Identity;
use super::late_store::LateStore;
use super::leaving::Leaving;
use super::master_node::{MasterNode, MasterParts, MasterSettings};
use super::membership::{Member, seed_when_leading};
use super::own_nodes;
use super::parts::{self, DataPlugins};
use super::registration::{Registration, is_id_taken};
use super::shared_turns;
use super::sinks;
use crate::cli::{ClusterWorkerOptions, MasterOptions, NodeOptions};
use crawler_api::client::{FetchDeadlines, GrpcWorkerCalls, MasterPlugins};
use crawler_api::grpc::WorkerDoor;
use crawler_data::DataRoot;
use crawler_frontier::durable::DurableSettings;
use crawler_model::node::{Node, Role};
use crawler_plugin::engine::Engine;
use crawler_process::clock::{Clock, SystemClock};
use crawler_process::task::TaskScope;
use crawler_store::Store;
use crawler_store::catalog::Catalog;
use crawler_store::etcd::EtcdStore;
use crawler_store::keys::Keys;
use crawler_worker::lease_permit::Registered;
use crawler_worker::{AgentParts, Crawls, agent};

/// Time that everything may take to end after a stop.
const STOP_GRACE: Duration = Duration::from_secs(15);

/// A running process of a cluster. It ends with [`Process::stop`]; dropping it ends it without grace.
pub(super) struct Process {
    /// Address of gRPC.
    pub(super) grpc: SocketAddr,
    /// Address of HTTP.
    pub(super) http: SocketAddr,
    /// Record under which the process registers.
    pub(super) node: Node,
    catalog: Catalog,
    leaving: Leaving,
    /// Time that the process may take to give its shards away.
    drain_timeout: Duration,
    scopes: Scopes,
    /// Receives the reason why the process cannot go on.
    fault: oneshot::Receiver<anyhow::Error>,
    identity: Identity,
}

/// Scopes of the tasks, in the order in which they end.
#[derive(Default)]
struct Scopes {
    /// Tasks of crawls.
    work: TaskScope,
    /// Tasks of the registration.
    membership: TaskScope,
    /// Tasks of the election and of the leader's duties. They begin and end with the registration.
    election: Arc<TaskScope>,
    /// Tasks of the calls, and of what calls need.
    doors: TaskScope,
}

/// Runs a master until a stop.
pub(super) async fn run_master(
    options: MasterOptions,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let store = Arc::new(LateStore::new());
    let connecting = connect(&store, &options.node)?;
    let master = start_master(&options, store, Arc::new(SystemClock));
    Box::pin(run(master, connecting, &options.node, stop)).await
}

/// Runs a worker until a stop.
pub(super) async fn run_worker(
    options: ClusterWorkerOptions,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let store = Arc::new(LateStore::new());
    let connecting = connect(&store, &options.node)?;
    let worker = start_worker(&options, store, Arc::new(SystemClock));
    Box::pin(run(worker, connecting, &options.node, stop)).await
}

/// Connects the store, however long that takes. The task never ends.
fn connect(
    store: &Arc<LateStore>,
    options: &NodeOptions,
) -> anyhow::Result<impl Future<Output = Infallible> + use<>> {
    let settings = parts::etcd_settings(&options.etcd)?;
    let store = store.clone();
    Ok(async move {
        store.connect(|| EtcdStore::connect(settings.clone())).await;
        tracing::info!("connected to etcd");
        std::future::pending().await
    })
}

/// Runs a process until a stop. Its start may wait for the store.
async fn run(
    start: impl Future<Output = anyhow::Result<Process>>,
    connecting: impl Future<Output = Infallible>,
    options: &NodeOptions,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let mut connecting = Box::pin(connecting);
    let mut process = tokio::select! {
        never = &mut connecting => match never {},
        process = Box::pin(start) => process?,
        () = stop.cancelled() => return Ok(()),
    };
    let (grpc, http, id) = (process.grpc, process.http, &process.node.id);
    let data = &options.data;
    tracing::info!("listening id={id} grpc={grpc} http={http} data={data}");
    let leaving = process.leaving();
    let told = async {
        stop.cancelled().await;
        leaving.await;
    };
    let result = tokio::select! {
        never = connecting => match never {},
        () = told => Ok(()),
        error = process.fault() => Err(error),
    };
    tracing::info!("stopping");
    if result.as_ref().is_err_and(is_id_taken) {
        process.identity.forget();
    }
    process.stop().await;
    result
}

impl Process {
    /// Waits until the process cannot go on, and returns the reason.
    pub(super) async fn fault(&mut self) -> anyhow::Error {
        let panicked = [
            self.scopes.work.failed(),
            self.scopes.membership.failed(),
            self.scopes.election.failed(),
            self.scopes.doors.failed(),
        ];
        let [work, membership, election, doors] = &panicked;
        let a_bug = || anyhow::anyhow!("a part of the program failed; the log above tells which");
        tokio::select! {
            biased;
            () = work.cancelled() => a_bug(),
            () = membership.cancelled() => a_bug(),
            () = election.cancelled() => a_bug(),
            () = doors.cancelled() => a_bug(),
            Ok(error) = &mut self.fault => error,
        }
    }

    /// Gives the shards of the process away, as far as there is time.
    fn leaving(&self) -> impl Future<Output = ()> + use<> {
        let (leaving, catalog) = (self.leaving.clone(), self.catalog.clone());
        let (worker, within) = (self.node.id.clone(), self.drain_timeout);
        async move { leaving.give_all_away(&catalog, &worker, within).await }
    }

    /// Ends crawls, gives the leases back, and answers the calls in hand.
    pub(super) async fn stop(self) {
        self.scopes.work.stop(STOP_GRACE).await;
        self.scopes.membership.stop(STOP_GRACE).await;
        self.scopes.doors.stop(STOP_GRACE).await;
    }
}

/// Parts of a process that it has before it belongs to the cluster.
struct Base {
    doors: Doors,
    node: Node,
    identity: Identity,
    catalog: Catalog,
    data: Arc<DataRoot>,
    engine: Engine,
    clock: Arc<dyn Clock>,
    membership: Member,
}

async fn base(
    role: Role,
    options: &NodeOptions,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    (capacity, labels): (u32, BTreeMap<String, String>),
) -> anyhow::Result<Base> {
    let doors = Doors::take(
        (options.grpc, options.http, options.pprof),
        &options.requests,
    )
    .await?;
    let data = Arc::new(DataRoot::open(&options.data)?);
    data.probe().await?;
    let engine = parts::engine(&options.engine).await?;
    let catalog = Catalog::new(store, Keys::default());
    let identity = Identity::find(role, &options.id, &options.engine.state, &catalog).await?;
    let advertised = options.advertise.clone();
    let address = advertised.unwrap_or_else(|| doors.grpc_at.to_string());
    let node = Node {
        labels,
        capacity,
        ..parts::node(role, identity.id.clone(), address, doors.http_at, &*clock)
    };
    Ok(Base {
        membership: Member {
            node: node.clone(),
            catalog: catalog.clone(),
            data: data.clone(),
            lease_ttl: options.lease_ttl,
            leaving: Leaving::new(),
        },
        doors,
        node,
        identity,
        catalog,
        data,
        engine,
        clock,
    })
}

/// Starts a master on this store. It answers calls when this returns, and belongs to the cluster later. If it
/// has no id yet, this waits for the store.
pub(super) async fn start_master(
    options: &MasterOptions,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Process> {
    let nothing = (0, BTreeMap::new());
    let base = base(Role::Master, &options.node, store, clock, nothing).await?;
    let scopes = Scopes::default();
    let master = MasterNode::new(MasterParts {
        node: base.node.clone(),
        catalog: base.catalog.clone(),
        remains: parts::remains(&base.data),
        items: sinks::items(&base.data),
        data: base.data.clone(),
        admission: Arc::new(base.engine),
        workers: Arc::new(GrpcWorkerCalls::new()),
        clock: base.clock,
        settings: MasterSettings {
            lease_ttl: options.node.lease_ttl,
            limit_ceilings: options.node.limit_ceilings.clone(),
            plugin_size: options.node.engine.plugin_size,
            calls: options.calls.clone(),
            frontier_min_age: options.node.frontier_min_age,
            compaction: options.compaction,
            placement: options.placement.clone(),
        },
    });
    let (grpc, http) = (base.doors.grpc_at, base.doors.http_at);
    let api = master.api(&scopes.doors);
    base.doors.open(Some(api), None, &scopes.doors);
    let seeds = seed_when_leading(master.control.clone(), options.node.config.clone());
    scopes.membership.spawn("seeds", {
        let stop = scopes.membership.stop_signal();
        async move {
            stop.run_until_cancelled(seeds).await;
        }
    });
    base.identity
        .keep(Role::Master, &base.catalog, &scopes.membership);
    let leaving = base.membership.leaving.clone();
    let election = scopes.election.clone();
    let ended = scopes.election.clone();
    let fault = base.membership.keep(
        &scopes.membership,
        move |_cluster, _registration| master.contend(&election),
        async move {
            ended.stop(STOP_GRACE).await;
        },
    );
    Ok(Process {
        grpc,
        http,
        node: base.node,
        catalog: base.catalog,
        leaving,
        // A master has no shards to give away.
        drain_timeout: Duration::ZERO,
        scopes,
        fault,
        identity: base.identity,
    })
}

/// Starts a worker on this store, in the same way.
pub(super) async fn start_worker(
    options: &ClusterWorkerOptions,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Process> {
    let guard = parts::guard(&options.allow_networks, &options.allow_ports);
    let config = &options.node.config;
    let fetch = parts::fetcher(guard.clone(), &config.fetch, &config.hosts, clock.clone())?;
    let provides = (options.capacity, options.labels.clone());
    let mut base = base(Role::Worker, &options.node, store, clock, provides).await?;
    base.node.shares_turns = options.shared_turns;
    base.membership.node = base.node.clone();
    let scopes = Scopes::default();
    let (grpc, http) = (base.doors.grpc_at, base.doors.http_at);
    let crawls = Crawls::default();
    let members = options.node.etcd.members();
    let always = members.chain(base.doors.addresses()).collect();
    let worker_door = WorkerDoor {
        crawls: crawls.clone(),
        call_token: base.node.call_token.clone(),
        turns: shared_turns::begin(&base.node, &base.catalog, &fetch, &scopes.membership),
    };
    base.doors.open(None, Some(worker_door), &scopes.doors);
    let own_nodes = own_nodes::keep_told(guard, base.catalog.clone(), always);
    scopes.work.spawn("own nodes", {
        let stop = scopes.work.stop_signal();
        async move {
            stop.run_until_cancelled(own_nodes).await;
        }
    });
    let frontiers = DurableSettings {
        min_age: options.node.frontier_min_age,
        ..DurableSettings::default()
    };
    let frontiers = parts::frontiers(&base.data, frontiers);
    let memory = parts::memory(&options.node.engine, &fetch, Some(&frontiers), &scopes.work);
    let masters = MasterPlugins::new(
        base.catalog.clone(),
        options.node.engine.plugin_size,
        FetchDeadlines::default(),
    );
    let (catalog, leaving) = (base.catalog.clone(), base.membership.leaving.clone());
    let make_agent = {
        let (node, data) = (base.node.clone(), base.data);
        let limit_ceilings = options.node.limit_ceilings.clone();
        move |cluster, registered: Registered| AgentParts {
            node,
            registered,
            catalog: base.catalog,
            sinks: sinks::sinks(&data),
            plugins: Arc::new(DataPlugins {
                masters: Some(Arc::new(masters)),
                data,
                engine: base.engine,
            }),
            fetch,
            clock: base.clock,
            cluster,
            frontiers,
            links: Arc::new(GrpcWorkerCalls::new()),
            limit_ceilings,
            crawls,
            memory,
        }
    };
    let (starts, started) = oneshot::channel();
    let stop = scopes.work.stop_signal();
    scopes.work.spawn("agent", async move {
        if let Some(Ok(parts)) = stop.run_until_cancelled(started).await {
            agent::run(Arc::new(parts), stop).await;
        }
    });
    let begin = |cluster, registration: &Registration| {
        let parts = make_agent(cluster, registration.registered());
        let _stopped_already = starts.send(parts);
    };
    base.identity
        .keep(Role::Worker, &catalog, &scopes.membership);
    let fault = base
        .membership
        .keep(&scopes.membership, begin, std::future::ready(()));
    Ok(Process {
        grpc,
        http,
        node: base.node,
        catalog,
        leaving,
        drain_timeout: options.drain_timeout,
        scopes,
        fault,
        identity: base.identity,
    })
}

#[cfg(test)]
mod tests;
