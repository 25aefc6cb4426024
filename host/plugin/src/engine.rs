//! One wasmtime engine per process: its pool, its epoch ticker, and the plugins it has loaded.
//!
//! The engine only runs code. It compiles none itself: a child process with limits of its own does that
//! ([`super::admission`]), or the code comes from `cache`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use wasmtime::component::Linker;

use super::admission::{self, Compiled, checks};
use super::bindings::PluginPre;
use super::build_stamp;
use super::cache::Cache;
use super::host_calls::{self, CallState};
use super::host_error::host_error;
use super::{Admit, Admitted, PluginError};
use crawler_model::guest_text::GuestText;
use crawler_model::id::Digest;
use crawler_process::task::spawn_blocking;

mod budget;
mod counts;
mod loaded;
mod settings;
pub(crate) mod setup;
mod ticker;

use budget::Budget;
pub use counts::{EngineCounts, EngineUse};
pub use loaded::Plugin;
pub use settings::{EngineSettings, POOL_INSTANCES};
pub(crate) use setup::{
    CORE_INSTANCES_PER_COMPONENT, MEMORIES_PER_COMPONENT, MemoryMode, TABLES_PER_COMPONENT,
};
pub(crate) use ticker::Ticker;

/// Loads plugins and runs their rules. Clones share one engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    wasmtime: wasmtime::Engine,
    linker: Linker<CallState>,
    memory_mode: MemoryMode,
    settings: EngineSettings,
    cache: Option<Cache>,
    calls: Budget,
    counts: EngineCounts,
    compiles: Semaphore,
    loaded: Mutex<HashMap<Digest, Arc<tokio::sync::Mutex<Weak<Plugin>>>>>,
    _ticker: Ticker,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}

impl Engine {
    /// Sets the pool up. If address space for it is short, calls take their memory one by one.
    pub fn new(settings: EngineSettings) -> Result<Self, PluginError> {
        let pooled = {
            let mut config = setup::config(MemoryMode::Reserved);
            config.allocation_strategy(setup::pool(settings.pool_instances, settings.call_memory));
            wasmtime::Engine::new(&config)
        };
        let (wasmtime, memory_mode) = match pooled {
            Ok(wasmtime) => (wasmtime, MemoryMode::Reserved),
            Err(error) => {
                tracing::warn!(
                    error = format!("{error:#}"),
                    pool_instances = settings.pool_instances,
                    "no address space for the instance pool: calls are slower; lower --pool-instances or lift the limit on virtual memory"
                );
                let wasmtime = wasmtime::Engine::new(&setup::config(MemoryMode::Moving))
                    .map_err(host_error("start the WebAssembly engine"))?;
                (wasmtime, MemoryMode::Moving)
            }
        };
        let mut linker = Linker::new(&wasmtime);
        host_calls::link(&mut linker).map_err(host_error("link the host's functions"))?;
        let cache = match &settings.cache_folder {
            Some(folder) => Some(Cache::open(folder, &wasmtime, settings.compiled_size)?),
            None => None,
        };
        let ticker = Ticker::start(&wasmtime)?;
        Ok(Self {
            shared: Arc::new(Shared {
                calls: Budget::new(settings.pool_instances, settings.call_memory),
                counts: EngineCounts::default(),
                compiles: Semaphore::new(settings.n_compiling.max(1)),
                wasmtime,
                linker,
                memory_mode,
                settings,
                cache,
                loaded: Mutex::default(),
                _ticker: ticker,
            }),
        })
    }

    /// Makes a plugin ready to run. Loading it again returns the same one, while anybody holds it.
    pub async fn load(&self, digest: Digest, bytes: Bytes) -> Result<Arc<Plugin>, PluginError> {
        let slot = self.slot(digest);
        let mut slot = slot.lock().await;
        if let Some(plugin) = slot.upgrade() {
            return Ok(plugin);
        }
        let plugin = Arc::new(self.load_verified(digest, bytes).await?);
        *slot = Arc::downgrade(&plugin);
        Ok(plugin)
    }

    /// Makes a plugin ready to run whose bytes are not at hand: compiled code that was kept is run as it is,
    /// and the bytes are asked for only if there is none. Callers that ask meanwhile wait for the same
    /// result.
    pub async fn load_with(
        &self,
        digest: Digest,
        bytes: impl Future<Output = Result<Bytes, PluginError>>,
    ) -> Result<Arc<Plugin>, PluginError> {
        let slot = self.slot(digest);
        let mut slot = slot.lock().await;
        if let Some(plugin) = slot.upgrade() {
            return Ok(plugin);
        }
        let plugin = match self.load_kept(digest).await? {
            Some(plugin) => plugin,
            None => self.load_verified(digest, bytes.await?).await?,
        };
        let plugin = Arc::new(plugin);
        *slot = Arc::downgrade(&plugin);
        Ok(plugin)
    }

    /// Returns the counts of the engine since its start.
    pub fn counts(&self) -> &EngineCounts {
        &self.shared.counts
    }

    /// Returns how much of the engine is in use.
    pub fn present_use(&self) -> EngineUse {
        let (calls, max_calls) = self.shared.calls.slots();
        let (memory, max_memory) = self.shared.calls.bytes();
        let loaded = self.shared.loaded.lock();
        let loaded = loaded.unwrap_or_else(PoisonError::into_inner);
        // A slot that is locked belongs to a plugin that is being loaded.
        let ready = loaded.values().filter(|slot| {
            let plugin = slot.try_lock();
            plugin.is_ok_and(|plugin| plugin.strong_count() > 0)
        });
        EngineUse {
            calls,
            max_calls,
            memory,
            max_memory,
            plugins: ready.count() as u64,
        }
    }

