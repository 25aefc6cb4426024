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

    /// Returns the item. The error tells what is wrong with the record.
    pub(crate) fn read(&self) -> Result<ItemRecord, String> {
        let item: ItemRecord = serde_json::from_slice(&self.json)
            .map_err(|error| format!("an item is not JSON: {error}"))?;
        let change = self.change.clone().map(ToldChange::read).transpose()?;
        Ok(ItemRecord {
            change: change.map(Box::new),
            ..item
        })
    }
}
