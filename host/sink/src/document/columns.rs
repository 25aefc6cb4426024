//! Columns of a table, and the cells of an item.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crawler_model::plugin::Schema;

/// Column with the kind of an item, which a table of several kinds has.
const KIND: &str = "kind";

/// Columns of a table: the fields that the schemas of a plugin declare, in their order. If there are several
/// kinds of items, the first column tells the kind, and a field that several kinds have is one column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    has_kind: bool,
    fields: Vec<String>,
}

/// Reason why the items of a plugin make no table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoColumns {
    /// There are no schemas.
    #[error("the plugin declares no items, so a table would have no columns")]
    NoSchemas,
    /// A schema declares no fields, so nobody knows the columns before the last item.
    #[error("items of kind {kind} have no columns: their schema declares no fields")]
    Undeclared {
        /// Name of the schema.
        kind: String,
    },
    /// The column of the kind has the name of a field.
    #[error(
        "items of kind {kind} have a field \"kind\", and a table of several kinds has a column of this name"
    )]
    Kind {
        /// Name of the schema.
        kind: String,
    },
}

/// Reason why an item is no line of a table.
#[derive(Debug, thiserror::Error)]
pub enum NoLine {
    /// The item is not a JSON object.
    #[error("the {kind} of {url} is not a JSON object: {error}")]
    NoObject {
        /// Kind of the item.
        kind: String,
        /// Address of its page.
        url: String,
        /// Fault of the JSON.
        error: serde_json::Error,
    },
    /// The item has a field for which there is no column.
    #[error(
        "the {kind} of {url} has a field {field:?} that its schema does not declare, so there is no column for it"
    )]
    NoColumn {
        /// Kind of the item.
        kind: String,
        /// Address of its page.
        url: String,
        /// Name of the field.
        field: String,
    },
}

/// Item for a line of a table.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Kind of the item: the name of its schema.
    pub kind: &'a str,
    /// Address of its page.
    pub url: &'a str,
    /// Item, as a JSON object.
    pub json: &'a str,
}

impl Columns {
    /// Returns the columns for the items of a plugin.
    ///
    /// # Errors
    ///
    /// The schemas do not tell the columns.
    pub fn of(schemas: &[Schema]) -> Result<Self, NoColumns> {
        if schemas.is_empty() {
            return Err(NoColumns::NoSchemas);
        }
        let has_kind = schemas.len() > 1;
        let mut fields: Vec<String> = Vec::new();
        for schema in schemas {
            let kind = || schema.name.clone();
            let declared = declared(&schema.json_schema);
            if declared.is_empty() {
                return Err(NoColumns::Undeclared { kind: kind() });
            }
            if has_kind && declared.iter().any(|name| name == KIND) {
                return Err(NoColumns::Kind { kind: kind() });
            }
            for name in declared {
                if !fields.contains(&name) {
                    fields.push(name);
                }
            }
        }
        Ok(Self { has_kind, fields })
    }

    /// Adds the names of the columns.
    pub fn push_head(&self, bytes: &mut Vec<u8>) {
        let kind = self.has_kind.then_some(KIND);
        let fields = self.fields.iter().map(String::as_str);
        write(
            &mut csv::Writer::from_writer(bytes),
            kind.into_iter().chain(fields),
        );
    }

    /// Adds the lines of items.
    ///
    /// # Errors
    ///
    /// An item does not fit. The lines before it are there.
    pub fn push_lines<'a>(
        &self,
        bytes: &mut Vec<u8>,
        items: impl IntoIterator<Item = Line<'a>>,
    ) -> Result<(), NoLine> {
        let mut lines = csv::Writer::from_writer(bytes);
        for item in items {
            write(&mut lines, self.cells(item)?);
        }
        Ok(())
    }

    /// Returns the cells of an item: texts as they are, a missing field or `null` as nothing, and all other values
    /// as JSON.
    fn cells(&self, item: Line<'_>) -> Result<Vec<String>, NoLine> {
        let (kind, url) = (item.kind.to_owned(), item.url.to_owned());
        let mut values = match serde_json::from_str::<BTreeMap<String, &RawValue>>(item.json) {
            Ok(values) => values,
            Err(error) => return Err(NoLine::NoObject { kind, url, error }),
        };
        let mut cells = Vec::with_capacity(1 + self.fields.len());
        if self.has_kind {
            cells.push(kind.clone());
        }
        let fields = self.fields.iter();
        cells.extend(fields.map(|name| values.remove(name).map_or_else(String::new, cell)));
        match values.into_keys().next() {
            None => Ok(cells),
            Some(field) => Err(NoLine::NoColumn { kind, url, field }),
        }
    }
}

