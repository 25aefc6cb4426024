//! Item schemas of a plugin, and their compatibility between versions.

use std::collections::BTreeSet;

use crawler_schema::{JsonSchema, SchemaError};
use serde::{Deserialize, Serialize};

use super::Description;

/// Keyword of a schema that names the field by which an item is known from run to run.
const KEY: &str = "x-key";

/// The shape of one kind of item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Name of the schema, unique within the plugin.
    pub name: String,
    /// JSON Schema of the items; if empty, any JSON object is valid.
    pub json_schema: String,
}

impl Schema {
    /// Parses the schema that items are checked against. Returns `None` if any object is valid.
    ///
    /// # Errors
    ///
    /// The text is not a JSON Schema that items can be checked against.
    pub fn read(&self) -> Result<Option<JsonSchema>, SchemaError> {
        match self.json_schema.as_str() {
            "" => Ok(None),
            text => JsonSchema::read(text).map(Some),
        }
    }

    /// Returns the field that holds the key of an item, if the schema names one.
    pub fn key(&self) -> Option<String> {
        let schema: serde_json::Value = serde_json::from_str(&self.json_schema).ok()?;
        schema.get(KEY)?.as_str().map(str::to_owned)
    }

    /// Returns the fields that the schema lists, or `None` if it lists none: then any field may be there.
    pub fn properties(&self) -> Option<BTreeSet<String>> {
        let schema: serde_json::Value = serde_json::from_str(&self.json_schema).ok()?;
        let properties = schema.get("properties")?.as_object()?;
        Some(properties.keys().cloned().collect())
    }

    /// Returns why the key that the schema names can be none, or `None` if nothing is wrong. A schema that lists no
    /// properties may have any key.
    pub fn key_fault(&self) -> Option<String> {
        let schema: serde_json::Value = serde_json::from_str(&self.json_schema).ok()?;
        let Some(key) = schema.get(KEY)?.as_str() else {
            return Some(format!("its {KEY} is no text"));
        };
        let properties = schema.get("properties")?.as_object()?;
        let is_property = properties.contains_key(key);
        (!is_property).then(|| format!("its {KEY} {key:?} is none of its properties"))
    }
}

impl Description {
    /// Returns the changes in the items of a later version that could break their readers, one line each.
    pub fn item_changes(&self, later: &Description) -> Vec<String> {
        let changes = self.schemas.iter().flat_map(|before| {
            let after = later.schemas.iter().find(|s| s.name == before.name);
            let changes = after.map_or(vec!["there are none of it any more".to_owned()], |after| {
                before.changes(after)
            });
            let name = before.name.clone();
            let lines = changes.into_iter();
            lines.map(move |change| format!("item {name}: {change}"))
        });
        changes.collect()
    }
}

impl Schema {
    fn changes(&self, later: &Schema) -> Vec<String> {
        // A schema that cannot be parsed was pushed before schemas were checked; it has promised nothing.
        let Ok(Some(before)) = self.read() else {
            return Vec::new();
        };
        let mut changes = match later.read() {
            Ok(Some(after)) => before.differences(&after),
            Ok(None) | Err(_) => return vec!["it may be any object now".to_owned()],
        };
        // Under another key, all items would be told as removed, and as added.
        match (self.key(), later.key()) {
            (Some(key), Some(now)) if key != now => {
                changes.push(format!("its key was {key:?}, and now it is {now:?}"));
            }
            (Some(key), None) => changes.push(format!("its key was {key:?}, and now it has none")),
            (None, Some(now)) => changes.push(format!("it had no key, and now it is {now:?}")),
            (Some(_), Some(_)) | (None, None) => {}
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(json: &str) -> Schema {
        Schema {
            name: "book".to_owned(),
            json_schema: json.to_owned(),
        }
    }

    #[test]
    fn a_schema_names_the_key_of_its_items() {
        for (json, expected) in [
            (r#"{"x-key": "isbn"}"#, Some("isbn")),
            (r#"{"x-key": 1}"#, None),
            (r#"{"properties": {"x-key": {}}}"#, None),
            ("", None),
        ] {
            assert_eq!(schema(json).key().as_deref(), expected, "{json}");
        }
    }

    #[test]
    fn a_key_is_one_of_the_properties_if_they_are_listed() {
        for json in [
            "",
            r#"{"properties": {"isbn": {}}}"#,
            r#"{"x-key": "isbn"}"#,
            r#"{"x-key": "isbn", "properties": {"isbn": {}}}"#,
        ] {
            assert_eq!(schema(json).key_fault(), None, "{json}");
        }
        for json in [
            r#"{"x-key": null}"#,
            r#"{"x-key": "isbn", "properties": {}}"#,
        ] {
            assert!(schema(json).key_fault().is_some(), "{json}");
        }
    }

    #[test]
    fn another_key_is_a_change_that_readers_have_to_know() {
        let (isbn, sku) = (
            schema(r#"{"x-key": "isbn"}"#),
            schema(r#"{"x-key": "sku"}"#),
        );
        let none = schema("{}");
        assert_eq!(
            isbn.changes(&sku),
            [r#"its key was "isbn", and now it is "sku""#]
        );
        assert_eq!(
            isbn.changes(&none),
            [r#"its key was "isbn", and now it has none"#]
        );
        assert_eq!(
            none.changes(&sku),
            [r#"it had no key, and now it is "sku""#]
        );
        assert!(isbn.changes(&isbn).is_empty() && none.changes(&none).is_empty());
    }
}
