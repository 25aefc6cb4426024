//! One wasmtime engine per process: its pool, its epoch ticker, and the plugins it has loaded.
//!
//! The engine only runs code. It compiles none itself: a child process with limits of its own does that
//! ([`super::admission`]), or the code comes from `cache`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tokio::sync::Semaphore;
use wasmtime::component::Linker;

use super::admission::{self, Compiled, checks};
use super::bindings::PluginPre;
use super::cache::Cache;
use super::host_calls::{self, CallState};
use super::instance::TICK;
use super::{Admit, Admitted, PluginError};
use crawler_model::guest_text::GuestText;
use crawler_model::id::Digest;
use crawler_model::plugin::Limits;
use crawler_process::confine::Confinement;
use crawler_process::task::spawn_blocking;

mod budget;
mod loaded;
pub(crate) mod setup;

use budget::Budget;
pub use loaded::Plugin;
pub(crate) use setup::{
    CORE_INSTANCES_PER_COMPONENT, MEMORIES_PER_COMPONENT, MemoryMode, TABLES_PER_COMPONENT,
};

/// Settings of this machine for loading and running plugins.
#[derive(Debug, Clone)]
pub struct EngineSettings {
    /// Number of calls that run at once; further calls wait: setting `pool-instances`.
    pub pool_instances: u32,
    /// Bytes of memory that all running calls may use together; further calls wait: half of setting `memory`.
    pub call_memory: u64,
    /// Size of the largest plugin, in bytes: setting `plugin-size`.
    pub plugin_size: u64,
    /// Folder that keeps compiled code from one start to the next. If `None`, it is not kept.
    pub cache_folder: Option<PathBuf>,
    /// Bytes of compiled code that are kept, those that were used last: setting `compiled-size`.
    pub compiled_size: u64,
    /// Program that compiles, called as `PROGRAM __compile`. If `None`, it is this program if it is
    /// `crawler`, or else the `crawler` beside it.
    pub child_program: Option<PathBuf>,
    /// Number of plugins that are compiled at once.
    pub n_compiling: usize,
    /// Bytes of memory that compiling one plugin may take: setting `compile-memory`.
    pub compile_memory: u64,
    /// Time that compiling one plugin may take, on the clock and, for each processor, at work: setting
    /// `compile-time`.
    pub compile_time: Duration,
    /// Confinement of compiling processes, which give up what they do not need: setting `confinement`.
    pub confinement: Confinement,
}

/// Number of calls that run at once, unless it is set.
pub const POOL_INSTANCES: u32 = 64;

impl Default for EngineSettings {
    fn default() -> Self {
        Self {
            pool_instances: POOL_INSTANCES,
            call_memory: u64::from(POOL_INSTANCES) * Limits::default().memory,
            plugin_size: 64 << 20,
            cache_folder: None,
            compiled_size: 2 << 30,
            child_program: None,
            n_compiling: 2,
            compile_memory: 1 << 30,
            compile_time: Duration::from_secs(120),
            confinement: Confinement::On,
        }
    }
}

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
            return Ok((interface, Compiled::from_frame(frame)?));
        }
        let _permit = self
            .shared
            .compiles
            .acquire()
            .await
            .expect("the semaphore is never closed");
        let frame =
            admission::child::compile(&self.shared.settings, self.shared.memory_mode, bytes)
                .await?;
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
        let (interface, compiled) = self.compiled(digest, bytes).await?;
        Ok(Admitted {
            digest,
            size,
            interface,
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

pub(super) fn host_error<E: std::fmt::Display>(
    doing: &'static str,
) -> impl FnOnce(E) -> PluginError {
    move |error| PluginError::Host {
        doing,
        why: format!("{error:#}"),
    }
}

/// Advances the epoch, on a thread that ends when this is dropped.
pub(super) struct Ticker {
    stop: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    pub(super) fn start(engine: &wasmtime::Engine) -> Result<Self, PluginError> {
        let (stop, stopped) = sync_channel::<()>(0);
        let engine = engine.weak();
        let thread = std::thread::Builder::new()
            .name("epoch-ticker".to_owned())
            .spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(TICK) {
                    let Some(engine) = engine.upgrade() else {
                        return;
                    };
                    engine.increment_epoch();
                }
            })
            .map_err(host_error("start the epoch ticker"))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the epoch ticker panicked");
        }
    }
}
