//! Comparison of JSON with the schemas of an OpenAPI document, for the words of JSON Schema that our document uses. A word
//! that is not known fails the test that comes across it, and so does a property that no schema describes.

use serde_json::{Map, Value};

/// Words that describe and do not restrict.
const DESCRIBING: [&str; 4] = ["description", "format", "default", "title"];

/// Schemas of a document, to which others refer.
#[derive(Debug, Clone, Copy)]
pub struct SchemaCheck<'d> {
    document: &'d Value,
}

impl<'d> SchemaCheck<'d> {
    /// Creates a check against the schemas of this document.
    pub fn of(document: &'d Value) -> Self {
        Self { document }
    }

    /// Returns the faults of a value, each with the place where it is. None means that the schema describes the value.
    pub fn faults(self, schema: &Value, value: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        self.check("$", schema, value, &mut faults);
        faults
    }

    fn check(self, at: &str, schema: &Value, value: &Value, faults: &mut Vec<String>) {
        let Some(words) = schema.as_object() else {
            faults.push(format!("{at}: the schema is {schema}"));
            return;
        };
        for (word, rule) in words {
            match (word.as_str(), rule) {
                ("$ref", Value::String(target)) => match self.target(target) {
                    Some(schema) => self.check(at, schema, value, faults),
                    None => faults.push(format!("{at}: nothing is at {target}")),
                },
                ("type", Value::String(kind)) => {
                    if !is_of(kind, value) {
                        faults.push(format!("{at}: {value} is no {kind}"));
                    }
                }
                ("type", Value::Array(kinds)) => {
                    let mut kinds = kinds.iter().filter_map(Value::as_str);
                    if !kinds.any(|kind| is_of(kind, value)) {
                        faults.push(format!("{at}: {value} is none of {rule}"));
                    }
                }
                ("enum", Value::Array(values)) => {
                    if !values.contains(value) {
                        faults.push(format!("{at}: {value} is none of {rule}"));
                    }
                }
                ("minimum", rule) => {
                    if value.as_f64() < rule.as_f64() {
                        faults.push(format!("{at}: {value} is below {rule}"));
                    }
                }
                ("anyOf", Value::Array(schemas)) => self.check_any(at, schemas, value, faults),
                ("required", Value::Array(names)) => {
                    for name in names.iter().filter_map(Value::as_str) {
                        if value.get(name).is_none() {
                            faults.push(format!("{at}: {name} is missing"));
                        }
                    }
                }
                ("properties", Value::Object(properties)) => {
                    self.check_properties(at, properties, value, faults);
                }
                ("additionalProperties", schema) => {
                    for (name, value) in value.as_object().into_iter().flatten() {
                        self.check(&format!("{at}.{name}"), schema, value, faults);
                    }
                }
                ("items", schema) => {
                    for (n, value) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(&format!("{at}[{n}]"), schema, value, faults);
                    }
                }
                // A pattern says which characters a number has as text.
                ("pattern", Value::String(_)) => {
                    let text = value.as_str().unwrap_or_default();
                    if text.parse::<i64>().is_err() {
                        faults.push(format!("{at}: {value} is no number as text"));
                    }
                }
                (word, _) if DESCRIBING.contains(&word) => {}
                (word, rule) => faults.push(format!("{at}: unknown word {word}: {rule}")),
            }
        }
    }

    fn check_any(self, at: &str, schemas: &[Value], value: &Value, faults: &mut Vec<String>) {
        let tried = schemas.iter().map(|schema| self.faults(schema, value));
        let tried: Vec<Vec<String>> = tried.collect();
        if !tried.iter().any(Vec::is_empty) {
            faults.push(format!("{at}: {value} is none of {tried:?}"));
        }
    }

    fn check_properties(
        self,
        at: &str,
        properties: &Map<String, Value>,
        value: &Value,
        faults: &mut Vec<String>,
    ) {
        for (name, value) in value.as_object().into_iter().flatten() {
            match properties.get(name) {
                Some(schema) => self.check(&format!("{at}.{name}"), schema, value, faults),
                None => faults.push(format!("{at}: no schema describes {name}")),
            }
        }
    }

    fn target(self, reference: &str) -> Option<&'d Value> {
        self.document.pointer(reference.strip_prefix('#')?)
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, value: &Value, expected: &[&str]) {
        let document = json!({"components": {"schemas": {"Name": {"type": "string"}}}});
        let faults = SchemaCheck::of(&document).faults(schema, value);
        assert_eq!(faults, expected);
    }

    #[test]
    fn what_a_schema_does_not_describe_is_a_fault() {
        let name = json!({"$ref": "#/components/schemas/Name"});
        check(&name, &json!("a"), &[]);
        check(&name, &json!(1), &["$: 1 is no string"]);
        let object = json!({"type": "object", "required": ["a"], "properties": {"a": name}});
        check(&object, &json!({"a": "b"}), &[]);
        check(&object, &json!({}), &["$: a is missing"]);
        check(&object, &json!({"a": 1}), &["$.a: 1 is no string"]);
        let two = json!({"a": "b", "c": 1});
        check(&object, &two, &["$: no schema describes c"]);
        let list = json!({"type": "array", "items": {"type": "integer", "minimum": 0}});
        check(&list, &json!([1]), &[]);
        check(&list, &json!([1, -1]), &["$[1]: -1 is below 0"]);
        let map = json!({"type": "object", "additionalProperties": {"type": "boolean"}});
        check(&map, &json!({"a": 1}), &["$.a: 1 is no boolean"]);
        let either = json!({"anyOf": [{"type": "null"}, {"enum": ["a"]}]});
        check(&either, &json!("a"), &[]);
        let neither = SchemaCheck::of(&Value::Null).faults(&either, &json!("b"));
        assert_eq!(neither.len(), 1, "{neither:?}");
        check(
            &json!({"$ref": "#/components/schemas/Other"}),
            &json!(1),
            &["$: nothing is at #/components/schemas/Other"],
        );
        check(
            &json!({"oneOf": []}),
            &json!(1),
            &["$: unknown word oneOf: []"],
        );
    }
}
