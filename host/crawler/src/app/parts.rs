//! Parts that several modes are made of: cluster, engine, fetcher, and plugins by digest.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use bytes::Bytes;
use ipnet::IpNet;

use crate::cli::ClusterWorkerOptions;
use crate::cli::engine::EngineOptions;
use crate::cli::plugin::{build_plugin, refused};
use crate::config::{self, EtcdConfig, FetchConfig, FetcherSettings, FixedHosts};
use crawler_api::client::{FetchDeadlines, MasterPlugins};
use crawler_api::tls::ClientTls;
use crawler_data::DataRoot;
use crawler_fetch::address_policy::AddressPolicy;
use crawler_fetch::cache::CacheSettings;
use crawler_fetch::http::{FetchSettings, HttpFetcher};
use crawler_fetch::throttle::Throttle;
use crawler_frontier::durable::{DiskCache, DurableSettings, Frontiers};
use crawler_master::cleanup::{DataCleanup, DataRootCleanup};
use crawler_model::id::{Digest, Incarnation, NodeId};
use crawler_model::node::{CallToken, Node, Role};
use crawler_plugin::engine::{Engine, EngineSettings};
use crawler_plugin::{FetchBytes, INTERFACE_VERSIONS, LoadRules, PluginError, Rules};
use crawler_process::clock::Clock;
use crawler_process::confine::Confinement;
use crawler_process::memory::{self, Memory};
use crawler_process::task::TaskScope;
use crawler_process::telemetry;
use crawler_sink::items::ItemStore;
use crawler_store::catalog::{Catalog, encode};
use crawler_store::etcd::{EtcdSettings, TlsSettings};
use crawler_store::{Guard, Outcome, StoreError, Txn};

mod access;
mod webhooks;

pub(super) use webhooks::{call_settings, signing_keys, webhooks};

/// Divisor of the process's memory that gives the memory of calls.
const CALL_SHARE: u64 = 2;

