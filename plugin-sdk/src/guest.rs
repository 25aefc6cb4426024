//! Boundary of the sandbox, seen from inside: everything that touches generated bindings.
//!
//! The rest of the SDK knows [`Answer`], [`Outlet`] and [`log`]; `testing` has the same three for native tests.
//! Generated types stay in here, so that another generator changes nothing for authors.

use std::marker::PhantomData;
use std::sync::Once;

use crate::extract::derived::Take;
use crate::extract::page_links::{self, LinkFilter};
use crate::extract::reading::{Captures, Reading};
use crate::{
    Crawl, Description, Follow, ItemKind, Level, Page, PageLinks, Plan, Plugin, PluginItem,
    Request, Result, RuleError,
};

use bindings::crawler::rules::{config, log as host_log, output, page, types};

#[doc(hidden)]
pub mod bindings {
    wit_bindgen::generate!({
        path: "wit",
        world: "plugin",
        pub_export_macro: true,
        default_bindings_module: "crawler_plugin_sdk::guest::bindings",
    });
}

/// The component that exports a plugin.
#[derive(Debug)]
pub struct Component<P>(PhantomData<P>);

impl<P: Plugin> bindings::exports::crawler::rules::rules::Guest for Component<P> {
    fn describe() -> types::Description {
        send_panics();
        describe(P::DESCRIPTION)
    }

    fn root() -> Result<(), types::RuleError> {
        send_panics();
        Ok(P::call_root(&mut Crawl { outlet: Outlet })?)
    }

    fn parse(rule: u32) -> Result<(), types::RuleError> {
        send_panics();
        Ok(P::call_rule(
            rule,
            &Page::new(Answer {
                // A plugin has one plan more than it declares.
                links_plan: P::DESCRIPTION.plans.len() as u32,
            }),
            &mut Crawl { outlet: Outlet },
        )?)
    }
}

fn describe(description: Description) -> types::Description {
    let owned = |names: &[&str]| {
        names
            .iter()
            .map(|&name| name.to_owned())
            .collect::<Vec<_>>()
    };
    let rule = |name| types::RuleInfo {
        name,
        hints: Vec::new(),
    };
    let schema = |item: &ItemKind| types::ItemSchema {
        name: item.name.to_owned(),
        json_schema: item.schema(),
        hints: Vec::new(),
    };
    let plans = description.plans.iter().chain([&page_links::PLAN]);
    types::Description {
        name: description.name.to_owned(),
        version: description.version.to_owned(),
        rules: owned(description.rules).into_iter().map(rule).collect(),
        schemas: description.items.iter().map(schema).collect(),
        plans: plans.map(plan).collect(),
        hosts: owned(description.hosts),
        limits: description
            .limits
            .iter()
            .map(|&(name, value)| (name.to_owned(), value))
            .collect(),
        hints: description
            .params_schema()
            .map(|schema| ("params".to_owned(), schema))
            .into_iter()
            .collect(),
    }
}

fn plan(plan: &Plan) -> types::Plan {
    let flat = plan.shape.flat();
    let groups = flat.groups.into_iter().map(|group| types::Group {
        name: group.name,
        parent: group.parent,
        selector: group.selector,
        hints: Vec::new(),
    });
    let fields = flat.fields.into_iter().map(|field| types::Field {
        name: field.name,
        group: field.group,
        selector: field.selector,
        take: match field.take {
            Take::Text => types::Take::Text,
            Take::Raw => types::Take::TextRaw,
            Take::Inner => types::Take::Inner,
            Take::Attr(name) => types::Take::Attr(name.to_owned()),
            Take::Present => types::Take::Present,
            Take::Tag => types::Take::Tag,
        },
        first: field.first,
        keep: field.keep,
        hints: Vec::new(),
    });
    types::Plan {
        name: plan.name.to_owned(),
        groups: groups.collect(),
        fields: fields.collect(),
        hints: Vec::new(),
    }
}

/// Sends message and place of a panic to the host, because a panic becomes a trap without a text.
fn send_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|info| {
            let message = info.payload_as_str().unwrap_or("a panic without a text");
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            host_log::panic(message, &place);
        }));
    });
}

#[doc(hidden)]
pub fn log(level: Level, message: String) {
    let level = match level {
        Level::Debug => host_log::Level::Debug,
        Level::Info => host_log::Level::Info,
        Level::Warn => host_log::Level::Warn,
        Level::Error => host_log::Level::Error,
    };
    host_log::write(level, &message);
}

/// The page of this call.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The number of the plan of all links.
    links_plan: u32,
}

impl Answer {
    pub(crate) fn url(&self) -> String {
        page::url()
    }

    pub(crate) fn requested_url(&self) -> String {
        page::requested_url()
    }

    pub(crate) fn status(&self) -> u16 {
        page::status()
    }

    pub(crate) fn headers(&self) -> Vec<(String, String)> {
        page::headers()
    }

    pub(crate) fn redirects(&self) -> Vec<String> {
        page::redirects()
    }

    pub(crate) fn fetched_at(&self) -> u64 {
        page::fetched_at()
    }

    pub(crate) fn charset(&self) -> String {
        page::charset()
    }

    pub(crate) fn metadata(&self) -> Vec<(String, String)> {
        page::metadata()
    }

    pub(crate) fn truncated(&self) -> bool {
        page::truncated()
    }

    pub(crate) fn depth(&self) -> u32 {
        page::depth()
    }

