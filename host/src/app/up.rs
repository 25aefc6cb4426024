//! `crawler up`: a master and a worker in one process, on the embedded store and a local data root.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::housekeeping;
use super::parts::{self, DataPlugins};
use super::registration::Registration;
use crate::api::client::GrpcWorkerCalls;
use crate::api::{Api, grpc, http};
use crate::cli::UpOptions;
use crate::clock::{Clock, SystemClock};
use crate::config::FileConfig;
use crate::data::DataRoot;
use crate::frontier::durable::DurableSettings;
use crate::master::control::{Control, ControlParts};
use crate::master::reconcile::{DeletionSettings, Reconciler};
use crate::model::id::{Incarnation, NodeId};
use crate::model::node::{Node, Role};
use crate::plugin::engine::EngineSettings;
use crate::store::catalog::{Catalog, encode};
use crate::store::embedded::{EmbeddedStore, Settings as StoreSettings};
use crate::store::ids::IdIssuer;
use crate::store::keys::Keys;
use crate::store::{Guard, Outcome, Txn};
use crate::task::TaskScope;
use crate::telemetry;
use crate::worker::{Crawls, agent};

/// How long everything may take to end after a stop.
const STOP_GRACE: Duration = Duration::from_secs(15);
/// How long calls in hand may take to be answered then. Whoever sends no whole request, or does not
/// close an idle connection, is not waited for.
const CALLS_GRACE: Duration = Duration::from_secs(2);
/// Shards that the worker of this process takes.
const CAPACITY: u32 = 100_000;

/// A running `up`. Ends with [`Up::stop`]; dropping it ends it without grace.
pub(super) struct Up {
    /// Where gRPC answers.
    pub(super) grpc: SocketAddr,
    /// Where HTTP answers.
    pub(super) http: SocketAddr,
    /// Calls in this process.
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
        up.seed(&options.config).await?;
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
        let grpc_listener = parts::listen(options.grpc, "--grpc").await?;
        let http_listener = parts::listen(options.http, "--http").await?;
        let (grpc_at, http_at) = (grpc_listener.local_addr()?, http_listener.local_addr()?);
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
        let cluster = cluster_id(&catalog).await?;
        data.bind_cluster(&cluster).await?;
        let frontiers = DurableSettings {
            min_age: options.frontier_min_age,
            ..DurableSettings::default()
        };
        let frontiers = parts::frontiers(&data, frontiers);

