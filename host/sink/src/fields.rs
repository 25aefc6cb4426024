//! Fields of items as columns: those that a schema declares, and values as columns take them. Sinks with tables and sinks
//! with files share them, so that a field has the same meaning in both.

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use crawler_model::crawl::UnixMillis;
use crawler_model::plugin::Schema;
use crawler_schema::Shape;

/// Last millisecond of the year 9999, the last one that all servers can hold and that has a text.
const LAST_MILLIS: UnixMillis = 253_402_300_799_999;

/// Field that a schema declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Shape of its values.
    pub shape: Shape,
    /// True if the field may be missing or `null`.
    pub is_optional: bool,
}

/// Returns the fields that a schema declares, by their names. A schema that cannot be read declares none.
pub fn declared(schema: &Schema) -> BTreeMap<String, Field> {
    let read = schema.read().unwrap_or_else(|error| {
        // Those of plugins that are pushed now can be read.
        tracing::warn!(
            kind = schema.name,
            %error,
            "the schema of a kind of items cannot be read; its fields have no columns"
        );
        None
    });
    let properties = read.iter().flat_map(|schema| schema.shapes());
    let fields = properties.map(|property| {
        let field = Field {
            shape: property.shape,
            is_optional: property.is_optional,
        };
        (property.name.to_owned(), field)
    });
    fields.collect()
}

/// Returns an integer of 64 bits, which may be written with a fraction of zero or an exponent.
pub fn integer(json: &str) -> Option<i64> {
    if let Ok(number) = serde_json::from_str(json) {
        return Some(number);
    }
    /// Below this bound, each integer is a number of its own when it is written so.
    const BOUND: f64 = 9_007_199_254_740_992.0;
    let number: f64 = serde_json::from_str(json).ok()?;
    let is_integer = number.fract() == 0.0 && number.abs() < BOUND;
    // A longer integer loses digits as a number with a fraction.
    (is_integer && json.contains(['.', 'e', 'E'])).then_some(number as i64)
}

/// Returns a moment as text, in UTC and with milliseconds: `2026-11-28T16:00:00.123Z`.
pub fn time(at: UnixMillis) -> String {
    let at = UNIX_EPOCH + Duration::from_millis(at.min(LAST_MILLIS));
    humantime::format_rfc3339_millis(at).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_those_of_the_schema() {
        let text = r#"{"required": ["b"], "properties": {"b": {"type": "string"}, "a": {}}}"#;
        let schema = |text: &str| Schema {
            name: "thing".to_owned(),
            json_schema: text.to_owned(),
        };
        let found = declared(&schema(text));
        let field = |shape, is_optional| Field { shape, is_optional };
        let expected = BTreeMap::from([
            ("a".to_owned(), field(Shape::Any, true)),
            ("b".to_owned(), field(Shape::Text, false)),
        ]);
        assert_eq!(found, expected);
        for text in ["", "{}", "true", "not a schema"] {
            assert!(declared(&schema(text)).is_empty(), "{text}");
        }
    }

    #[test]
    fn integers_may_be_written_as_other_numbers() {
        for (json, expected) in [
            ("12", Some(12)),
            ("1.0", Some(1)),
            ("2e3", Some(2000)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("12345678901234567890123", None),
            ("9007199254740991.0", Some(9_007_199_254_740_991)),
            ("9007199254740993.0", None),
            ("9007199254740994.0", None),
            ("1e18", None),
            ("1e30", None),
            ("1.5", None),
            ("\"1\"", None),
        ] {
            assert_eq!(integer(json), expected, "{json}");
        }
    }

    #[test]
    fn times_are_texts_up_to_the_last_one() {
        assert_eq!(time(7), "1970-01-01T00:00:00.007Z");
        assert_eq!(time(u64::MAX), "9999-12-31T23:59:59.999Z");
    }
}
