//! `crawler up`: a master and a worker in one process, on the embedded store and a local data root.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::process::{self, Backend, Base, Process};
use super::{master_node, seeding};
use crate::cli::{ClusterWorkerOptions, MasterOptions, NodeOptions, UpOptions, WantedId};
use crate::config::EtcdConfig;
use crawler_master::control::Control;
use crawler_master::reconcile::PlacementSettings;
use crawler_process::clock::{Clock, SystemClock};

/// Number of shards that the worker of this process takes.
const CAPACITY: u32 = 100_000;

/// Runs until a stop, or until a part of the process has panicked.
pub(super) async fn run(options: UpOptions, stop: CancellationToken) -> anyhow::Result<()> {
    let (up, control) = start(&options).await?;
    let (grpc, http) = (up.grpc, up.http);
    let seeded = async {
        seeding::seed_as_leader(&control, &options.config).await?;
        tracing::info!("listening grpc={grpc} http={http} data={}", options.data);
        std::future::pending().await
    };
    up.serve(seeded, stop).await
}

/// Opens the state, takes the ports, starts all parts, and waits until the master leads. Nothing runs after an
/// error. The returned control is for calls within this process.
pub(super) async fn start(options: &UpOptions) -> anyhow::Result<(Process, Arc<Control>)> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let (master, worker) = (master(options)?, worker(options)?);
    let fetcher = process::fetcher(&worker, clock.clone())?;
    let mut base = Base::open(&master.node, Backend::Embedded, clock).await?;
    let master = base.master(&master).await?;
    let worker = base.worker(&worker, fetcher).await?;
    let control = master.control.clone();
    let mut up = base.start(Some(master), Some(worker));
    let led = tokio::select! {
        _leadership = master_node::until_leading(&control) => Ok(()),
        error = up.fault() => Err(error),
    };
    match led {
        Ok(()) => Ok((up, control)),
        Err(error) => {
            up.stop().await;
            Err(error)
        }
    }
}

/// Returns the options of the master of this process.
fn master(options: &UpOptions) -> anyhow::Result<MasterOptions> {
    Ok(MasterOptions {
        node: node(options, "master-1")?,
        calls: options.calls.clone(),
        compaction: None,
        placement: PlacementSettings::default(),
    })
}

/// Returns the options of the worker of this process.
fn worker(options: &UpOptions) -> anyhow::Result<ClusterWorkerOptions> {
    Ok(ClusterWorkerOptions {
        node: node(options, "worker-1")?,
        capacity: CAPACITY,
        labels: BTreeMap::new(),
        allow_networks: options.allow_networks.clone(),
        allow_ports: options.allow_ports.clone(),
        // Nobody else opens its store, so there is nobody to give shards to, or to share turns with.
        drain_timeout: Duration::ZERO,
        shared_turns: false,
    })
}

fn node(options: &UpOptions, id: &str) -> anyhow::Result<NodeOptions> {
    Ok(NodeOptions {
        id: WantedId::Is(id.parse()?),
        http: options.http,
        grpc: options.grpc,
        pprof: options.pprof,
        advertise: options.advertise.clone(),
        etcd: EtcdConfig::default(),
        data: options.data.clone(),
        config: options.config.clone(),
        engine: options.engine.clone(),
        requests: options.requests.clone(),
        lease_ttl: options.lease_ttl,
        limit_ceilings: options.limit_ceilings.clone(),
        frontier_min_age: options.frontier_min_age,
    })
}
