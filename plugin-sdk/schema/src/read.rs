//! Reader of schemas: from the text to nodes.

use std::collections::HashMap;

use serde_json::Map;

use super::check::{listed, shown};
use super::json::is_same;
use super::*;

/// Largest depth of nested schemas, by writing or by `$ref`.
const DEPTH_MAX: usize = 64;
/// Largest size of all compiled patterns of a schema, in bytes: each of them stays in memory.
const PATTERNS_BYTES_MAX: usize = 256 << 10;
/// Largest size of all places of schemas, in bytes, as JSON pointers.
const PLACES_BYTES_MAX: usize = 4 << 20;

/// Fault of a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{why}", place(at))]
pub struct SchemaError {
    /// JSON pointer to the place; empty for the whole schema.
    at: String,
    why: String,
}

fn place(at: &str) -> String {
    match at {
        "" => String::new(),
        at => format!("at {}: ", shown(at).escape_debug()),
    }
}

/// Keywords that describe values and demand nothing.
const ANNOTATIONS: [&str; 14] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "contentEncoding",
    "contentMediaType",
];

impl JsonSchema {
    /// Reads the text of a schema.
    ///
    /// # Errors
    ///
    /// Refuses a text that is not JSON, has a keyword that items are not checked by, or can be followed without
    /// end.
    pub fn read(text: &str) -> Result<Self, SchemaError> {
        let document: Value = serde_json::from_str(text).map_err(|e| SchemaError {
            at: String::new(),
            why: format!("not JSON: {e}"),
        })?;
        let mut reader = Reader {
            document: &document,
            nodes: Vec::new(),
            places: Vec::new(),
            by_place: HashMap::new(),
            place_bytes: 0,
            pattern_bytes: 0,
        };
        let root = reader.schema("", &document, 0)?;
        let mut schema = Self {
            kinds: vec![Kinds::ALL; reader.nodes.len()],
            nodes: reader.nodes,
            root,
        };
        schema.follow_chains(&reader.places)?;
        Ok(schema)
    }
}

struct Reader<'d> {
    document: &'d Value,
    nodes: Vec<Node>,
    /// Place where each schema was read, as a JSON pointer.
    places: Vec<String>,
    /// Schema at each place, and the one that a place refers to.
    by_place: HashMap<String, NodeId>,
    place_bytes: usize,
    pattern_bytes: usize,
}

impl<'d> Reader<'d> {
    fn schema(&mut self, at: &str, value: &'d Value, depth: usize) -> Result<NodeId, SchemaError> {
        if let Some(id) = self.by_place.get(at) {
            return Ok(*id);
        }
        self.place_bytes += at.len();
        if self.place_bytes > PLACES_BYTES_MAX {
            return Err(wrong(
                at,
                "there are too many schemas with long names in each other",
            ));
        }
        if depth > DEPTH_MAX {
            let why = "schemas are nested too deep, or a $ref leads to itself";
            return Err(wrong(at, why));
        }
        let map = match value {
            Value::Object(map) => map,
            Value::Bool(fits) => {
                let kinds = if *fits { Kinds::ALL } else { Kinds::NONE };
                let node = Node {
                    kinds,
                    ..Node::any()
                };
                return Ok(self.add(at, node));
            }
            _ => return Err(wrong(at, "a schema is an object, true or false")),
        };
        if let Some(Value::String(target)) = map.get("$ref")
            && map.keys().all(|key| key == "$ref" || demands_nothing(key))
        {
            let id = self.target(at, target, depth)?;
            self.by_place.insert(at.to_owned(), id);
            return Ok(id);
        }
        // The schema gets its place before its content is read, because the content may refer to it.
        let id = self.add(at, Node::any());
        self.nodes[id.0] = self.node(at, map, depth)?;
        Ok(id)
    }

    fn add(&mut self, at: &str, node: Node) -> NodeId {
        let id = NodeId(self.nodes.len());
        self.nodes.push(node);
        self.places.push(at.to_owned());
        self.by_place.insert(at.to_owned(), id);
        id
    }

