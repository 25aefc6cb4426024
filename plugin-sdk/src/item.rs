//! Items, the results that a plugin makes of pages.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, ReplaceUnevaluatedProperties};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

/// A struct that can be emitted: it is written as one JSON object, and it tells its shape.
///
/// It is derived, beside [`Serialize`]. The shape is a JSON Schema, made of the types of the fields and of the
/// attributes of serde. It is shown when the plugin is pushed. The crawler refuses items of another shape. It also
/// refuses a version of the plugin that changes the shape in a way that readers of its items could stumble over,
/// unless it is told that this is meant.
///
/// ```
/// use crawler_plugin_sdk::prelude::*;
/// use serde::Serialize;
///
/// /// A book of the shop.
/// #[derive(Serialize, Item)]
/// struct Book {
///     title: String,
///     /// In pence.
///     price: u32,
///     #[serde(skip_serializing_if = "Option::is_none")]
///     #[schemars(range(min = 1, max = 5))]
///     stars: Option<u8>,
///     by: Vec<Author>,
/// }
///
/// #[derive(Serialize, Item)]
/// struct Author { name: String }
///
/// let schema: serde_json::Value = serde_json::from_str(&Book::schema()).unwrap();
/// assert_eq!(schema["required"], serde_json::json!(["title", "price", "by"]));
/// assert_eq!(schema["properties"]["price"]["description"], "In pence.");
/// assert_eq!(schema["properties"]["stars"]["maximum"], 5);
/// ```
///
/// `#[item(key = "…")]` names the field that tells one item from all others of its kind, as serde writes the name. By it the
/// crawler knows an item again in the next run, for resources with setting `changes`, on whatever page it is then. An item
/// without a value there, and a kind without a key, is known by its page.
///
/// ```
/// use crawler_plugin_sdk::prelude::*;
/// use serde::Serialize;
///
/// #[derive(Serialize, Item)]
/// #[item(key = "isbn")]
/// struct Edition { isbn: String, pence: u32 }
///
/// let schema: serde_json::Value = serde_json::from_str(&Edition::schema()).unwrap();
/// assert_eq!(schema["x-key"], "isbn");
/// ```
///
/// Fields may have the types that serde and [schemars](https://docs.rs/schemars) know; structs and enums of your
/// own derive `Item` too. `#[schemars(…)]` adds what types do not say: ranges, lengths, patterns. Where
/// `#[serde(serialize_with)]` writes another type, `#[schemars(with = "String")]` names it. The schema makes the
/// component about 150 kB larger.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not tell its shape",
    label = "not an item",
    note = "derive it: `#[derive(Serialize, Item)]`"
)]
pub trait Item: Serialize {
    /// Returns the JSON Schema of the written form.
    fn schema() -> String;
}

/// Returns the JSON Schema of the written form of a type.
pub fn schema_of<T: JsonSchema>() -> String {
    made::<T>().as_value().to_string()
}

/// Returns the JSON Schema of the written form of a type whose items have a key.
///
/// # Panics
///
/// No field of this name is written.
pub fn schema_with_key<T: JsonSchema>(key: &str) -> String {
    let mut schema = made::<T>();
    let properties = schema.get("properties");
    let is_field = properties.is_some_and(|fields| fields.get(key).is_some());
    assert!(is_field, "the key {key:?} is no field of the item");
    schema.insert("x-key".to_owned(), key.into());
    schema.as_value().to_string()
}

fn made<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        // The crawler knows neither keyword, and little is lost without them.
        .with_transform(ReplaceUnevaluatedProperties::default())
        .with_transform(RecursiveTransform(|schema: &mut Schema| {
            schema.remove("not");
        }));
    settings.into_generator().into_root_schema_for::<T>()
}

/// Items that the code of the derive refers to.
#[doc(hidden)]
pub mod derived {
    pub use schemars::{JsonSchema, Schema, SchemaGenerator};

    pub use super::{schema_of, schema_with_key};
}
