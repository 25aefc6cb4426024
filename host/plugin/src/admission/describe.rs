//! Checks of the description that a plugin gives of itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use crawler_schema::JsonSchema;
use semver::Version;

use super::Refusal;
use crate::bindings::crawler::rules::types;
use crawler_model::plugin::{Description, LimitOverrides, Param, Schema};
use crawler_model::resource::HostPattern;

mod plans;
mod refusal;

use plans::checked_plans;
pub(crate) use plans::compiled_plans;
use refusal::{check_names, refusal, short};

/// Largest size of a description as JSON, in bytes: most of what one record of the store may have.
const ALL_MAX: usize = 240 << 10;
const RULES_MAX: usize = 256;
const SCHEMAS_MAX: usize = 64;
const SCHEMA_BYTES_MAX: usize = 64 << 10;
const HOSTS_MAX: usize = 256;
const LIMITS_MAX: usize = 64;
const PARAMS_MAX: usize = 64;
/// Key of the hint that declares params.
const PARAMS: &str = "params";
/// First version of the interface in which it means that.
const PARAMS_SINCE: Version = Version::new(0, 1, 1);

/// The description as the model has it, of a component that was built for a version of the interface.
pub(super) fn checked(
    said: types::Description,
    interface: &Version,
) -> Result<Description, Refusal> {
    let name = said.name.parse().map_err(|e| {
        refusal(
            format_args!("describe gives the name {:?}", short(&said.name)),
            format_args!("{e}"),
            "change the plugin's name",
        )
    })?;
    let version = said.version.parse().map_err(|e| {
        refusal(
            format_args!("describe gives the version {:?}", short(&said.version)),
            format_args!("{e}"),
            "write a version like 1.2.3",
        )
    })?;
    let rules: Vec<Arc<str>> = said
        .rules
        .into_iter()
        .map(|rule| rule.name.into())
        .collect();
    if rules.is_empty() {
        return Err(refusal(
            "describe lists no rules",
            "a plugin has at least one",
            "add a rule",
        ));
    }
    check_names("rules", rules.iter().map(|rule| &**rule), RULES_MAX)?;
    check_names(
        "schemas",
        said.schemas.iter().map(|s| s.name.as_str()),
        SCHEMAS_MAX,
    )?;
    let schemas = said.schemas.into_iter().map(|schema| Schema {
        name: schema.name,
        json_schema: schema.json_schema,
    });
    let schemas: Vec<Schema> = schemas.collect();
    schemas.iter().try_for_each(check_schema)?;
    let plans = checked_plans(said.plans)?;
    check_hosts(&said.hosts)?;
    let description = Description {
        name,
        version,
        rules,
        schemas,
        plans,
        hosts: said.hosts,
        limits: checked_limits(said.limits)?,
        params: match *interface >= PARAMS_SINCE {
            true => checked_params(&said.hints)?,
            false => None,
        },
    };
    let json = serde_json::to_vec(&description).expect("texts, numbers and lists are JSON");
    match json.len() {
        ..=ALL_MAX => Ok(description),
        n => Err(refusal(
            format_args!("what describe says has {n} bytes as JSON"),
            format_args!("rules, params, schemas, plans and hosts together have at most {ALL_MAX}"),
            "shorten it, or split the plugin",
        )),
    }
}

fn check_schema(schema: &Schema) -> Result<(), Refusal> {
    let json = &schema.json_schema;
    if json.len() > SCHEMA_BYTES_MAX {
        return Err(refusal(
            format_args!("schema {:?} is {} bytes long", schema.name, json.len()),
            format_args!("at most {SCHEMA_BYTES_MAX} are allowed"),
            "shorten it, or leave it empty for any JSON object",
        ));
    }
    let remedy = "correct it, or leave it empty for any JSON object";
    match schema.read() {
        Ok(read) if read.as_ref().is_none_or(JsonSchema::takes_objects) => check_key(schema),
        Ok(_) => Err(refusal(
            format_args!("schema {:?} fits no object", schema.name),
            "items are JSON objects",
            remedy,
        )),
        Err(error) => Err(refusal(
            format_args!("items cannot be checked by schema {:?}", schema.name),
            error,
            remedy,
        )),
    }
}

