//! Valid JSON as it is written: values are looked at, and not kept.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer as _, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use super::Kinds;

/// Returns the kind of a valid JSON text.
pub(super) fn kind_of(raw: &str) -> Kinds {
    match raw.as_bytes().first() {
        Some(b'{') => Kinds::OBJECT,
        Some(b'[') => Kinds::ARRAY,
        Some(b'"') => Kinds::STRING,
        Some(b't' | b'f') => Kinds::BOOLEAN,
        Some(b'n') => Kinds::NULL,
        _ if !raw.contains(['.', 'e', 'E']) => Kinds::INTEGER,
        // In JSON Schema, 2.0 is an integer.
        _ => match raw.parse::<f64>() {
            Ok(number) if number.fract() == 0.0 => Kinds::INTEGER,
            _ => Kinds::FRACTION,
        },
    }
}

/// Compares whole numbers as they are, and all others as floating-point numbers.
pub(super) fn order(one: &Number, other: &Number) -> Option<Ordering> {
    let whole = |n: &Number| n.as_i64().map(i128::from).or(n.as_u64().map(i128::from));
    match (whole(one), whole(other)) {
        (Some(one), Some(other)) => Some(one.cmp(&other)),
        _ => one.as_f64()?.partial_cmp(&other.as_f64()?),
    }
}

/// Returns true if two values are equal in JSON Schema, where 2.0 is 2.
pub(super) fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => order(one, other) == Some(Ordering::Equal),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(one), Value::Object(other)) => {
            let has_same = |(name, value)| other.get(name).is_some_and(|o| is_same(value, o));
            one.len() == other.len() && one.iter().all(has_same)
        }
        (one, other) => one == other,
    }
}

/// A text of JSON; it is borrowed if it is written without escapes.
#[derive(Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

/// Calls `look` for each element of an array, until that is an error.
pub(super) fn each_element<'a, E: From<serde_json::Error>>(
    raw: &'a str,
    look: impl FnMut(&'a str) -> Result<(), E>,
) -> Result<(), E> {
    struct Elements<'o, F, E>(F, &'o mut Result<(), E>);

    impl<'de, E, F: FnMut(&'de str) -> Result<(), E>> Visitor<'de> for Elements<'_, F, E> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
            while let Some(element) = elements.next_element::<&'de RawValue>()? {
                if let Err(error) = (self.0)(element.get()) {
                    *self.1 = Err(error);
                    return Err(A::Error::custom("stopped"));
                }
            }
            Ok(())
        }
    }

    let mut outcome = Ok(());
    let mut reader = serde_json::Deserializer::from_str(raw);
    let read = reader.deserialize_seq(Elements(look, &mut outcome));
    outcome.and(read.map_err(E::from))
}

/// Calls `look` for each property of an object, until that is an error.
pub(super) fn each_property<'a, E: From<serde_json::Error>>(
    raw: &'a str,
    look: impl FnMut(&str, &'a str) -> Result<(), E>,
) -> Result<(), E> {
    struct Properties<'o, F, E>(F, &'o mut Result<(), E>);

    impl<'de, E, F: FnMut(&str, &'de str) -> Result<(), E>> Visitor<'de> for Properties<'_, F, E> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
            while let Some((Text(name), value)) =
                entries.next_entry::<Text<'de>, &'de RawValue>()?
            {
                if let Err(error) = (self.0)(&name, value.get()) {
                    *self.1 = Err(error);
                    return Err(A::Error::custom("stopped"));
                }
            }
            Ok(())
        }
    }

    let mut outcome = Ok(());
    let mut reader = serde_json::Deserializer::from_str(raw);
    let read = reader.deserialize_map(Properties(look, &mut outcome));
    outcome.and(read.map_err(E::from))
}
