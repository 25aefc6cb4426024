//! Changes of items: the items of a run, compared with those that were delivered last under the same keys.
//!
//! Pure rules: under which key an item is known from run to run, whether two items say the same, and in which fields
//! they differ. A frontier stores the items by these rules, and the changes with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::value::RawValue;
use sha2::Digest as _;

use super::canonical::canonical;
use super::crawl::{ItemRecord, Request};
use super::id::Run;
use super::plugin::Schema;
use json::canonical_json;

mod json;

/// Largest number of bytes of a key. A longer one is cut, and ends with a hash of the whole.
pub const KEY_MAX: usize = 1 << 10;

/// Largest number of bytes of the old values of an item that has changed. It is reached only where limit `item-bytes`
/// was raised.
pub const OLD_MAX: usize = 8 << 20;

/// Kinds of a plugin whose items have a key of their own, and the field that holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ItemKeys(BTreeMap<String, String>);

/// Kind and key under which an item is known from run to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemIdentity {
    /// Kind of the item: the name of its schema.
    pub kind: String,
    /// Value of the key field, or the page of the item and its place among the items of the page.
    pub key: String,
    /// True if the kind has a key field, and the item has no value in it.
    pub lacks_key: bool,
}

/// Hash of kind and key, by which an item is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemName(pub [u8; 16]);

/// Hash of the content of an item. Items that say the same have the same hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemDigest(pub [u8; 16]);

/// Kind of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Change {
    /// No item was known under the key.
    Added,
    /// The item differs from the one before.
    Changed,
    /// A complete run has not seen the item.
    Removed,
}

/// A change of one item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemChange {
    /// Kind of the change.
    pub change: Change,
    /// Key of the item.
    pub key: String,
    /// Kind of the item: the name of its schema.
    pub kind: String,
    /// Run that has told the change.
    pub run: Run,
    /// Fields that differ, in order; empty unless the item has changed.
    pub fields: Vec<String>,
    /// Old values of these fields as one JSON object, or the whole item that was removed; empty for an added item.
    /// Fields that the item did not have before are missing.
    pub old: String,
    /// The item as its rule wrote it; empty for one that was removed.
    pub item: String,
}

/// Change of an item that is on its way to the sinks. Kind, run and content are those of the item itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToldChange {
    /// Kind of the change.
    pub change: Change,
    /// Number of the change in its run, from 0.
    pub number: u64,
    /// Key of the item.
    pub key: String,
    /// Fields that differ, in order; empty unless the item has changed.
    pub fields: Vec<String>,
    /// Old values of these fields as one JSON object; empty unless the item has changed.
    pub old: String,
}

/// Numbers of the changes of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ChangeTotals {
    /// Items that were not known before.
    pub added: u64,
    /// Items that differ from those before.
    pub changed: u64,
    /// Items that are as they were.
    pub unchanged: u64,
    /// Items that a complete run has not seen.
    pub removed: u64,
    /// Items whose key an earlier item of the run has, too. They are compared with that one.
    pub repeated: u64,
    /// Items without a value in the field that their kind has for the key.
    pub lacking_key: u64,
    /// True once all items that the run has not seen are told as removed.
    pub is_complete: bool,
    /// True if items of the run were stored by a program that tells no changes.
    pub is_torn: bool,
}

impl ChangeTotals {
    /// Adds the totals of a later run.
    pub fn add(&mut self, later: &Self) {
        self.added += later.added;
        self.changed += later.changed;
        self.unchanged += later.unchanged;
        self.removed += later.removed;
        self.repeated += later.repeated;
        self.lacking_key += later.lacking_key;
        self.is_complete &= later.is_complete;
        self.is_torn |= later.is_torn;
    }
}

/// Fields in which two items differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Names of the fields, in order.
    pub fields: Vec<String>,
    /// Old values of the fields that the earlier item has, as a JSON object.
    pub old: String,
}

impl ItemKeys {
    /// Reads the keys that schemas declare.
    pub fn of(schemas: &[Schema]) -> Self {
        let keys = schemas.iter().filter_map(|schema| {
            let field = schema.key()?;
            Some((schema.name.clone(), field))
        });
        Self(keys.collect())
    }

    /// Returns under which kinds and keys the items of a page are known, in their order. The request is the one that
    /// redirects led to.
    ///
    /// An item without a value in its key field is known by its page, like items of kinds that have no such field.
    pub fn identities(&self, request: &Request, items: &[ItemRecord]) -> Vec<ItemIdentity> {
        let page = page_of(request);
        // Places are counted within a kind, so that an item of another kind on the page moves none.
        let mut n_of_kind: BTreeMap<&str, u32> = BTreeMap::new();
        let identities = items.iter().map(|item| {
            let kind = item.schema.clone();
            let field = self.0.get(&kind);
            let value = field.and_then(|field| key_in(item.item.get(), field));
            let lacks_key = field.is_some() && value.is_none();
            let key = value.unwrap_or_else(|| {
                let place = n_of_kind.entry(&item.schema).or_default();
                *place += 1;
                match *place {
                    1 => page.clone(),
                    n => format!("{page}#{n}"),
                }
            });
            ItemIdentity {
                kind,
                key: bounded(key),
                lacks_key,
            }
        });
        identities.collect()
    }
}

