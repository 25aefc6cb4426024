//! Plugins: from pushed bytes to calls of rules in a sandbox.
//!
//! ```text
//! admission   is this a plugin at all? in a child process, with memory and time limits
//! engine      one wasmtime engine, its pool and its epoch ticker
//! cache       compiled code, on this machine only
//! instance    one call: a fresh store and instance, limits, a report of what was used
//! host_calls  what a rule may call: page, output, log, config, and WASI that answers nothing
//! ```
//!
//! A call never sees another call's memory, never outlives its budget, and never reaches what it
//! was not granted. What it did is told by a [`CallReport`], whether it succeeded or was killed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::memory::Account;
use crate::model::crawl::{Item, Kill, Page, PageContext, Request, RuleError};
use crate::model::guest_text::GuestText;
use crate::model::id::Digest;
use crate::model::plugin::{Description, Limits};

pub mod admission;
mod bindings;
mod cache;
pub mod engine;
mod host_calls;
mod instance;

/// The versions of `crawler:rules` that this host runs, first and last.
pub const INTERFACE_VERSIONS: (&str, &str) = ("0.1.0", "0.1.1");

/// One call's surroundings.
#[derive(Debug, Clone)]
pub struct CallConfig {
    /// The resource's params.
    pub params: Arc<BTreeMap<String, String>>,
    /// What the call may use.
    pub limits: Limits,
    /// Where the memory that it uses is counted.
    pub account: Account,
}

/// The rules of one loaded plugin. Calls may run at the same time; none sees another.
#[async_trait]
pub trait Rules: Send + Sync + 'static {
    /// What the plugin says of itself.
    fn description(&self) -> &Description;

    /// The first requests. `now` is the clock that the guest sees, in milliseconds since 1970.
    async fn root(&self, config: CallConfig, now: u64) -> CallReport;

    /// One page through one rule. A rule that the plugin does not have is [`RuleError::Fatal`].
    async fn parse(
        &self,
        config: CallConfig,
        rule: &str,
        page: Arc<Page>,
        context: PageContext,
    ) -> CallReport;
}

/// Looks at bytes that somebody wants to push.
#[async_trait]
pub trait Admit: Send + Sync + 'static {
    /// Whether they are a plugin, and what it says of itself. Nothing is kept.
    async fn admit(&self, bytes: Bytes) -> Result<Admitted, PluginError>;
}

/// Finds plugins by what their bytes hash to.
#[async_trait]
pub trait LoadRules: Send + Sync + 'static {
    /// The rules, ready to be called.
    async fn load(&self, digest: Digest) -> Result<Arc<dyn Rules>, PluginError>;
}

/// Gets the bytes of plugins from those who distribute them.
#[async_trait]
pub trait FetchBytes: Send + Sync + 'static {
    /// The bytes that have this digest, all of them. [`PluginError::Host`] where nobody gives them
    /// now, which may be otherwise later.
    async fn fetch(&self, digest: Digest) -> Result<Bytes, PluginError>;
}

/// What admission has found out about bytes.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// Of the bytes.
    pub digest: Digest,
    /// Of the bytes.
    pub size: u64,
    /// The version of `crawler:rules` they were built for.
    pub interface: String,
    /// What the plugin says of itself.
    pub description: Description,
}

/// What a call did and used.
#[derive(Debug)]
pub struct CallReport {
    /// What it handed over, or why there is nothing.
    pub result: Result<CallOutput, CallFailure>,
    /// In order; kept even when the call failed.
    pub logs: Vec<RuleLog>,
    /// Lines beyond limit `log-lines`.
    pub n_logs_dropped: u64,
    /// What it cost.
    pub usage: Usage,
}

/// What a successful call handed over.
#[derive(Debug, Default)]
pub struct CallOutput {
    /// In the order emitted.
    pub items: Vec<Item>,
    /// In the order followed.
    pub requests: Vec<Request>,
    /// Followed URLs that do not parse.
    pub n_bad_urls: u64,
}

/// Why a call has no result.
#[derive(Debug)]
pub enum CallFailure {
    /// The rule gave up.
    Rule(RuleError),
    /// The host ended it.
    Killed(Box<KillReport>),
}

/// All there is to know about a call that was ended.
#[derive(Debug, Clone)]
pub struct KillReport {
    /// Which limit or fault.
    pub kill: Kill,
    /// In a sentence, with the setting that could be changed.
    pub message: GuestText,
    /// The guest's panic: message and place.
    pub panic: Option<(GuestText, GuestText)>,
    /// Names of functions, innermost first, demangled where they are Rust's.
    pub backtrace: Vec<GuestText>,
}

/// One line that a rule logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleLog {
    /// `debug`, `info`, `warn`, `error`.
    pub level: LogLevel,
    /// What it says.
    pub message: GuestText,
}

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the usual words")]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

impl LogLevel {
    /// In lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }
}

/// What a call cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of limit `fuel`.
    pub fuel: u64,
    /// Bytes at the highest, of limit `memory`.
    pub peak_memory: u64,
    /// From start to end.
    pub elapsed: Duration,
}

/// Why bytes are not accepted as a plugin, or an accepted plugin cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The bytes are at fault. What was found, what is allowed, what to do.
    #[error("{found}; {allowed}; {remedy}")]
    Refused {
        /// What the bytes are or have.
        found: GuestText,
        /// What would be accepted.
        allowed: GuestText,
        /// What to do.
        remedy: String,
    },
    /// This machine is at fault.
    #[error("cannot {doing}: {why}")]
    Host {
        /// A verb and its object: "start the compiling process".
        doing: &'static str,
        /// What was seen.
        why: String,
    },
}
