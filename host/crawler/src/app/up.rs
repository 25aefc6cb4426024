//! `crawler up`: a master and a worker in one process, on the embedded store and a local data root.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::node_certificate::Prepared;
use super::process::{Backend, Base, Process};
use super::supervisor::Supervisor;
use super::{master_node, parts, seeding};
use crate::cli::{ClusterWorkerOptions, MasterOptions, NodeOptions, UpOptions, WantedId};
use crate::config::EtcdConfig;
use crawler_master::control::Control;
use crawler_master::reconcile::PlacementSettings;
use crawler_process::clock::{Clock, SystemClock};

/// Number of shards that the worker of this process takes.
const CAPACITY: u32 = 100_000;

/// Runs until a stop, or until a part of the process has panicked.
pub(super) async fn run(
    options: UpOptions,
    supervisor: &Supervisor,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let (up, control) = start(&options).await?;
    let (grpc, http) = (up.grpc, up.http);
    let seeded = async {
        seeding::seed_as_leader(&control, &options.config).await?;
        tracing::info!("listening grpc={grpc} http={http} data={}", options.data);
        tracing::info!(%http, "a page at this address shows the crawls in a browser");
        std::future::pending().await
    };
    up.serve(seeded, supervisor, stop).await
}

/// Opens the state, takes the ports, starts all parts, and waits until the master leads. Nothing runs after an
/// error. The returned control is for calls within this process.
pub(super) async fn start(options: &UpOptions) -> anyhow::Result<(Process, Arc<Control>)> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let (master, worker) = self::options(options)?;
    let fetcher = parts::cluster_fetcher(&worker, clock.clone())?;
    let prepared = Prepared::default();
    let mut base = Base::open(&master.node, Backend::Embedded, clock, prepared).await?;
    let master = base.master(&master).await?;
    let worker = base.worker(&worker, fetcher).await?;
    let control = master.control.clone();
    let mut up = base.start(Some(master), Some(worker));
    tokio::select! {
        _leadership = master_node::until_leading(&control) => {}
        error = up.fault() => return Err(error),
    }
    Ok((up, control))
}

/// Returns the options of the master and of the worker of this process.
fn options(up: &UpOptions) -> anyhow::Result<(MasterOptions, ClusterWorkerOptions)> {
    let node = NodeOptions {
        id: WantedId::Is("master-1".parse()?),
        http: up.http,
        grpc: up.grpc,
        exposure: up.exposure.clone(),
        pprof: up.pprof,
        advertise: up.advertise.clone(),
        join: None,
        etcd: EtcdConfig::default(),
        data: up.data.clone(),
        config: up.config.clone(),
        engine: up.engine.clone(),
        requests: up.requests.clone(),
        metrics: up.metrics.clone(),
        lease_ttl: up.lease_ttl,
        limit_ceilings: up.limit_ceilings.clone(),
        frontier_min_age: up.frontier_min_age,
    };
    let worker = ClusterWorkerOptions {
        node: NodeOptions {
            id: WantedId::Is("worker-1".parse()?),
            ..node.clone()
        },
        capacity: CAPACITY,
        labels: BTreeMap::new(),
        allow_networks: up.allow_networks.clone(),
        allow_ports: up.allow_ports.clone(),
        // There is no other worker to give shards to, or to share turns with.
        drain_timeout: Duration::ZERO,
        shared_turns: false,
    };
    let master = MasterOptions {
        node,
        calls: up.calls.clone(),
        compaction: None,
        placement: PlacementSettings::default(),
    };
    Ok((master, worker))
}