impl ItemIdentity {
    /// Returns the hash of kind and key.
    pub fn name(&self) -> ItemName {
        let mut hash = sha2::Sha256::new();
        hash.update((self.kind.len() as u64).to_be_bytes());
        hash.update(self.kind.as_bytes());
        hash.update(self.key.as_bytes());
        ItemName(half(hash))
    }
}

impl ItemDigest {
    /// Returns the hash of an item, whatever the order of its fields and the form of its numbers.
    pub fn of(json: &str) -> Self {
        Self(half(sha2::Sha256::new_with_prefix(canonical_json(json))))
    }
}

impl Difference {
    /// Compares two items by their fields.
    pub fn between(old: &str, new: &str) -> Self {
        let (before, after) = (fields(old), fields(new));
        let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
        let value = |fields: &Fields<'_>, name: &str| {
            let value = fields.get(name);
            value.map(|value| canonical_json(value.get()))
        };
        let differs = |name: &&String| value(&before, name) != value(&after, name);
        let differing: Vec<&String> = names.into_iter().filter(differs).collect();
        let old = differing.iter().filter_map(|name| {
            let value = before.get(*name)?;
            Some(format!("{}:{}", json::text(name), value.get()))
        });
        let old: Vec<String> = old.collect();
        Self {
            old: format!("{{{}}}", old.join(",")),
            fields: differing.into_iter().cloned().collect(),
        }
    }

    /// Returns the difference without old values if they are longer than this. The names of the fields stay.
    pub fn bounded(self, max_old: usize) -> Self {
        match self.old.len() > max_old {
            true => Self {
                old: "{}".to_owned(),
                ..self
            },
            false => self,
        }
    }
}

impl Change {
    /// All kinds of changes.
    pub const ALL: [Change; 3] = [Change::Added, Change::Changed, Change::Removed];

    /// Returns the word that the API uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Change::Added => "added",
            Change::Changed => "changed",
            Change::Removed => "removed",
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

type Fields<'a> = BTreeMap<String, &'a RawValue>;

/// Returns the fields of an item. Each item was checked to be an object when the rule emitted it.
fn fields(json: &str) -> Fields<'_> {
    serde_json::from_str(json).unwrap_or_default()
}

/// Returns the text of a key field. Nothing, an empty text, and lists and objects are no key.
fn key_in(json: &str, field: &str) -> Option<String> {
    let fields = fields(json);
    let value = fields.get(field)?.get();
    match value.as_bytes().first()? {
        b'"' => {
            let text: String = serde_json::from_str(value).ok()?;
            Some(text).filter(|text| !text.is_empty())
        }
        b'{' | b'[' | b'n' => None,
        _ => Some(canonical_json(value)),
    }
}

/// Returns the page that stands for a request in keys. URLs alone would not tell forms apart.
fn page_of(request: &Request) -> String {
    let url = canonical(&request.url);
    match (&*request.method, &request.body) {
        ("GET", None) => url.into_owned(),
        (method, _) => {
            let fingerprint = hex::encode(request.fingerprint().0);
            format!("{method} {url} {fingerprint}")
        }
    }
}

fn bounded(key: String) -> String {
    if key.len() <= KEY_MAX {
        return key;
    }
    let hash = hex::encode(half(sha2::Sha256::new_with_prefix(&key)));
    // The hash and the sign before it fit into the bound, too.
    let end = key.floor_char_boundary(KEY_MAX - hash.len() - '…'.len_utf8());
    format!("{}…{hash}", &key[..end])
}

