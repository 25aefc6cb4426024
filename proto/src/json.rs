//! The JSON of fields that are not simply written as their value; `shown.rs` says which and why.

use std::fmt::Display;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::Counts;

/// Writes a number as text.
pub(crate) fn text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Writes an absent message as one without any field.
pub(crate) fn or_empty<T, S>(message: &Option<T>, serializer: S) -> Result<S::Ok, S::Error>
where
    T: Serialize + Default,
    S: Serializer,
{
    match message {
        Some(message) => message.serialize(serializer),
        None => T::default().serialize(serializer),
    }
}

/// Writes an absent number as 1.
pub(crate) fn or_one<S: Serializer>(n: &Option<u32>, serializer: S) -> Result<S::Ok, S::Error> {
    n.unwrap_or(1).serialize(serializer)
}

/// Writes counts without the number of requests in flight.
pub(crate) fn totals<S: Serializer>(
    counts: &Option<Counts>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let counts = counts.clone().unwrap_or_default();
    let mut totals = serde_json::to_value(counts).map_err(S::Error::custom)?;
    if let Some(totals) = totals.as_object_mut() {
        totals.remove("in_flight");
    }
    totals.serialize(serializer)
}

/// Writes a text of JSON as the value that it stands for.
pub(crate) fn raw<S: Serializer>(json: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let value: &RawValue = serde_json::from_str(json).map_err(S::Error::custom)?;
    value.serialize(serializer)
}

/// Returns true for an absent or empty value.
pub(crate) fn is_unset<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Returns true for 1, and for an absent number, which stands for it.
pub(crate) fn is_one(n: &Option<u32>) -> bool {
    n.unwrap_or(1) == 1
}