    fn node(
        &mut self,
        at: &str,
        map: &'d Map<String, Value>,
        depth: usize,
    ) -> Result<Node, SchemaError> {
        let mut node = Node::any();
        for (key, value) in map {
            let here = format!("{at}/{}", escaped(key));
            match key.as_str() {
                "type" => node.kinds = node.kinds & kinds(&here, value)?,
                "enum" => node.demand_one_of(array(&here, value)?.clone()),
                "const" => node.demand_one_of(vec![value.clone()]),
                "minimum" => node.number.least = Some(number(&here, value)?),
                "maximum" => node.number.most = Some(number(&here, value)?),
                "exclusiveMinimum" => node.exclusive.least = Some(number(&here, value)?),
                "exclusiveMaximum" => node.exclusive.most = Some(number(&here, value)?),
                "minLength" => node.length.least = Some(count(&here, value)?),
                "maxLength" => node.length.most = Some(count(&here, value)?),
                "pattern" => node.pattern = Some(self.pattern(&here, text(&here, value)?)?),
                "format" => node.format = Some(text(&here, value)?.to_owned()),
                "items" => node.elements = Some(self.schema(&here, value, depth + 1)?),
                "prefixItems" => node.prefix = self.list(&here, value, depth)?,
                "minItems" => node.n_elements.least = Some(count(&here, value)?),
                "maxItems" => node.n_elements.most = Some(count(&here, value)?),
                "uniqueItems" => match value {
                    Value::Bool(unique) => node.unique = *unique,
                    _ => return Err(wrong(&here, "it is true or false")),
                },
                "properties" => {
                    for (name, at, value) in named(&here, value)? {
                        let id = self.schema(&at, value, depth + 1)?;
                        node.properties.insert(name.clone(), id);
                    }
                }
                "patternProperties" => {
                    for (name, at, value) in named(&here, value)? {
                        let id = self.schema(&at, value, depth + 1)?;
                        node.by_pattern.push((self.pattern(&at, name)?, id));
                    }
                }
                "required" => {
                    let names = array(&here, value)?.iter();
                    let names = names.map(|name| text(&here, name).map(str::to_owned));
                    node.required = names.collect::<Result<_, _>>()?;
                    node.required.sort();
                    node.required.dedup();
                }
                "additionalProperties" => {
                    node.others = Some(self.schema(&here, value, depth + 1)?)
                }
                "minProperties" => node.n_properties.least = Some(count(&here, value)?),
                "maxProperties" => node.n_properties.most = Some(count(&here, value)?),
                "allOf" => node.all_of.extend(self.list(&here, value, depth)?),
                "anyOf" => node.any_of = self.list(&here, value, depth)?,
                "oneOf" => node.one_of = self.list(&here, value, depth)?,
                "$id" if !at.is_empty() => {
                    let why = "only the whole schema may have one";
                    return Err(wrong(&here, why));
                }
                "$ref" => {
                    let target = text(&here, value)?;
                    node.all_of.push(self.target(&here, target, depth)?);
                }
                key if demands_nothing(key) => {}
                _ => {
                    let why = "items are not checked by this keyword; leave it out, or begin its name with x- where it demands nothing";
                    return Err(wrong(&here, why));
                }
            }
        }
        Ok(node)
    }

    fn list(
        &mut self,
        at: &str,
        value: &'d Value,
        depth: usize,
    ) -> Result<Vec<NodeId>, SchemaError> {
        let list = array(at, value)?;
        if list.is_empty() {
            return Err(wrong(at, "it is a list of at least one schema"));
        }
        let list = list.iter().enumerate();
        list.map(|(n, value)| self.schema(&format!("{at}/{n}"), value, depth + 1))
            .collect()
    }

