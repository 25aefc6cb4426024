//! A resource in the form of the file: a table `[[resource]]`.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::source::Source;
use crawler_model::id::{PluginRef, ResourceName};
use crawler_model::placement::DEFAULT_WEIGHT;
use crawler_model::plugin::{LimitOverrides, parse_bytes, parse_millis};
use crawler_model::resource::{CrawlSettings, PlacementSpec, ResourceSpec, SettingError};
use crawler_model::settings::{Kind, SETTINGS, Setting, Value};

/// Keys of the table that are no settings of the crawl.
const OTHERS: [&str; 10] = [
    "name", "plugin", "params", "limits", "labels", "weight", "selector", "near", "apart", "shards",
];

/// Returns the keys of the table.
pub(super) fn keys() -> Vec<&'static str> {
    let settings = SETTINGS.iter().map(|setting| setting.name);
    OTHERS.into_iter().chain(settings).collect()
}

/// Keys of the table that are no settings of the crawl.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct OtherKeys {
    name: Option<ResourceName>,
    plugin: Option<PluginRef>,
    #[serde(default)]
    params: BTreeMap<String, String>,
    #[serde(default)]
    limits: BTreeMap<String, toml::Value>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    weight: Option<u32>,
    #[serde(default)]
    selector: BTreeMap<String, String>,
    near: Option<ResourceName>,
    apart: Option<ResourceName>,
    shards: Option<u32>,
}

/// Reads a table. If it has faults, takes note of each, at the line of its key, and returns `None`.
pub(super) fn read(source: &mut Source<'_>, table: Spanned<DeValue<'_>>) -> Option<ResourceSpec> {
    let n_before = source.n_faults();
    let table = source.table("[[resource]]", table, &keys())?;
    let span = table.span();
    let (mut others, mut crawl) = (DeTable::new(), CrawlSettings::default());
    let mut places = BTreeMap::new();
    for (key, value) in table.into_inner() {
        let at = key.span().start;
        match Setting::named(key.get_ref()) {
            Some(setting) => {
                if let Some(value) = setting_value(source, setting, value)
                    && let Err(error) = set(setting, &mut crawl, value)
                {
                    source.fault(at, error.to_string());
                }
            }
            None => {
                places.insert(key.get_ref().clone().into_owned(), at);
                others.insert(key, value);
            }
        }
    }
    let place = |key: &str| places.get(key).copied().unwrap_or(span.start);
    let others = Spanned::new(span.clone(), others);
    let others = source.take_keys(others, Ok::<OtherKeys, _>)?;
    let limits = limits(source, place("limits"), &others.limits);
    let Some(name) = others.name else {
        source.fault(span.start, "missing field `name`");
        return None;
    };
    let plugin = match others.plugin {
        Some(plugin) => Ok(plugin),
        None => name.as_str().parse(),
    };
    let plugin = plugin.map_err(|error| source.fault(place("name"), error.to_string()));
    let spec = ResourceSpec {
        plugin: plugin.ok()?,
        params: others.params,
        limits,
        crawl,
        placement: PlacementSpec {
            shards: others.shards.unwrap_or(1),
            weight: others.weight.unwrap_or(DEFAULT_WEIGHT),
            selector: others.selector,
            near: others.near,
            apart: others.apart,
        },
        labels: others.labels,
        name,
    };
    for checked in [spec.placement.check(&spec.name), spec.check_labels()] {
        if let Err(error) = checked {
            source.fault(place(error.setting), error.to_string());
        }
    }
    (source.n_faults() == n_before).then_some(spec)
}

/// Puts a value into the settings. Refuses one that makes no sense, whatever the others are.
fn set(setting: &Setting, crawl: &mut CrawlSettings, value: Value) -> Result<(), SettingError> {
    let mut alone = CrawlSettings::default();
    setting.set(&mut alone, value.clone())?;
    alone.check()?;
    setting.set(crawl, value)
}

fn limits(
    source: &mut Source<'_>,
    at: usize,
    written: &BTreeMap<String, toml::Value>,
) -> LimitOverrides {
    let mut limits = LimitOverrides::default();
    for (name, value) in written {
        let set = match value {
            toml::Value::String(text) => limits.set(name, text),
            toml::Value::Integer(number) if *number >= 0 => {
                limits.set_number(name, number.unsigned_abs())
            }
            other => limits.set(name, &other.to_string()),
        };
        if let Err(error) = set {
            source.fault(at, error.to_string());
        }
    }
    limits
}

/// Returns the value of a setting. If it has another form, takes note of that.
fn setting_value(
    source: &mut Source<'_>,
    setting: &Setting,
    value: Spanned<DeValue<'_>>,
) -> Option<Value> {
    let at = value.span().start;
    let parsed = match setting.kind {
        Kind::U32 => return Some(Value::Number(source.take::<u32>(value)?.into())),
        Kind::U64 => return source.take(value).map(Value::Number),
        Kind::Text => return source.take(value).map(Value::Text),
        Kind::Texts | Kind::List => return source.take(value).map(Value::Texts),
        Kind::Bytes => bytes(setting.name, &source.take(value)?),
        Kind::Time => millis(setting.name, &source.take(value)?),
    };
    parsed.map_err(|why| source.fault(at, why)).ok()
}

fn millis(key: &str, value: &toml::Value) -> Result<Value, String> {
    if let Some(number) = value.as_integer().filter(|number| *number >= 0) {
        return Err(format!(
            "{key} takes a time with its unit, like \"{number}ms\" or \"{number}s\", not {number}"
        ));
    }
    match value.as_str().and_then(parse_millis) {
        Some(millis) => Ok(Value::Number(millis)),
        None => Err(format!("{key} takes a time like 250ms or 1s, not {value}")),
    }
}

fn bytes(key: &str, value: &toml::Value) -> Result<Value, String> {
    let size = match value {
        toml::Value::String(text) => parse_bytes(text),
        other => other.as_integer().and_then(|n| u64::try_from(n).ok()),
    };
    match size {
        Some(size) => Ok(Value::Number(size)),
        None => Err(format!(
            "{key} takes a size like 64MiB or 4096, not {value}"
        )),
    }
}
