//! Values that are texts in JSON: written as they are displayed, read as they are parsed.

/// Implements JSON for a type by its `Display` and `FromStr`, with the schema that its texts have.
macro_rules! as_text {
    ($value:ident, $schema:tt) => {
        impl serde::Serialize for $value {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $value {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                let value = text.parse::<Self>();
                value.map_err(|why| serde::de::Error::custom(format!("{why:#}")))
            }
        }

        impl schemars::JsonSchema for $value {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($value).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}
