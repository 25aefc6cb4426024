//! The functions that a rule may call while it runs: `page`, `output`, `log`, `config`, and a WASI that
//! answers nothing.
//!
//! The state of a call is in one [`CallState`] that is dropped with the call. Every host call is charged to
//! the rule's fuel by formula ([`fuel`]). Few host calls wait: the null WASI, when a guest sleeps, and those
//! that read a long page. Limit `timeout` ends the call all the same.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crawler_schema::JsonSchema;
use wasmtime::component::{HasSelf, Linker, ResourceTable};
use wasmtime_wasi::WasiCtx;

use super::bindings::Plugin;
use super::bindings::crawler::rules::{config, log, page, types};
use super::instance::cpu_time::CpuTime;
use super::instance::limiter::MemoryLimiter;
use super::{CallConfig, CallOutput, LogLevel};
use crawler_model::crawl::{Kill, Page, PageContext, UnixMillis};
use crawler_model::guest_text::GuestText;
use crawler_model::plugin::{Description, Limits};

pub(crate) mod extract;
pub(crate) mod fuel;
pub(crate) mod logs;
mod output;
mod request;
pub(crate) mod wasi;

use extract::{Plans, Reads};
use fuel::Meter;
use logs::Logs;

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

/// State of one call.
pub(crate) struct CallState {
    pub(crate) kind: CallKind,
    /// Description with the names behind the numbers of rules and schemas. `None` while describing.
    description: Option<Arc<Description>>,
    plans: Plans,
    schemas: Schemas,
    reads: Reads,
    params: Arc<BTreeMap<String, String>>,
    pub(crate) limits: Limits,
    pub(crate) output: CallOutput,
    usage: output::OutputUsage,
    pub(crate) logs: Logs,
    pub(crate) meter: Meter,
    pub(crate) panic: Option<(GuestText, GuestText)>,
    pub(crate) memory: MemoryLimiter,
    /// Processor time, of limit `cpu`, without the reading of pages, which has the same limit for itself.
    pub(crate) time: CpuTime,
    wasi: WasiCtx,
    table: ResourceTable,
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
            usage: output::OutputUsage::default(),
            wasi: wasi::context(now, seed, &logs, &meter),
            logs,
            meter,
            panic: None,
            memory: MemoryLimiter::new(limits.memory, &config.account),
            time: CpuTime::default(),
            table,
        }
    }

    /// Charges a host call that moves this many bytes, and ends the rule if it used too much.
    fn charge(&self, n_bytes: usize) -> Result<(), CallEnded> {
        self.meter.charge_call(n_bytes);
        self.check_fuel()
    }

    fn check_fuel(&self) -> Result<(), CallEnded> {
        if self.meter.used() <= self.limits.fuel {
            return Ok(());
        }
        Err(CallEnded::new(
            Kill::OutOfFuel,
            "the rule used up its fuel with host calls",
        ))
    }

    /// Returns the page of this call, charged as a host call that moves `n_bytes` of it.
    fn page(
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

/// Links everything that a plugin may import.
pub(crate) fn link(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    Plugin::add_to_linker::<_, HasSelf<_>>(linker, |state| state)?;
    wasi::link(linker)
}

impl types::Host for CallState {}

impl page::Host for CallState {
    fn url(&mut self) -> wasmtime::Result<String> {
        let (page, _) = self.page(|page, _| page.url.as_str().len())?;
        Ok(page.url.to_string())
    }

    fn requested_url(&mut self) -> wasmtime::Result<String> {
        let (page, _) = self.page(|page, _| page.requested_url.as_str().len())?;
        Ok(page.requested_url.to_string())
    }

    fn status(&mut self) -> wasmtime::Result<u16> {
        Ok(self.page(|_, _| 0)?.0.status)
    }

    fn headers(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        let (page, _) = self.page(|page, _| page.headers.n_bytes())?;
        let each = page.headers.iter();
        Ok(each.map(|(n, v)| (n.to_owned(), v.to_owned())).collect())
    }

    fn header(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        let (page, _) = self.page(|page, _| page.header(&name).map_or(0, str::len) + name.len())?;
        Ok(page.header(&name).map(str::to_owned))
    }

    fn redirects(&mut self) -> wasmtime::Result<Vec<String>> {
        let (page, _) =
            self.page(|page, _| page.redirects.iter().map(|url| url.as_str().len()).sum())?;
        Ok(page.redirects.iter().map(ToString::to_string).collect())
    }

    fn fetched_at(&mut self) -> wasmtime::Result<u64> {
        Ok(self.page(|_, _| 0)?.0.fetched_at)
    }

    fn charset(&mut self) -> wasmtime::Result<String> {
        let (page, _) = self.page(|page, _| page.text.charset.len())?;
        Ok(page.text.charset.to_owned())
    }

    fn metadata(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        let metadata = self.page(|_, _| 0)?.0.metadata();
        self.charge(named_bytes(&metadata))?;
        Ok(metadata)
    }

    fn truncated(&mut self) -> wasmtime::Result<bool> {
        Ok(self.page(|_, _| 0)?.0.truncated)
    }

    fn depth(&mut self) -> wasmtime::Result<u32> {
        Ok(self.page(|_, _| 0)?.1.depth)
    }

    fn state(&mut self) -> wasmtime::Result<Vec<u8>> {
        let (_, context) = self.page(|_, context| context.state.len())?;
        Ok(context.state.to_vec())
    }

    fn attempt(&mut self) -> wasmtime::Result<u32> {
        Ok(self.page(|_, _| 0)?.1.attempt)
    }

    fn text(&mut self) -> wasmtime::Result<String> {
        let (page, _) = self.page(|page, _| page.text_bytes())?;
        Ok(page.text().into_owned())
    }

    fn body(&mut self) -> wasmtime::Result<Vec<u8>> {
        let (page, _) = self.page(|page, _| page.body.len())?;
        Ok(page.body.to_vec())
    }

    async fn extract(
        &mut self,
        plan: u32,
    ) -> wasmtime::Result<Result<types::Captures, types::ExtractError>> {
        self.charge(0)?;
        let reading = match self.read(plan).await? {
            Ok(reading) => reading,
            Err(error) => return Ok(Err(error)),
        };
        let description = self.described("read a page")?;
        let shown = reading.shown(&description.plans[plan as usize]);
        self.charge(extract::n_bytes(&shown))?;
        self.is_shown(plan);
        Ok(Ok(shown))
    }
}

impl log::Host for CallState {
    fn write(&mut self, level: log::Level, message: String) -> wasmtime::Result<()> {
        self.charge(message.len())?;
        let level = match level {
            log::Level::Debug => LogLevel::Debug,
            log::Level::Info => LogLevel::Info,
            log::Level::Warn => LogLevel::Warn,
            log::Level::Error => LogLevel::Error,
        };
        self.logs.push(level, &message);
        Ok(())
    }

    fn panic(&mut self, message: String, place: String) -> wasmtime::Result<()> {
        self.charge(message.len() + place.len())?;
        self.panic = Some((message.into(), place.into()));
        Ok(())
    }
}

impl config::Host for CallState {
    fn get(&mut self, name: String) -> wasmtime::Result<Option<String>> {
        let given = self.params.get(&name).map(String::as_str);
        let default = || self.description.as_deref()?.default_param(&name);
        let value = given.or_else(default).map(str::to_owned);
        self.charge(name.len() + value.as_ref().map_or(0, String::len))?;
        Ok(value)
    }

    fn all(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        let all: Vec<_> = match self.description.as_deref() {
            Some(description) => description.all_params(&self.params).into_iter().collect(),
            None => Vec::new(),
        };
        self.charge(named_bytes(&all))?;
        Ok(all)
    }
}

fn named_bytes(all: &[(String, String)]) -> usize {
    all.iter()
        .map(|(name, value)| name.len() + value.len())
        .sum()
}

/// Returns the start of a text, of at most `max` bytes.
pub(crate) fn up_to(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}
