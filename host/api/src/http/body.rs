//! JSON bodies: parsed field by field, so that each error names its field and what it takes.
//!
//! Names are those of the `.proto` file, in snake_case or camelCase. Whole numbers may be written
//! as strings, as the JSON form of Protocol Buffers does.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::convert;
use crate::problem::Problem;
use crate::spec::{self, SpecRequest};
use crawler_master::control::Precondition;
use crawler_model::placement::PlacementChange;
use crawler_model::plugin::{LimitName, LimitOverrides};
use crawler_model::resource::CrawlSettings;
use crawler_model::settings::{self, Kind, SETTINGS};
use crawler_model::suggest;

pub(super) mod quarantine;
pub(super) mod schedule;
pub(super) mod tokens;

const SPEC: [&str; 15] = [
    "id",
    "name",
    "assigned_node",
    "creation_time",
    "plugin",
    "params",
    "no_params",
    "limits",
    "crawl",
    "purge",
    "placement",
    "labels",
    "replace",
    "if_generation",
    "if_id",
];
/// Fields of a body that changes a resource, beside its name.
pub(super) const CHANGES: [&str; 10] = [
    "plugin",
    "params",
    "no_params",
    "limits",
    "crawl",
    "placement",
    "labels",
    "replace",
    "if_generation",
    "if_id",
];
const PLACEMENT: [&str; 5] = ["shards", "weight", "selector", "near", "apart"];

/// Example of a body that names a resource.
pub(super) const EXAMPLE: &str = r#"{"name":"books"}"#;

/// Example of a body that changes the resource in the path.
pub(super) const UPDATE_EXAMPLE: &str = r#"{"crawl":{"max_depth":3}}"#;

/// Example of a body that changes nothing for the next run.
pub(super) const RESTART_EXAMPLE: &str = "{}";

/// Example of a body that selects dead letters.
pub(super) const REDRIVE_EXAMPLE: &str = r#"{"reason":"timeout"}"#;

/// Parses a resource to be added or changed. Id, assigned node, creation time and purge are ignored here.
pub(super) fn spec(bytes: &[u8]) -> Result<SpecRequest, Problem> {
    let mut fields = Fields::of_body(bytes, &SPEC, EXAMPLE)?;
    let name = fields.text("name")?.unwrap_or_default();
    spec_of(&name, fields)
}

/// Parses changes of the resource in the path. The body may name the same resource again.
pub(super) fn update(name: &str, bytes: &[u8]) -> Result<SpecRequest, Problem> {
    let mut fields = Fields::of_body(bytes, &SPEC, UPDATE_EXAMPLE)?;
    check_same(name, &fields.text("name")?.unwrap_or_default())?;
    spec_of(name, fields)
}

/// Checks that a body names the resource in the path, or none.
fn check_same(path: &str, body: &str) -> Result<(), Problem> {
    if body.is_empty() || body == path {
        return Ok(());
    }
    Err(Problem::invalid(
        format!("the path names resource {path}, the body {body}"),
        "leave the name out of the body",
    ))
}

/// Parses the changes that apply to the next run of the resource in the path.
pub(super) fn restart(name: &str, bytes: &[u8]) -> Result<SpecRequest, Problem> {
    spec_of(name, Fields::of_body(bytes, &CHANGES, RESTART_EXAMPLE)?)
}

fn spec_of(name: &str, mut fields: Fields) -> Result<SpecRequest, Problem> {
    let plugin = fields.text("plugin")?.filter(|text| !text.is_empty());
    Ok(SpecRequest {
        name: spec::resource_name(name)?,
        plugin: match plugin {
            Some(text) => Some(spec::plugin_ref("plugin", &text)?),
            None => None,
        },
        params: params(&mut fields)?,
        no_params: text_list(&mut fields, "no_params", "no_params")?
            .into_iter()
            .collect(),
        limits: limits(&mut fields)?,
        crawl: crawl(&mut fields)?,
        placement: placement(&mut fields)?,
        labels: texts("labels", fields.object("labels")?)?,
        replace: truth(&mut fields, "replace")?,
        precondition: precondition(&mut fields)?,
    })
}

