//! Catalog of typed records: JSON that a person can read, with the revisions that guard it.
//!
//! Reading decodes. Writing goes through [`Txn::put`](super::Txn::put) with [`encode`], so that every write is
//! part of one guarded transaction. A record that does not decode is an error of that record alone:
//! [`Catalog::scan`] returns it beside the others.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::keys::Keys;
use super::{Entry, Listing, Revision, Store, StoreError};

/// A store with the layout of its keys.
#[derive(Clone)]
pub struct Catalog {
    store: Arc<dyn Store>,
    keys: Keys,
}

/// A record with the revisions that its writers guard it by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Versioned<T> {
    /// The record.
    pub value: T,
    /// Revision of the last write.
    pub revision: Revision,
    /// Revision of the write that created the key.
    pub created: Revision,
}

/// All records with a prefix at one moment.
#[derive(Debug)]
pub struct Scan<T> {
    /// Key and record, in the order of the keys.
    pub records: Vec<(String, Versioned<T>)>,
    /// One [`StoreError::Record`] for each that does not decode.
    pub broken: Vec<StoreError>,
    /// Revision of that moment; a watch from here misses nothing.
    pub revision: Revision,
}

impl Catalog {
    /// Creates a catalog of this store, with this layout of keys.
    pub fn new(store: Arc<dyn Store>, keys: Keys) -> Self {
        Self { store, keys }
    }

    /// Returns the store itself, for transactions, watches and leases.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the layout of the keys.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Reads the record at exactly this key. Returns [`StoreError::Record`] if it does not decode.
    pub async fn read<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<Versioned<T>>, StoreError> {
        let entry = self.store.get(key).await?;
        entry.as_ref().map(decode).transpose()
    }

    /// Reads all records whose keys start with `prefix`.
    pub async fn scan<T: DeserializeOwned>(&self, prefix: &str) -> Result<Scan<T>, StoreError> {
        Ok(Scan::of(self.store.list(prefix).await?))
    }
}

impl<T: DeserializeOwned> Scan<T> {
    fn of(listing: Listing) -> Self {
        let mut scan = Scan {
            records: Vec::with_capacity(listing.entries.len()),
            broken: Vec::new(),
            revision: listing.revision,
        };
        for entry in listing.entries {
            match decode(&entry) {
                Ok(record) => scan.records.push((entry.key, record)),
                Err(error) => scan.broken.push(error),
            }
        }
        scan
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalog")
            .field("keys", &self.keys)
            .finish_non_exhaustive()
    }
}

/// Encodes a record as it is stored. Two writes of one object differ by a `write_id` that readers ignore: if
/// the answer of a write is lost, finding its `write_id` shows that it was carried out.
///
/// # Panics
///
/// Panics if `T` has a map whose keys are not text, which JSON cannot represent.
pub fn encode<T: Serialize>(value: &T) -> Bytes {
    let json = serde_json::to_vec(value);
    let mut json = json.expect("a record has text for keys and a vector takes every write");
    if json.last() == Some(&b'}') {
        json.pop();
        let comma = if json.len() > 1 { "," } else { "" };
        let write_id: u64 = rand::random();
        json.extend(format!(r#"{comma}"write_id":"{write_id:016x}"}}"#).into_bytes());
    }
    json.into()
}

/// Decodes the record of an entry, as a watch reports it.
pub fn decode<T: DeserializeOwned>(entry: &Entry) -> Result<Versioned<T>, StoreError> {
    match serde_json::from_slice(&entry.value) {
        Ok(value) => Ok(Versioned {
            value,
            revision: entry.revision,
            created: entry.created,
        }),
        Err(e) => Err(StoreError::Record {
            key: entry.key.clone(),
            why: e.to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::embedded::{EmbeddedStore, Settings};
    use crate::{Guard, Outcome, Txn};

    fn catalog(folder: &tempfile::TempDir) -> Catalog {
        let store = EmbeddedStore::open(folder.path(), Settings::default()).unwrap();
        Catalog::new(Arc::new(store), Keys::default())
    }

    #[tokio::test]
    async fn a_record_is_read_back_with_what_guards_it() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = catalog(&folder);
        for n in [1_u32, 2] {
            let txn = Txn::new().put("/n", encode(&n));
            catalog.store().commit(txn).await.unwrap();
        }
        let record = catalog.read::<u32>("/n").await.unwrap().unwrap();
        assert_eq!(record.value, 2);
        assert!(record.created < record.revision);
        let guarded = Txn::new()
            .guard(Guard::RevisionIs("/n".to_owned(), record.revision))
            .put("/n", encode(&3));
        let outcome = catalog.store().commit(guarded).await.unwrap();
        assert!(matches!(outcome, Outcome::Done(_)), "{outcome:?}");
        assert_eq!(catalog.read::<u32>("/absent").await.unwrap(), None);
    }

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Named {
        name: String,
    }

    #[test]
    fn two_writes_of_one_object_differ_and_read_alike() {
        let named = Named {
            name: "}".to_owned(),
        };
        let (first, second) = (encode(&named), encode(&named));
        assert_ne!(first, second);
        for written in [first, second] {
            let json: serde_json::Value = serde_json::from_slice(&written).unwrap();
            let write_id = json["write_id"].as_str().unwrap();
            assert!(write_id.len() == 16 && u64::from_str_radix(write_id, 16).is_ok());
            let entry = Entry {
                key: "/n".to_owned(),
                value: written,
                created: Revision(1),
                revision: Revision(1),
            };
            assert_eq!(decode::<Named>(&entry).unwrap().value, named);
        }
        let nothing: serde_json::Value = serde_json::from_slice(&encode(&Empty {})).unwrap();
        assert_eq!(nothing.as_object().unwrap().len(), 1);
        assert_eq!(encode(&7), "7");
    }

    #[derive(serde::Serialize)]
    struct Empty {}

    #[tokio::test]
    async fn f20_a_record_that_does_not_decode_hides_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let catalog = catalog(&folder);
        let txn = Txn::new()
            .put("/n/1", encode(&1_u32))
            .put("/n/2", "not a number")
            .put("/n/3", "")
            .put("/n/4", encode(&4_u32));
        catalog.store().commit(txn).await.unwrap();
        let scan = catalog.scan::<u32>("/n/").await.unwrap();
        let values: Vec<u32> = scan
            .records
            .iter()
            .map(|(_, record)| record.value)
            .collect();
        assert_eq!(values, [1, 4]);
        let broken: Vec<String> = scan.broken.iter().map(ToString::to_string).collect();
        assert!(
            broken[0].starts_with("record /n/2 does not decode"),
            "{broken:?}"
        );
        assert!(
            broken[1].starts_with("record /n/3 does not decode"),
            "{broken:?}"
        );
        let error = catalog.read::<u32>("/n/2").await.unwrap_err();
        assert!(matches!(error, StoreError::Record { key, .. } if key == "/n/2"));
    }
}
