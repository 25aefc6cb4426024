//! Items as rows of a table: columns of the sink, a column for each field of the schema, and the rest.
//!
//! A field that has no column, or does not fit its column, is in `_rest`, so that a row has all of its item.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crawler_model::crawl::ItemRecord;
use crawler_model::plugin::Schema;
use crawler_schema::Shape;
use crawler_sink::fields::{self, integer};

/// Names of the columns that the sink has itself, before those of fields.
pub(crate) const OWN: [&str; 6] = ["_key", "_resource", "_kind", "_url", "_run", "_at"];
/// Name of the last column.
pub(crate) const REST: &str = "_rest";
/// Largest number of fields that have a column.
const MAX_FIELDS: usize = 1_000;

/// Columns of the fields of a kind of items, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) fields: Vec<(String, Shape)>,
}

/// Value in a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell<'i> {
    Boolean(bool),
    Integer(i64),
    /// Number, and how the item writes it.
    Number(f64, &'i str),
    Text(String),
    /// JSON as its text.
    Json(&'i str),
}

/// Values of an item.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row<'i> {
    /// Values of the fields; `None` if there is none, or it is `null`, or it does not fit.
    pub(crate) cells: Vec<Option<Cell<'i>>>,
    /// Everything else, as JSON: an object of fields, or the whole item if it is no object.
    pub(crate) rest: Option<String>,
}

impl Table {
    /// Returns the columns of the fields that a schema declares. Without a schema there are none.
    pub(crate) fn new(schema: Option<&Schema>) -> Self {
        let declared = schema.map(fields::declared).unwrap_or_default();
        let named = declared.into_iter().filter(|(name, _)| has_column(name));
        let fields = named.map(|(name, field)| (name, field.shape));
        Self {
            fields: fields.take(MAX_FIELDS).collect(),
        }
    }

    /// Returns a table with the columns of both.
    ///
    /// # Errors
    ///
    /// There is none. The error is a sentence about a column of the other table.
    pub(crate) fn united(&self, other: &Self) -> Result<Self, String> {
        let mut fields: BTreeMap<&str, Shape> = BTreeMap::new();
        for (name, shape) in self.fields.iter().chain(&other.fields) {
            let known = *fields.entry(name.as_str()).or_insert(*shape);
            if known != *shape {
                let of = |shape: Shape| shape.type_name().unwrap_or("JSON");
                let (one, other) = (of(*shape), of(known));
                return Err(format!(
                    "column {name:?} is {one} in it, and {other} in others"
                ));
            }
        }
        if fields.len() > MAX_FIELDS {
            return Err(format!("together they have more than {MAX_FIELDS} fields"));
        }
        let fields = fields.into_iter();
        Ok(Self {
            fields: fields
                .map(|(name, shape)| (name.to_owned(), shape))
                .collect(),
        })
    }

    /// Returns the row of an item.
    pub(crate) fn row<'i>(&self, record: &'i ItemRecord) -> Row<'i> {
        let json = record.item.get();
        let Ok(mut given) = serde_json::from_str::<BTreeMap<String, &'i RawValue>>(json) else {
            return Row {
                cells: vec![None; self.fields.len()],
                rest: Some(json.to_owned()),
            };
        };
        let mut cells = Vec::with_capacity(self.fields.len());
        for (name, shape) in &self.fields {
            let value = given.remove(name).filter(|value| value.get() != "null");
            let cell = value.and_then(|value| Cell::new(*shape, value.get()));
            if let (Some(value), None) = (value, &cell) {
                given.insert(name.clone(), value);
            }
            cells.push(cell);
        }
        let rest = (!given.is_empty()).then(|| {
            let json = serde_json::to_string(&given);
            json.expect("an object of JSON values is JSON")
        });
        Row { cells, rest }
    }
}

/// Returns true if a field may have a column: its name is none of the sink's, whatever the case of its letters, because
/// many readers tell no case apart.
fn has_column(name: &str) -> bool {
    let is_own = |own: &str| own.eq_ignore_ascii_case(name);
    !name.is_empty() && !OWN.into_iter().any(is_own) && !is_own(REST)
}