fn precondition(fields: &mut Fields) -> Result<Precondition, Problem> {
    let id = fields.number("if_id")?.unwrap_or_default();
    let generation = fields.number("if_generation")?.unwrap_or_default();
    Ok(convert::precondition(id, generation))
}

/// Deletion of a resource.
#[derive(Debug)]
pub(super) struct Deletion {
    /// Name of the resource.
    pub(super) name: String,
    /// True if its items and kept files are deleted too.
    pub(super) purge: bool,
    /// Condition of the deletion.
    pub(super) precondition: Precondition,
}

/// Parses a deletion.
pub(super) fn deletion(bytes: &[u8], example: &str) -> Result<Deletion, Problem> {
    let mut fields = Fields::of_body(bytes, &SPEC, example)?;
    Ok(Deletion {
        name: fields.text("name")?.unwrap_or_default(),
        purge: truth(&mut fields, "purge")?,
        precondition: precondition(&mut fields)?,
    })
}

/// Parses the deletion of the resource in the path. The body may name the same resource again.
pub(super) fn named_deletion(name: &str, bytes: &[u8]) -> Result<Deletion, Problem> {
    let named = deletion(bytes, "{}")?;
    check_same(name, &named.name)?;
    Ok(Deletion {
        name: name.to_owned(),
        ..named
    })
}

/// Parses the body of a call whose path says everything: it has no fields.
pub(super) fn nothing(bytes: &[u8]) -> Result<(), Problem> {
    Fields::of_body(bytes, &[], "{}").map(drop)
}

/// Parses the reason of the dead letters that are meant; empty means all.
pub(super) fn redrive(bytes: &[u8]) -> Result<String, Problem> {
    let mut fields = Fields::of_body(bytes, &["reason"], REDRIVE_EXAMPLE)?;
    Ok(fields.text("reason")?.unwrap_or_default())
}

/// Parses a field that is false if it is absent.
fn truth(fields: &mut Fields, name: &str) -> Result<bool, Problem> {
    match fields.take(name) {
        None => Ok(false),
        Some(Value::Bool(truth)) => Ok(truth),
        Some(other) => Err(wrong(name, "true or false", &other)),
    }
}

fn params(fields: &mut Fields) -> Result<BTreeMap<String, String>, Problem> {
    texts("params", fields.object("params")?)
}

fn texts(field: &str, values: Map<String, Value>) -> Result<BTreeMap<String, String>, Problem> {
    let values = values.into_iter();
    values
        .map(|(name, value)| match value {
            Value::String(text) => Ok((name, text)),
            other => Err(wrong(&format!("{field}.{name}"), "a string", &other)),
        })
        .collect()
}

fn limits(fields: &mut Fields) -> Result<LimitOverrides, Problem> {
    let mut limits = LimitOverrides::default();
    for (name, value) in fields.object("limits")? {
        let set = match &value {
            Value::String(text) => limits.set(&name, text),
            Value::Number(number) => match number.as_u64() {
                Some(number) => limits.set_number(&name, number),
                None => limits.set(&name, &number.to_string()),
            },
            other => {
                let field = format!("limits.{name}");
                return Err(wrong(&field, "a number, or a text like \"64MiB\"", other));
            }
        };
        set.map_err(|e| {
            let known = LimitName::ALL.map(LimitName::as_str);
            let hint = match suggest::nearest(&name, known) {
                Some(near) if near != name => format!("did you mean {near:?}?"),
                _ => String::new(),
            };
            Problem::invalid(e.to_string(), hint)
        })?;
    }
    Ok(limits)
}

fn crawl(fields: &mut Fields) -> Result<CrawlSettings, Problem> {
    let mut fields = Fields::new("field crawl", fields.object("crawl")?, &crawl_fields())?;
    let mut crawl = CrawlSettings::default();
    for setting in SETTINGS {
        let value = match setting.kind {
            Kind::U32 => fields
                .number::<u32>(setting.field)?
                .map(u64::from)
                .map(settings::Value::Number),
            Kind::U64 | Kind::Bytes | Kind::Time => {
                fields.number(setting.field)?.map(settings::Value::Number)
            }
            Kind::Text => fields.text(setting.field)?.map(settings::Value::Text),
            Kind::Texts | Kind::List => {
                let field = format!("crawl.{}", setting.field);
                Some(settings::Value::Texts(text_list(
                    &mut fields,
                    setting.field,
                    &field,
                )?))
            }
        };
        if let Some(value) = value {
            spec::set(&mut crawl, setting, value)?;
        }
    }
    Ok(crawl)
}

