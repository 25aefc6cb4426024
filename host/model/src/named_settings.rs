//! Settings of a spec under the names by which users write them, so that two specs can be compared by name.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use super::resource::ResourceSpec;
use super::settings::SETTINGS;

/// Returns the settings that a spec has, by their names: `delay`, `limit memory`, `param start`, `label team`, `plugin`. A
/// setting of the crawl that has its default is missing.
pub(super) fn named_settings(spec: &ResourceSpec) -> BTreeMap<String, Value> {
    let plugin = Value::from(spec.plugin.to_string());
    let mut named = BTreeMap::from([("plugin".to_owned(), plugin)]);
    let groups = [
        ("", fields(&spec.crawl)),
        ("", fields(&spec.placement)),
        ("limit ", fields(&spec.limits)),
        ("param ", fields(&spec.params)),
        ("label ", fields(&spec.labels)),
    ];
    for (prefix, group) in groups {
        for (field, value) in group {
            let row = SETTINGS.iter().find(|setting| setting.field == field);
            let name = match row.filter(|_| prefix.is_empty()) {
                Some(setting) => setting.name.to_owned(),
                None => format!("{prefix}{field}"),
            };
            named.insert(name, value);
        }
    }
    named
}

fn fields(settings: &impl Serialize) -> Map<String, Value> {
    let value = serde_json::to_value(settings).expect("settings have text for keys in all maps");
    match value {
        Value::Object(fields) => fields,
        other => unreachable!("settings are an object, not {other}"),
    }
}

/// Returns the names under which two lists differ, in order.
pub(super) fn differing<V: PartialEq>(
    before: &BTreeMap<String, V>,
    after: &BTreeMap<String, V>,
) -> Vec<String> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let differ = |name: &&String| before.get(*name) != after.get(*name);
    names.into_iter().filter(differ).cloned().collect()
}
