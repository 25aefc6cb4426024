//! What a plugin makes of pages.

use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, ReplaceUnevaluatedProperties};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

/// What can be emitted: a struct that is written as one JSON object, and that tells its shape.
///
/// Derived, beside [`Serialize`]. The shape is a JSON Schema, made of the types of the fields and of what
/// the attributes of serde say of them. It is shown where the plugin is pushed; the crawler takes no item
/// of another shape, and no version of the plugin that changes the shape so that readers of its items
/// could stumble, unless it is told that this is meant.
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
/// Types of fields are those that serde and [schemars](https://docs.rs/schemars) know; structs and enums of
/// your own derive `Item` too. `#[schemars(…)]` says what types do not: ranges, lengths, patterns. Where
/// `#[serde(serialize_with)]` writes something else, `#[schemars(with = "String")]` tells what. Telling the
/// shape makes the component about 150 kB larger.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not tell its shape",
    label = "not an item",
    note = "derive it: `#[derive(Serialize, Item)]`"
)]
pub trait Item: Serialize {
    /// The JSON Schema of what it is written as.
    fn schema() -> String;
}

/// The schema of what a type is written as.
pub fn schema_of<T: JsonSchema>() -> String {
    let settings = SchemaSettings::draft2020_12()
        .for_serialize()
        // The crawler knows neither keyword, and loses little.
        .with_transform(ReplaceUnevaluatedProperties::default())
        .with_transform(RecursiveTransform(|schema: &mut Schema| {
            schema.remove("not");
        }));
    let schema = settings.into_generator().into_root_schema_for::<T>();
    schema.as_value().to_string()
}

/// For what the derive makes.
#[doc(hidden)]
pub mod derived {
    pub use schemars::{JsonSchema, Schema, SchemaGenerator};

    pub use super::schema_of;
}