fn cell(value: &RawValue) -> String {
    match serde_json::from_str::<Option<String>>(value.get()) {
        Ok(text) => text.unwrap_or_default(),
        Err(_other_than_text) => value.get().to_owned(),
    }
}

fn write(lines: &mut csv::Writer<&mut Vec<u8>>, cells: impl IntoIterator<Item = impl AsRef<[u8]>>) {
    let written = lines.write_record(cells);
    written.expect("memory takes all lines, and each has a cell for each column");
}

/// Returns the names of the fields that a schema declares, in its order.
fn declared(json_schema: &str) -> Vec<String> {
    #[derive(Deserialize)]
    struct Object {
        #[serde(default)]
        properties: Names,
    }
    // A schema that is no JSON was refused when the plugin was loaded.
    let schema = serde_json::from_str::<Object>(json_schema);
    schema.map_or_else(|_| Vec::new(), |schema| schema.properties.0)
}

/// Names of the members of a JSON object, in its order.
#[derive(Debug, Default)]
struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;

        impl<'de> Visitor<'de> for Members {
            type Value = Names;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Names, A::Error> {
                let mut names = Vec::new();
                while let Some((name, IgnoredAny)) = map.next_entry()? {
                    names.push(name);
                }
                Ok(Names(names))
            }
        }

        deserializer.deserialize_map(Members)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    fn schema(name: &str, json_schema: &str) -> Schema {
        Schema {
            name: name.to_owned(),
            json_schema: json_schema.to_owned(),
        }
    }

    pub(in crate::document) fn book() -> Schema {
        let properties = r#"{"url":{},"title":{"type":"string"},"tags":{}}"#;
        schema(
            "book",
            &format!(r#"{{"type":"object","properties":{properties}}}"#),
        )
    }

    fn author() -> Schema {
        schema("author", r#"{"properties":{"name":{},"url":{}}}"#)
    }

    fn line(schemas: &[Schema], kind: &str, item: &str) -> Result<String, String> {
        let item = Line {
            kind,
            url: "http://a.test/",
            json: item,
        };
        let mut bytes = Vec::new();
        let columns = Columns::of(schemas).unwrap();
        columns
            .push_lines(&mut bytes, [item])
            .map_err(|e| e.to_string())?;
        Ok(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn columns_stand_in_the_order_of_the_schema() {
        let mut head = Vec::new();
        Columns::of(&[book()]).unwrap().push_head(&mut head);
        assert_eq!(head, b"url,title,tags\n");
    }

    #[test]
    fn several_kinds_share_a_table_with_a_column_for_the_kind() {
        let kinds = [book(), author()];
        let mut head = Vec::new();
        Columns::of(&kinds).unwrap().push_head(&mut head);
        assert_eq!(head, b"kind,url,title,tags,name\n");
        let found = line(&kinds, "author", r#"{"name":"b","url":"u"}"#).unwrap();
        assert_eq!(found, "author,u,,,b\n");
    }

    #[test]
    fn texts_are_quoted_and_other_values_are_json() {
        let item = r#"{"url":null,"title":"a \"b\",\nc","tags":["x",{"y":1.50}]}"#;
        let found = line(&[book()], "book", item).unwrap();
        assert_eq!(
            found,
            ",\"a \"\"b\"\",\nc\",\"[\"\"x\"\",{\"\"y\"\":1.50}]\"\n"
        );
        let item = r#"{"tags":12345678901234567890123,"title":true}"#;
        let found = line(&[book()], "book", item).unwrap();
        assert_eq!(found, ",true,12345678901234567890123\n");
    }

    #[test]
    fn a_field_without_a_column_is_not_lost_in_silence() {
        let error = line(&[book()], "book", r#"{"price":1}"#).unwrap_err();
        assert!(
            error.contains(r#"has a field "price" that its schema does not declare"#),
            "{error}"
        );
    }

    #[test]
    fn schemas_that_tell_no_columns_are_refused() {
        let undeclared = Err(NoColumns::Undeclared {
            kind: "page".into(),
        });
        assert_eq!(Columns::of(&[]), Err(NoColumns::NoSchemas));
        assert_eq!(Columns::of(&[schema("page", "")]), undeclared);
        assert_eq!(
            Columns::of(&[schema("page", r#"{"type":"object"}"#)]),
            undeclared
        );
        assert_eq!(Columns::of(&[book(), schema("page", "{}")]), undeclared);
        let kind = schema("page", r#"{"properties":{"kind":{}}}"#);
        assert!(Columns::of(std::slice::from_ref(&kind)).is_ok());
        let taken = Err(NoColumns::Kind {
            kind: "page".into(),
        });
        assert_eq!(Columns::of(&[book(), kind]), taken);
    }
}
