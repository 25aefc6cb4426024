//! Plugins: from pushed bytes to calls of rules in a sandbox.
//!
//! ```text
//! admission   is this a plugin at all? in a child process, with memory and time limits
//! engine      one wasmtime engine, its pool and its epoch ticker
//! cache       compiled code, on this machine only
//! instance    one call: a fresh store and instance, limits, a report of what was used
//! host_calls  what a rule may call: page, output, log, config, and WASI that answers nothing
//! build_stamp what a component was made of, as its build says
//! ```
//!
//! A call never sees another call's memory, never outlives its budget, and never reaches anything that it was
//! not granted. A [`CallReport`] tells its result and its cost, whether it succeeded or was killed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crawler_model::crawl::{Item, Kill, Page, PageContext, Request, RuleError};
use crawler_model::guest_text::GuestText;
use crawler_model::id::Digest;
use crawler_model::plugin::{Description, Limits};
use crawler_model::statistics::Matched;
use crawler_process::memory::Account;

pub mod admission;
mod bindings;
pub mod build_stamp;
mod cache;
pub mod engine;
mod host_calls;
mod host_error;
mod instance;

/// Versions of `crawler:rules` that this host runs, first and last.
pub const INTERFACE_VERSIONS: (&str, &str) = ("0.1.0", "0.1.1");

/// Surroundings of one call.
#[derive(Debug, Clone)]
pub struct CallConfig {
    /// Params of the resource.
    pub params: Arc<BTreeMap<String, String>>,
    /// Limits of the call.
    pub limits: Limits,
    /// Account in which the memory of the call is counted.
    pub account: Account,
}

/// Rules of one loaded plugin. Calls may run at the same time; none sees another.
#[async_trait]
pub trait Rules: Send + Sync + 'static {
    /// Returns the plugin's description of itself.
    fn description(&self) -> &Description;

    /// Calls `root` for the first requests. `now` is the clock that the guest sees, in milliseconds since
    /// 1970.
    async fn root(&self, config: CallConfig, now: u64) -> CallReport;

    /// Calls one rule with one page. A rule that the plugin does not have is [`RuleError::Fatal`].
    async fn parse(
        &self,
        config: CallConfig,
        rule: &str,
        page: Arc<Page>,
        context: PageContext,
    ) -> CallReport;
}

/// Admits bytes that somebody wants to push.
#[async_trait]
pub trait Admit: Send + Sync + 'static {
    /// Checks if the bytes are a plugin, and returns its description. Nothing is kept.
    async fn admit(&self, bytes: Bytes) -> Result<Admitted, PluginError>;
}

/// Finds plugins by the digest of their bytes.
#[async_trait]
pub trait LoadRules: Send + Sync + 'static {
    /// Returns the rules, ready to be called.
    async fn load(&self, digest: Digest) -> Result<Arc<dyn Rules>, PluginError>;
}

/// Gets the bytes of plugins from those who distribute them.
#[async_trait]
pub trait FetchBytes: Send + Sync + 'static {
    /// Returns all the bytes that have this digest. It is [`PluginError::Host`] if nobody gives them now;
    /// that may be otherwise later.
    async fn fetch(&self, digest: Digest) -> Result<Bytes, PluginError>;
}

/// Result of an admission.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// Digest of the bytes.
    pub digest: Digest,
    /// Size of the bytes.
    pub size: u64,
    /// Version of `crawler:rules` that the plugin was built for.
    pub interface: String,
    /// Digest of what the plugin was made of, if its build says it ([`build_stamp`]).
    pub sources: Option<Digest>,
    /// Description that the plugin gives of itself.
    pub description: Description,
}

