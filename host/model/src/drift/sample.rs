//! Features of one item, by which it is compared with others.

use serde_json::Value;
use sha2::Digest as _;

use super::{MAX_FIELD_NAME, MAX_FIELDS};
use crate::crawl::ItemRecord;

/// Number of objects within each other whose fields are looked at one by one.
const MAX_DEPTH: usize = 3;
/// Largest number of bytes of a text that may stand for a number.
const NUMBER_MAX: usize = 32;
/// Largest number of letters beside the digits of a text that stands for a number, such as those of a currency.
const UNIT_MAX: usize = 4;
/// Number of words from which on a text is a long one.
const LONG_TEXT: usize = 9;

/// Shape of a value. The order is part of stored profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(super) enum Type {
    /// No field, null, or a text, list or object with nothing in it.
    Absent,
    Bool,
    Number,
    /// Text that stands for a number, such as `£51.77`.
    NumberText,
    Date,
    Url,
    Word,
    Words,
    LongText,
    Markup,
    List,
    Object,
}

/// Number of the cases of [`Type`].
pub(super) const N_TYPES: usize = 12;

impl Type {
    /// Words for messages, in the order of the cases.
    pub(super) const WORDS: [&str; N_TYPES] = [
        "missing",
        "bool",
        "number",
        "number as text",
        "date",
        "URL",
        "word",
        "words",
        "long text",
        "markup",
        "list",
        "object",
    ];
}

/// Features of the value of a field.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Feature {
    pub(super) r#type: Type,
    /// Number of characters of a text, or of entries of a list.
    pub(super) length: Option<f64>,
    /// The number that the value is, or stands for.
    pub(super) number: Option<f64>,
    /// Hash of the value.
    pub(super) hash: u64,
}

/// Features of an item: those of its fields that have a value, by name. Fields of objects within it are named
/// `OUTER.INNER`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    pub(super) fields: Vec<(String, Feature)>,
    /// True if the item has further fields. Such a sample counts nowhere: which of its fields are missing is unknown.
    pub(super) is_cut: bool,
}

impl Sample {
    /// Reads the features of an item. Without an object there are none.
    pub fn of(json: &str) -> Self {
        let mut sample = Self::default();
        if let Ok(Value::Object(fields)) = serde_json::from_str(json) {
            for (name, value) in fields {
                sample.add(name, &value, 1);
            }
        }
        sample
    }

    fn add(&mut self, name: String, value: &Value, depth: usize) {
        if self.is_cut || name.len() > MAX_FIELD_NAME {
            return;
        }
        if let Value::Object(inner) = value
            && depth < MAX_DEPTH
        {
            for (key, value) in inner {
                self.add(format!("{name}.{key}"), value, depth + 1);
            }
            return;
        }
        let feature = feature(value);
        if feature.r#type == Type::Absent {
            return;
        }
        match self.fields.len() < MAX_FIELDS {
            true => self.fields.push((name, feature)),
            false => self.is_cut = true,
        }
    }
}

/// Returns the items of a page that are looked at: one of each kind, chosen by a hash of its page.
pub fn sampled<'a>(items: impl IntoIterator<Item = &'a ItemRecord>) -> Vec<&'a ItemRecord> {
    let items: Vec<&ItemRecord> = items.into_iter().collect();
    let mut chosen: Vec<&ItemRecord> = Vec::new();
    for item in &items {
        if chosen.iter().any(|of_kind| of_kind.schema == item.schema) {
            continue;
        }
        let of_kind = || items.iter().filter(|other| other.schema == item.schema);
        let place = hash_of(&item.key.0) % of_kind().count().max(1) as u64;
        chosen.extend(of_kind().nth(place as usize).copied());
    }
    chosen
}

fn feature(value: &Value) -> Feature {
    let (r#type, length, number) = match value {
        Value::Null => (Type::Absent, None, None),
        Value::Bool(_) => (Type::Bool, None, None),
        Value::Number(number) => (Type::Number, None, number.as_f64()),
        Value::String(text) => {
            let number = number_in(text);
            let length = text.chars().count() as f64;
            (type_of(text, number.is_some()), Some(length), number)
        }
        Value::Array(list) if list.is_empty() => (Type::Absent, None, None),
        Value::Array(list) => (Type::List, Some(list.len() as f64), None),
        Value::Object(inner) if inner.is_empty() => (Type::Absent, None, None),
        Value::Object(_) => (Type::Object, None, None),
    };
    let hash = match value {
        Value::String(text) => hash_of(text),
        other => hash_of(&other.to_string()),
    };
    Feature {
        r#type,
        length,
        number,
        hash,
    }
}

fn type_of(text: &str, is_number: bool) -> Type {
    let text = text.trim();
    let is_url = ["http://", "https://", "//", "/"];
    let is_url = is_url.iter().any(|start| text.starts_with(start)) && !text.contains(' ');
    match text.split_whitespace().count() {
        0 => Type::Absent,
        _ if is_date(text) => Type::Date,
        _ if is_number => Type::NumberText,
        _ if is_url => Type::Url,
        _ if text.contains("</") || text.contains("/>") => Type::Markup,
        1 => Type::Word,
        n if n < LONG_TEXT => Type::Words,
        _ => Type::LongText,
    }
}

/// True for a text that begins like `2024-05-31`.
fn is_date(text: &str) -> bool {
    let digit = |place: usize| text.as_bytes().get(place).is_some_and(u8::is_ascii_digit);
    let dash = |place: usize| text.as_bytes().get(place) == Some(&b'-');
    [0, 1, 2, 3, 5, 6, 8, 9].into_iter().all(digit) && dash(4) && dash(7)
}

