//! Params that a plugin declares, and the check that those of a resource fit them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Description;
use crate::guest_text::GuestText;
use crate::suggest;

/// A param that a plugin declares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Param {
    /// Name of the param, unique within the plugin.
    pub name: String,
    /// Description in one sentence; may be empty.
    pub about: GuestText,
    /// Value that applies if a resource gives none.
    pub default: Option<String>,
    /// True if every resource has to give it.
    pub required: bool,
}

/// Params that do not fit what their plugin declares; the text goes on after the plugin's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// A required one is missing.
    #[error("needs the param {name}{about}")]
    Missing {
        /// Name of the param.
        name: String,
        /// The plugin's description of the param, in brackets.
        about: String,
    },
    /// The plugin has none of this name.
    #[error("has no param {name:?}; {known}")]
    Unknown {
        /// Name of the param.
        name: String,
        /// The plugin's params, in words.
        known: String,
        /// The param that was probably meant.
        near: Option<String>,
    },
}

impl ParamError {
    /// Returns the way out.
    pub fn hint(&self) -> String {
        match self {
            ParamError::Missing { name, .. } => format!("give it as --param {name}=VALUE"),
            ParamError::Unknown { name, near, .. } => {
                let away = format!("leave it out; a restart with --no-param {name} takes it away");
                match near {
                    Some(near) => format!("did you mean {near:?}? If not, {away}"),
                    None => away,
                }
            }
        }
    }
}

