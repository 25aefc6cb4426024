//! Items on their way to the sinks, with their keys.

use serde::{Deserialize, Serialize};

use super::changes::{Change, ToldChange};
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

impl ItemRecord {
    /// Returns true if this is no item of the run, but tells that the run has not seen the item any more. Sinks of items
    /// do not get it.
    pub fn is_removal(&self) -> bool {
        let change = self.change.as_ref();
        change.is_some_and(|change| change.change == Change::Removed)
    }
}
