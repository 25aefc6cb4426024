//! A config file in JSON, read as the TOML that it stands for: the same keys, and a place for each value, so that
//! all that reads a file of TOML reads it too.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Deepest nesting of a file; no key of it needs more than five levels.
const MAX_DEPTH: usize = 32;

/// Reason why a text is not accepted.
#[derive(Debug)]
pub(super) struct JsonFault {
    /// Byte of the text at which it is.
    pub(super) at: usize,
    pub(super) why: String,
}

/// Parses a text that is an object.
pub(super) fn parse(text: &str) -> Result<DeTable<'_>, JsonFault> {
    let raw = serde_json::from_str::<&RawValue>(text).map_err(|error| JsonFault {
        at: offset(text, error.line(), error.column()),
        why: format!("the file is not JSON: {}", without_place(&error)),
    })?;
    let reader = Reader { text };
    match reader.value(raw, 0)?.into_inner() {
        DeValue::Table(table) => Ok(table),
        _ => Err(reader.fault(raw, "the file is not an object")),
    }
}

struct Reader<'a> {
    text: &'a str,
}

impl<'a> Reader<'a> {
    fn value(&self, raw: &'a RawValue, depth: usize) -> Result<Spanned<DeValue<'a>>, JsonFault> {
        let token = raw.get();
        if depth > MAX_DEPTH {
            return Err(self.fault(raw, "the file is nested too deeply"));
        }
        let value = match token.as_bytes().first() {
            Some(b'{') => {
                let Entries(entries) = self.parsed(raw)?;
                let mut table = DeTable::new();
                for (key, value) in entries {
                    let read = self.value(value, depth + 1)?;
                    let twice = format!("key {key:?} is there twice");
                    let key = Spanned::new(read.span(), key.into());
                    if table.insert(key, read).is_some() {
                        return Err(self.fault(value, twice));
                    }
                }
                DeValue::Table(table)
            }
            Some(b'[') => {
                let entries: Vec<&RawValue> = self.parsed(raw)?;
                let entries = entries.into_iter().map(|raw| self.value(raw, depth + 1));
                DeValue::Array(entries.collect::<Result<_, _>>()?)
            }
            Some(b'"') => DeValue::String(self.parsed::<String>(raw)?.into()),
            Some(b't' | b'f') => DeValue::Boolean(self.parsed(raw)?),
            Some(b'n') => return Err(self.fault(raw, "null is no value; leave the key out")),
            // Every number of JSON is one of TOML.
            _ => match DeValue::parse(token) {
                Ok(number) => number.into_inner(),
                Err(error) => return Err(self.fault(raw, error.message())),
            },
        };
        let start = self.place(raw);
        Ok(Spanned::new(start..start + token.len(), value))
    }

    fn parsed<T: Deserialize<'a>>(&self, raw: &'a RawValue) -> Result<T, JsonFault> {
        serde_json::from_str(raw.get()).map_err(|error| self.fault(raw, without_place(&error)))
    }

    /// Returns the byte at which a value begins, which is a part of the text.
    fn place(&self, raw: &RawValue) -> usize {
        (raw.get().as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize)
    }

    fn fault(&self, raw: &RawValue, why: impl Into<String>) -> JsonFault {
        JsonFault {
            at: self.place(raw),
            why: why.into(),
        }
    }
}

/// Entries of an object in their order, also those whose keys are there twice.
struct Entries<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Entries<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EntriesVisitor;

        impl<'de> Visitor<'de> for EntriesVisitor {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Entries<'de>, M::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Entries(entries))
            }
        }

        deserializer.deserialize_map(EntriesVisitor)
    }
}

/// Returns the byte of a place that is given in lines and columns, both from 1.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let before = text.split_inclusive('\n').take(line.saturating_sub(1));
    before.map(str::len).sum::<usize>() + column.saturating_sub(1)
}

/// Returns the message of an error without the place, which is told with the path of the file.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((message, _place)) => message.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_its_place_in_the_text() {
        let text = "{\n \"a\": [1, -2.5e3],\n \"b\\u0063\": {\"d\": \"\\n\", \"e\": true}\n}";
        let table = parse(text).unwrap();
        let value = DeValue::Table(table);
        let place = |value: &Spanned<DeValue<'_>>| text.get(value.span()).unwrap().to_owned();
        let a = value.get("a").unwrap();
        assert_eq!(place(a), "[1, -2.5e3]");
        assert_eq!(place(a.get_ref().get(1).unwrap()), "-2.5e3");
        let inner = value.get("bc").unwrap().get_ref();
        assert_eq!(inner.get("d").unwrap().get_ref().as_str(), Some("\n"));
        assert_eq!(inner.get("e").unwrap().get_ref().as_bool(), Some(true));
    }

    #[track_caller]
    fn check_refused(text: &str, at: &str, why: &str) {
        let fault = parse(text).unwrap_err();
        assert_eq!(
            (text.get(fault.at..).unwrap(), fault.why.as_str()),
            (at, why)
        );
    }

    #[test]
    fn what_has_no_form_in_toml_is_told_where_it_is() {
        check_refused(
            "{\"a\":\nnull}",
            "null}",
            "null is no value; leave the key out",
        );
        check_refused("{\"a\":1,\n\"a\":2}", "2}", "key \"a\" is there twice");
        check_refused(
            "{\"a\":\n1,}",
            "}",
            "the file is not JSON: key must be a string",
        );
        check_refused("[]", "[]", "the file is not an object");
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(
            parse(&deep).unwrap_err().why,
            "the file is nested too deeply"
        );
    }
}
