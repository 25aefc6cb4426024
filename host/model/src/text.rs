//! Serde forms of values that are stored and sent as text, in the form in which people write them.

/// Implements serde's traits for types: they are written as they display, and read as they parse.
macro_rules! as_text {
    ($($type:ty),+ $(,)?) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}

pub(super) use as_text;

/// Serde form of 64-bit numbers that name something: text, because many readers of JSON take every number
/// for a float, which tells integers apart up to 2^53 only. Records of earlier versions have plain numbers.
pub(super) mod digits {
    use std::fmt;

    use serde::de::{Error, Unexpected, Visitor};
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(number: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(Digits)
    }

    struct Digits;

    impl Visitor<'_> for Digits {
        type Value = u64;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a number from 0 to 2^64 - 1, as text")
        }

        fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
            Ok(number)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
            // Only the canonical spelling is accepted: "+7" and "07" would be other names of the
            // same thing.
            let number = text.parse::<u64>().ok();
            let number = number.filter(|number| number.to_string() == text);
            number.ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
        }
    }
}