    pub(crate) fn state(&self) -> Vec<u8> {
        page::state()
    }

    pub(crate) fn referrer(&self) -> Option<String> {
        page::referrer()
    }

    pub(crate) fn attempt(&self) -> u32 {
        page::attempt()
    }

    pub(crate) fn text(&self) -> String {
        page::text()
    }

    pub(crate) fn body(&self) -> Vec<u8> {
        page::body()
    }

    pub(crate) fn links_plan(&self) -> u32 {
        self.links_plan
    }

    pub(crate) fn extract(&self, number: u32, _plan: &Plan) -> Result<Captures> {
        let captures = page::extract(number).map_err(unread)?;
        let columns = captures.columns.into_iter();
        Ok(Captures {
            text: captures.text,
            groups: captures.groups,
            columns: columns.map(|column| (column.rows, column.spans)).collect(),
            base: captures.base,
            truncated: captures.truncated,
        })
    }

    /// Returns the positions of the links of a field that fit; the links stay with the host.
    pub(crate) fn choose_links(
        &self,
        number: u32,
        _plan: &Plan,
        field: u32,
        filter: LinkFilter,
    ) -> Result<Vec<u32>> {
        let filter = types::LinkFilter {
            within_host: filter.within_host,
            matching: filter.matching,
            not_matching: filter.not_matching,
            distinct: filter.distinct,
            hints: Vec::new(),
        };
        page::choose_links(number, field, &filter).map_err(not_chosen)
    }
}

/// Results of a call, handed to the host, which buffers them until the call succeeds.
#[derive(Debug)]
pub(crate) struct Outlet;

impl Outlet {
    pub(crate) fn emit<T: PluginItem>(&mut self, json: String) -> Result {
        output::emit(T::NUMBER, &json).map_err(refusal)
    }

    pub(crate) fn follow(&mut self, requests: Vec<Request>) -> Result {
        let requests: Vec<types::Request> = requests.into_iter().map(Into::into).collect();
        output::follow(&requests).map_err(refusal)
    }

    /// Follows links of the page, all or those at some positions. The page itself stays with the host.
    pub(crate) fn follow_page_links(
        &mut self,
        links: &PageLinks<'_>,
        chosen: Option<&[u32]>,
        follow: Follow,
    ) -> Result {
        self.follow_field(links.number(), page_links::HREF, chosen, follow)
    }

    pub(crate) fn follow_captures(
        &mut self,
        plan: u32,
        _reading: &Reading,
        field: u32,
        chosen: Option<&[u32]>,
        follow: Follow,
    ) -> Result {
        self.follow_field(plan, field, chosen, follow)
    }

    fn follow_field(
        &mut self,
        plan: u32,
        field: u32,
        chosen: Option<&[u32]>,
        follow: Follow,
    ) -> Result {
        let rule = follow.rule.number;
        let options = types::FollowOptions {
            priority: follow.priority,
            state: follow.state,
            reload: follow.reload,
            hints: follow.hints,
        };
        match chosen {
            None => output::follow_field(plan, field, rule, &options),
            Some(chosen) => output::follow_captures(plan, field, chosen, rule, &options),
        }
        .map_err(refusal)
    }

    pub(crate) fn param(&self, name: &str) -> Option<String> {
        config::get(name)
    }

    pub(crate) fn params(&self) -> Vec<(String, String)> {
        config::all()
    }
}

/// Keeps the host's text, which names the limit or the fault, so that it reaches the report as it is.
fn refusal(error: types::OutputError) -> RuleError {
    match error {
        types::OutputError::OverBudget(why) | types::OutputError::Refused(why) => {
            RuleError::unexpected(why)
        }
        types::OutputError::Other((code, why)) => RuleError::Other { code, why },
    }
}

/// Keeps the host's text, which names the limit.
fn unread(error: types::ExtractError) -> RuleError {
    match error {
        types::ExtractError::TooDeep(why)
        | types::ExtractError::TooLarge(why)
        | types::ExtractError::UnknownPlan(why) => RuleError::unexpected(why),
        types::ExtractError::Other((code, why)) => RuleError::Other { code, why },
    }
}

/// A filter that the host refuses is a mistake of the plugin, whatever the page is.
fn not_chosen(error: types::ChooseError) -> RuleError {
    match error {
        types::ChooseError::Unread(error) => unread(error),
        types::ChooseError::Refused(why) => RuleError::fatal(why),
        types::ChooseError::Other((code, why)) => RuleError::Other { code, why },
    }
}

impl From<Request> for types::Request {
    fn from(request: Request) -> Self {
        Self {
            url: request.url,
            method: request.method,
            headers: request.headers,
            body: request.body,
            rule: request.rule.number,
            priority: request.priority,
            state: request.state,
            reload: request.reload,
            hints: request.hints,
        }
    }
}

impl From<RuleError> for types::RuleError {
    fn from(error: RuleError) -> Self {
        match error {
            RuleError::Retry { after, why } => {
                let after_ms =
                    after.map(|after| u64::try_from(after.as_millis()).unwrap_or(u64::MAX));
                types::RuleError::Retry(types::Retry {
                    after_ms,
                    why,
                    hints: Vec::new(),
                })
            }
            RuleError::Skip(why) => types::RuleError::Skip(why),
            RuleError::Blocked(why) => types::RuleError::Blocked(why),
            RuleError::Fatal(why) => types::RuleError::Fatal(why),
            RuleError::Other { code, why } => types::RuleError::Other((code, why)),
        }
    }
}
