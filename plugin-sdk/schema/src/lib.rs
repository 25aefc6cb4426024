//! Shape of items: JSON Schema, as far as items are checked by it.
//!
//! A schema comes from a plugin, so nothing in it is trusted. A keyword that is not checked is refused instead of
//! passed over. A schema that could be followed without end is refused too. Checking an item keeps nothing of it
//! but the starts of elements that have to be unique, and spends from a budget.
//!
//! The keywords are those of [draft 2020-12](https://json-schema.org/draft/2020-12) that types of programming
//! languages need: `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `patternProperties`,
//! `minProperties`, `maxProperties`, `items`, `prefixItems`, `minItems`, `maxItems`, `uniqueItems` (as the
//! elements are written), `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `minLength`, `maxLength`,
//! `pattern` (in the dialect of [`crawler_pattern`]), `allOf`, `anyOf`, `oneOf` and `$ref` into the same schema.
//! Keywords that describe and demand nothing, such as `title` and `format`, may stand anywhere, and so may
//! keywords that begin with `x-`.
//!
//! ```text
//! read      the text of a schema into nodes
//! chains    which of them are about the same value, and what they leave open
//! check     one item by them, as it is written
//! json      valid JSON as it is written
//! object    whether an item is one JSON object at all
//! compare   what readers of the items of one schema could stumble over in those of another
//! shape     properties as columns of a table
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{BitAnd, BitOr};

use crawler_pattern::Pattern;
use serde_json::{Number, Value};

mod chains;
mod check;
mod compare;
mod json;
mod object;
mod read;
mod shape;

pub use check::Unfit;
pub use object::check_object;
pub use read::SchemaError;
pub use shape::{Property, Shape};

/// A schema that has been read.
#[derive(Debug, Clone)]
pub struct JsonSchema {
    /// Schemas that it is made of; they refer to each other by their places in the list.
    nodes: Vec<Node>,
    /// Kinds that each schema leaves open, together with all schemas about the same value.
    kinds: Vec<Kinds>,
    root: NodeId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct NodeId(usize);

/// Demands on one value, which all have to be met.
#[derive(Debug, Clone)]
struct Node {
    kinds: Kinds,
    values: Option<Values>,
    number: Bounds<Number>,
    /// Bounds that the value has to exceed, or stay below.
    exclusive: Bounds<Number>,
    /// Length in characters.
    length: Bounds<u64>,
    pattern: Option<Pattern>,
    /// Format of a text or number; it is not checked.
    format: Option<String>,
    prefix: Vec<NodeId>,
    /// Elements behind the prefix.
    elements: Option<NodeId>,
    n_elements: Bounds<u64>,
    unique: bool,
    properties: BTreeMap<String, NodeId>,
    /// Required properties, sorted.
    required: Vec<String>,
    by_pattern: Vec<(Pattern, NodeId)>,
    /// Properties that no name or pattern covers.
    others: Option<NodeId>,
    n_properties: Bounds<u64>,
    all_of: Vec<NodeId>,
    /// Schemas of which at least one fits.
    any_of: Vec<NodeId>,
    /// Schemas of which exactly one fits.
    one_of: Vec<NodeId>,
}

impl Node {
    /// Returns a schema that all values fit.
    fn any() -> Self {
        Self {
            kinds: Kinds::ALL,
            values: None,
            number: Bounds::default(),
            exclusive: Bounds::default(),
            length: Bounds::default(),
            pattern: None,
            format: None,
            prefix: Vec::new(),
            elements: None,
            n_elements: Bounds::default(),
            unique: false,
            properties: BTreeMap::new(),
            required: Vec::new(),
            by_pattern: Vec::new(),
            others: None,
            n_properties: Bounds::default(),
            all_of: Vec::new(),
            any_of: Vec::new(),
            one_of: Vec::new(),
        }
    }

    /// Number of parts to look at.
    fn n_parts(&self) -> usize {
        self.properties.len() + self.required.len() + self.by_pattern.len() + self.prefix.len()
    }

    /// Returns the schemas that are about the same value.
    fn beside(&self) -> impl Iterator<Item = NodeId> + '_ {
        let lists = [&self.all_of, &self.any_of, &self.one_of];
        lists.into_iter().flatten().copied()
    }
}

/// Values of an `enum` or `const`.
#[derive(Debug, Clone)]
struct Values {
    list: Vec<Value>,
    /// Bytes of the whole list as JSON.
    n_bytes: usize,
    /// Text of the list, as far as an error shows it.
    text: String,
}

/// Smallest and largest value; each may be missing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Bounds<T> {
    least: Option<T>,
    most: Option<T>,
}

impl<T> Default for Bounds<T> {
    fn default() -> Self {
        let (least, most) = (None, None);
        Self { least, most }
    }
}

/// A set of kinds of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kinds(u8);

impl Kinds {
    const NONE: Kinds = Kinds(0);
    const NULL: Kinds = Kinds(1);
    const BOOLEAN: Kinds = Kinds(2);
    const INTEGER: Kinds = Kinds(4);
    /// Numbers that are no integers.
    const FRACTION: Kinds = Kinds(8);
    const STRING: Kinds = Kinds(16);
    const ARRAY: Kinds = Kinds(32);
    const OBJECT: Kinds = Kinds(64);
    const NUMBER: Kinds = Kinds(4 | 8);
    const ALL: Kinds = Kinds(127);

    const NAMES: [(&'static str, Kinds); 8] = [
        ("null", Kinds::NULL),
        ("boolean", Kinds::BOOLEAN),
        ("fraction", Kinds::FRACTION),
        ("integer", Kinds::INTEGER),
        ("number", Kinds::NUMBER),
        ("string", Kinds::STRING),
        ("array", Kinds::ARRAY),
        ("object", Kinds::OBJECT),
    ];

    fn has(self, others: Kinds) -> bool {
        others.without(self) == Kinds::NONE
    }

    fn without(self, others: Kinds) -> Kinds {
        Kinds(self.0 & !others.0)
    }
}

impl BitOr for Kinds {
    type Output = Kinds;

    fn bitor(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

impl BitAnd for Kinds {
    type Output = Kinds;

    fn bitand(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }
}

/// Writes the kinds, such as `string or null`.
impl fmt::Display for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Kinds::ALL {
            return f.write_str("anything");
        }
        let mut rest = *self;
        let mut names = Vec::new();
        // Numbers come after the kinds that are parts of them.
        for (name, kinds) in Kinds::NAMES.iter().rev() {
            if rest.has(*kinds) {
                names.push(*name);
                rest = rest.without(*kinds);
            }
        }
        match names.is_empty() {
            true => f.write_str("nothing"),
            false => f.write_str(&names.join(" or ")),
        }
    }
}

impl JsonSchema {
    /// Returns the properties of an object that fits: names, kinds, and true if the property is always there.
    pub fn properties(&self) -> impl Iterator<Item = (&str, String, bool)> {
        let root = self.node(self.root);
        root.properties.iter().map(|(name, id)| {
            let is_required = root.required.binary_search(name).is_ok();
            (name.as_str(), self.kinds(*id).to_string(), is_required)
        })
    }

    /// Returns true if an object may fit the schema.
    pub fn takes_objects(&self) -> bool {
        self.kinds(self.root).has(Kinds::OBJECT)
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// Returns the kinds that a value may have.
    fn kinds(&self, id: NodeId) -> Kinds {
        self.kinds[id.0]
    }
}

#[cfg(test)]
mod tests;
