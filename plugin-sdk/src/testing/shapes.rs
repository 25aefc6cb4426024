//! The shapes of items, as the crawler checks them.

use std::collections::BTreeMap;

use crawler_schema::JsonSchema;

use crate::PluginItem;

/// Those of the kinds that one call has emitted, by their names; none where any object will do.
#[derive(Debug, Default)]
pub(super) struct Shapes(BTreeMap<&'static str, Option<JsonSchema>>);

impl Shapes {
    /// Whether an item has the shape that its type tells; else where it differs, as the crawler says it.
    pub(super) fn check<T: PluginItem>(&mut self, json: &str) -> Result<(), String> {
        if !self.0.contains_key(T::NAME) {
            self.0.insert(T::NAME, read(&T::schema())?);
        }
        let Some(Some(shape)) = self.0.get(T::NAME) else {
            return Ok(());
        };
        // Here nothing counts what is looked at; in the sandbox fuel does.
        let mut budget = u64::MAX;
        let checked = shape.check(json, &mut budget);
        checked.map_err(|unfit| unfit.to_string())
    }
}

fn read(schema: &str) -> Result<Option<JsonSchema>, String> {
    if schema.is_empty() {
        return Ok(None);
    }
    let read = JsonSchema::read(schema);
    read.map(Some)
        .map_err(|e| format!("items cannot be checked by it; {e}"))
}
