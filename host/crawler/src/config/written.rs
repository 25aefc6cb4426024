//! A resource written in the form of the file, without what has its default, and the difference between two of them.
//!
//! A spec that is written here is read again as the same. All settings come from their table, so that none is missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crawler_model::guest_text::steers;
use crawler_model::placement::DEFAULT_WEIGHT;
use crawler_model::plugin::{LimitKind, LimitName, LimitOverrides, Limits, format_bytes};
use crawler_model::resource::ResourceSpec;
use crawler_model::settings::{Kind, SETTINGS, Setting, Value};

/// Value of a key in the form of the file. Its text is that of TOML.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Written {
    /// A number.
    Number(u64),
    /// A text; times and sizes are texts too.
    Text(String),
    /// A list of texts.
    Texts(Vec<String>),
    /// A table.
    Table(BTreeMap<String, Written>),
}

/// Difference of one field between two specs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Key of the field; within a table with the key of the table, as in `params.start`.
    pub field: String,
    /// Value before the change, or the default.
    pub old: String,
    /// Value after the change, or the default.
    pub new: String,
}

/// Returns the keys of a resource with their values, in the order of the example. Keys that would have their default
/// are left out.
fn written(spec: &ResourceSpec) -> Vec<(&'static str, Written)> {
    let entries = entries(spec).into_iter();
    entries
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
}

/// Returns all keys in their order, each with its value unless that is the default.
fn entries(spec: &ResourceSpec) -> Vec<(&'static str, Option<Written>)> {
    let text = |text: &dyn ToString| Some(Written::Text(text.to_string()));
    let texts = |texts: &BTreeMap<String, String>| {
        let entries = texts.iter();
        let entries = entries.map(|(key, value)| (key.clone(), Written::Text(value.clone())));
        table(entries.collect())
    };
    let number = |n: u32, default: u32| (n != default).then_some(Written::Number(n.into()));
    let is_other_plugin = spec.plugin.to_string() != spec.name.as_str();
    let placement = &spec.placement;
    let mut entries = vec![
        ("name", text(&spec.name)),
        ("plugin", text(&spec.plugin).filter(|_| is_other_plugin)),
        ("labels", texts(&spec.labels)),
        ("params", texts(&spec.params)),
        ("limits", table(limits(&spec.limits))),
    ];
    let settings = SETTINGS.iter();
    entries.extend(settings.map(|setting| {
        let value = setting.value(&spec.crawl);
        (setting.name, value.map(|value| of_setting(setting, value)))
    }));
    entries.extend([
        ("weight", number(placement.weight, DEFAULT_WEIGHT)),
        ("selector", texts(&placement.selector)),
        ("near", placement.near.as_ref().and_then(|near| text(near))),
        (
            "apart",
            placement.apart.as_ref().and_then(|apart| text(apart)),
        ),
        ("shards", number(placement.shards, 1)),
    ]);
    entries
}

/// Returns the text of a file with these resources, in their order.
pub fn document<'a>(specs: impl IntoIterator<Item = &'a ResourceSpec>) -> String {
    let mut text = String::new();
    for spec in specs {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str("[[resource]]\n");
        for (key, value) in written(spec) {
            text.push_str(&format!("{key} = {value}\n"));
        }
    }
    text
}

/// Returns the same as JSON.
pub fn json_document<'a>(
    specs: impl IntoIterator<Item = &'a ResourceSpec>,
) -> serde_json::Result<String> {
    let resource = specs.into_iter().map(|spec| Keys(written(spec))).collect();
    serde_json::to_string_pretty(&Document { resource })
}

/// Form of a file in JSON.
#[derive(Serialize)]
struct Document {
    resource: Vec<Keys>,
}

