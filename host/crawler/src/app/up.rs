//! `crawler up`: a master and a worker in one process, on the embedded store and a local data root.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio_util::sync::CancellationToken;

use super::doors::Doors;
use super::master_node::{self, MasterNode, MasterParts, MasterSettings};
use super::own_nodes;
use super::parts::{self, DataPlugins};
use super::registration::Registration;
use super::seeding;
use super::sinks;
use crate::cli::UpOptions;
use crawler_api::client::GrpcWorkerCalls;
use crawler_api::grpc::WorkerDoor;
use crawler_data::DataRoot;
use crawler_frontier::durable::DurableSettings;
use crawler_master::control::Control;
use crawler_master::reconcile::PlacementSettings;
use crawler_model::node::{Node, Role};
use crawler_process::clock::{Clock, SystemClock};
use crawler_process::task::TaskScope;
use crawler_store::catalog::Catalog;
use crawler_store::embedded::{EmbeddedStore, Settings as StoreSettings};
use crawler_store::keys::Keys;
use crawler_worker::{AgentParts, Crawls, agent};

/// Time that everything may take to end after a stop.
const STOP_GRACE: Duration = Duration::from_secs(15);
/// Number of shards that the worker of this process takes.
const CAPACITY: u32 = 100_000;

/// A running `up`. It ends with [`Up::stop`]; dropping it ends it without grace.
pub(super) struct Up {
    /// Address of gRPC.
    pub(super) grpc: SocketAddr,
    /// Address of HTTP.
    pub(super) http: SocketAddr,
    /// Control of the master, for calls within this process.
    pub(super) control: Arc<Control>,
    scope: TaskScope,
    agent: TaskScope,
    registrations: TaskScope,
    store_failed: CancellationToken,
    catalog: Catalog,
}

/// Runs until a stop, or until a part of the process has panicked.
pub(super) async fn run(options: UpOptions, stop: CancellationToken) -> anyhow::Result<()> {
    let up = Up::start(&options).await?;
    let serve = async {
        seeding::seed_as_leader(&up.control, &options.config).await?;
        let (grpc, http) = (up.grpc, up.http);
        tracing::info!("listening grpc={grpc} http={http} data={}", options.data);
        std::future::pending().await
    };
    let result = tokio::select! {
        result = serve => result,
        () = stop.cancelled() => Ok(()),
        () = up.failed() => Err(anyhow::anyhow!("a part of the program failed; the log above tells which")),
    };
    tracing::info!("stopping");
    up.stop().await;
    result
}

impl Up {
    /// Opens the state, takes the ports, and starts all parts. Nothing runs after an error.
    pub(super) async fn start(options: &UpOptions) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let guard = parts::guard(&options.allow_networks, &options.allow_ports);
        let config = &options.config;
        let fetch = parts::fetcher(guard.clone(), &config.fetch, &config.hosts, clock.clone())?;
        let doors = Doors::take(
            (options.grpc, options.http, options.pprof),
            &options.requests,
        )
        .await?;
        let (grpc_at, http_at) = (doors.grpc_at, doors.http_at);
        let address = options
            .advertise
            .clone()
            .unwrap_or_else(|| grpc_at.to_string());

        let data = Arc::new(DataRoot::open(&options.data)?);
        data.probe().await?;
        let folder = data.folder().join("store");
        let store = EmbeddedStore::open(&folder, StoreSettings::default())?;
        let store_failed = store.failed();
        let catalog = Catalog::new(Arc::new(store), Keys::default());
        let cluster = parts::cluster_id(&catalog).await?;
        data.bind_cluster(&cluster).await?;
        let frontiers = DurableSettings {
            min_age: options.frontier_min_age,
            ..DurableSettings::default()
        };
        let frontiers = parts::frontiers(&data, frontiers);

