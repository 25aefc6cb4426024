//! Check that a text is one JSON object, without keeping any of it: an item that is parsed into values takes
//! sixteen times its size, outside of every limit.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Refuses a text that is not one object, is nested deeper than serde_json's readers follow, or has numbers that
/// they cannot hold.
///
/// # Errors
///
/// Returns the part that is refused, with its place.
pub fn check_object(text: &str) -> Result<(), serde_json::Error> {
    serde_json::from_str::<Object>(text).map(|Object| ())
}

struct Object;

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Reader("a JSON object"))?;
        Ok(Self)
    }
}

struct Anything;

impl<'de> Deserialize<'de> for Anything {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // `deserialize_ignored_any` would follow any depth.
        deserializer.deserialize_any(Reader("a JSON value"))?;
        Ok(Self)
    }
}

/// Walks over a value; the text says what was expected.
struct Reader(&'static str);

impl<'de> Visitor<'de> for Reader {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(Anything) = items.next_element()? {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        while let Some((IgnoredAny, Anything)) = entries.next_entry()? {}
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(), &str>) {
        let found = check_object(text).map_err(|e| e.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn an_item_is_one_json_object() {
        check(r#"{"a":[1,-2,3.5e3,null,true,"x\n",{}]}"#, Ok(()));
        check(" {\n} ", Ok(()));
        check(
            "[]",
            Err("invalid type: sequence, expected a JSON object at line 1 column 0"),
        );
        check("{}{}", Err("trailing characters at line 1 column 3"));
        check(r#"{"a":}"#, Err("expected value at line 1 column 6"));
        check(
            r#"{"a":1e999}"#,
            Err("number out of range at line 1 column 10"),
        );
        check(
            "{\"a\":\"\n\"}",
            Err(
                "control character (\\u0000-\\u001F) found while parsing a string at line 2 column 0",
            ),
        );
    }

    #[test]
    fn f31_nesting_that_would_overflow_a_reader_is_refused() {
        let deep = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n), "]".repeat(n));
        check(&deep(126), Ok(()));
        check(
            &deep(127),
            Err("recursion limit exceeded at line 1 column 132"),
        );
    }
}
