//! A resource that a process starts with: a table `[[resource]]` of the config file.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Error, IntoDeserializer, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crawler_model::id::{PluginRef, ResourceName};
use crawler_model::placement::DEFAULT_WEIGHT;
use crawler_model::plugin::{LimitOverrides, parse_bytes, parse_millis};
use crawler_model::resource::{CrawlSettings, PlacementSpec, ResourceSpec};
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

pub(super) struct ResourceTable {
    others: OtherKeys,
    /// Settings of the crawl with their values. An error is a sentence for the user.
    crawl: Vec<(&'static Setting, Result<Value, String>)>,
}

/// Keys of the table that are no settings of the crawl.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct OtherKeys {
    name: ResourceName,
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

impl ResourceTable {
    /// Parses the table; an error is a sentence for the user.
    pub(super) fn into_spec(self) -> Result<ResourceSpec, String> {
        let others = self.others;
        let mut limits = LimitOverrides::default();
        for (name, value) in &others.limits {
            let set = match value {
                toml::Value::String(text) => limits.set(name, text),
                toml::Value::Integer(number) if *number >= 0 => {
                    limits.set_number(name, number.unsigned_abs())
                }
                other => limits.set(name, &other.to_string()),
            };
            set.map_err(|e| e.to_string())?;
        }
        let mut crawl = CrawlSettings::default();
        for (setting, value) in self.crawl {
            let set = setting.set(&mut crawl, value?);
            set.map_err(|e| e.to_string())?;
        }
        crawl.check().map_err(|e| e.to_string())?;
        let placement = PlacementSpec {
            shards: others.shards.unwrap_or(1),
            weight: others.weight.unwrap_or(DEFAULT_WEIGHT),
            selector: others.selector,
            near: others.near,
            apart: others.apart,
        };
        placement.check(&others.name).map_err(|e| e.to_string())?;
        let plugin = match others.plugin {
            Some(plugin) => plugin,
            None => others.name.as_str().parse().map_err(|e| format!("{e}"))?,
        };
        let spec = ResourceSpec {
            name: others.name,
            plugin,
            params: others.params,
            limits,
            crawl,
            placement,
            labels: others.labels,
        };
        spec.check_labels().map_err(|e| e.to_string())?;
        Ok(spec)
    }
}

impl<'de> Deserialize<'de> for ResourceTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(TableVisitor)
    }
}

struct TableVisitor;

impl<'de> Visitor<'de> for TableVisitor {
    type Value = ResourceTable;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<ResourceTable, M::Error> {
        let mut crawl = Vec::new();
        let others = WithoutSettings {
            map,
            crawl: &mut crawl,
        };
        let others = OtherKeys::deserialize(MapAccessDeserializer::new(others))?;
        Ok(ResourceTable { others, crawl })
    }
}

/// Table whose settings are put aside as they come.
struct WithoutSettings<'a, M> {
    map: M,
    crawl: &'a mut Vec<(&'static Setting, Result<Value, String>)>,
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for WithoutSettings<'_, M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, M::Error> {
        while let Some(key) = self.map.next_key::<String>()? {
            let Some(setting) = Setting::named(&key) else {
                return seed.deserialize(key.into_deserializer()).map(Some);
            };
            let value = self.map.next_value_seed(ValueOf(setting))?;
            self.crawl.push((setting, value));
        }
        Ok(None)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        self.map.next_value_seed(seed)
    }
}

/// Value of a setting in the form of the file.
struct ValueOf(&'static Setting);

impl<'de> DeserializeSeed<'de> for ValueOf {
    type Value = Result<Value, String>;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        let ValueOf(setting) = self;
        Ok(match setting.kind {
            Kind::U32 => Ok(Value::Number(u32::deserialize(value)?.into())),
            Kind::U64 => Ok(Value::Number(u64::deserialize(value)?)),
            Kind::Bytes => bytes(setting.name, &toml::Value::deserialize(value)?),
            Kind::Time => millis(setting.name, &toml::Value::deserialize(value)?),
            Kind::Text => Ok(Value::Text(String::deserialize(value)?)),
            Kind::Texts => Ok(Value::Texts(Vec::deserialize(value)?)),
            Kind::List => {
                let texts = Value::Texts(Vec::deserialize(value)?);
                // An error here has the line of the key.
                let set = setting.set(&mut CrawlSettings::default(), texts.clone());
                set.map_err(D::Error::custom)?;
                Ok(texts)
            }
        })
    }
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
