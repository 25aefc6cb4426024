//! Settings of this machine for loading and running plugins.

use std::path::PathBuf;
use std::time::Duration;

use crawler_model::plugin::Limits;
use crawler_process::confine::Confinement;

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
