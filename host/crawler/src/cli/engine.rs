//! Options of the engine: the loading and running of plugins on this machine.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::args::{memory, size};
use crate::config::Environment;
use crawler_plugin::engine::POOL_INSTANCES;
use crawler_process::confine::Confinement;

/// Default size in bytes of the largest plugin; `--plugin-size` shows it.
const DEFAULT_PLUGIN_SIZE: u64 = 64 << 20;
/// Default time that compiling a plugin may take; `--compile-time` shows it. A Python plugin takes 12 s on
/// two processors that do nothing else.
const DEFAULT_COMPILE_TIME: Duration = Duration::from_secs(120);
/// Default memory that compiling a plugin may take; `--compile-memory` shows it.
const DEFAULT_COMPILE_MEMORY: u64 = 1 << 30;
/// Default number of bytes of compiled code that are kept; `--compiled-size` shows it.
const DEFAULT_COMPILED_SIZE: u64 = 2 << 30;

/// Options for loading and running plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// Size of the largest plugin, in bytes.
    pub plugin_size: u64,
    /// Time that compiling a plugin may take.
    pub compile_time: Duration,
    /// Bytes of memory that compiling a plugin may take.
    pub compile_memory: u64,
    /// Bytes of compiled code that are kept.
    pub compiled_size: u64,
    /// Number of calls of rules that run at once.
    pub pool_instances: u32,
    /// Bytes of memory that the process may use. If `None`, it is a part of what the system allows.
    pub memory: Option<u64>,
    /// Confinement of processes that see plugins.
    pub confinement: Confinement,
    /// Folder of state that is local to this machine: compiled code, and the id of a node.
    pub state: PathBuf,
}

impl EngineOptions {
    /// Returns the default options, with state in this folder.
    pub fn in_folder(state: PathBuf) -> Self {
        Self {
            plugin_size: DEFAULT_PLUGIN_SIZE,
            compile_time: DEFAULT_COMPILE_TIME,
            compile_memory: DEFAULT_COMPILE_MEMORY,
            compiled_size: DEFAULT_COMPILED_SIZE,
            pool_instances: POOL_INSTANCES,
            memory: None,
            confinement: Confinement::On,
            state,
        }
    }
}

/// Bounds on the cost of a plugin before any of its rules runs.
#[derive(Debug, Args)]
pub(super) struct AdmissionArgs {
    /// Bytes that a plugin may have
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = size)]
    pub(super) plugin_size: u64,
    /// Time that compiling a plugin may take
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = humantime::parse_duration)]
    pub(super) compile_time: Duration,
    /// Bytes of memory that compiling a plugin may take
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = size)]
    pub(super) compile_memory: u64,
    /// on or off: whether processes that see plugins give up, on Linux, files, sockets and other processes that they do
    /// not need [default: on, or what the config file says]
    #[arg(long, value_name = "WORD")]
    pub(super) confinement: Option<Confinement>,
}

impl AdmissionArgs {
    /// Returns the confinement that the argument asks for, or else the config file.
    pub(super) fn confinement(&self, configured: Option<Confinement>) -> Confinement {
        self.confinement.or(configured).unwrap_or_default()
    }
}

#[derive(Debug, Args)]
pub(super) struct EngineArgs {
    #[command(flatten)]
    admission: AdmissionArgs,
    /// Bytes of compiled code that are kept, those that were used last
    #[arg(long, value_name = "SIZE", default_value = "2GiB", value_parser = size)]
    compiled_size: u64,
    /// Calls of rules that run at once; further ones wait, as they do for half of --memory
    #[arg(long, value_name = "N", default_value_t = POOL_INSTANCES, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    pool_instances: u32,
    /// Memory that the process may use: from 7/8 of it on no page is taken, at 100 % the crawl that uses
    /// most is put back [default: 80 % of what the cgroup or the machine has]
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    memory: Option<u64>,
    /// Keeps compiled code; local to this machine [default: a folder in ~/.local/state/crawler]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
}

impl EngineArgs {
    /// Returns the bytes of the largest request, and the setting that allows it.
    pub(super) fn largest_upload(&self) -> (u64, &'static str) {
        (self.admission.plugin_size, "a plugin of --plugin-size")
    }

    pub(super) fn into_options(
        self,
        environment: &Environment,
        role: &str,
        grpc_port: u16,
        configured: Option<Confinement>,
    ) -> EngineOptions {
        EngineOptions {
            plugin_size: self.admission.plugin_size,
            compile_time: self.admission.compile_time,
            compile_memory: self.admission.compile_memory,
            compiled_size: self.compiled_size,
            pool_instances: self.pool_instances,
            memory: self.memory,
            confinement: self.admission.confinement(configured),
            state: match self.state {
                Some(state) => state,
                None => environment.state_folder(role, grpc_port),
            },
        }
    }
}