    fn pattern(&mut self, at: &str, text: &str) -> Result<Pattern, SchemaError> {
        let bad =
            |why: &dyn fmt::Display| wrong(at, format!("{:?} is no pattern: {why}", shown(text)));
        let pattern = Pattern::new(text).map_err(|why| bad(&why))?;
        self.pattern_bytes += pattern.size();
        if self.pattern_bytes > PATTERNS_BYTES_MAX {
            return Err(bad(&"all of the schema together are too large"));
        }
        Ok(pattern)
    }

    /// Returns the schema that a `$ref` leads to.
    fn target(&mut self, at: &str, target: &str, depth: usize) -> Result<NodeId, SchemaError> {
        let pointer = target
            .strip_prefix('#')
            .filter(|p| p.is_empty() || p.starts_with('/'));
        let pointer = pointer.map(|pointer| percent_encoding::percent_decode_str(pointer));
        let pointer = pointer.and_then(|pointer| pointer.decode_utf8().ok());
        let value = pointer
            .as_ref()
            .and_then(|pointer| self.document.pointer(pointer));
        match (pointer, value) {
            (Some(pointer), Some(value)) => self.schema(&pointer, value, depth + 1),
            _ => {
                let why = format!("{target:?} leads nowhere in this schema; write #/$defs/NAME");
                Err(wrong(at, why))
            }
        }
    }
}

impl Node {
    fn demand_one_of(&mut self, mut list: Vec<Value>) {
        if let Some(other) = &self.values {
            list.retain(|value| other.list.iter().any(|other| is_same(value, other)));
        }
        self.values = Some(Values {
            n_bytes: list.iter().map(|value| value.to_string().len()).sum(),
            text: listed(&list),
            list,
        });
    }
}

fn demands_nothing(key: &str) -> bool {
    ANNOTATIONS.contains(&key) || key.starts_with("x-")
}

pub(super) fn wrong(at: &str, why: impl Into<String>) -> SchemaError {
    let (at, why) = (at.to_owned(), why.into());
    SchemaError { at, why }
}

/// Writes a name as a part of a JSON pointer (RFC 6901).
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn kinds(at: &str, value: &Value) -> Result<Kinds, SchemaError> {
    let one = |value: &Value| {
        let known = Kinds::NAMES
            .iter()
            .find(|(name, kinds)| *kinds != Kinds::FRACTION && value.as_str() == Some(*name));
        let kinds = known.map(|(_, kinds)| *kinds);
        kinds.ok_or_else(|| wrong(at, format!("{value} is no type of JSON Schema")))
    };
    match value {
        Value::Array(list) => list
            .iter()
            .try_fold(Kinds::NONE, |all, v| Ok(all | one(v)?)),
        value => one(value),
    }
}

fn array<'v>(at: &str, value: &'v Value) -> Result<&'v Vec<Value>, SchemaError> {
    value.as_array().ok_or_else(|| wrong(at, "it is a list"))
}

fn text<'v>(at: &str, value: &'v Value) -> Result<&'v str, SchemaError> {
    value.as_str().ok_or_else(|| wrong(at, "it is a text"))
}

fn number(at: &str, value: &Value) -> Result<Number, SchemaError> {
    match value {
        Value::Number(number) => Ok(number.clone()),
        _ => Err(wrong(at, "it is a number")),
    }
}

fn count(at: &str, value: &Value) -> Result<u64, SchemaError> {
    let whole = value.as_f64().filter(|n| n.fract() == 0.0 && *n >= 0.0);
    // 2.0 is accepted for 2.
    let count = value.as_u64().or_else(|| whole.map(|n| n as u64));
    count.ok_or_else(|| wrong(at, "it is a number from 0 on, without a fraction"))
}

/// Returns the schemas of an object, with name and place.
fn named<'v>(
    at: &str,
    value: &'v Value,
) -> Result<impl Iterator<Item = (&'v String, String, &'v Value)>, SchemaError> {
    let map = value.as_object();
    let map = map.ok_or_else(|| wrong(at, "it is an object of schemas"))?;
    let at = at.to_owned();
    Ok(map
        .iter()
        .map(move |(name, value)| (name, format!("{at}/{}", escaped(name)), value)))
}
