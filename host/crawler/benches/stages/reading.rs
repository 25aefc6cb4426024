//! Stages of a rule: extract, instance and guest.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crawler_extract::{Budget, CompiledPlan, Field, Group, Plan, PlanLimits, Take};
use crawler_model::id::Digest;
use crawler_plugin::engine::{Engine, EngineSettings, Plugin};
use crawler_plugin::{CallConfig, Rules as _};
use crawler_process::confine::Confinement;
use tokio::runtime::Runtime;

use crate::Repeated;
use crate::guests::{component, config, context, page, settings};
use crate::sample::{runtime, sample};

/// Time that the guest sees.
const NOW: u64 = 1_700_000_000_000;

/// Reads the page by the plan of a listing: its title and headings, its rows with their texts, dates and links.
pub(crate) fn extract(_folder: &Path) -> Repeated {
    let html = sample().html;
    let plan = CompiledPlan::new(&listing(), &PlanLimits::default()).expect("it is a plan");
    let budget = Budget {
        // A processor that is simulated is slow.
        deadline: Duration::from_secs(60),
        ..Budget::default()
    };
    Box::new(move || {
        let captures = crawler_extract::extract(&plan, &html, &budget);
        let captures = captures.expect("the page is small");
        assert!(black_box(captures).n_captures() > 30);
    })
}

fn listing() -> Plan {
    let row = Group {
        name: "row".to_owned(),
        parent: None,
        selector: "main > section.content-block".to_owned(),
    };
    let of_page = |name, selector, take| field(name, None, selector, take);
    let of_row = |name, selector, take| field(name, Some(0), selector, take);
    let href = || Take::Attr("href".to_owned());
    Plan {
        name: "listing".to_owned(),
        groups: vec![row],
        fields: vec![
            of_page("title", "title", Take::Text),
            of_page("headings", "h1, h2, h3", Take::Text),
            of_page("menu", "nav.menu li > a.link", href()),
            of_page("canonical", "link[rel=canonical]", href()),
            of_page("next", "a[rel~=next]", href()),
            of_page("links", "a[href]", href()),
            of_row("name", "h2", Take::Text),
            of_row("texts", "p.text:not(.hidden)", Take::Text),
            of_row("dates", "div.meta .date", Take::Text),
            of_row("rows", "a[href^=\"/\"]", href()),
        ],
    }
}

fn field(name: &str, group: Option<u32>, selector: &str, take: Take) -> Field {
    Field {
        name: name.to_owned(),
        group,
        selector: selector.to_owned(),
        take,
        first: false,
        keep: true,
    }
}

/// Makes an instance, calls a function that asks for one page, and drops the instance.
pub(crate) fn instance(folder: &Path) -> Repeated {
    let Outline {
        runtime,
        plugin,
        config,
    } = Outline::load(folder);
    Box::new(move || {
        let report = runtime.block_on(plugin.root(config.clone(), NOW));
        assert!(report.result.is_ok(), "{:?}", report.result);
        black_box(report);
    })
}

/// Calls the rule of `crawler bench` with the page: an instance, the page read as declared, an item, and the links.
pub(crate) fn guest(folder: &Path) -> Repeated {
    let Outline {
        runtime,
        plugin,
        config,
    } = Outline::load(folder);
    let sample = sample();
    let page = page(sample.url.as_str(), sample.html);
    Box::new(move || {
        let call = plugin.parse(config.clone(), "page", page.clone(), context());
        let report = runtime.block_on(call);
        assert!(report.result.is_ok(), "{:?}", report.result);
        black_box(report);
    })
}

/// The plugin of `crawler bench`, and what its calls are given.
struct Outline {
    runtime: Runtime,
    plugin: Arc<Plugin>,
    config: CallConfig,
}

impl Outline {
    /// Loads the plugin. A process that is simulated has another processor, and may be short of address space: there
    /// is room for one call, and the code is compiled by a process that is simulated as well, without bounds that
    /// such a process exceeds. Then it is kept in the folder.
    fn load(folder: &Path) -> Self {
        let settings = EngineSettings {
            cache_folder: Some(folder.join("compiled")),
            compile_memory: 64 << 30,
            compile_time: Duration::from_secs(1_800),
            confinement: Confinement::Off,
            ..settings(1)
        };
        let component = component("site_outline", "plugins/site_outline");
        let runtime = runtime();
        let plugin = runtime.block_on(async {
            let engine = Engine::new(settings).expect("the engine starts");
            let loaded = engine.load(Digest::of(&component), component).await;
            loaded.expect("the plugin is loaded")
        });
        Self {
            runtime,
            plugin,
            config: config(|_| (), &[("start", "http://h0.bench.test/")]),
        }
    }
}