        let engine = parts::engine(EngineSettings {
            plugin_size: options.plugin_size,
            compiled_size: options.compiled_size,
            ..parts::engine_settings(&options.state)
        });
        let engine = engine.await?;
        let scope = TaskScope::new();
        let incarnation = Incarnation(rand::random::<u64>() >> 1);
        let node = |role: Role, id: &str, capacity: u32| -> anyhow::Result<Node> {
            Ok(Node {
                id: id.parse::<NodeId>()?,
                role,
                address: address.clone(),
                incarnation,
                labels: BTreeMap::new(),
                capacity,
                version: env!("CARGO_PKG_VERSION").to_owned(),
                draining: false,
                started_at: clock.unix_millis(),
            })
        };
        let (master, worker) = (
            node(Role::Master, "master-1", 0)?,
            node(Role::Worker, "worker-1", CAPACITY)?,
        );
        let wake = Arc::new(Notify::new());
        let workers = Arc::new(GrpcWorkerCalls::new());
        let control = Arc::new(Control::new(ControlParts {
            node: master.id.clone(),
            catalog: catalog.clone(),
            data: data.clone(),
            admission: Arc::new(engine.clone()),
            ids: IdIssuer::new(catalog.clone(), clock.clone()),
            clock: clock.clone(),
            workers: workers.clone(),
            wake: wake.clone(),
            limit_ceilings: options.limit_ceilings.clone(),
            max_plugin_size: options.plugin_size,
        }));
        match control.drop_orphan_plugins().await {
            Ok(0) => {}
            Ok(n) => tracing::info!(n, "removed plugins that no record names"),
            Err(error) => {
                tracing::warn!(
                    error = telemetry::chain(&error),
                    "plugins cannot be cleaned up"
                );
            }
        }
        let crawls = Crawls::default();
        let stop = scope.stop_signal();
        let api = Api::new(control.clone(), stop.clone());
        let services = grpc::Services {
            master: Some(api.clone()),
            worker: Some(crawls.clone()),
        };
        scope.spawn(
            "grpc",
            served(
                "gRPC",
                grpc::serve(grpc_listener, services, stop.clone()),
                stop.clone(),
            ),
        );
        scope.spawn(
            "http",
            served(
                "HTTP",
                http::serve(http_listener, api, stop.clone()),
                stop.clone(),
            ),
        );
        let registrations = TaskScope::new();
        for node in [&master, &worker] {
            let registration =
                Registration::new(catalog.clone(), node.clone(), options.lease_ttl).await?;
            let kept = registration.keep(registrations.stop_signal());
            registrations.spawn(format!("registration of {}", node.id), kept);
        }
        let swept = housekeeping::sweep(data.clone(), clock.clone(), stop.clone());
        scope.spawn("sweep", swept);
        let reconciler = Reconciler {
            catalog: catalog.clone(),
            data: data.clone(),
            objects: data.object_store(),
            clock: clock.clone(),
            deletion: DeletionSettings {
                frontier_min_age: options.frontier_min_age,
            },
            workers,
            wake,
        };
        scope.spawn("reconcile", reconciler.run(stop.clone()));
        let agent_parts = agent::AgentParts {
            node: worker,
            catalog: catalog.clone(),
            data: data.clone(),
            plugins: Arc::new(DataPlugins { data, engine }),
            fetch: parts::fetcher(&options.allow_networks, &[grpc_at, http_at], clock.clone())?,
            clock,
            frontiers,
            cluster,
            limit_ceilings: options.limit_ceilings.clone(),
            crawls,
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

    /// Pushes the plugins and adds the resources of a config file that are not there yet.
    pub(super) async fn seed(&self, config: &FileConfig) -> anyhow::Result<()> {
        for plugin in &config.plugins {
            let wasm = crate::cli::plugin::build_plugin(&plugin.path).await?;
            let bytes = parts::read(&wasm).await?;
            self.control
                .push_plugin(None, bytes)
                .await
                .with_context(|| format!("cannot push {}", plugin.path.display()))?;
        }
        for spec in &config.resources {
            let name = spec.name.clone();
            if self
                .control
                .seed_resource(spec.clone())
                .await
                .with_context(|| format!("cannot add resource {name}"))?
            {
                tracing::info!(resource = %name, "resource of the config file added");
            }
        }
        Ok(())
    }

    /// Ends crawls, then calls, then the store.
    pub(super) async fn stop(self) {
        self.agent.stop(STOP_GRACE).await;
        self.registrations.stop(STOP_GRACE).await;
        self.scope.stop(STOP_GRACE).await;
        drop(self.catalog);
    }
}

async fn served<E: std::error::Error>(
    what: &'static str,
    server: impl Future<Output = Result<(), E>>,
    stop: CancellationToken,
) {
    let too_late = async {
        stop.cancelled().await;
        tokio::time::sleep(CALLS_GRACE).await;
    };
    tokio::select! {
        result = server => if let Err(error) = result {
            tracing::error!(error = telemetry::chain(&error), what, "the server ended");
        },
        () = too_late => tracing::warn!(what, "broke off the connections that are still open"),
    }
}

/// The identity of this cluster; made when the store is empty.
async fn cluster_id(catalog: &Catalog) -> anyhow::Result<String> {
    let key = catalog.keys().cluster();
    let fresh = hex::encode(rand::random::<[u8; 16]>());
    let txn = Txn::new()
        .guard(Guard::Absent(key.clone()))
        .put(key.clone(), encode(&fresh));
    match catalog.store().commit(txn).await? {
        Outcome::Done(_) => Ok(fresh),
        Outcome::Lost(_) | Outcome::Unknown => {
            let present = catalog.read::<String>(&key).await?;
            present.map(|id| id.value).context("the cluster has no id")
        }
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