        let engine = parts::engine(&options.engine).await?;
        let scope = TaskScope::new();
        let memory = parts::memory(&options.engine, &fetch, Some(&frontiers), &scope);
        let node = |role: Role, id: &str| -> anyhow::Result<Node> {
            Ok(parts::node(
                role,
                id.parse()?,
                address.clone(),
                http_at,
                &*clock,
            ))
        };
        let master = node(Role::Master, "master-1")?;
        let worker = Node {
            capacity: CAPACITY,
            ..node(Role::Worker, "worker-1")?
        };
        let master_node = MasterNode::new(MasterParts {
            node: master.clone(),
            catalog: catalog.clone(),
            remains: parts::remains(&data),
            items: sinks::items(&data),
            data: data.clone(),
            admission: Arc::new(engine.clone()),
            workers: Arc::new(GrpcWorkerCalls::new()),
            clock: clock.clone(),
            settings: MasterSettings {
                lease_ttl: options.lease_ttl,
                limit_ceilings: options.limit_ceilings.clone(),
                plugin_size: options.engine.plugin_size,
                calls: options.calls.clone(),
                frontier_min_age: options.frontier_min_age,
                compaction: None,
                placement: PlacementSettings::default(),
            },
        });
        let control = master_node.control.clone();
        let crawls = Crawls::default();
        let own_nodes = own_nodes::keep_told(guard, catalog.clone(), doors.addresses());
        let stop = scope.stop_signal();
        scope.spawn("own nodes", async move {
            stop.run_until_cancelled(own_nodes).await;
        });
        let worker_door = WorkerDoor {
            crawls: crawls.clone(),
            call_token: worker.call_token.clone(),
            // This is the only worker: nobody else opens its store.
            turns: None,
        };
        doors.open(Some(master_node.api(&scope)), Some(worker_door), &scope);
        let registrations = TaskScope::new();
        let mut registered = None;
        for node in [&master, &worker] {
            let registration =
                Registration::new(catalog.clone(), node.clone(), options.lease_ttl).await?;
            if node.role == Role::Worker {
                registered = Some(registration.registered());
            }
            let kept = registration.keep(registrations.stop_signal());
            registrations.spawn(format!("registration of {}", node.id), async move {
                // Nobody else opens the store, so this is a bug, and the process ends.
                kept.await.expect("the store is open in this process alone");
            });
        }
        master_node.contend(&registrations);
        master_node::until_leading(&control).await;
        let agent_parts = AgentParts {
            node: worker,
            registered: registered.context("the worker is among the nodes")?,
            catalog: catalog.clone(),
            sinks: sinks::sinks(&data),
            plugins: Arc::new(DataPlugins {
                masters: None,
                data,
                engine,
            }),
            fetch,
            clock,
            frontiers,
            cluster,
            links: Arc::new(GrpcWorkerCalls::new()),
            limit_ceilings: options.limit_ceilings.clone(),
            crawls,
            memory,
        };
        let agent = TaskScope::new();
        agent.spawn(
            "agent",
            agent::run(Arc::new(agent_parts), agent.stop_signal()),
        );
        Ok(Self {
            grpc: grpc_at,
            http: http_at,
            control,
            scope,
            agent,
            registrations,
            store_failed,
            catalog,
        })
    }

    /// Waits until a task of any part has panicked.
    async fn failed(&self) {
        let scopes = [&self.scope, &self.agent, &self.registrations];
        let [scope, agent, registrations] = scopes.map(TaskScope::failed);
        tokio::select! {
            () = scope.cancelled() => {}
            () = agent.cancelled() => {}
            () = registrations.cancelled() => {}
            () = self.store_failed.cancelled() => {}
        }
    }

    /// Ends crawls, then calls, then the store.
    pub(super) async fn stop(self) {
        self.agent.stop(STOP_GRACE).await;
        self.registrations.stop(STOP_GRACE).await;
        self.scope.stop(STOP_GRACE).await;
        drop(self.catalog);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn f27_a_panic_in_any_part_of_up_is_noticed() {
        let parts: [fn(&Up) -> &TaskScope; 3] =
            [|up| &up.scope, |up| &up.agent, |up| &up.registrations];
        for part in parts {
            let folder = tempfile::tempdir().unwrap();
            let up = Up::start(&UpOptions::in_folder(folder.path())).await;
            let up = up.unwrap();
            part(&up).spawn("faulty", async { panic!("on purpose") });
            tokio::time::timeout(Duration::from_secs(60), up.failed())
                .await
                .expect("noticed");
            up.stop().await;
        }
    }
}