impl<'i> Cell<'i> {
    /// Returns a value as a column of this shape takes it, or `None` if it does not fit.
    fn new(shape: Shape, json: &'i str) -> Option<Self> {
        match shape {
            Shape::Boolean => serde_json::from_str(json).ok().map(Self::Boolean),
            Shape::Integer => integer(json).map(Self::Integer),
            Shape::Number => {
                let number = serde_json::from_str(json).ok()?;
                Some(Self::Number(number, json))
            }
            Shape::Text => serde_json::from_str(json).ok().map(Self::Text),
            Shape::Any => Some(Self::Json(json)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::tests::record;

    pub(crate) const THING: &str = r#"{"properties": {
        "a": {"type": "boolean"}, "b": {"type": "integer"}, "c": {"type": "number"},
        "d": {"type": "string"}, "e": {"type": "array"}
    }}"#;

    pub(crate) fn table(json_schema: &str) -> Table {
        Table::new(Some(&Schema {
            name: "thing".to_owned(),
            json_schema: json_schema.to_owned(),
        }))
    }

    #[test]
    fn each_field_has_its_column_and_others_are_the_rest() {
        let json = r#"{"a":true,"b":1.0,"c":1.50,"d":"x\u00e9","e":[{"y": 1}],"z":1,"y":null}"#;
        let record = record(1, json);
        let row = table(THING).row(&record);
        let expected = [
            Cell::Boolean(true),
            Cell::Integer(1),
            Cell::Number(1.5, "1.50"),
            Cell::Text("xé".to_owned()),
            Cell::Json(r#"[{"y": 1}]"#),
        ];
        assert_eq!(row.cells, expected.map(Some));
        assert_eq!(row.rest.as_deref(), Some(r#"{"y":null,"z":1}"#));
    }

    #[test]
    fn values_that_do_not_fit_are_in_the_rest() {
        for (json, rest) in [
            (r#"{"a":1}"#, Some(r#"{"a":1}"#)),
            (r#"{"b":1.5}"#, Some(r#"{"b":1.5}"#)),
            (
                r#"{"b":12345678901234567890}"#,
                Some(r#"{"b":12345678901234567890}"#),
            ),
            (r#"{"c":1e999}"#, Some(r#"{"c":1e999}"#)),
            (r#"{"d":["x"],"q":1}"#, Some(r#"{"d":["x"],"q":1}"#)),
            (r#"{"a":null,"e":null}"#, None),
            ("{}", None),
            ("[1,2]", Some("[1,2]")),
            ("\"text\"", Some("\"text\"")),
        ] {
            let record = record(1, json);
            let row = table(THING).row(&record);
            assert_eq!(row.cells, vec![None; 5], "{json}");
            assert_eq!(row.rest.as_deref(), rest, "{json}");
        }
    }

    #[test]
    fn names_of_the_sink_and_too_many_fields_have_no_column() {
        let properties =
            r#"{"properties": {"_key": {}, "_AT": {}, "_rest": {}, "": {}, "key": {}}}"#;
        let table = table(properties);
        assert_eq!(table.fields, [("key".to_owned(), Shape::Any)]);
        let record = record(1, r#"{"_key":1,"key":2}"#);
        let row = table.row(&record);
        assert_eq!(row.cells, [Some(Cell::Json("2"))]);
        assert_eq!(row.rest.as_deref(), Some(r#"{"_key":1}"#));
        let fields: Vec<String> = (0..=MAX_FIELDS).map(|n| format!("\"f{n}\":{{}}")).collect();
        let wide = self::table(&format!("{{\"properties\":{{{}}}}}", fields.join(",")));
        assert_eq!(wide.fields.len(), MAX_FIELDS);
    }

    #[test]
    fn tables_are_united_unless_a_column_has_two_types() {
        let table = |fields: &str| table(&format!("{{\"properties\":{{{fields}}}}}"));
        let [one, other, both, conflict] = [
            r#""b":{"type":"integer"}"#,
            r#""a":{}"#,
            r#""a":{},"b":{"type":"integer"}"#,
            r#""b":{"type":"number"}"#,
        ]
        .map(table);
        assert_eq!(one.united(&other), Ok(both.clone()));
        assert_eq!(other.united(&one), Ok(both.clone()));
        assert_eq!(both.united(&one), Ok(both));
        let error = one.united(&conflict).unwrap_err();
        assert_eq!(error, "column \"b\" is number in it, and integer in others");
        let wide = |start: usize| Table {
            fields: (0..600)
                .map(|n| (format!("f{}", start + n), Shape::Any))
                .collect(),
        };
        let error = wide(0).united(&wide(600)).unwrap_err();
        assert_eq!(error, "together they have more than 1000 fields");
    }

    #[test]
    fn a_kind_without_a_schema_is_all_rest() {
        for text in ["", "{}", "not a schema"] {
            let record = record(1, r#"{"a":1}"#);
            let row = table(text).row(&record);
            assert_eq!(
                (row.cells, row.rest.as_deref()),
                (vec![], Some(r#"{"a":1}"#))
            );
        }
        assert_eq!(Table::new(None), Table::default());
    }
}