fn half(hash: sha2::Sha256) -> [u8; 16] {
    let digest: [u8; 32] = hash.finalize().into();
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    half
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crawl::ItemKey;

    fn item(kind: &str, json: &str) -> ItemRecord {
        ItemRecord {
            key: ItemKey(String::new()),
            url: "http://a.test/after-redirects".into(),
            rule: "page".into(),
            schema: kind.into(),
            run: Run(1),
            fetched_at: 0,
            item: RawValue::from_string(json.into()).unwrap(),
            change: None,
        }
    }

    fn keys() -> ItemKeys {
        let schema = |name: &str, json: &str| Schema {
            name: name.into(),
            json_schema: json.into(),
        };
        ItemKeys::of(&[
            schema("book", r#"{"type": "object", "x-key": "isbn"}"#),
            schema("review", r#"{"type": "object"}"#),
            schema("any", ""),
        ])
    }

    /// Checks the keys of the items of one page.
    #[track_caller]
    fn check_keys(items: &[(&str, &str)], expected: &[&str]) {
        let items: Vec<ItemRecord> = items.iter().map(|(kind, json)| item(kind, json)).collect();
        let request = Request::get("http://a.test/x#part".parse().unwrap(), "page");
        let found = keys().identities(&request, &items);
        let found: Vec<&str> = found.iter().map(|identity| identity.key.as_str()).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_key_is_the_value_of_its_field() {
        check_keys(&[("book", r#"{"isbn": "978-1"}"#)], &["978-1"]);
        check_keys(&[("book", r#"{"isbn": "\u0061"}"#)], &["a"]);
        check_keys(
            &[
                ("book", r#"{"isbn": 42}"#),
                ("book", r#"{"isbn": 4.2e1}"#),
                ("book", r#"{"isbn": true}"#),
            ],
            &["42", "42", "true"],
        );
    }

    #[test]
    fn an_item_without_a_key_is_known_by_its_page() {
        let page = "http://a.test/x";
        check_keys(
            &[
                ("review", r#"{"n": 1}"#),
                ("book", r#"{"isbn": "1"}"#),
                ("review", r#"{"n": 2}"#),
                ("any", "{}"),
                ("book", r#"{"isbn": ""}"#),
                ("book", r#"{"isbn": null}"#),
                ("book", r#"{"isbn": ["1"]}"#),
            ],
            &[
                page,
                "1",
                "http://a.test/x#2",
                page,
                page,
                "http://a.test/x#2",
                "http://a.test/x#3",
            ],
        );
        let request = Request::get(page.parse().unwrap(), "page");
        let items = [item("book", "{}"), item("review", "{}")];
        let found = keys().identities(&request, &items);
        let lacking: Vec<bool> = found.iter().map(|identity| identity.lacks_key).collect();
        assert_eq!(lacking, [true, false]);
    }

    #[test]
    fn forms_at_one_url_are_told_apart() {
        let form = |body: &'static str| Request {
            method: "POST".into(),
            body: Some(body.into()),
            ..Request::get("http://a.test/x".parse().unwrap(), "page")
        };
        let items = [item("review", "{}")];
        let [one, other] = ["q=1", "q=2"].map(|body| keys().identities(&form(body), &items));
        assert_ne!(one, other);
    }

    #[test]
    fn a_long_key_is_cut_and_stays_unique() {
        let long = |end: &str| format!("{}{end}", "é".repeat(KEY_MAX));
        let (one, other) = (bounded(long("1")), bounded(long("2")));
        assert!(one.len() <= KEY_MAX && one.starts_with("éé"), "{one}");
        assert_ne!(one, other);
        assert_eq!(bounded("x".repeat(KEY_MAX)), "x".repeat(KEY_MAX));
    }

    #[test]
    fn names_tell_kinds_and_keys_apart() {
        let name = |kind: &str, key: &str| {
            let (kind, key) = (kind.to_owned(), key.to_owned());
            let lacks_key = false;
            let identity = ItemIdentity {
                kind,
                key,
                lacks_key,
            };
            identity.name()
        };
        assert_eq!(name("book", "1"), name("book", "1"));
        assert_ne!(name("book", "1"), name("books", "1"));
        assert_ne!(name("book", "s1"), name("books", "1"));
    }

    #[test]
    fn old_values_beyond_the_bound_are_left_out() {
        let difference = || Difference::between(r#"{"a": "long"}"#, r#"{"a": "b"}"#);
        let length = r#"{"a":"long"}"#.len();
        assert_eq!(difference().bounded(length), difference());
        let cut = difference().bounded(length - 1);
        assert_eq!((&*cut.fields, &*cut.old), (&["a".to_owned()][..], "{}"));
    }

    #[test]
    fn items_that_say_the_same_have_one_digest() {
        let same = |one: &str, other: &str| ItemDigest::of(one) == ItemDigest::of(other);
        assert!(same(r#"{"a": 1, "b": [1.0]}"#, r#"{"b":[1],"a":10e-1}"#));
        assert!(!same(r#"{"a": 1}"#, r#"{"a": "1"}"#));
        assert!(!same(r#"{"a": null}"#, "{}"));
        assert!(!same(r#"{"a": [1, 2]}"#, r#"{"a": [2, 1]}"#));
    }

    #[test]
    fn a_difference_names_fields_with_their_old_values() {
        let check = |old: &str, new: &str, fields: &[&str], values: &str| {
            let found = Difference::between(old, new);
            assert_eq!(
                (&found.fields[..], &*found.old),
                (
                    &fields.iter().map(|f| (*f).to_owned()).collect::<Vec<_>>()[..],
                    values
                )
            );
        };
        check(
            r#"{"title": "A", "price": 10.50, "stars": 3}"#,
            r#"{"stars": 3.0, "price": 9.99, "title": "A"}"#,
            &["price"],
            r#"{"price":10.50}"#,
        );
        // A version of the plugin has one field more and another less.
        check(
            r#"{"a": 1, "b\"": {"x": 1}}"#,
            r#"{"a": 1, "c": null}"#,
            &["b\"", "c"],
            r#"{"b\"":{"x": 1}}"#,
        );
        check(r#"{"a": 1}"#, r#"{"a": 1.0}"#, &[], "{}");
    }
}
