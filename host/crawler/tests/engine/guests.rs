//! The hostile plugin, built once, and engines to run it on.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use crawler_model::crawl::{CharsetSource, FetchRecord, Page, PageContext, PageText};
use crawler_model::id::Digest;
use crawler_model::plugin::Limits;
use crawler_plugin::CallConfig;
use crawler_plugin::engine::{Engine, EngineSettings, Plugin};
use crawler_process::memory::Account;
use tokio::sync::OnceCell;

#[path = "components.rs"]
mod components;

pub(crate) use components::component;

/// Returns the component `hostile.wasm`.
pub(crate) fn hostile() -> Bytes {
    static BYTES: OnceLock<Bytes> = OnceLock::new();
    BYTES
        .get_or_init(|| component("hostile", "tests/guests/hostile"))
        .clone()
}

/// Returns the hostile plugin with another `describe`.
pub(crate) fn describing(behaviour: &str) -> Bytes {
    const HONEST: &[u8; 24] = b"describe=honest.........";
    let mut bytes = hostile().to_vec();
    let at = bytes
        .windows(24)
        .position(|w| w == HONEST)
        .expect("the text is there");
    let text = format!("{:.<24}", format!("describe={behaviour}"));
    bytes[at..at + 24].copy_from_slice(text.as_bytes());
    bytes.into()
}

/// Returns settings for an engine with room for `n` calls, compiling with the program under test.
pub(crate) fn settings(n: u32) -> EngineSettings {
    EngineSettings {
        pool_instances: n,
        child_program: Some(env!("CARGO_BIN_EXE_crawler").into()),
        ..EngineSettings::default()
    }
}

/// Loads a plugin on an engine with room for one call: every call follows another in its slot.
pub(crate) async fn plugin_of(component: Bytes) -> Arc<Plugin> {
    let engine = Engine::new(settings(1)).expect("the engine starts");
    let loaded = engine.load(Digest::of(&component), component).await;
    loaded.expect("the plugin is loaded")
}

/// Returns the hostile plugin.
pub(crate) async fn plugin() -> Arc<Plugin> {
    static PLUGIN: OnceCell<Arc<Plugin>> = OnceCell::const_new();
    Arc::clone(PLUGIN.get_or_init(|| plugin_of(hostile())).await)
}

/// Returns the default limits, with the changes of a test, and params. The limits of time are raised, because
/// they would end calls on a busy machine.
pub(crate) fn config(change: impl FnOnce(&mut Limits), params: &[(&str, &str)]) -> CallConfig {
    let mut limits = Limits {
        cpu: Duration::from_secs(60),
        timeout: Duration::from_secs(60),
        ..Limits::default()
    };
    change(&mut limits);
    let params: BTreeMap<String, String> = params
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    CallConfig {
        params: Arc::new(params),
        limits,
        account: Account::default(),
    }
}

pub(crate) fn page(url: &str, body: impl Into<Bytes>) -> Arc<Page> {
    Arc::new(Page {
        url: url.parse().expect("tests use whole URLs"),
        requested_url: url.parse().expect("tests use whole URLs"),
        status: 200,
        headers: [("content-type", "text/html")].into_iter().collect(),
        redirects: Vec::new(),
        fetched_at: 1_700_000_000_123,
        truncated: false,
        body: body.into(),
        text: PageText {
            charset: "UTF-8",
            source: CharsetSource::Valid,
            decoded: None,
        },
        record: FetchRecord::default(),
    })
}

pub(crate) fn context() -> PageContext {
    PageContext {
        referrer: Some("http://a.test/list".into()),
        depth: 2,
        attempt: 1,
        state: Bytes::from_static(b"carried"),
        kept: None,
    }
}
