//! What a plugin says of its items, and whether a later version says it too.

use crawler_schema::{JsonSchema, SchemaError};
use serde::{Deserialize, Serialize};

use super::Description;

/// The shape of one kind of item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schema {
    /// Unique within the plugin.
    pub name: String,
    /// A JSON Schema; empty means any JSON object.
    pub json_schema: String,
}

impl Schema {
    /// What items are checked by; none where any object will do.
    ///
    /// # Errors
    ///
    /// It is not one that items can be checked by.
    pub fn read(&self) -> Result<Option<JsonSchema>, SchemaError> {
        match self.json_schema.as_str() {
            "" => Ok(None),
            text => JsonSchema::read(text).map(Some),
        }
    }
}

impl Description {
    /// What readers of its items could stumble over in the items of a later version; a line for each.
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
        // One that cannot be read was pushed before schemas were; it has promised nothing.
        let Ok(Some(before)) = self.read() else {
            return Vec::new();
        };
        match later.read() {
            Ok(Some(after)) => before.differences(&after),
            Ok(None) | Err(_) => vec!["it may be any object now".to_owned()],
        }
    }
}