/// Returns the number that a text stands for: digits with separators, and few letters before or after them.
fn number_in(text: &str) -> Option<f64> {
    let text = text.trim();
    if text.is_empty() || text.len() > NUMBER_MAX {
        return None;
    }
    let first = text.find(|c: char| c.is_ascii_digit())?;
    let last = text.rfind(|c: char| c.is_ascii_digit())?;
    let (before, digits, after) = (&text[..first], &text[first..=last], &text[last + 1..]);
    let n_letters = before
        .chars()
        .chain(after.chars())
        .filter(|c| c.is_alphabetic())
        .count();
    let is_separator = |c: char| matches!(c, '.' | ',' | '\'' | ' ' | '\u{a0}' | '\u{202f}');
    let is_plain = digits
        .chars()
        .all(|c| c.is_ascii_digit() || is_separator(c));
    if n_letters > UNIT_MAX || !is_plain {
        return None;
    }
    // The last of the separators is the decimal one, unless three digits follow it.
    let decimal = digits.rfind(is_separator);
    let decimal = decimal.filter(|place| digits[*place..].chars().count() != 4);
    let plain = digits
        .char_indices()
        .filter_map(|(place, c)| match decimal {
            _ if c.is_ascii_digit() => Some(c),
            Some(decimal) if place == decimal => Some('.'),
            _ => None,
        });
    let number: f64 = plain.collect::<String>().parse().ok()?;
    Some(if before.trim_end().ends_with('-') {
        -number
    } else {
        number
    })
}

/// Returns a hash that is the same in every process.
pub(super) fn hash_of(text: &str) -> u64 {
    let digest: [u8; 32] = sha2::Sha256::digest(text.as_bytes()).into();
    digest
        .iter()
        .take(8)
        .fold(0, |hash, byte| (hash << 8) | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawl::ItemKey;
    use crate::id::Run;
    use serde_json::value::RawValue;

    #[test]
    fn texts_have_shapes() {
        for (text, expected) in [
            ("", Type::Absent),
            (" \n", Type::Absent),
            ("£51.77", Type::NumberText),
            ("1.299,00 EUR", Type::NumberText),
            ("In stock (22 available)", Type::Words),
            ("2024-05-31T10:00:00Z", Type::Date),
            ("https://a.test/x", Type::Url),
            ("/x/y.html", Type::Url),
            ("<b>x</b>", Type::Markup),
            ("Sapiens", Type::Word),
            ("A Light in the Attic", Type::Words),
            (
                "one two three four five six seven eight nine",
                Type::LongText,
            ),
        ] {
            assert_eq!(
                type_of(text, number_in(text).is_some()),
                expected,
                "{text:?}"
            );
        }
    }

    #[test]
    fn texts_stand_for_numbers() {
        for (text, expected) in [
            ("£51.77", Some(51.77)),
            ("1.299,00 €", Some(1_299.0)),
            ("1,299", Some(1_299.0)),
            ("12,5", Some(12.5)),
            ("- 3", Some(-3.0)),
            ("USD 7", Some(7.0)),
            ("10 to 20", None),
            ("chapter 4", None),
            ("none", None),
        ] {
            assert_eq!(number_in(text), expected, "{text:?}");
        }
    }

    #[test]
    fn fields_of_inner_objects_are_fields() {
        let sample = Sample::of(r#"{"a": 1, "b": {"c": "x", "d": null}, "e": [], "f": {}}"#);
        let names: Vec<&str> = sample
            .fields
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        assert_eq!(names, ["a", "b.c"]);
        assert_eq!(Sample::of("[1]"), Sample::default());
    }

    #[test]
    fn an_item_of_many_fields_is_bounded() {
        let fields: Vec<String> = (0..1_000).map(|n| format!("\"f{n}\": {n}")).collect();
        let long = "x".repeat(MAX_FIELD_NAME + 1);
        let json = format!("{{\"{long}\": 1, {}}}", fields.join(","));
        let sample = Sample::of(&json);
        assert_eq!((sample.fields.len(), sample.is_cut), (MAX_FIELDS, true));
        let fields: Vec<String> = fields.into_iter().take(MAX_FIELDS).collect();
        let whole = Sample::of(&format!("{{{}, \"last\": null}}", fields.join(",")));
        assert_eq!((whole.fields.len(), whole.is_cut), (MAX_FIELDS, false));
        assert!(
            sample
                .fields
                .iter()
                .all(|(name, _)| name.len() <= MAX_FIELD_NAME)
        );
    }

    #[test]
    fn of_each_kind_of_a_page_one_item_is_looked_at() {
        let item = |n: u32, schema: &str| ItemRecord {
            key: ItemKey(format!("{schema}{n}")),
            url: "http://a.test/".to_owned(),
            rule: "page".to_owned(),
            schema: schema.to_owned(),
            run: Run(1),
            fetched_at: 0,
            item: RawValue::from_string(format!("{{\"n\": {n}}}")).unwrap(),
            change: None,
        };
        let mut items: Vec<ItemRecord> = (0..30).map(|n| item(n, "book")).collect();
        items.push(item(0, "shelf"));
        let kinds: Vec<&str> = sampled(&items)
            .iter()
            .map(|item| item.schema.as_str())
            .collect();
        assert_eq!(kinds, ["book", "shelf"]);
        assert!(sampled(&[]).is_empty());
    }
}