/// Returns the fetcher of a worker, and the address policy that it asks. They come before `Base::open`, so that
/// wrong settings take no port.
pub(super) fn cluster_fetcher(
    options: &ClusterWorkerOptions,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<(Arc<AddressPolicy>, Arc<HttpFetcher>)> {
    let policy = address_policy(&options.allow_networks, &options.allow_ports);
    let config = &options.node.config;
    let fetch = fetcher(policy.clone(), &config.fetch, &config.hosts, None, clock)?;
    Ok((policy, fetch))
}

/// Returns the identity of this cluster, which is made when the store is empty. A user of etcd that may only read it
/// waits for a process that may write it.
pub(super) async fn cluster_id(catalog: &Catalog) -> anyhow::Result<String> {
    let key = catalog.keys().cluster();
    if let Some(present) = catalog.read::<String>(&key).await? {
        return Ok(present.value);
    }
    let fresh = hex::encode(rand::random::<[u8; 16]>());
    let txn = Txn::new()
        .guard(Guard::Absent(key.clone()))
        .put(key.clone(), encode(&fresh));
    match catalog.store().commit(txn).await {
        Err(StoreError::Denied { why, .. }) => {
            let why = format!("the cluster has no id yet, and a master has to write it: {why}");
            Err(StoreError::Unavailable { why }.into())
        }
        Err(error) => Err(error.into()),
        Ok(Outcome::Done(_)) => Ok(fresh),
        Ok(Outcome::Lost(_) | Outcome::Unknown) => {
            let present = catalog.read::<String>(&key).await?;
            let present = present.map(|id| id.value);
            // The answer of the write was lost, and the write was not carried out.
            let unknown = || StoreError::Unavailable {
                why: "the cluster has no id yet".to_owned(),
            };
            Ok(present.ok_or_else(unknown)?)
        }
    }
}

/// Returns the record of a node of this process, without labels, and taking no shards.
pub(super) fn node(
    role: Role,
    id: NodeId,
    address: String,
    http: SocketAddr,
    clock: &dyn Clock,
) -> Node {
    // A listener on all interfaces is reached at the host of the gRPC address.
    let http = match address.rsplit_once(':') {
        Some((host, _)) if http.ip().is_unspecified() => format!("{host}:{}", http.port()),
        _ => http.to_string(),
    };
    Node {
        id,
        role,
        address,
        http,
        pprof: String::new(),
        incarnation: Incarnation(rand::random::<u64>() >> 1),
        labels: BTreeMap::new(),
        capacity: 0,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        interface: INTERFACE_VERSIONS.1.to_owned(),
        draining: false,
        started_at: clock.unix_millis(),
        call_token: match role {
            // Nobody hands links to a master, so it needs no token.
            Role::Master => CallToken::default(),
            Role::Worker => CallToken::of(rand::random()),
        },
        shares_turns: false,
        tls: false,
    }
}

/// Returns the settings of the sandbox: compiled code is kept in the state folder.
fn engine_settings(options: &EngineOptions) -> EngineSettings {
    let usual = EngineSettings::default();
    EngineSettings {
        plugin_size: options.plugin_size,
        compile_time: options.compile_time,
        compile_memory: options.compile_memory,
        compiled_size: options.compiled_size,
        pool_instances: options.pool_instances,
        call_memory: allowed_memory(options).map_or(usual.call_memory, |all| all / CALL_SHARE),
        confinement: options.confinement,
        cache_folder: Some(options.state.join("compiled")),
        child_program: config::program(),
        ..usual
    }
}

/// Returns the bytes that this process may use; `None` if neither the user nor the system tells.
fn allowed_memory(options: &EngineOptions) -> Option<u64> {
    options.memory.or_else(memory::limit::usual)
}

/// Returns the memory that the crawls of this process share. It is watched until the scope ends; the caches of the
/// fetcher and of the frontiers shrink when it is short.
pub(super) fn memory(
    options: &EngineOptions,
    fetch: &Arc<HttpFetcher>,
    frontiers: Option<&Arc<Frontiers>>,
    scope: &TaskScope,
) -> Memory {
    let memory = watched_memory(options, scope);
    let fetch = Arc::clone(fetch);
    memory.shrinks(move |is_short| {
        if is_short {
            fetch.shrink();
        }
    });
    if let Some(frontiers) = frontiers.cloned() {
        memory.shrinks(move |is_short| frontiers.shrink(is_short));
    }
    memory
}

fn watched_memory(options: &EngineOptions, scope: &TaskScope) -> Memory {
    let Some(allowed) = allowed_memory(options) else {
        tracing::warn!(
            "this system does not tell how much memory there is: no crawl is held back when it becomes short"
        );
        return Memory::unwatched();
    };
    tracing::info!(allowed, "memory that may be used");
    let memory = Memory::of(allowed);
    let watch = memory::watch(memory.clone(), memory::resident::now, scope.stop_signal());
    scope.spawn("memory", watch);
    memory
}

/// Creates the sandbox of a process that runs plugins.
pub(super) async fn engine(options: &EngineOptions) -> anyhow::Result<Engine> {
    engine_with(engine_settings(options)).await
}

/// Creates a sandbox with these settings. It reserves address space, which takes a moment.
pub(super) async fn engine_with(settings: EngineSettings) -> anyhow::Result<Engine> {
    if settings.confinement == Confinement::Off {
        tracing::warn!(
            "not confined, as set by --confinement off: a plugin that broke out of the sandbox would have all rights of this user"
        );
    }
    let engine = crawler_process::task::spawn_blocking(move || Engine::new(settings)).await?;
    engine.context("cannot set up the sandbox")
}

/// Loads the rules of a plugin, which is built first if it is a folder. A refusal tells the line in its sources, which
/// are at or below these paths.
pub(super) async fn rules(
    plugin: &Path,
    sources: &[PathBuf],
    options: &EngineOptions,
) -> anyhow::Result<Arc<dyn Rules>> {
    let wasm = build_plugin(plugin).await?;
    let bytes = read(&wasm).await?;
    let engine = engine(options).await?;
    let digest = Digest::of(&bytes);
    let rules = engine.load(digest, bytes).await;
    Ok(
        rules
            .map_err(|error| refused(error, sources, format!("cannot load {}", wasm.display())))?,
    )
}

/// Returns the address policy with the networks and ports that the operator allows.
pub(super) fn address_policy(allow_networks: &[IpNet], allow_ports: &[u16]) -> Arc<AddressPolicy> {
    let address_policy = AddressPolicy::new(allow_networks.to_vec());
    Arc::new(address_policy.allowing_ports(allow_ports))
}

/// Returns the fetcher of this process behind this address policy, with a cache if there is to be one.
pub(super) fn fetcher(
    address_policy: Arc<AddressPolicy>,
    config: &FetchConfig,
    hosts: &FixedHosts,
    cache: Option<&CacheSettings>,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Arc<HttpFetcher>> {
    let fetcher = bare_fetcher(address_policy, config, hosts, clock)?;
    Ok(Arc::new(match cache {
        Some(cache) => fetcher.caching(cache)?,
        None => fetcher,
    }))
}

/// Returns the fetcher of this process behind this address policy, without a cache.
pub(super) fn bare_fetcher(
    address_policy: Arc<AddressPolicy>,
    config: &FetchConfig,
    hosts: &FixedHosts,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<HttpFetcher> {
    let mut settings = FetcherSettings {
        fetch: FetchSettings {
            hosts: hosts.clone(),
            ca: access::certificates(config.values.ca.as_deref())?,
            proxies: access::proxies(&config.proxies)?,
            credentials: access::credentials(&config.credentials)?,
            ..FetchSettings::default()
        },
        ..FetcherSettings::default()
    };
    config.values.apply(&mut settings);
    if let Some(agent) = config.agent() {
        settings.fetch.user_agent = agent;
    }
    let FetcherSettings { fetch, throttle } = settings;
    if !fetch.check_certificates {
        tracing::warn!(
            "certificates are not checked, as set by check-certificates of [fetch]: any server can impersonate a site"
        );
    }
    let throttle = Arc::new(Throttle::new(throttle));
    let fetcher = HttpFetcher::new(fetch, address_policy, throttle, clock);
    fetcher.context("cannot set up the fetcher")
}

/// Returns the settings of etcd, with the contents of the files that its table names.
pub(super) fn etcd_settings(config: &EtcdConfig) -> anyhow::Result<EtcdSettings> {
    let read = |path: &Option<PathBuf>| match path {
        Some(path) => {
            let bytes = std::fs::read(path);
            let bytes = bytes.with_context(|| format!("cannot read {}", path.display()));
            bytes.map(Some)
        }
        None => Ok(None),
    };
    let password = read(&config.password_file)?;
    let password = password.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    let ca = read(&config.ca)?;
    let client = read(&config.certificate)?.zip(read(&config.key)?);
    Ok(EtcdSettings {
        endpoints: config.endpoints.clone(),
        user: config.user.clone().zip(password),
        tls: ca.map(|ca| TlsSettings { ca, client }),
        ..EtcdSettings::default()
    })
}

/// Returns the frontiers of this process, with the parts that they share.
pub(super) fn frontiers(
    data: &DataRoot,
    settings: DurableSettings,
    cache: Option<DiskCache>,
) -> Arc<Frontiers> {
    let root = data.clone();
    let frontiers = Frontiers::new(data.object_store(), settings);
    let frontiers = frontiers.with_last_fault(Arc::new(move || root.last_error()));
    Arc::new(match cache {
        Some(cache) => frontiers.with_disk_cache(cache),
        None => frontiers,
    })
}

/// Returns the cleanup of the data root.
pub(super) fn cleanup(data: &Arc<DataRoot>, items: Arc<dyn ItemStore>) -> Arc<dyn DataCleanup> {
    Arc::new(DataRootCleanup {
        objects: data.object_store(),
        items,
        data: data.clone(),
    })
}

/// Reads a whole file.
pub(super) async fn read(path: &Path) -> anyhow::Result<Bytes> {
    let bytes = tokio::fs::read(path)
        .await
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(bytes.into())
}

/// Returns the source of plugins on the masters, for a worker apart from them.
pub(super) fn plugins_of_masters(
    catalog: &Catalog,
    engine: &EngineOptions,
    tls: &ClientTls,
) -> Arc<dyn FetchBytes> {
    let (deadlines, max_bytes) = (FetchDeadlines::default(), engine.plugin_size);
    let masters = MasterPlugins::new(catalog.clone(), max_bytes, deadlines, tls.clone());
    Arc::new(masters)
}

/// Loads plugins from the masters, or from the data root if none of them gives one; the engine runs them.
pub(super) struct DataPlugins {
    /// Source of plugins on the masters. If `None`, this process is the master.
    pub(super) masters: Option<Arc<dyn FetchBytes>>,
    pub(super) data: Arc<DataRoot>,
    pub(super) engine: Engine,
}

impl DataPlugins {
    async fn bytes(&self, digest: Digest) -> Result<Bytes, PluginError> {
        let fetched = match &self.masters {
            Some(masters) => masters.fetch(digest).await.map_err(|e| e.to_string()),
            None => Err(String::new()),
        };
        let of_masters = match fetched {
            Ok(bytes) => return Ok(bytes),
            Err(why) if why.is_empty() => why,
            Err(why) => format!("; {why}"),
        };
        let host = |why: String| PluginError::Host {
            doing: "read the plugin's bytes",
            why: why + &of_masters,
        };
        match self.data.plugin(digest).await {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(host(format!(
                "the data root has no plugin with digest {digest}; push it again"
            ))),
            Err(error) => Err(host(telemetry::chain(&error))),
        }
    }
}

#[async_trait]
impl LoadRules for DataPlugins {
    async fn load(&self, digest: Digest) -> Result<Arc<dyn Rules>, PluginError> {
        Ok(self.engine.load_with(digest, self.bytes(digest)).await?)
    }
}

#[cfg(test)]
mod tests;
