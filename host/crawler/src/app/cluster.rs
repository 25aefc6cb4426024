//! `crawler master` and `crawler worker`: processes that share a store and a data root.
//!
//! A process answers calls from its start; one that has no id yet, from the moment at which it has one. It belongs to
//! the cluster once the store is connected, the data root was found to be this cluster's, and its id is registered;
//! it waits for each of them, and says what it waits for. A master contends then, and a worker looks at its
//! assignments.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::connecting_store::ConnectingStore;
use super::node_certificate::{self, Prepared};
use super::process::{Backend, Base, Process};
use super::supervisor::Supervisor;
use super::{parts, seeding};
use crate::cli::{ClusterWorkerOptions, MasterOptions, NodeOptions};
use crawler_access::ca::Authority;
use crawler_model::node::Role;
use crawler_process::clock::{Clock, SystemClock};
use crawler_store::Store;
use crawler_store::catalog::Catalog;
use crawler_store::etcd::EtcdStore;
use crawler_store::keys::Keys;

/// Runs a master until a stop.
pub(super) async fn run_master(
    options: MasterOptions,
    supervisor: &Supervisor,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let start = |store| start_master(&options, store, Arc::new(SystemClock));
    Box::pin(run(start, &options.node, supervisor, stop)).await
}

/// Runs a worker until a stop.
pub(super) async fn run_worker(
    options: ClusterWorkerOptions,
    supervisor: &Supervisor,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let start = |store| start_worker(&options, store, Arc::new(SystemClock));
    Box::pin(run(start, &options.node, supervisor, stop)).await
}

/// Runs a process until a stop. The store is connected meanwhile, however long that takes; the start of the process
/// may wait for it.
async fn run<Start>(
    start: impl FnOnce(Arc<dyn Store>) -> Start,
    options: &NodeOptions,
    supervisor: &Supervisor,
    stop: CancellationToken,
) -> anyhow::Result<()>
where
    Start: Future<Output = anyhow::Result<Process>>,
{
    let settings = parts::etcd_settings(&options.etcd)?;
    supervisor.waits("etcd and the data root");
    let store = Arc::new(ConnectingStore::new());
    let mut connecting = pin!(async {
        store.connect(|| EtcdStore::connect(settings.clone())).await;
        tracing::info!("connected to etcd");
        std::future::pending::<Infallible>().await
    });
    let process = tokio::select! {
        never = &mut connecting => match never {},
        process = Box::pin(start(store.clone())) => process?,
        () = stop.cancelled() => return Ok(()),
    };
    let (grpc, http, data) = (process.grpc, process.http, &options.data);
    let id = process.ids();
    tracing::info!("listening id={id} grpc={grpc} http={http} data={data}");
    process
        .serve(async { Ok(connecting.await) }, supervisor, stop)
        .await
}

/// Starts a master on this store. It answers calls when this returns, and belongs to the cluster later. If it
/// has no id yet, this waits for the store.
async fn start_master(
    options: &MasterOptions,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Process> {
    let source = node_certificate::source(&options.node.config.cluster)?;
    let catalog = Catalog::new(store.clone(), Keys::default());
    let authority = Arc::new(Authority::new(source, catalog.clone(), clock.clone()));
    let node = (Role::Master, &options.node);
    let labels = BTreeMap::new();
    let certified = node_certificate::obtain(node, &labels, &catalog, Some(&authority), &clock);
    let prepared = Prepared {
        certified: Box::pin(certified).await?,
        authority: Some(authority),
    };
    let mut base = Base::open(&options.node, Backend::Shared(store), clock, prepared).await?;
    let master = base.master(options).await?;
    let seeds = seeding::seed_when_leading(master.control.clone(), options.node.config.clone());
    base.spawn("seeds", seeds);
    Ok(base.start(Some(master), None))
}

/// Starts a worker on this store, in the same way.
async fn start_worker(
    options: &ClusterWorkerOptions,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Process> {
    let fetcher = parts::cluster_fetcher(options, clock.clone())?;
    let catalog = Catalog::new(store.clone(), Keys::default());
    let node = (Role::Worker, &options.node);
    let certified = node_certificate::obtain(node, &options.labels, &catalog, None, &clock);
    let prepared = Prepared {
        certified: Box::pin(certified).await?,
        authority: None,
    };
    let mut base = Base::open(&options.node, Backend::Shared(store), clock, prepared).await?;
    let worker = base.worker(options, fetcher).await?;
    Ok(base.start(None, Some(worker)))
}

#[cfg(test)]
pub(super) mod tests;
