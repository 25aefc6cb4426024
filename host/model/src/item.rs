//! Items on their way to the sinks, with their keys.

use serde::{Deserialize, Serialize};

use super::changes::{Change, ItemIdentity, ToldChange};
use super::crawl::Fingerprint;
use super::id::{ResourceId, Run};
use super::time::UnixMillis;

/// Key that makes writing an item twice harmless: the same page of the same run gives the same key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ItemKey(pub String);

impl ItemKey {
    /// Returns the key of the `ordinal`-th item of one visit of a page.
    pub fn of(
        resource: ResourceId,
        run: Run,
        fingerprint: Fingerprint,
        visit: u32,
        rule: &str,
        ordinal: u32,
    ) -> Self {
        use sha2::Digest as _;
        let mut hash = sha2::Sha256::new();
        hash.update(resource.0.to_be_bytes());
        hash.update(run.0.to_be_bytes());
        hash.update(fingerprint.0);
        hash.update(visit.to_be_bytes());
        hash.update((rule.len() as u64).to_be_bytes());
        hash.update(rule.as_bytes());
        hash.update(ordinal.to_be_bytes());
        Self(hex::encode(&hash.finalize()[..16]))
    }
}

/// An item on its way to the sinks; one line of a line file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ItemRecord {
    /// Key of the item; sinks recognise duplicates by it.
    pub key: ItemKey,
    /// URL of the page that the item came from.
    pub url: String,
    /// Name of the rule that emitted the item.
    pub rule: String,
    /// Name of the item's schema.
    pub schema: String,
    /// Run that the item belongs to.
    pub run: Run,
    /// Time at which the page was fetched.
    pub fetched_at: UnixMillis,
    /// The item as the rule wrote it.
    pub item: Box<serde_json::value::RawValue>,
    /// Difference from the item that was known under its key. `None` if there is no difference, and if items are not
    /// compared. It is no part of the JSON: frontiers keep it beside that.
    #[serde(skip)]
    pub change: Option<Box<ToldChange>>,
}

/// Item that a run has not seen any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoneItem {
    /// Kind and key under which it was known.
    pub identity: ItemIdentity,
    /// URL of the page that it came from; empty if that is not known.
    pub url: String,
    /// The item as its rule wrote it.
    pub json: String,
}

impl ItemRecord {
    /// Returns the record that tells that a run has not seen an item any more. `at` is the time at which that was found,
    /// and `number` is that of the change.
    ///
    /// # Errors
    ///
    /// The text of the item is no JSON.
    pub fn removal(
        gone: GoneItem,
        run: Run,
        at: UnixMillis,
        number: u64,
    ) -> Result<Self, serde_json::Error> {
        let GoneItem {
            identity,
            url,
            json,
        } = gone;
        Ok(Self {
            key: ItemKey(hex::encode(identity.name().0)),
            url,
            rule: String::new(),
            schema: identity.kind,
            run,
            fetched_at: at,
            item: serde_json::value::RawValue::from_string(json)?,
            change: Some(Box::new(ToldChange {
                change: Change::Removed,
                number,
                key: identity.key,
                fields: Vec::new(),
                old: String::new(),
            })),
        })
    }

    /// Returns true if this is no item of the run, but tells that the run has not seen the item any more. Sinks of items
    /// do not get it.
    pub fn is_removal(&self) -> bool {
        let change = self.change.as_ref();
        change.is_some_and(|change| change.change == Change::Removed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_key_is_that_of_one_item_of_one_visit_in_one_run() {
        let key = |resource, run, page, visit, rule: &str, ordinal| {
            let fingerprint = Fingerprint([page; 16]);
            ItemKey::of(
                ResourceId(resource),
                Run(run),
                fingerprint,
                visit,
                rule,
                ordinal,
            )
        };
        let keys = [
            key(1, 1, 1, 1, "book", 1),
            key(2, 1, 1, 1, "book", 1),
            key(1, 2, 1, 1, "book", 1),
            key(1, 1, 2, 1, "book", 1),
            key(1, 1, 1, 2, "book", 1),
            key(1, 1, 1, 1, "shelf", 1),
            key(1, 1, 1, 1, "book", 2),
        ];
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len());
        assert_eq!(key(1, 1, 1, 1, "book", 1), keys[0]);
    }
}
