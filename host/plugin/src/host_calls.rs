//! The functions that a rule may call while it runs: `page`, `output`, `log`, `config`, and a WASI that
//! answers nothing.
//!
//! The state of a call is in one [`CallState`] that is dropped with the call. Every host call is charged to
//! the rule's fuel by formula ([`fuel`]). Few host calls wait: the null WASI, when a guest sleeps, and those
//! that read a long page. Limit `timeout` ends the call all the same.

use wasmtime::component::{HasSelf, Linker};

use super::LogLevel;
use super::bindings::Plugin;
use super::bindings::crawler::rules::{config, log, page, types};
use crawler_model::page::PageContext;

pub(crate) mod extract;
pub(crate) mod fuel;
mod links;
pub(crate) mod logs;
mod output;
pub(crate) mod reads;
mod request;
mod state;
mod texts;
pub(crate) mod wasi;

pub(crate) use state::{CallEnded, CallKind, CallState, HANDLES_MAX, Schemas};
use texts::named_bytes;
pub(crate) use texts::up_to;

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
        let (page, context) = self.page(|_, _| 0)?;
        let metadata = context.metadata(page);
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

    fn referrer(&mut self) -> wasmtime::Result<Option<String>> {
        let length = |context: &PageContext| context.referrer.as_ref().map_or(0, |url| url.len());
        let (_, context) = self.page(|_, context| length(context))?;
        Ok(context.referrer.as_deref().map(str::to_owned))
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

    async fn choose_links(
        &mut self,
        plan: u32,
        field: u32,
        filter: types::LinkFilter,
    ) -> wasmtime::Result<Result<Vec<u32>, types::ChooseError>> {
        self.chosen_links(plan, field, filter).await
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