fn crawl_fields() -> Vec<&'static str> {
    SETTINGS.iter().map(|setting| setting.field).collect()
}

fn text_list(fields: &mut Fields, name: &str, field: &str) -> Result<Vec<String>, Problem> {
    let wrong = |value: &Value| wrong(field, "a list of texts", value);
    match fields.take(name) {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => {
            let text = |entry| match entry {
                Value::String(text) => Ok(text),
                other => Err(wrong(&other)),
            };
            list.into_iter().map(text).collect()
        }
        Some(other) => Err(wrong(&other)),
    }
}

fn placement(fields: &mut Fields) -> Result<PlacementChange, Problem> {
    let given = fields.object("placement")?;
    let mut fields = Fields::new("field placement", given, &PLACEMENT)?;
    let mut other = |name, field| match fields.text(name)? {
        Some(text) => Ok::<_, Problem>(Some(spec::affinity_target(field, &text)?)),
        None => Ok(None),
    };
    Ok(PlacementChange {
        near: other("near", "placement.near")?,
        apart: other("apart", "placement.apart")?,
        shards: fields.number("shards")?,
        weight: fields.number("weight")?,
        selector: texts("placement.selector", fields.object("selector")?)?,
    })
}

/// Fields of an object whose names are all known; `null` counts as absent.
struct Fields {
    what: &'static str,
    values: Map<String, Value>,
}

impl Fields {
    fn of_body(bytes: &[u8], known: &[&str], example: &str) -> Result<Self, Problem> {
        let example = format!("send an object like {example}");
        let value = serde_json::from_slice(bytes)
            .map_err(|e| Problem::invalid(format!("the body is not JSON: {e}"), example))?;
        match value {
            Value::Object(values) => Self::new("the body", values, known),
            other => Err(wrong("body", "an object", &other)),
        }
    }

    fn new(what: &'static str, given: Map<String, Value>, known: &[&str]) -> Result<Self, Problem> {
        let mut values = Map::new();
        for (given, value) in given {
            let name = snake_case(&given);
            if !known.contains(&name.as_str()) {
                let objects = [
                    ("crawl", &crawl_fields()[..]),
                    ("placement", &PLACEMENT[..]),
                ];
                let inside = objects.into_iter().find(|(object, fields)| {
                    known.contains(object) && fields.contains(&name.as_str())
                });
                let hint = match inside {
                    Some((object, _)) => {
                        format!("write it inside {object}: {{\"{object}\":{{\"{name}\":…}}}}")
                    }
                    None => suggest::hint(&name, known),
                };
                let detail = format!("{what} has an unknown field {given:?}");
                return Err(Problem::invalid(detail, hint));
            }
            if values.insert(name, value).is_some() {
                return Err(Problem::invalid(
                    format!("{what} has field {given:?} twice"),
                    "write it once, in snake_case or camelCase",
                ));
            }
        }
        Ok(Self { what, values })
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.values.remove(name).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Problem> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(&self.path(name), "a string", &other)),
        }
    }

    fn object(&mut self, name: &str) -> Result<Map<String, Value>, Problem> {
        match self.take(name) {
            None => Ok(Map::new()),
            Some(Value::Object(values)) => Ok(values),
            Some(other) => Err(wrong(&self.path(name), "an object", &other)),
        }
    }

    fn number<N: TryFrom<u64>>(&mut self, name: &str) -> Result<Option<N>, Problem> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let number = match &value {
            Value::Number(number) => number.as_u64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        match number.and_then(|n| N::try_from(n).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(wrong(&self.path(name), "a whole number", &value)),
        }
    }

    /// Returns the name of a field as messages show it.
    fn path(&self, name: &str) -> String {
        match self.what.strip_prefix("field ") {
            Some(object) => format!("{object}.{name}"),
            None => name.to_owned(),
        }
    }
}