/// Result and cost of a call.
#[derive(Debug)]
pub struct CallReport {
    /// Output of the call, or the reason why there is none.
    pub result: Result<CallOutput, CallFailure>,
    /// Log lines, in order; kept even when the call failed.
    pub logs: Vec<RuleLog>,
    /// Number of lines beyond limit `log-lines`.
    pub n_logs_dropped: u64,
    /// Cost of the call.
    pub usage: Usage,
    /// Place in the rule's source where it gave up, if the rule tells: file, line and function.
    pub place: Option<GuestText>,
    /// Plans that the page was read by, by their numbers, with the selectors that matched; also if the call failed.
    pub reads: Vec<(u32, Matched)>,
}

/// Output of a successful call.
#[derive(Debug, Default)]
pub struct CallOutput {
    /// Items, in the order emitted.
    pub items: Vec<Item>,
    /// Requests, in the order followed.
    pub requests: Vec<Request>,
    /// Number of followed URLs that do not parse.
    pub n_bad_urls: u64,
}

/// Reason why a call has no result.
#[derive(Debug)]
pub enum CallFailure {
    /// The rule gave up.
    Rule(RuleError),
    /// The host ended the call.
    Killed(Box<KillReport>),
}

/// Everything that is known about a call that the host ended.
#[derive(Debug, Clone)]
pub struct KillReport {
    /// Limit or fault that ended the call.
    pub kill: Kill,
    /// Explanation in a sentence, with the setting that could be changed; of a panic, its place and its message.
    pub message: GuestText,
    /// Functions that were open, innermost first.
    pub backtrace: Vec<Frame>,
}

impl KillReport {
    /// Returns the functions of the rule's author that were open, innermost first. A function that stands in
    /// several lines in a row has one line with their number.
    pub fn own_frames(&self) -> Vec<String> {
        folded(self.backtrace.iter().filter(|frame| frame.is_own))
    }

    /// Returns all functions that were open, in the same way.
    pub fn all_frames(&self) -> Vec<String> {
        folded(self.backtrace.iter())
    }
}

fn folded<'a>(frames: impl Iterator<Item = &'a Frame>) -> Vec<String> {
    let mut lines: Vec<(&GuestText, usize)> = Vec::new();
    for frame in frames {
        match lines.last_mut() {
            Some((name, n)) if *name == &frame.name => *n += 1,
            _ => lines.push((&frame.name, 1)),
        }
    }
    let line = |(name, n): (&GuestText, usize)| match n {
        1 => name.to_string(),
        n => format!("{name} ({n} times)"),
    };
    lines.into_iter().map(line).collect()
}

/// A function that was open when a call ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Name of the function, demangled if it is Rust's.
    pub name: GuestText,
    /// True if the author of the rule has written it, as far as its name tells.
    pub is_own: bool,
}

/// One line that a rule logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleLog {
    /// Level of the line.
    pub level: LogLevel,
    /// Text of the line.
    pub message: GuestText,
}

/// Level of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the usual words")]
pub enum LogLevel {
    Debug,
    Info,
    Warn,
    Error,
}

impl LogLevel {
    /// Returns the name in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            LogLevel::Debug => "debug",
            LogLevel::Info => "info",
            LogLevel::Warn => "warn",
            LogLevel::Error => "error",
        }
    }
}

/// Cost of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Fuel that was used, of limit `fuel`.
    pub fuel: u64,
    /// Peak memory in bytes, of limit `memory`.
    pub peak_memory: u64,
    /// Time from start to end.
    pub elapsed: Duration,
}

/// Reason why bytes are not accepted as a plugin, or why an accepted plugin cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The bytes are at fault.
    #[error("{found}; {allowed}; {remedy}")]
    Refused {
        /// Description of the bytes.
        found: GuestText,
        /// Description of the bytes that would be accepted.
        allowed: GuestText,
        /// Way out.
        remedy: String,
    },
    /// This machine is at fault.
    #[error("cannot {doing}: {why}")]
    Host {
        /// Operation as a verb and its object, such as "start the compiling process".
        doing: &'static str,
        /// Error that the operation failed with.
        why: String,
    },
}
