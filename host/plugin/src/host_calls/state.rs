//! State of one call, which its host functions share and which is dropped with it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crawler_schema::JsonSchema;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::WasiCtx;

use super::fuel::Meter;
use super::logs::Logs;
use super::reads::{Plans, Reads};
use super::wasi::context::context;
use crate::instance::cpu_time::CpuTime;
use crate::instance::limiter::MemoryLimiter;
use crate::{CallConfig, CallOutput};
use crawler_model::crawl::{Kill, Page, PageContext, UnixMillis};
use crawler_model::guest_text::GuestText;
use crawler_model::plugin::{Description, Limits};

/// Number of handles that a guest may hold or lend at once.
pub(crate) const HANDLES_MAX: usize = 4_096;

/// Function that is called, with its input.
#[derive(Debug, Clone)]
pub(crate) enum CallKind {
    /// `describe`, which has neither page nor output nor params.
    Describe,
    /// `root`, which has no page.
    Root,
    /// `parse`, with its page.
    Parse(Arc<Page>, PageContext),
}

impl CallKind {
    fn name(&self) -> &'static str {
        match self {
            CallKind::Describe => "describe",
            CallKind::Root => "root",
            CallKind::Parse(..) => "parse",
        }
    }
}

/// Error that ends a call from within a host function.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct CallEnded {
    pub(crate) kill: Kill,
    pub(crate) message: GuestText,
}

impl CallEnded {
    pub(crate) fn new(kill: Kill, message: impl fmt::Display) -> Self {
        Self {
            kill,
            message: GuestText::of(message),
        }
    }
}

/// Schemas that items are checked by, by number; `None` if any object will do.
pub(crate) type Schemas = Arc<[Option<JsonSchema>]>;

/// Amounts of the budgets that are used.
#[derive(Debug, Default)]
pub(super) struct OutputUsage {
    pub(super) item_bytes: u64,
    pub(super) requests: u64,
    pub(super) request_bytes: usize,
    pub(super) n_refused: u32,
}

/// State of one call.
pub(crate) struct CallState {
    pub(crate) kind: CallKind,
    /// Description with the names behind the numbers of rules and schemas. `None` while describing.
    pub(super) description: Option<Arc<Description>>,
    pub(super) plans: Plans,
    pub(super) schemas: Schemas,
    pub(super) reads: Reads,
    pub(super) params: Arc<BTreeMap<String, String>>,
    pub(crate) limits: Limits,
    pub(crate) output: CallOutput,
    pub(super) usage: OutputUsage,
    pub(crate) logs: Logs,
    pub(crate) meter: Meter,
    pub(crate) panic: Option<(GuestText, GuestText)>,
    pub(crate) memory: MemoryLimiter,
    /// Processor time, of limit `cpu`, without the reading of pages, which has the same limit for itself.
    pub(crate) time: CpuTime,
    pub(super) wasi: WasiCtx,
    pub(super) table: ResourceTable,
}

impl CallState {
    /// Creates a state within the limits of `config`, raised by the memory that the plugin asks for.
    pub(crate) fn new(
        kind: CallKind,
        description: Option<Arc<Description>>,
        plans: Plans,
        schemas: Schemas,
        config: CallConfig,
        now: UnixMillis,
        seed: [u8; 32],
    ) -> Self {
        let reads = Reads::within(&config.limits);
        let limits = match &description {
            Some(description) => config.limits.of_plugin(description),
            None => config.limits,
        };
        let logs = Logs::new(limits.log_lines);
        let meter = Meter::default();
        let mut table = ResourceTable::new();
        table.set_max_capacity(HANDLES_MAX);
        Self {
            kind,
            description,
            plans,
            schemas,
            reads,
            params: config.params,
            limits,
            output: CallOutput::default(),
            usage: OutputUsage::default(),
            wasi: context(now, seed, &logs, &meter),
            logs,
            meter,
            panic: None,
            memory: MemoryLimiter::new(limits.memory, &config.account),
            time: CpuTime::default(),
            table,
        }
    }

    /// Charges a host call that moves this many bytes, and ends the rule if it used too much.
    pub(super) fn charge(&self, n_bytes: usize) -> Result<(), CallEnded> {
        self.meter.charge_call(n_bytes);
        self.check_fuel()
    }

    pub(super) fn check_fuel(&self) -> Result<(), CallEnded> {
        if self.meter.used() <= self.limits.fuel {
            return Ok(());
        }
        Err(CallEnded::new(
            Kill::OutOfFuel,
            "the rule used up its fuel with host calls",
        ))
    }

    /// Returns the page of this call, charged as a host call that moves `n_bytes` of it.
    pub(super) fn page(
        &self,
        n_bytes: impl FnOnce(&Page, &PageContext) -> usize,
    ) -> Result<(&Page, &PageContext), CallEnded> {
        match &self.kind {
            CallKind::Parse(page, context) => {
                self.charge(n_bytes(page, context))?;
                Ok((page, context))
            }
            CallKind::Describe | CallKind::Root => Err(CallEnded::new(
                Kill::Denied,
                format_args!(
                    "the plugin asked for a page in {}, where there is none",
                    self.kind.name()
                ),
            )),
        }
    }
}