    fn slot(&self, digest: Digest) -> Arc<tokio::sync::Mutex<Weak<Plugin>>> {
        let loaded = self.shared.loaded.lock();
        let mut loaded = loaded.unwrap_or_else(PoisonError::into_inner);
        // A slot that a caller waits for has more than one owner.
        loaded.retain(|_, slot| {
            Arc::strong_count(slot) > 1
                || slot
                    .try_lock()
                    .is_ok_and(|plugin| plugin.strong_count() > 0)
        });
        Arc::clone(loaded.entry(digest).or_default())
    }

    /// Loads a plugin from kept code alone: this version checked its bytes before the code was kept.
    async fn load_kept(&self, digest: Digest) -> Result<Option<Plugin>, PluginError> {
        let engine = self.clone();
        blocking("load the compiled plugin", move || {
            let Some(cache) = &engine.shared.cache else {
                return Ok(None);
            };
            let Some(frame) = cache.get(digest) else {
                return Ok(None);
            };
            let plugin = Compiled::from_frame(frame)
                .and_then(|compiled| Plugin::new(engine.clone(), digest, compiled));
            if let Err(error) = &plugin {
                tracing::warn!(%digest, %error, "compiled plugin cannot be loaded: compiling it again");
                cache.forget(digest);
            }
            if plugin.is_ok() {
                engine.shared.counts.loads.add("cache", 1);
            }
            Ok(plugin.ok())
        })
        .await
    }

    async fn load_verified(&self, digest: Digest, bytes: Bytes) -> Result<Plugin, PluginError> {
        let found = Digest::of(&bytes);
        if found != digest {
            return Err(PluginError::Refused {
                found: GuestText::of(format_args!("the bytes have the digest {found}")),
                allowed: GuestText::of(format_args!("plugin {digest} was to be loaded")),
                remedy: "transfer them again".to_owned(),
            });
        }
        self.load_new(digest, bytes).await
    }

    async fn load_new(&self, digest: Digest, bytes: Bytes) -> Result<Plugin, PluginError> {
        let (_, compiled) = self.compiled(digest, bytes.clone()).await?;
        match (
            Plugin::new(self.clone(), digest, compiled),
            &self.shared.cache,
        ) {
            (Err(error), Some(cache)) => {
                tracing::warn!(%digest, %error, "compiled plugin cannot be loaded: compiling it again");
                cache.forget(digest);
                let (_, compiled) = self.compiled(digest, bytes).await?;
                Plugin::new(self.clone(), digest, compiled)
            }
            (loaded, _) => loaded,
        }
    }

    /// Checks bytes, and has them compiled unless compiled code was kept.
    async fn compiled(
        &self,
        digest: Digest,
        bytes: Bytes,
    ) -> Result<(String, Compiled), PluginError> {
        let engine = self.clone();
        let checked = bytes.clone();
        let (interface, cached) = blocking("check the plugin", move || {
            let shared = &engine.shared;
            let features = shared.wasmtime.get_wasm_features();
            let interface = checks::check(&checked, shared.settings.plugin_size, features)?;
            let cached = shared.cache.as_ref().and_then(|cache| cache.get(digest));
            Ok((interface, cached))
        })
        .await?;
        if let Some(frame) = cached {
            self.shared.counts.loads.add("cache", 1);
            return Ok((interface, Compiled::from_frame(frame)?));
        }
        let _permit = self
            .shared
            .compiles
            .acquire()
            .await
            .expect("the semaphore is never closed");
        let begun = Instant::now();
        let frame =
            admission::child::compile(&self.shared.settings, self.shared.memory_mode, bytes)
                .await?;
        self.shared.counts.loads.add("compiled", 1);
        self.shared.counts.compiles.add(begun.elapsed());
        let compiled = Compiled::from_frame(frame.clone())?;
        let engine = self.clone();
        blocking("keep the compiled plugin", move || {
            if let Some(cache) = &engine.shared.cache {
                cache.put(digest, &frame);
            }
            Ok(())
        })
        .await?;
        Ok((interface, compiled))
    }

    fn link(
        &self,
        component: &wasmtime::component::Component,
    ) -> wasmtime::Result<PluginPre<CallState>> {
        PluginPre::new(self.shared.linker.instantiate_pre(component)?)
    }
}

#[async_trait]
impl Admit for Engine {
    async fn admit(&self, bytes: Bytes) -> Result<Admitted, PluginError> {
        let digest = Digest::of(&bytes);
        let size = bytes.len() as u64;
        let (interface, compiled) = self.compiled(digest, bytes.clone()).await?;
        // Only a component whose depth was checked may be looked through.
        let sources = blocking("read the build stamp", move || {
            Ok(build_stamp::sources(&bytes))
        });
        let sources = sources.await?;
        Ok(Admitted {
            digest,
            size,
            interface,
            sources,
            description: compiled.description,
        })
    }
}

/// Runs work that holds a thread for long away from the executor.
async fn blocking<T: Send + 'static>(
    doing: &'static str,
    work: impl FnOnce() -> Result<T, PluginError> + Send + 'static,
) -> Result<T, PluginError> {
    match spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(PluginError::Host {
            doing,
            why: error.to_string(),
        }),
    }
}
