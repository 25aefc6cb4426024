//! Items on their way to their sinks.

use bytes::Bytes;
use prost::Message;

use super::changes::ToldChange;
use crawler_model::crawl::ItemRecord;

/// An item that is not at its sink yet.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Item {
    /// Item record as JSON.
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) json: Bytes,
    #[prost(uint32, tag = "2")]
    pub(crate) plugin: u32,
    /// Change of the item. It is stored only if there is a sink beside the one in the data root.
    #[prost(message, optional, tag = "3")]
    pub(crate) change: Option<ToldChange>,
}

impl Item {
    /// Returns the record of an item with its change.
    pub(crate) fn new(item: &ItemRecord, plugin: u32) -> Self {
        let json = serde_json::to_vec(item).expect("a record of texts is JSON");
        Self {
            json: json.into(),
            plugin,
            change: item.change.as_deref().map(ToldChange::from),
        }
    }

    /// Number of bytes for which the item counts in the outbox, and in a read of it.
    pub(crate) fn n_bytes(&self) -> usize {
        let change = self.change.as_ref();
        self.json.len() + change.map_or(0, Message::encoded_len)
    }

    /// Returns the item. The error tells what is wrong with the record.
    pub(crate) fn read(self) -> Result<ItemRecord, String> {
        let item: ItemRecord = serde_json::from_slice(&self.json)
            .map_err(|error| format!("an item is not JSON: {error}"))?;
        let change = self.change.map(ToldChange::read).transpose()?;
        Ok(ItemRecord {
            change: change.map(Box::new),
            ..item
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crawler_model::changes::{Change, ToldChange as Told};

    #[test]
    fn an_item_counts_with_the_old_values_of_its_change() {
        let record = |old: &str| {
            let change = Told {
                change: Change::Changed,
                number: 1,
                key: "a".to_owned(),
                fields: Vec::new(),
                old: old.to_owned(),
            };
            Item {
                json: Bytes::from_static(b"{}"),
                plugin: 0,
                change: Some(ToldChange::from(&change)),
            }
        };
        let (short, long) = (record(""), record(&"x".repeat(1_000)));
        assert!(long.n_bytes() >= short.n_bytes() + 1_000);
        assert!(short.n_bytes() >= 2);
    }
}
