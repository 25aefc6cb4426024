//! Shapes of items, checked as the crawler checks them.

use std::collections::BTreeMap;

use crawler_schema::JsonSchema;

use crate::PluginItem;

/// Shapes of the kinds that one call has emitted, by their names. If `None`, any object is accepted.
#[derive(Debug, Default)]
pub(super) struct Shapes(BTreeMap<&'static str, Option<JsonSchema>>);

impl Shapes {
    /// Checks that an item has the shape that its type tells; the error says where it differs, in the crawler's
    /// words.
    pub(super) fn check<T: PluginItem>(&mut self, json: &str) -> Result<(), String> {
        if !self.0.contains_key(T::NAME) {
            self.0.insert(T::NAME, read(&T::schema())?);
        }
        let Some(Some(shape)) = self.0.get(T::NAME) else {
            return Ok(());
        };
        // Native tests have no budget for the check; in the sandbox the fuel limits it.
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
