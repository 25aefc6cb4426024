//! Records of the comparison of items from run to run.

use bytes::Bytes;
use prost::Message;

use crawler_model::changes::{self, Change, ChangeTotals, ItemDigest, ItemIdentity};
use crawler_model::crawl::GoneItem;
use crawler_model::id::Run;

/// Comparison of the items of a run. There is no record while items are not compared.
#[derive(Clone, Copy, PartialEq, Message)]
pub(crate) struct Comparison {
    /// Run that the record was written by.
    #[prost(uint64, tag = "1")]
    pub(crate) run: u64,
    /// First run of those that were compared without a gap; part of the keys of known items.
    #[prost(uint64, tag = "2")]
    pub(crate) generation: u64,
    /// Number of the latest runs whose changes are kept.
    #[prost(uint32, tag = "3")]
    pub(crate) n_runs: u32,
}

/// Totals of the changes of a run, and the progress of its end.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ChangeCounts {
    /// Number of the next change.
    #[prost(uint64, tag = "1")]
    pub(crate) next: u64,
    #[prost(uint64, tag = "2")]
    pub(crate) added: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) changed: u64,
    #[prost(uint64, tag = "4")]
    pub(crate) unchanged: u64,
    #[prost(uint64, tag = "5")]
    pub(crate) removed: u64,
    #[prost(uint64, tag = "6")]
    pub(crate) repeated: u64,
    #[prost(uint64, tag = "7")]
    pub(crate) lacking_key: u64,
    /// Number of items that the run had stored. If the totals of the run have another, a program that does not
    /// compare items has stored some.
    #[prost(uint64, tag = "8")]
    pub(crate) n_items: u64,
    #[prost(bool, tag = "9")]
    pub(crate) is_torn: bool,
    #[prost(bool, tag = "10")]
    pub(crate) is_complete: bool,
    /// Key from which on items that the run has not seen are looked for; empty before the first look.
    #[prost(bytes = "bytes", tag = "11")]
    pub(crate) cursor: Bytes,
}

/// An item that is known, without its content.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Known {
    /// Run that has seen the item last.
    #[prost(uint64, tag = "1")]
    pub(crate) run: u64,
    #[prost(bytes = "bytes", tag = "2")]
    digest: Bytes,
}

/// Content of an item that is known, as it was delivered last.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct KnownItem {
    #[prost(string, tag = "1")]
    pub(crate) kind: String,
    #[prost(string, tag = "2")]
    pub(crate) key: String,
    /// The item as its rule wrote it.
    #[prost(string, tag = "3")]
    pub(crate) json: String,
    /// URL of the page that it came from; empty in records of earlier versions.
    #[prost(string, tag = "4")]
    pub(crate) url: String,
}

/// Change of an item. Its run is in its key.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ItemChange {
    /// Kind of the change, as an index into `Change::ALL`.
    #[prost(uint32, tag = "1")]
    change: u32,
    #[prost(string, tag = "2")]
    kind: String,
    #[prost(string, tag = "3")]
    key: String,
    #[prost(string, repeated, tag = "4")]
    fields: Vec<String>,
    #[prost(string, tag = "5")]
    old: String,
    #[prost(string, tag = "6")]
    item: String,
}

/// Change of an item in the outbox. Kind, run and content are those of the item.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ToldChange {
    /// Kind of the change, as an index into `Change::ALL`.
    #[prost(uint32, tag = "1")]
    change: u32,
    #[prost(uint64, tag = "2")]
    number: u64,
    #[prost(string, tag = "3")]
    key: String,
    #[prost(string, repeated, tag = "4")]
    fields: Vec<String>,
    #[prost(string, tag = "5")]
    old: String,
}

impl Known {
    pub(crate) fn new(run: Run, digest: ItemDigest) -> Self {
        Self {
            run: run.0,
            digest: Bytes::copy_from_slice(&digest.0),
        }
    }

    /// Returns the digest of the item, or `None` if the record is damaged.
    pub(crate) fn digest(&self) -> Option<ItemDigest> {
        self.digest[..].try_into().ok().map(ItemDigest)
    }
}

impl From<changes::ItemChange> for ItemChange {
    fn from(change: changes::ItemChange) -> Self {
        Self {
            change: change.change as u32,
            kind: change.kind,
            key: change.key,
            fields: change.fields,
            old: change.old,
            item: change.item,
        }
    }
}

impl ItemChange {
    /// Returns the change, which is of this run. The error tells what is wrong with the record.
    pub(crate) fn of_run(self, run: Run) -> Result<changes::ItemChange, String> {
        Ok(changes::ItemChange {
            change: change_at(self.change)?,
            key: self.key,
            kind: self.kind,
            run,
            fields: self.fields,
            old: self.old,
            item: self.item,
        })
    }
}

impl From<&changes::ToldChange> for ToldChange {
    fn from(told: &changes::ToldChange) -> Self {
        Self {
            change: told.change as u32,
            number: told.number,
            key: told.key.clone(),
            fields: told.fields.clone(),
            old: told.old.clone(),
        }
    }
}

impl ToldChange {
    /// Returns the change. The error tells what is wrong with the record.
    pub(crate) fn read(self) -> Result<changes::ToldChange, String> {
        Ok(changes::ToldChange {
            change: change_at(self.change)?,
            number: self.number,
            key: self.key,
            fields: self.fields,
            old: self.old,
        })
    }
}

impl From<KnownItem> for GoneItem {
    fn from(item: KnownItem) -> Self {
        Self {
            identity: ItemIdentity {
                kind: item.kind,
                key: item.key,
                lacks_key: false,
            },
            url: item.url,
            json: item.json,
        }
    }
}

/// Returns the kind of a change by its number in records.
fn change_at(place: u32) -> Result<Change, String> {
    let all = Change::ALL;
    let change = all.into_iter().find(|change| *change as u32 == place);
    change.ok_or_else(|| format!("there is no change {place} of an item"))
}

impl From<&ChangeCounts> for ChangeTotals {
    fn from(counts: &ChangeCounts) -> Self {
        Self {
            added: counts.added,
            changed: counts.changed,
            unchanged: counts.unchanged,
            removed: counts.removed,
            repeated: counts.repeated,
            lacking_key: counts.lacking_key,
            is_complete: counts.is_complete,
            is_torn: counts.is_torn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_change_of_an_item_comes_back_as_it_was_stored() {
        let told = changes::ToldChange {
            change: Change::Changed,
            number: 7,
            key: "978-1".to_owned(),
            fields: vec!["price".to_owned()],
            old: r#"{"price":1}"#.to_owned(),
        };
        assert_eq!(ToldChange::from(&told).read(), Ok(told));
        let later = ToldChange {
            change: 3,
            ..ToldChange::default()
        };
        assert_eq!(later.read().unwrap_err(), "there is no change 3 of an item");
    }

    #[test]
    fn kinds_of_changes_keep_their_numbers() {
        for (number, word) in (0..).zip(["added", "changed", "removed"]) {
            let record = ItemChange {
                change: number,
                ..ItemChange::default()
            };
            let change = record.of_run(Run(1)).unwrap();
            assert_eq!(change.change.as_str(), word);
            assert_eq!(ItemChange::from(change).change, number);
        }
        let later = ItemChange {
            change: 3,
            ..ItemChange::default()
        };
        assert_eq!(
            later.of_run(Run(1)).unwrap_err(),
            "there is no change 3 of an item"
        );
    }
}
