//! What several modes are made of: listeners, engine, fetcher, and plugins by digest.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use ipnet::IpNet;
use tokio::net::TcpListener;

use crate::clock::Clock;
use crate::config;
use crate::data::DataRoot;
use crate::fetch::Fetch;
use crate::fetch::gate::{Gate, GateSettings};
use crate::fetch::guard::Guard;
use crate::fetch::http::{FetchSettings, HttpFetcher};
use crate::frontier::durable::{DurableSettings, Frontiers};
use crate::model::id::Digest;
use crate::plugin::engine::{Engine, EngineSettings};
use crate::plugin::{LoadRules, PluginError, Rules};
use crate::telemetry;

/// Takes a port, or says which setting would choose another.
pub(super) async fn listen(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}; choose another address with {flag}, or port 0 for a free one")
    })
}

/// Settings of the sandbox: compiled code is kept in the state folder.
pub(super) fn engine_settings(state: &Path) -> EngineSettings {
    EngineSettings {
        cache_folder: Some(state.join("compiled")),
        child_program: config::program(),
        ..EngineSettings::default()
    }
}

/// The sandbox. Setting it up reserves address space, which takes a moment.
pub(super) async fn engine(settings: EngineSettings) -> anyhow::Result<Engine> {
    let engine = tokio::task::spawn_blocking(move || Engine::new(settings)).await?;
    engine.context("cannot set up the sandbox")
}

/// The fetcher of this process; `own_nodes` are never fetched from.
pub(super) fn fetcher(
    allow_networks: &[IpNet],
    own_nodes: &[SocketAddr],
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Arc<dyn Fetch>> {
    let guard = Arc::new(Guard::new(allow_networks.to_vec()));
    guard.set_own_nodes(own_nodes.iter().map(SocketAddr::to_string));
    let gate = Arc::new(Gate::new(GateSettings::default()));
    let fetcher = HttpFetcher::new(FetchSettings::default(), guard, gate, clock);
    Ok(Arc::new(fetcher.context("cannot set up the fetcher")?))
}

/// What all frontiers of this process share.
pub(super) fn frontiers(data: &DataRoot, settings: DurableSettings) -> Arc<Frontiers> {
    let root = data.clone();
    let frontiers = Frontiers::new(data.object_store(), settings);
    Arc::new(frontiers.with_last_fault(Arc::new(move || root.last_error())))
}

/// A whole file.
pub(super) async fn read(path: &Path) -> anyhow::Result<Bytes> {
    let bytes = tokio::fs::read(path)
        .await
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(bytes.into())
}

/// Plugins from the data root, run by the engine.
pub(super) struct DataPlugins {
    pub(super) data: Arc<DataRoot>,
    pub(super) engine: Engine,
}

#[async_trait]
impl LoadRules for DataPlugins {
    async fn load(&self, digest: Digest) -> Result<Arc<dyn Rules>, PluginError> {
        let host = |why: String| PluginError::Host {
            doing: "read the plugin's bytes",
            why,
        };
        match self.data.plugin(digest).await {
            Ok(Some(bytes)) => Ok(self.engine.load(digest, bytes).await?),
            Ok(None) => Err(host(format!(
                "the data root has no plugin with digest {digest}; push it again"
            ))),
            Err(error) => Err(host(telemetry::chain(&error))),
        }
    }
}