/// Keys of a resource, which keep their order.
struct Keys(Vec<(&'static str, Written)>);

impl Serialize for Keys {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

/// Returns the fields in which two specs of one resource differ, in the order of the example.
pub fn changes(present: &ResourceSpec, wanted: &ResourceSpec) -> Vec<Change> {
    let mut changes = Vec::new();
    for ((key, old), (_, new)) in entries(present).into_iter().zip(entries(wanted)) {
        if key == "plugin" {
            // Where the key is absent, the name says which plugin it is.
            let [old, new] = [present, wanted].map(|spec| Written::Text(spec.plugin.to_string()));
            changes.extend(change(key, Some(&old), Some(&new)));
            continue;
        }
        let (old_inner, new_inner) = (inner(old.as_ref()), inner(new.as_ref()));
        let fields: BTreeSet<&String> = old_inner.keys().chain(new_inner.keys()).copied().collect();
        if fields.is_empty() {
            changes.extend(change(key, old.as_ref(), new.as_ref()));
        }
        for field in fields {
            let (old, new) = (old_inner.get(field), new_inner.get(field));
            let field = format!("{key}.{}", self::key(field));
            changes.extend(change(&field, old.copied(), new.copied()));
        }
    }
    changes
}

/// Returns the entries of a table; none if the value is no table.
fn inner(value: Option<&Written>) -> BTreeMap<&String, &Written> {
    match value {
        Some(Written::Table(entries)) => entries.iter().collect(),
        _ => BTreeMap::new(),
    }
}

fn change(field: &str, old: Option<&Written>, new: Option<&Written>) -> Option<Change> {
    let shown = |value: Option<&Written>| value.map_or_else(|| default(field), Written::to_string);
    (old != new).then(|| Change {
        field: field.to_owned(),
        old: shown(old),
        new: shown(new),
    })
}

/// Returns what holds where a field is absent.
fn default(field: &str) -> String {
    let known = match (Setting::named(field), field.split_once('.')) {
        (Some(setting), _) => setting.default.to_string(),
        (None, Some(("limits", name))) => {
            let limit = LimitName::ALL
                .into_iter()
                .find(|limit| limit.as_str() == name);
            let value = limit.map(|limit| of_limit(limit, Limits::default().value(limit)));
            value.map_or_else(String::new, |value| value.to_string())
        }
        (None, None) if field == "weight" => DEFAULT_WEIGHT.to_string(),
        (None, None) if field == "shards" => "1".to_owned(),
        (None, _) => return "none".to_owned(),
    };
    format!("default ({known})")
}

fn limits(limits: &LimitOverrides) -> BTreeMap<String, Written> {
    let limits = limits.iter();
    limits
        .map(|(limit, value)| (limit.to_string(), of_limit(limit, value)))
        .collect()
}

fn of_limit(limit: LimitName, value: u64) -> Written {
    match limit.kind() {
        LimitKind::Count => Written::Number(value),
        LimitKind::Bytes => Written::Text(format_bytes(value)),
        LimitKind::Time => Written::Text(time(value)),
    }
}

/// Returns the settings of a crawl that are not left to their defaults, each as `name=value` with a value that its option
/// takes. An option that is given several times is there for each of its values.
pub fn settings(spec: &ResourceSpec) -> Vec<String> {
    let values = |setting: &Setting| {
        let value = setting.value(&spec.crawl)?;
        Some(match of_setting(setting, value) {
            Written::Text(text) => vec![text],
            Written::Texts(texts) if setting.kind == Kind::List => vec![texts.join(",")],
            Written::Texts(texts) => texts,
            other @ (Written::Number(_) | Written::Table(_)) => vec![other.to_string()],
        })
    };
    let option = |setting: &Setting, value: String| match value.contains(' ') {
        true => format!("{}={}", setting.name, quoted(&value)),
        false => format!("{}={value}", setting.name),
    };
    let settings = SETTINGS.iter().flat_map(|setting| {
        let values = values(setting).into_iter().flatten();
        values.map(move |value| option(setting, value))
    });
    settings.collect()
}

fn of_setting(setting: &Setting, value: Value) -> Written {
    match (setting.kind, value) {
        (Kind::Bytes, Value::Number(n)) => Written::Text(format_bytes(n)),
        (Kind::Time, Value::Number(n)) => Written::Text(time(n)),
        (_, Value::Number(n)) => Written::Number(n),
        (_, Value::Text(text)) => Written::Text(text),
        (_, Value::Texts(texts)) => Written::Texts(texts),
    }
}

fn time(millis: u64) -> String {
    humantime::format_duration(Duration::from_millis(millis)).to_string()
}

fn table(entries: BTreeMap<String, Written>) -> Option<Written> {
    (!entries.is_empty()).then_some(Written::Table(entries))
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Written::Number(n) => n.fmt(f),
            Written::Text(text) => quoted(text).fmt(f),
            Written::Texts(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
                write!(f, "[{}]", texts.join(", "))
            }
            Written::Table(entries) => {
                let entries = entries.iter();
                let entries: Vec<String> = entries
                    .map(|(name, value)| format!("{} = {value}", key(name)))
                    .collect();
                write!(f, "{{ {} }}", entries.join(", "))
            }
        }
    }
}

/// Returns a text as TOML writes it, on one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            _ if steers(c) => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => quoted(name),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::file::Reading;
    use super::*;
    use crawler_model::resource::CrawlSettings;
    use crawler_model::settings::examples;

    fn read(text: &str) -> Vec<ResourceSpec> {
        let reading = Reading::of(text, Path::new("c.toml"));
        assert!(reading.faults.is_empty(), "{:?} in {text}", reading.faults);
        reading.config.resources
    }

    fn full() -> ResourceSpec {
        let mut limits = LimitOverrides::default();
        for limit in LimitName::ALL {
            limits.set_value(limit, 1_500).unwrap();
        }
        let mut spec = read("[[resource]]\nname = 'books'\nweight = 5\nshards = 2\n").remove(0);
        spec.plugin = "shop@1.2.0".parse().unwrap();
        spec.params = ["a", "b c", "", "\"quoted\"", "é"]
            .map(|name| {
                (
                    name.to_owned(),
                    format!("{name}\\\n\u{1b}\u{202e}\t'''\"\"\""),
                )
            })
            .into();
        spec.labels = [("team".into(), "shop".into()), ("a.b".into(), "c".into())].into();
        spec.limits = limits;
        spec.crawl = CrawlSettings {
            max_pages: Some(u64::MAX),
            max_retry_wait_ms: Some(61_001),
            ..examples()
        };
        spec.placement.selector = [("gpu".into(), "true".into())].into();
        spec.placement.near = Some("shop".parse().unwrap());
        spec.placement.apart = Some("forum".parse().unwrap());
        spec
    }

    #[test]
    fn settings_are_told_as_options_take_them() {
        let text = "[[resource]]\nname = 'a'\nsink = ['lines', 'lake']\nchanges = 30\ndelay = '1m'\n\
                    user-agent = ['honest', 'shop reader/2.0']\n";
        let mut told = settings(&read(text)[0]);
        told.sort();
        let expected = [
            "changes=30",
            "delay=1m",
            "sink=lines,lake",
            "user-agent=\"shop reader/2.0\"",
            "user-agent=honest",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_written_is_read_as_the_same_in_toml_and_in_json() {
        let bare = read("[[resource]]\nname = 'bare'\n").remove(0);
        assert_eq!(document([&bare]), "[[resource]]\nname = \"bare\"\n");
        let inside = read("[[resource]]\nname = 'team/books'\nnear = 'team/shop'\n").remove(0);
        let specs = [full(), bare, inside];
        assert_eq!(read(&document(&specs)), specs);
        assert_eq!(read(&json_document(&specs).unwrap()), specs);
    }

    #[test]
    fn every_key_of_the_file_is_written() {
        let keys: Vec<&str> = written(&full()).into_iter().map(|(key, _)| key).collect();
        let mut known = super::super::resource::keys();
        known.retain(|key| !keys.contains(key));
        assert_eq!(known, Vec::<&str>::new());
    }

    #[track_caller]
    fn check(present: &str, wanted: &str, expected: &[(&str, &str, &str)]) {
        let spec = |text: &str| read(&format!("[[resource]]\nname = 'books'\n{text}")).remove(0);
        let changes = changes(&spec(present), &spec(wanted));
        let changes: Vec<(&str, &str, &str)> = changes
            .iter()
            .map(|change| (&*change.field, &*change.old, &*change.new))
            .collect();
        assert_eq!(changes, expected);
    }

    #[test]
    fn a_difference_names_the_field_and_both_values() {
        check("", "", &[]);
        check(
            "delay = '250ms'\nmax-pages = 3\nscope = ['a.test']",
            "delay = '1s'\nrobots = 'ignore'\nscope = ['a.test', '*.b.test']",
            &[
                ("robots", "default (obey)", "\"ignore\""),
                ("delay", "\"250ms\"", "\"1s\""),
                ("max-pages", "3", "default (1000000)"),
                ("scope", "[\"a.test\"]", "[\"a.test\", \"*.b.test\"]"),
            ],
        );
        check(
            "params = { start = 'http://a.test/', old = '1' }\nlimits = { memory = '8MiB' }\nshards = 2",
            "plugin = 'shop'\nparams = { start = 'http://b.test/' }\nlabels = { team = 'x' }\nweight = 2",
            &[
                ("plugin", "\"books\"", "\"shop\""),
                ("labels.team", "none", "\"x\""),
                ("params.old", "\"1\"", "none"),
                ("params.start", "\"http://a.test/\"", "\"http://b.test/\""),
                ("limits.memory", "\"8MiB\"", "default (\"64MiB\")"),
                ("weight", "default (1)", "2"),
                ("shards", "2", "default (1)"),
            ],
        );
    }
}
