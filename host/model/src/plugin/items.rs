//! Item schemas of a plugin, and their compatibility between versions.

use crawler_schema::{JsonSchema, SchemaError};
use serde::{Deserialize, Serialize};

use super::Description;

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
        match later.read() {
            Ok(Some(after)) => before.differences(&after),
            Ok(None) | Err(_) => vec!["it may be any object now".to_owned()],
        }
    }
}