/// JSON Schema of params: an object of strings that allows no other properties.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Schema {
    r#type: Object,
    properties: BTreeMap<String, Property>,
    #[serde(default)]
    required: Vec<String>,
    additional_properties: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Property {
    #[expect(dead_code, reason = "there is one kind of value")]
    r#type: Text,
    #[serde(default)]
    description: GuestText,
    default: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Object {
    Object,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Text {
    String,
}

impl Param {
    /// Reads params from a JSON Schema, the form that the hint `params` of a description has.
    ///
    /// # Errors
    ///
    /// The text is not such a schema; the error says what is wrong with it.
    pub fn read(schema: &str) -> Result<Vec<Self>, String> {
        if !schema.trim_start().starts_with('{') {
            return Err("they are no object".to_owned());
        }
        let Schema {
            r#type: Object::Object,
            properties,
            required,
            additional_properties,
        } = serde_json::from_str(schema).map_err(|error| error.to_string())?;
        if additional_properties {
            return Err("additionalProperties is true".to_owned());
        }
        if let Some(name) = required.iter().find(|name| !properties.contains_key(*name)) {
            return Err(format!("{name:?} is required and no property"));
        }
        let param = |(name, property): (String, Property)| {
            let required = required.contains(&name);
            match property.default {
                Some(_) if required => Err(format!("{name:?} is required and has a default")),
                default => Ok(Self {
                    name,
                    about: property.description,
                    default,
                    required,
                }),
            }
        };
        properties.into_iter().map(param).collect()
    }

    /// Returns params as such a JSON Schema.
    pub fn schema(params: &[Self]) -> String {
        let property = |param: &Self| {
            let mut property = json!({ "type": "string", "description": param.about.as_str() });
            if let Some(default) = &param.default {
                property["default"] = json!(default);
            }
            (param.name.clone(), property)
        };
        let properties: serde_json::Map<String, Value> = params.iter().map(property).collect();
        let required = params.iter().filter(|param| param.required);
        let required: Vec<&str> = required.map(|param| param.name.as_str()).collect();
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        schema.to_string()
    }
}

impl Description {
    /// Checks the params that a resource gives. If the plugin declares none, all are accepted.
    pub fn check_params(&self, given: &BTreeMap<String, String>) -> Result<(), ParamError> {
        let Some(declared) = &self.params else {
            return Ok(());
        };
        let is_known = |name: &String| declared.iter().any(|param| param.name == *name);
        if let Some(name) = given.keys().find(|name| !is_known(name)) {
            let names: Vec<&str> = declared.iter().map(|param| param.name.as_str()).collect();
            let known = match names[..] {
                [] => "it has none".to_owned(),
                _ => format!("it has {}", names.join(", ")),
            };
            return Err(ParamError::Unknown {
                name: name.clone(),
                known,
                near: suggest::nearest(name, names).map(str::to_owned),
            });
        }
        let is_missing = |param: &&Param| param.required && !given.contains_key(&param.name);
        match declared.iter().find(is_missing) {
            Some(Param { name, about, .. }) => Err(ParamError::Missing {
                name: name.clone(),
                about: match about.as_str() {
                    "" => String::new(),
                    about => format!(" ({about})"),
                },
            }),
            None => Ok(()),
        }
    }

    /// Returns the value of a param that a resource does not give.
    pub fn default_param(&self, name: &str) -> Option<&str> {
        let mut declared = self.params.iter().flatten();
        let param = declared.find(|param| param.name == name)?;
        param.default.as_deref()
    }

    /// Returns the params of a resource together with the defaults of those that it does not give.
    pub fn all_params(&self, given: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let declared = self.params.iter().flatten();
        let defaults = declared.filter_map(|param| Some((&param.name, param.default.as_ref()?)));
        let all = defaults.chain(given);
        all.map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"type":"object","properties":{
        "start":{"type":"string","description":"First page","default":"http://a.test/"},
        "login":{"type":"string","description":"Account name"},
        "pages":{"type":"string"}},"required":["login"],"additionalProperties":false}"#;

    fn books(schema: Option<&str>) -> Description {
        Description {
            name: "books".parse().unwrap(),
            version: "1.0.0".parse().unwrap(),
            rules: Vec::new(),
            schemas: Vec::new(),
            plans: Vec::new(),
            hosts: Vec::new(),
            limits: BTreeMap::new(),
            params: schema.map(|schema| Param::read(schema).unwrap()),
        }
    }

    fn given(params: &[(&str, &str)]) -> BTreeMap<String, String> {
        let params = params.iter();
        let params = params.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        params.collect()
    }

    #[track_caller]
    fn check(schema: Option<&str>, params: &[(&str, &str)], expected: Result<(), &str>) {
        let checked = books(schema).check_params(&given(params));
        let checked = checked.map_err(|error| error.to_string());
        assert_eq!(checked, expected.map_err(str::to_owned));
    }

    #[test]
    fn params_fit_what_their_plugin_declares() {
        let all = [("login", "ada"), ("start", "x"), ("pages", "3")];
        check(Some(SCHEMA), &all, Ok(()));
        check(Some(SCHEMA), &all[..1], Ok(()));
        check(
            Some(SCHEMA),
            &all[1..],
            Err("needs the param login (Account name)"),
        );
        check(
            Some(SCHEMA),
            &[("strat", "x")],
            Err("has no param \"strat\"; it has login, pages, start"),
        );
        check(None, &[("strat", "x")], Ok(()));
        let none = r#"{"type":"object","properties":{},"additionalProperties":false}"#;
        check(
            Some(none),
            &[("strat", "x")],
            Err("has no param \"strat\"; it has none"),
        );
    }

    #[test]
    fn an_unknown_param_is_told_the_one_that_was_meant() {
        let hint = |name: &str| {
            let checked = books(Some(SCHEMA)).check_params(&given(&[(name, "x")]));
            checked.unwrap_err().hint()
        };
        let away =
            |name: &str| format!("leave it out; a restart with --no-param {name} takes it away");
        let expected = format!("did you mean \"start\"? If not, {}", away("strat"));
        assert_eq!(hint("strat"), expected);
        assert_eq!(hint("colour"), away("colour"));
    }

    #[test]
    fn a_param_that_is_not_given_has_its_default() {
        let books = books(Some(SCHEMA));
        assert_eq!(books.default_param("start"), Some("http://a.test/"));
        assert_eq!(books.default_param("login"), None);
        let all = books.all_params(&given(&[("login", "ada")]));
        assert_eq!(all, given(&[("login", "ada"), ("start", "http://a.test/")]));
        let all = books.all_params(&given(&[("start", "x")]));
        assert_eq!(all, given(&[("start", "x")]));
    }

    #[test]
    fn a_schema_is_read_back_as_it_was() {
        let params = Param::read(SCHEMA).unwrap();
        assert_eq!(Param::read(&Param::schema(&params)).unwrap(), params);
    }

    #[test]
    fn what_is_no_schema_of_params_is_refused() {
        let check = |from: &str, to: &str, expected: &str| {
            assert!(SCHEMA.contains(from), "{from}");
            let why = Param::read(&SCHEMA.replace(from, to)).unwrap_err();
            assert!(why.contains(expected), "{why}");
        };
        check("\"object\"", "\"array\"", "unknown variant `array`");
        check(
            "\"First page\"",
            "\"First page\",\"minLength\":1",
            "unknown field `minLength`",
        );
        check(":false", ":true", "additionalProperties is true");
        check(
            "[\"login\"]",
            "[\"name\"]",
            "\"name\" is required and no property",
        );
        check(
            "[\"login\"]",
            "[\"start\"]",
            "\"start\" is required and has a default",
        );
        check(
            "{\"type\":\"string\"}",
            "{\"type\":\"integer\"}",
            "unknown variant `integer`",
        );
    }
}