/// Checks that the key of the items can be one. Items without it would be known by their pages, and nobody would notice.
fn check_key(schema: &Schema) -> Result<(), Refusal> {
    schema.key_fault().map_or(Ok(()), |fault| {
        Err(refusal(
            format_args!(
                "items cannot be known by the key of schema {:?}",
                schema.name
            ),
            short(&fault),
            "name the field that holds it, or leave x-key out",
        ))
    })
}

fn check_hosts(hosts: &[String]) -> Result<(), Refusal> {
    if hosts.len() > HOSTS_MAX {
        return Err(refusal(
            format_args!("describe lists {} hosts", hosts.len()),
            format_args!("at most {HOSTS_MAX} are allowed"),
            "use a pattern like *.example.org",
        ));
    }
    for host in hosts {
        if host.parse::<HostPattern>().is_err() {
            return Err(refusal(
                format_args!("describe lists the host {:?}", short(host)),
                "a host is written example.org, *.example.org or *",
                "correct it",
            ));
        }
    }
    Ok(())
}

fn checked_limits(limits: Vec<(String, u64)>) -> Result<BTreeMap<String, u64>, Refusal> {
    if limits.len() > LIMITS_MAX {
        return Err(refusal(
            format_args!("describe lists {} limits", limits.len()),
            format_args!("at most {LIMITS_MAX} are allowed"),
            "name each limit once",
        ));
    }
    for (name, value) in &limits {
        // Limits that a plugin asks for are in base units, so `cpu` is given its unit here.
        let text = match name.as_str() {
            "cpu" | "timeout" => format!("{value}ms"),
            _ => value.to_string(),
        };
        if let Err(e) = LimitOverrides::default().set(short(name), &text) {
            return Err(refusal(
                format_args!("describe asks for limit {:?} of {value}", short(name)),
                e,
                "correct it, or leave it out",
            ));
        }
    }
    Ok(limits.into_iter().collect())
}

