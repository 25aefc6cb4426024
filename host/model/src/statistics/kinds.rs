//! Items by kind, and the fields that they fill.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{OTHERS, entry, plain};
use crate::crawl::ItemRecord;
use crate::plugin::Schema;

/// Largest number of kinds that are told apart.
const MAX_KINDS: usize = 16;
/// Largest number of fields of all kinds together. Further fields are not looked at.
const MAX_FIELDS: usize = 160;
/// Bytes of the name of a kind or of a field.
const NAME_BYTES: usize = 48;

/// Items of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Kind {
    /// Number of items.
    pub items: u64,
    /// Number of items in which a field has a value other than `null`, `""` and `[]`, by field.
    pub fields: BTreeMap<String, u64>,
}

impl Kind {
    /// Returns the items of a page by their kind. This parses them, so it is not done under a lock.
    pub fn of_items(items: &[ItemRecord]) -> BTreeMap<String, Self> {
        let mut kinds = BTreeMap::new();
        for item in items {
            let mut room = room(&kinds);
            let kind = kind(&mut kinds, &item.schema);
            kind.items += 1;
            let members = MemberVisitor(|name: &str, is_filled| {
                let max = kind.fields.len() + room;
                let n_before = kind.fields.len();
                if let Some(n) = entry(&mut kind.fields, name, NAME_BYTES, max) {
                    *n += u64::from(is_filled);
                }
                room -= kind.fields.len() - n_before;
            });
            let mut json = serde_json::Deserializer::from_str(item.item.get());
            // Each item was checked to be an object when the rule emitted it.
            let _is_object = members.deserialize(&mut json);
        }
        kinds
    }

    /// True if the field is known.
    pub(super) fn has_field(&self, field: &str) -> bool {
        self.fields.contains_key(&*plain(field, NAME_BYTES))
    }

    /// Returns the fields that were empty, or absent, in every item.
    pub fn empty_fields(&self) -> impl Iterator<Item = &str> {
        let empty = self.fields.iter().filter(|(_, n)| **n == 0);
        empty
            .filter(|_| self.items > 0)
            .map(|(name, _)| name.as_str())
    }
}

/// Adds the fields that schemas declare to the kinds that have items.
pub(super) fn declare(kinds: &mut BTreeMap<String, Kind>, schemas: &[Schema]) {
    #[derive(Deserialize)]
    struct Declared<'a> {
        #[serde(borrow, default)]
        properties: BTreeMap<Cow<'a, str>, IgnoredAny>,
    }
    for schema in schemas {
        let room = room(kinds);
        let Some(kind) = kinds.get_mut(&*plain(&schema.name, NAME_BYTES)) else {
            continue;
        };
        // A schema of another form than an object declares no fields.
        let declared = serde_json::from_str::<Declared<'_>>(&schema.json_schema);
        let names = declared
            .into_iter()
            .flat_map(|declared| declared.properties);
        let max = kind.fields.len() + room;
        for (name, _) in names {
            entry(&mut kind.fields, &name, NAME_BYTES, max);
        }
    }
}

/// True if there may be items of a kind: they are known, or were counted as others.
pub(super) fn may_have(kinds: &BTreeMap<String, Kind>, name: &str) -> bool {
    let has_items = |name: &str| kinds.get(name).is_some_and(|kind| kind.items > 0);
    has_items(&plain(name, NAME_BYTES)) || has_items(OTHERS)
}

/// Adds the items of a page, or of another shard. A name that is known costs no allocation.
pub(super) fn merge(kinds: &mut BTreeMap<String, Kind>, others: &BTreeMap<String, Kind>) {
    for (name, other) in others {
        let room = room(kinds);
        let own = kind(kinds, name);
        own.items = own.items.saturating_add(other.items);
        let max = own.fields.len() + room;
        for (field, n) in &other.fields {
            if let Some(own) = entry(&mut own.fields, field, NAME_BYTES, max) {
                *own = own.saturating_add(*n);
            }
        }
    }
}

/// Returns a kind by its name, or the one that stands for all beyond the bound.
fn kind<'a>(kinds: &'a mut BTreeMap<String, Kind>, name: &str) -> &'a mut Kind {
    let name = match entry(kinds, name, NAME_BYTES, MAX_KINDS) {
        Some(_) => name,
        None => OTHERS,
    };
    entry(kinds, name, NAME_BYTES, usize::MAX).expect("there is room without a bound")
}

/// Returns the number of fields that there is room for.
fn room(kinds: &BTreeMap<String, Kind>) -> usize {
    let n_fields: usize = kinds.values().map(|kind| kind.fields.len()).sum();
    MAX_FIELDS.saturating_sub(n_fields)
}

/// Visitor of an object that tells the name of each member, and whether it is filled.
struct MemberVisitor<F>(F);

impl<'de, F: FnMut(&str, bool)> DeserializeSeed<'de> for MemberVisitor<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, object: D) -> Result<(), D::Error> {
        object.deserialize_map(self)
    }
}

impl<'de, F: FnMut(&str, bool)> Visitor<'de> for MemberVisitor<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = members.next_key()? {
            let Filled(is_filled) = members.next_value()?;
            (self.0)(&name, is_filled);
        }
        Ok(())
    }
}

/// Name of a member, borrowed unless it has escapes.
struct Name<'a>(Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(name: D) -> Result<Self, D::Error> {
        struct Borrow;

        impl<'de> Visitor<'de> for Borrow {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }

        name.deserialize_str(Borrow)
    }
}

/// True for any value but `null`, `""` and `[]`.
struct Filled(bool);

impl<'de> Deserialize<'de> for Filled {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        struct Look;

        impl<'de> Visitor<'de> for Look {
            type Value = Filled;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_unit<E>(self) -> Result<Filled, E> {
                Ok(Filled(false))
            }

            fn visit_bool<E>(self, _value: bool) -> Result<Filled, E> {
                Ok(Filled(true))
            }

            fn visit_i64<E>(self, _value: i64) -> Result<Filled, E> {
                Ok(Filled(true))
            }

            fn visit_u64<E>(self, _value: u64) -> Result<Filled, E> {
                Ok(Filled(true))
            }

            fn visit_f64<E>(self, _value: f64) -> Result<Filled, E> {
                Ok(Filled(true))
            }

            fn visit_str<E>(self, text: &str) -> Result<Filled, E> {
                Ok(Filled(!text.is_empty()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Filled, A::Error> {
                let mut is_filled = false;
                while list.next_element::<IgnoredAny>()?.is_some() {
                    is_filled = true;
                }
                Ok(Filled(is_filled))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Filled, A::Error> {
                while members.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Filled(true))
            }
        }

        value.deserialize_any(Look)
    }
}
