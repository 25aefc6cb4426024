//! A resource that a process starts with: a table `[[resource]]` of the config file.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::Deserialize;

use crate::model::id::{PluginRef, ResourceName};
use crate::model::placement::DEFAULT_WEIGHT;
use crate::model::plugin::{LimitOverrides, parse_bytes};
use crate::model::resource::{CrawlSettings, HostPattern, PlacementSpec, ResourceSpec};

/// Keys of the table.
pub(super) const RESOURCE: [&str; 36] = [
    "name",
    "plugin",
    "params",
    "limits",
    "delay",
    "concurrency",
    "max-pages",
    "max-bytes",
    "max-depth",
    "max-url-length",
    "max-segment-repeats",
    "max-pattern-urls",
    "max-hosts",
    "max-disk",
    "max-undelivered",
    "max-attempts",
    "max-retry-wait",
    "unchanged",
    "robots",
    "max-crawl-delay",
    "random-delay",
    "host-rate",
    "rate",
    "hours",
    "user-agent",
    "cookies",
    "cookie",
    "content-types",
    "proxy",
    "credentials",
    "scope",
    "weight",
    "selector",
    "near",
    "apart",
    "shards",
];

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct ResourceTable {
    name: ResourceName,
    plugin: Option<PluginRef>,
    #[serde(default)]
    params: BTreeMap<String, String>,
    #[serde(default)]
    limits: BTreeMap<String, toml::Value>,
    delay: Option<String>,
    concurrency: Option<u32>,
    max_pages: Option<u64>,
    max_bytes: Option<toml::Value>,
    max_depth: Option<u32>,
    max_url_length: Option<u32>,
    max_segment_repeats: Option<u32>,
    max_pattern_urls: Option<u64>,
    max_hosts: Option<u64>,
    max_disk: Option<toml::Value>,
    max_undelivered: Option<toml::Value>,
    max_attempts: Option<u32>,
    max_retry_wait: Option<String>,
    unchanged: Option<String>,
    robots: Option<String>,
    max_crawl_delay: Option<String>,
    random_delay: Option<String>,
    host_rate: Option<String>,
    rate: Option<String>,
    hours: Option<String>,
    #[serde(default)]
    user_agent: Vec<String>,
    cookies: Option<String>,
    #[serde(default)]
    cookie: Vec<String>,
    content_types: Option<String>,
    proxy: Option<String>,
    credentials: Option<String>,
    #[serde(default)]
    scope: Vec<HostPattern>,
    weight: Option<u32>,
    #[serde(default)]
    selector: BTreeMap<String, String>,
    near: Option<ResourceName>,
    apart: Option<ResourceName>,
    shards: Option<u32>,
}

impl ResourceTable {
    /// Parses the table; an error is a sentence for the user.
    pub(super) fn into_spec(self) -> Result<ResourceSpec, String> {
        let mut limits = LimitOverrides::default();
        for (name, value) in &self.limits {
            let set = match value {
                toml::Value::String(text) => limits.set(name, text),
                toml::Value::Integer(number) if *number >= 0 => {
                    limits.set_number(name, number.unsigned_abs())
                }
                other => limits.set(name, &other.to_string()),
            };
            set.map_err(|e| e.to_string())?;
        }
        let crawl = CrawlSettings {
            delay_ms: millis("delay", self.delay.as_deref())?,
            random_delay_ms: millis("random-delay", self.random_delay.as_deref())?,
            host_rate: setting("host-rate", self.host_rate.as_deref())?,
            rate: setting("rate", self.rate.as_deref())?,
            hours: setting("hours", self.hours.as_deref())?,
            concurrency: self.concurrency,
            max_pages: self.max_pages,
            max_bytes: bytes("max-bytes", self.max_bytes.as_ref())?,
            max_depth: self.max_depth,
            max_url_length: self.max_url_length,
            max_segment_repeats: self.max_segment_repeats,
            max_pattern_urls: self.max_pattern_urls,
            max_hosts: self.max_hosts,
            max_disk: bytes("max-disk", self.max_disk.as_ref())?,
            max_undelivered: bytes("max-undelivered", self.max_undelivered.as_ref())?,
            max_attempts: self.max_attempts,
            max_retry_wait_ms: millis("max-retry-wait", self.max_retry_wait.as_deref())?,
            unchanged: setting("unchanged", self.unchanged.as_deref())?,
            robots: setting("robots", self.robots.as_deref())?,
            max_crawl_delay_ms: millis("max-crawl-delay", self.max_crawl_delay.as_deref())?,
            user_agents: settings("user-agent", &self.user_agent)?,
            cookies: setting("cookies", self.cookies.as_deref())?,
            cookie_seeds: settings("cookie", &self.cookie)?,
            content_types: setting("content-types", self.content_types.as_deref())?,
            proxy: setting("proxy", self.proxy.as_deref())?,
            credentials: setting("credentials", self.credentials.as_deref())?,
            scope: self.scope,
        };
        crawl.check().map_err(|e| e.to_string())?;
        let placement = PlacementSpec {
            shards: self.shards.unwrap_or(1),
            weight: self.weight.unwrap_or(DEFAULT_WEIGHT),
            selector: self.selector,
            near: self.near,
            apart: self.apart,
        };
        placement.check(&self.name).map_err(|e| e.to_string())?;
        let plugin = match self.plugin {
            Some(plugin) => plugin,
            None => self.name.as_str().parse().map_err(|e| format!("{e}"))?,
        };
        Ok(ResourceSpec {
            name: self.name,
            plugin,
            params: self.params,
            limits,
            crawl,
            placement,
        })
    }
}

fn setting<T>(key: &str, text: Option<&str>) -> Result<Option<T>, String>
where
    T: FromStr<Err = String>,
{
    let parsed = text.map(str::parse).transpose();
    parsed.map_err(|why| format!("setting {key} {why}"))
}

fn settings<T>(key: &str, texts: &[String]) -> Result<Vec<T>, String>
where
    T: FromStr<Err = String>,
{
    let parsed = texts
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>();
    parsed.map_err(|why| format!("setting {key} {why}"))
}

fn millis(key: &str, text: Option<&str>) -> Result<Option<u64>, String> {
    let Some(text) = text else { return Ok(None) };
    let time = humantime::parse_duration(text).ok();
    match time.and_then(|time| u64::try_from(time.as_millis()).ok()) {
        Some(millis) => Ok(Some(millis)),
        None => Err(format!("{key} takes a time like 250ms or 1s, not {text:?}")),
    }
}

fn bytes(key: &str, value: Option<&toml::Value>) -> Result<Option<u64>, String> {
    let Some(value) = value else { return Ok(None) };
    let size = match value {
        toml::Value::String(text) => parse_bytes(text),
        other => other.as_integer().and_then(|n| u64::try_from(n).ok()),
    };
    match size {
        Some(size) => Ok(Some(size)),
        None => Err(format!(
            "{key} takes a size like 64MiB or 4096, not {value}"
        )),
    }
}