fn wrong(field: &str, expected: &str, value: &Value) -> Problem {
    let mut text = value.to_string();
    if text.len() > 80 {
        text.truncate(text.floor_char_boundary(80));
        text.push('…');
    }
    Problem::invalid(format!("field {field} takes {expected}, not {text}"), "")
}

/// Returns `creationTime` as `creation_time`, and other names unchanged.
fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 2);
    for (i, c) in name.char_indices() {
        if c.is_ascii_uppercase() && i > 0 {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::id::{Generation, ResourceId};
    use crawler_model::resource::{Robots, Unchanged};
    use crawler_model::settings::examples;

    #[track_caller]
    fn check_refused(body: &str, detail: &str, hint: &str) {
        let problem = spec(body.as_bytes()).unwrap_err();
        assert_eq!(
            (problem.detail.as_str(), problem.hint.as_str()),
            (detail, hint)
        );
    }

    #[test]
    fn s12_the_body_of_the_course_is_taken_and_what_is_the_masters_to_give_is_ignored() {
        let snake =
            spec(br#"{"id":"zjx","name":"task-test-4","assigned_node":"x","creation_time":"12"}"#);
        let camel =
            spec(br#"{"id":"zjx","name":"task-test-4","assignedNode":"x","creationTime":12}"#);
        let name = spec(br#"{"name":"task-test-4"}"#);
        assert_eq!(snake, name);
        assert_eq!(camel, name);
        assert_eq!(name.unwrap().name.as_str(), "task-test-4");
    }

    #[test]
    fn an_update_needs_no_second_name_and_refuses_another_one() {
        let named = update("shop", br#"{"name":"shop","crawl":{"max_depth":3}}"#);
        let bare = update("shop", br#"{"crawl":{"max_depth":3}}"#);
        assert_eq!(named, bare);
        assert_eq!(bare.unwrap().name.as_str(), "shop");
        let problem = update("shop", br#"{"name":"books"}"#).unwrap_err();
        assert_eq!(
            problem.detail,
            "the path names resource shop, the body books"
        );
        assert!(update("shop", br#"{"name":""}"#).is_ok());
    }

    #[test]
    fn a_deletion_at_a_path_refuses_the_name_of_another() {
        let purge = |body: &str| {
            let deletion = named_deletion("shop", body.as_bytes());
            deletion.map(|d| d.purge).map_err(|e| e.detail)
        };
        assert_eq!(purge("{}"), Ok(false));
        assert_eq!(purge(r#"{"name":"shop","purge":true}"#), Ok(true));
        let other = "the path names resource shop, the body books".to_owned();
        assert_eq!(purge(r#"{"name":"books"}"#), Err(other));
    }

    #[test]
    fn all_settings_are_taken_in_both_spellings_and_both_forms_of_numbers() {
        let snake = spec(
            br#"{"name":"b","plugin":"p@1.0.0","params":{"a":"1"},"limits":{"memory":"8MiB","cpu":100},
                "crawl":{"delay_ms":0,"max_pages":"10","concurrency":2,"max_depth":3,"scope":["*.a.test"],
                "max_bytes":4,"max_url_length":5,"max_segment_repeats":6,"max_pattern_urls":7,"max_hosts":14,"max_disk":12,"max_undelivered":13,
                "unchanged":"skip","max_attempts":8,"max_retry_wait_ms":9,
                "robots":"ignore","max_crawl_delay_ms":10,"random_delay_ms":11,
                "host_rate":"1/s","rate":"none","hours":"01:00-02:00",
                "user_agents":["browser"],"cookies":"ignore","content_types":"text/*","proxy":"direct","credentials":"a","cookie_seeds":["a.test:b=c"]}}"#,
        )
        .unwrap();
        let camel = spec(
            br#"{"name":"b","plugin":"p@1.0.0","params":{"a":"1"},"limits":{"memory":8388608,"cpu":"100ms"},
                "crawl":{"delayMs":"0","maxPages":10,"concurrency":2,"maxDepth":3,"scope":["*.a.test"],
                "maxBytes":"4","maxUrlLength":5,"maxSegmentRepeats":6,"maxPatternUrls":7,"maxHosts":"14","maxDisk":"12","maxUndelivered":13,
                "unchanged":"skip","maxAttempts":8,"maxRetryWaitMs":9,
                "robots":"ignore","maxCrawlDelayMs":"10","randomDelayMs":"11",
                "hostRate":"1/s","rate":"none","hours":"01:00-02:00",
                "userAgents":["browser"],"cookies":"ignore","contentTypes":"text/*","proxy":"direct","credentials":"a","cookieSeeds":["a.test:b=c"]}}"#,
        )
        .unwrap();
        assert_eq!(snake, camel);
        assert_eq!(snake.crawl.delay_ms, Some(0));
        assert_eq!(snake.crawl.max_pages, Some(10));
        let crawl = &snake.crawl;
        assert_eq!((crawl.max_bytes, crawl.max_url_length), (Some(4), Some(5)));
        assert_eq!(crawl.max_segment_repeats, Some(6));
        assert_eq!(crawl.max_pattern_urls, Some(7));
        assert_eq!(crawl.max_hosts, Some(14));
        assert_eq!(
            (crawl.max_disk, crawl.max_undelivered),
            (Some(12), Some(13))
        );
        assert_eq!(crawl.unchanged, Some(Unchanged::Skip));
        assert_eq!(crawl.max_attempts, Some(8));
        assert_eq!(crawl.max_retry_wait_ms, Some(9));
        assert_eq!(crawl.robots, Some(Robots::Ignore));
        assert_eq!(crawl.max_crawl_delay_ms, Some(10));
        assert_eq!(crawl.random_delay_ms, Some(11));
        assert_eq!(crawl.host_rate, "1/s".parse().ok());
        assert_eq!(crawl.rate, Some(Default::default()));
        assert_eq!(crawl.hours, "01:00-02:00".parse().ok());
        assert_eq!(crawl.user_agents, ["browser".parse().unwrap()]);
        assert_eq!(crawl.cookies, "ignore".parse().ok());
        assert_eq!(crawl.cookie_seeds, ["a.test:b=c".parse().unwrap()]);
        assert_eq!(crawl.content_types, "text/*".parse().ok());
        assert_eq!(crawl.proxy, "direct".parse().ok());
        assert_eq!(crawl.credentials, "a".parse().ok());
        assert_eq!(snake.limits.iter().count(), 2);
    }

    #[test]
    fn every_setting_is_a_field_of_the_body() {
        let crawl = examples();
        let body = serde_json::json!({ "name": "b", "crawl": crawl });
        assert_eq!(spec(body.to_string().as_bytes()).unwrap().crawl, crawl);
    }

    #[test]
    fn labels_are_an_object_of_texts() {
        let labels = spec(br#"{"name":"b","labels":{"team":"shop","old":""}}"#)
            .unwrap()
            .labels;
        let expected = [("team", "shop"), ("old", "")];
        assert_eq!(labels, expected.map(|(k, v)| (k.into(), v.into())).into());
        check_refused(
            r#"{"name":"b","labels":{"team":1}}"#,
            "field labels.team takes a string, not 1",
            "",
        );
    }

    #[test]
    fn a_change_may_replace_the_spec_of_one_generation() {
        let change = update("b", br#"{"replace":true,"ifGeneration":"4"}"#).unwrap();
        assert_eq!(
            (change.replace, change.precondition.generation),
            (true, Some(Generation(4)))
        );
        let any = update("b", br#"{"if_generation":0}"#).unwrap();
        assert_eq!(
            (any.replace, any.precondition),
            (false, Precondition::default())
        );
        let gone = named_deletion("b", br#"{"ifId":"7","if_generation":4}"#).unwrap();
        let expected = Precondition::unchanged(ResourceId(7), Generation(4));
        assert_eq!(gone.precondition, expected);
        check_refused(
            r#"{"name":"b","replace":1}"#,
            "field replace takes true or false, not 1",
            "",
        );
    }

    #[test]
    fn s21_placement_is_taken_with_what_takes_back_what_was_asked_for() {
        let body = br#"{"name":"b","placement":{"weight":"5","selector":{"gpu":"true","zone":""},
            "near":"shop","apart":""}}"#;
        let expected = PlacementChange {
            shards: None,
            weight: Some(5),
            selector: [("gpu".into(), "true".into()), ("zone".into(), "".into())].into(),
            near: Some("shop".parse().unwrap()),
            apart: Some("".parse().unwrap()),
        };
        assert_eq!(spec(body).unwrap().placement, expected);
        check_refused(
            r#"{"name":"a","selector":{"gpu":"true"}}"#,
            "the body has an unknown field \"selector\"",
            r#"write it inside placement: {"placement":{"selector":…}}"#,
        );
        check_refused(
            r#"{"name":"a","placement":{"selector":["gpu"]}}"#,
            "field placement.selector takes an object, not [\"gpu\"]",
            "",
        );
        check_refused(
            r#"{"name":"a","placement":{"selector":{"gpu":true}}}"#,
            "field placement.selector.gpu takes a string, not true",
            "",
        );
        check_refused(
            r#"{"name":"a","placement":{"weight":-1}}"#,
            "field placement.weight takes a whole number, not -1",
            "",
        );
        check_refused(
            r#"{"name":"a","placement":{"wieght":1}}"#,
            "field placement has an unknown field \"wieght\"",
            "did you mean \"weight\"?",
        );
    }

    #[test]
    fn s13_a_deletion_names_its_resource() {
        let named = |body: &[u8]| {
            let deletion = deletion(body, EXAMPLE).unwrap();
            (deletion.name, deletion.purge)
        };
        assert_eq!(named(br#"{"name":"a"}"#), ("a".to_owned(), false));
        let all = br#"{"name":"a","purge":true}"#;
        assert_eq!(named(all), ("a".to_owned(), true));
        assert!(deletion(br#"{"name":"a","purge":"yes"}"#, EXAMPLE).is_err());
    }

    #[test]
    fn a_body_that_cannot_be_meant_is_refused_with_a_way_out() {
        let example = r#"send an object like {"name":"books"}"#;
        check_refused(
            "{\"name\":\n \"a\",,}",
            "the body is not JSON: key must be a string at line 2 column 6",
            example,
        );
        check_refused(
            "",
            "the body is not JSON: EOF while parsing a value at line 1 column 0",
            example,
        );
        check_refused("[]", "field body takes an object, not []", "");
        check_refused("{}", "resource name is empty", "");
        check_refused(
            r#"{"nmae":"a"}"#,
            "the body has an unknown field \"nmae\"",
            "did you mean \"name\"?",
        );
        check_refused(
            r#"{"name":"a","maxPages":5}"#,
            "the body has an unknown field \"maxPages\"",
            r#"write it inside crawl: {"crawl":{"max_pages":…}}"#,
        );
        check_refused(
            r#"{"name":"a","creation_time":1,"creationTime":1}"#,
            "the body has field \"creation_time\" twice",
            "write it once, in snake_case or camelCase",
        );
        check_refused(r#"{"name":7}"#, "field name takes a string, not 7", "");
        check_refused(
            r#"{"name":"a","params":{"x":1}}"#,
            "field params.x takes a string, not 1",
            "",
        );
        check_refused(
            r#"{"name":"a","crawl":{"max_pages":-1}}"#,
            "field crawl.max_pages takes a whole number, not -1",
            "",
        );
        check_refused(
            r#"{"name":"a","crawl":{"unchanged":"ignore"}}"#,
            "setting unchanged takes parse or skip, not \"ignore\"",
            "",
        );
        check_refused(
            r#"{"name":"a","crawl":{"unchanged":true}}"#,
            "field crawl.unchanged takes a string, not true",
            "",
        );
        check_refused(
            r#"{"name":"a","limits":{"memroy":1}}"#,
            "there is no limit \"memroy\"; the limits are fuel, cpu, timeout, memory, body, items, item-bytes, requests, log-lines, captures, capture-bytes",
            "did you mean \"memory\"?",
        );
        check_refused(
            r#"{"name":"a","crawl":{"scope":["http://a"]}}"#,
            "setting scope has \"http://a\", which is not a host; write example.org, *.example.org, site:example.org, *, or one of them with a port",
            "",
        );
    }
}
