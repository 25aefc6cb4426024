//! JSON Schemas of messages: as answers write them, by the forms of `crawler_proto::shown`, and as bodies of requests are
//! taken.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::descriptors::{Descriptors, Field, Kind, Number};
use crawler_proto::shown::{FIELDS, Form};

/// Ending of the name of a message as a part of a request.
const INPUT: &str = "Input";
/// Name of counts without the number of requests in flight.
const TOTALS: &str = "Totals";
/// Message with all counts.
const COUNTS: &str = "Counts";

/// Schemas that the document needs: one that is referred to is made at the end.
pub(super) struct Schemas<'d> {
    descriptors: &'d Descriptors,
    made: BTreeMap<String, Value>,
    /// Names of schemas that are still to be made.
    wanted: Vec<String>,
}

impl<'d> Schemas<'d> {
    pub(super) fn new(descriptors: &'d Descriptors) -> Self {
        Self {
            descriptors,
            made: BTreeMap::new(),
            wanted: Vec::new(),
        }
    }

    /// Returns a reference to the schema of a message as answers write it.
    pub(super) fn reference(&mut self, name: &str) -> Value {
        if !self.made.contains_key(name) {
            self.wanted.push(name.to_owned());
        }
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    /// Returns the schema of a body that has these fields of a message.
    pub(super) fn request(
        &mut self,
        message: &str,
        required: &'static [&'static str],
        optional: &'static [&'static str],
    ) -> Value {
        let described = self.descriptors.message(message);
        let fields = described.fields.iter();
        let taken: Vec<&Field> = fields
            .filter(|field| {
                let name = field.name.as_str();
                required.contains(&name) || optional.contains(&name)
            })
            .collect();
        let properties = self.input_properties(&taken, required);
        let mut schema = closed(properties);
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    /// Returns all schemas that were referred to, by name.
    pub(super) fn finish(mut self) -> Map<String, Value> {
        while let Some(name) = self.wanted.pop() {
            if self.made.contains_key(&name) {
                continue;
            }
            // It may refer to itself.
            self.made.insert(name.clone(), Value::Null);
            let schema = match name.strip_suffix(INPUT) {
                Some(message) => self.input(message),
                None if name == TOTALS => self.answer(COUNTS, &["in_flight"]),
                None => self.answer(&name, &[]),
            };
            self.made.insert(name, schema);
        }
        self.made.into_iter().collect()
    }

    /// Returns the schema of a message as answers write it, without some fields.
    fn answer(&mut self, message: &str, left_out: &[&str]) -> Value {
        let described = self.descriptors.message(message);
        let mut properties = Map::new();
        let mut required = Vec::new();
        for field in &described.fields {
            let form = form(message, &field.name);
            if left_out.contains(&field.name.as_str()) || form == Some(Form::Skipped) {
                continue;
            }
            if form == Some(Form::Flattened) {
                return with_about(self.kind(&field.kind), &described.about);
            }
            let schema = with_about(self.answer_field(field, form), &field.about);
            let name = match form {
                Some(Form::Renamed(name) | Form::Raw(name)) => name,
                _ => field.name.as_str(),
            };
            if !matches!(form, Some(Form::IfSet | Form::UnlessOne | Form::RawIfSet)) {
                required.push(name.to_owned());
            }
            properties.insert(name.to_owned(), schema);
        }
        let schema = json!({"type": "object", "required": required, "properties": properties});
        with_about(schema, &described.about)
    }

    fn answer_field(&mut self, field: &Field, form: Option<Form>) -> Value {
        match form {
            Some(Form::Text) => return json!({"type": "string", "pattern": "^-?[0-9]+$"}),
            Some(Form::Raw(_) | Form::RawIfSet) => return json!({"type": "object"}),
            Some(Form::Totals) => return self.reference(TOTALS),
            Some(Form::OrOne | Form::UnlessOne) => {
                return json!({"type": "integer", "minimum": 1, "format": "uint32"});
            }
            _ => {}
        }
        let value = self.kind(&field.kind);
        let is_always_there = matches!(form, Some(Form::OrEmpty | Form::IfSet));
        let may_be_absent = field.number == Number::Optional
            || (matches!(field.kind, Kind::Message(_)) && field.number == Number::One);
        match field.number {
            Number::Many => json!({"type": "array", "items": value}),
            _ if may_be_absent && !is_always_there => {
                json!({"anyOf": [value, {"type": "null"}]})
            }
            _ => value,
        }
    }

    fn kind(&mut self, kind: &Kind) -> Value {
        match kind {
            Kind::Text => json!({"type": "string"}),
            Kind::Truth => json!({"type": "boolean"}),
            Kind::Fraction => json!({"type": "number"}),
            Kind::Whole(format) => {
                let mut schema = json!({"type": "integer", "format": format});
                if format.starts_with('u') {
                    schema["minimum"] = json!(0);
                }
                schema
            }
            Kind::Message(name) => self.reference(name),
            Kind::Map(value) => {
                json!({"type": "object", "additionalProperties": self.kind(value)})
            }
        }
    }

    /// Returns the schema of a message as a part of a request.
    fn input(&mut self, message: &str) -> Value {
        let described = self.descriptors.message(message);
        let fields: Vec<&Field> = described.fields.iter().collect();
        let properties = self.input_properties(&fields, &[]);
        with_about(closed(properties), &described.about)
    }

    /// Returns the schemas of fields of a body. `null` stands for a field that is absent.
    fn input_properties(&mut self, fields: &[&Field], required: &[&str]) -> Map<String, Value> {
        let properties = fields.iter().map(|field| {
            let value = self.input_kind(&field.kind);
            let schema = match field.number {
                Number::Many => json!({"type": "array", "items": value}),
                Number::One | Number::Optional => value,
            };
            let schema = match required.contains(&field.name.as_str()) {
                true => schema,
                false => json!({"anyOf": [schema, {"type": "null"}]}),
            };
            (field.name.clone(), with_about(schema, &field.about))
        });
        properties.collect()
    }

    fn input_kind(&mut self, kind: &Kind) -> Value {
        match kind {
            Kind::Whole(format) => json!({"type": ["integer", "string"], "format": format}),
            Kind::Message(name) => self.reference(&format!("{name}{INPUT}")),
            Kind::Map(value) => {
                json!({"type": "object", "additionalProperties": self.input_kind(value)})
            }
            Kind::Text | Kind::Truth | Kind::Fraction => self.kind(kind),
        }
    }
}

/// Returns the schema of an object that has no other fields.
fn closed(properties: Map<String, Value>) -> Value {
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

/// Returns the form of a field, if it is not simply its value.
fn form(message: &str, field: &str) -> Option<Form> {
    let (one, all) = (format!("{message}.{field}"), format!(".{message}"));
    let mut fields = FIELDS.iter();
    let found = fields.find(|(path, _)| *path == one || *path == all);
    found.map(|(_, form)| *form)
}

/// Returns a schema with a description, if there is one.
fn with_about(mut schema: Value, about: &str) -> Value {
    if !about.is_empty() {
        schema["description"] = json!(about);
    }
    schema
}