/// Reads the params out of the hints. Keys that this host does not know are ignored.
fn checked_params(hints: &[(String, String)]) -> Result<Option<Vec<Param>>, Refusal> {
    let mut said = hints.iter().filter(|(key, _)| key == PARAMS);
    let Some((_, schema)) = said.next() else {
        return Ok(None);
    };
    if said.next().is_some() {
        return Err(refusal(
            "describe declares params twice",
            "they are one JSON Schema",
            "declare them once",
        ));
    }
    if schema.len() > SCHEMA_BYTES_MAX {
        return Err(refusal(
            format_args!("the schema of the params is {} bytes long", schema.len()),
            format_args!("at most {SCHEMA_BYTES_MAX} are allowed"),
            "shorten it",
        ));
    }
    let params = Param::read(schema).map_err(|why| {
        refusal(
            format_args!("the params that describe declares cannot be read: {why}"),
            "they are a JSON Schema of texts, as rules.wit tells",
            "correct it",
        )
    })?;
    let names = params.iter().map(|param| param.name.as_str());
    check_names("params", names, PARAMS_MAX)?;
    Ok(Some(params))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said() -> types::Description {
        types::Description {
            name: "books".to_owned(),
            version: "1.0.0".to_owned(),
            rules: vec![rule("list")],
            schemas: vec![schema("book", "{}")],
            plans: vec![plan("list", "h1", types::Take::Text)],
            hosts: vec!["*.example.org".to_owned()],
            limits: vec![("cpu".to_owned(), 500)],
            hints: Vec::new(),
        }
    }

    fn rule(name: &str) -> types::RuleInfo {
        types::RuleInfo {
            name: name.to_owned(),
            hints: Vec::new(),
        }
    }

    fn schema(name: &str, json: &str) -> types::ItemSchema {
        types::ItemSchema {
            name: name.to_owned(),
            json_schema: json.to_owned(),
            hints: Vec::new(),
        }
    }

    fn plan(name: &str, selector: &str, take: types::Take) -> types::Plan {
        types::Plan {
            name: name.to_owned(),
            groups: Vec::new(),
            fields: vec![types::Field {
                name: "title".to_owned(),
                group: None,
                selector: selector.to_owned(),
                take,
                first: true,
                keep: true,
                hints: Vec::new(),
            }],
            hints: Vec::new(),
        }
    }

    #[track_caller]
    fn check(change: impl FnOnce(&mut types::Description), expected: &str) {
        let mut said = said();
        change(&mut said);
        match checked(said, &PARAMS_SINCE) {
            Ok(description) => assert_eq!(description.name.as_str(), expected),
            Err(refusal) => assert_eq!(crate::PluginError::from(refusal).to_string(), expected),
        }
    }

    #[test]
    fn declared_params_are_read_from_a_hint() {
        let schema = |properties: &str| {
            format!(
                r#"{{"type":"object","properties":{{{properties}}},"additionalProperties":false}}"#
            )
        };
        let param = |text: String| (PARAMS.to_owned(), text);
        let start = schema(r#""start":{"type":"string"}"#);
        let mut one = said();
        one.hints = vec![("other".to_owned(), "x".to_owned()), param(start.clone())];
        let params = checked(one.clone(), &PARAMS_SINCE).unwrap();
        let params = params.params.unwrap();
        assert_eq!(params.len(), 1);
        assert_eq!(params[0].name, "start");
        // In the first version the key means nothing.
        let earlier = checked(one, &Version::new(0, 1, 0)).unwrap();
        assert_eq!(earlier.params, None);
        assert_eq!(checked(said(), &PARAMS_SINCE).unwrap().params, None);
        check(
            |d| d.hints = vec![param(start.clone()), param(start.clone())],
            "describe declares params twice; they are one JSON Schema; declare them once",
        );
        check(
            |d| d.hints = vec![param("[]".to_owned())],
            "the params that describe declares cannot be read: they are no object; they are a JSON Schema of texts, as rules.wit tells; correct it",
        );
        check(
            |d| d.hints = vec![param(schema(r#""a b":{"type":"string"}"#))],
            "describe lists \"a b\" among its params; a name has 1 to 128 letters, digits, '-', '_' and '.'; rename it",
        );
        let many: Vec<_> = (0..65)
            .map(|n| format!(r#""p{n}":{{"type":"string"}}"#))
            .collect();
        check(
            |d| d.hints = vec![param(schema(&many.join(",")))],
            "describe lists 65 params; at most 64 are allowed; split the plugin",
        );
        check(
            |d| d.hints = vec![param(" ".repeat(65_537))],
            "the schema of the params is 65537 bytes long; at most 65536 are allowed; shorten it",
        );
    }

    #[test]
    fn a_description_is_refused_for_what_is_wrong_with_it() {
        check(|_| (), "books");
        check(
            |d| d.name = "../x".into(),
            "describe gives the name \"../x\"; plugin name \"../x\" has '.'; each part between slashes has letters, digits, '-', '_' and '.', and starts with a letter or digit; change the plugin's name",
        );
        check(|d| d.name = "team/books".into(), "team/books");
        check(
            |d| d.name = "team/".into(),
            "describe gives the name \"team/\"; plugin name \"team/\" has an empty part; leave out the '/' beside it; change the plugin's name",
        );
        check(
            |d| d.version = "1".into(),
            "describe gives the version \"1\"; version \"1\" is not of the form 1.2.3: unexpected end of input while parsing major version number; write a version like 1.2.3",
        );
        check(
            |d| d.rules.clear(),
            "describe lists no rules; a plugin has at least one; add a rule",
        );
        check(
            |d| d.rules = (0..257).map(|n| rule(&n.to_string())).collect(),
            "describe lists 257 rules; at most 256 are allowed; split the plugin",
        );
        check(
            |d| d.rules.push(rule("a b")),
            "describe lists \"a b\" among its rules; a name has 1 to 128 letters, digits, '-', '_' and '.'; rename it",
        );
        check(
            |d| d.rules.push(rule("list")),
            "describe lists \"list\" twice among its rules; names are unique within a plugin; rename one of them",
        );
        check(
            |d| d.schemas = (0..65).map(|n| schema(&n.to_string(), "")).collect(),
            "describe lists 65 schemas; at most 64 are allowed; split the plugin",
        );
        check(
            |d| d.schemas = vec![schema("book", &" ".repeat(65_537))],
            "schema \"book\" is 65537 bytes long; at most 65536 are allowed; shorten it, or leave it empty for any JSON object",
        );
        check(
            |d| d.schemas = vec![schema("book", "[]")],
            "items cannot be checked by schema \"book\"; a schema is an object, true or false; correct it, or leave it empty for any JSON object",
        );
        check(
            |d| d.schemas = vec![schema("book", r#"{"properties": {"a": {"if": {}}}}"#)],
            "items cannot be checked by schema \"book\"; at /properties/a/if: items are not checked by this keyword; leave it out, or begin its name with x- where it demands nothing; correct it, or leave it empty for any JSON object",
        );
        check(
            |d| d.schemas = vec![schema("book", r#"{"type": "string"}"#)],
            "schema \"book\" fits no object; items are JSON objects; correct it, or leave it empty for any JSON object",
        );
        check(
            |d| d.schemas = vec![schema("book", r#"{"x-key": 1}"#)],
            "items cannot be known by the key of schema \"book\"; its x-key is no text; name the field that holds it, or leave x-key out",
        );
        check(
            |d| {
                d.schemas = vec![schema(
                    "book",
                    r#"{"x-key": "ibsn", "properties": {"isbn": {}}}"#,
                )]
            },
            "items cannot be known by the key of schema \"book\"; its x-key \"ibsn\" is none of its properties; name the field that holds it, or leave x-key out",
        );
        let long = format!("{{\"title\":\"{}\"}}", "y".repeat(60_000));
        check(
            |d| d.schemas = (0..5).map(|n| schema(&n.to_string(), &long)).collect(),
            "what describe says has 300474 bytes as JSON; rules, params, schemas, plans and hosts together have at most 245760; shorten it, or split the plugin",
        );
        check(
            |d| d.hosts = vec!["http://x".into()],
            "describe lists the host \"http://x\"; a host is written example.org, *.example.org or *; correct it",
        );
        check(
            |d| d.limits = vec![("ram".into(), 1)],
            "describe asks for limit \"ram\" of 1; there is no limit \"ram\"; the limits are fuel, cpu, timeout, memory, body, items, item-bytes, requests, log-lines, captures, capture-bytes; correct it, or leave it out",
        );
    }

    #[test]
    fn a_plan_that_one_pass_cannot_follow_is_refused_with_the_way_out() {
        let text = || types::Take::Text;
        let plans = |n: u32| {
            (0..n)
                .map(|n| plan(&n.to_string(), "a", types::Take::Text))
                .collect()
        };
        check(|d| d.plans = plans(65), "books");
        check(
            |d| d.plans = plans(66),
            "describe lists 66 plans; at most 65 are allowed; split the plugin",
        );
        check(
            |d| d.plans.push(plan("list", "a", text())),
            "describe lists \"list\" twice among its plans; names are unique within a plugin; rename one of them",
        );
        check(
            |d| d.plans = vec![plan("list", "h1:has(p)", text())],
            "describe lists a plan that cannot be followed: plan \"list\", field \"title\", selector \"h1:has(p)\": `:has()` is not known: only :not(), :is(), :where(), :first-child, :nth-child(), :first-of-type and :nth-of-type() are; use scraper inside the rule (SDK feature dom); plans are read in one pass over the page; correct the plan",
        );
        check(
            |d| d.plans = vec![plan("list", "a", types::Take::Other("markdown".to_owned()))],
            "field \"title\" of plan \"list\" takes \"markdown\", which this host does not know; text, text-raw, inner, attr, present and tag are known; use one of them, or a newer host",
        );
    }
}
