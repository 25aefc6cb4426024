//! Feed of a sink: what it gets of all that a frontier has for its sinks.
//!
//! A frontier has items, each with its change if it has one, and among them those that a complete run has told as removed. A
//! sink of items gets the former. A sink of changes gets a record for each change, of one schema for all kinds of items, and
//! nothing for an item that is as it was. What a sink does not get counts as written, so each has its own position in one
//! outbox: a change is at a sink of changes as safely, and as often, as an item is at a sink of items.

use async_trait::async_trait;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::digest::digest;
use super::picked::write_picked;
use super::{Gathering, Sink, SinkError, Written};
use crawler_model::changes::{Change, ToldChange};
use crawler_model::crawl::{ItemKey, ItemRecord};
use crawler_model::plugin::Schema;
use crawler_model::resource::ShardId;

/// Schema of the records of changes, whatever the kind of their items.
const CHANGE_SCHEMA: &str = r#"{
    "type": "object",
    "required": ["change", "number", "key", "fields"],
    "properties": {
        "change": {"type": "string"},
        "number": {"type": "integer"},
        "key": {"type": "string"},
        "fields": {"type": "array"},
        "old": {"type": "object"},
        "item": {"type": "object"}
    }
}"#;

/// Kind of the records that a sink gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Feed {
    /// Items.
    #[default]
    Items,
    /// Items, and the removals of those that are gone, for a sink that keeps the history of items. It needs the changes of
    /// the resource.
    History,
    /// Changes of items, each as a record of its own. It needs the changes of the resource.
    Changes,
}

/// Record of a change, as the sink gets it in the place of an item. Kind, URL, run and time are in its envelope.
#[derive(Serialize)]
struct ChangeRecord<'a> {
    change: &'static str,
    number: u64,
    key: &'a str,
    fields: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item: Option<&'a RawValue>,
}

impl Feed {
    /// Returns true if a resource without [changes](crawler_model::changes) has nothing to tell such a sink.
    pub fn needs_changes(self) -> bool {
        match self {
            Self::Items => false,
            Self::History | Self::Changes => true,
        }
    }

    /// Returns the schemas of what the sink gets, by the kinds of items.
    pub fn schemas(self, schemas: &[Schema]) -> Vec<Schema> {
        let schemas = schemas.iter().map(|schema| {
            let of_changes = self.schema(&schema.name);
            of_changes.unwrap_or_else(|| schema.clone())
        });
        schemas.collect()
    }

    /// Returns the schema of the records of a kind, if it does not depend on the items: a plugin may have dropped the kind
    /// whose items are told as removed.
    pub fn schema(self, kind: &str) -> Option<Schema> {
        match self {
            Self::Items | Self::History => None,
            Self::Changes => Some(Schema {
                name: kind.to_owned(),
                json_schema: CHANGE_SCHEMA.to_owned(),
            }),
        }
    }

    /// Returns the sink of a shard behind this feed.
    pub fn apply(self, shard: ShardId, sink: Box<dyn Sink>) -> Box<dyn Sink> {
        match self {
            Self::Items => without_removals(sink),
            Self::History => sink,
            Self::Changes => Box::new(ChangeSink { sink, shard }),
        }
    }
}

/// Returns the sink behind the feed of items.
pub fn without_removals(sink: Box<dyn Sink>) -> Box<dyn Sink> {
    Box::new(ItemSink { sink })
}

/// Sink that gets no removals.
struct ItemSink {
    sink: Box<dyn Sink>,
}

#[async_trait]
impl Sink for ItemSink {
    async fn write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        // Most writes have none, and need no copy of their items.
        if !items.iter().any(ItemRecord::is_removal) {
            return self.sink.write(first, items).await;
        }
        let pick = |item: &ItemRecord| (!item.is_removal()).then(|| item.clone());
        write_picked(&mut *self.sink, first, items, pick).await
    }

    fn is_cancel_safe(&self) -> bool {
        self.sink.is_cancel_safe()
    }

    fn gathering(&self) -> Gathering {
        self.sink.gathering()
    }
}

/// Sink that gets changes in the place of items.
struct ChangeSink {
    sink: Box<dyn Sink>,
    shard: ShardId,
}

#[async_trait]
impl Sink for ChangeSink {
    async fn write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let shard = self.shard;
        let pick = |item: &ItemRecord| {
            let change = item.change.as_deref();
            change.map(|change| record_of(shard, item, change))
        };
        write_picked(&mut *self.sink, first, items, pick).await
    }

    fn is_cancel_safe(&self) -> bool {
        self.sink.is_cancel_safe()
    }

    fn gathering(&self) -> Gathering {
        self.sink.gathering()
    }
}

/// Returns the record of a change. Its key is the same whenever the change is told.
fn record_of(shard: ShardId, item: &ItemRecord, change: &ToldChange) -> ItemRecord {
    let content: &RawValue = &item.item;
    let (old, new) = match change.change {
        Change::Added => (None, Some(content)),
        Change::Changed => (serde_json::from_str(&change.old).ok(), Some(content)),
        Change::Removed => (Some(content), None),
    };
    let record = ChangeRecord {
        change: change.change.as_str(),
        number: change.number,
        key: &change.key,
        fields: &change.fields,
        old,
        item: new,
    };
    let numbers = [
        shard.resource.0,
        u64::from(shard.shard.0),
        item.run.0,
        change.number,
    ];
    let numbers = numbers.map(|number| number.to_string());
    let names = [item.schema.as_str(), change.key.as_str()];
    let key = numbers.iter().map(String::as_str).chain(names);
    ItemRecord {
        key: ItemKey(digest(key)),
        url: item.url.clone(),
        rule: item.rule.clone(),
        schema: item.schema.clone(),
        run: item.run,
        fetched_at: item.fetched_at,
        item: to_raw_value(&record).expect("texts, numbers and JSON are JSON"),
        change: None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::lines::tests::record;
    use crawler_model::id::ResourceId;

    /// Writes that a sink got: the number of the first item, and keys and texts of all.
    type Writes = Vec<(u64, Vec<(String, String)>)>;

    /// Sink that takes all items.
    #[derive(Clone, Default)]
    struct Kept {
        got: Arc<Mutex<Writes>>,
    }

    #[async_trait]
    impl Sink for Kept {
        async fn write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
            let texts = items
                .iter()
                .map(|item| (item.key.0.clone(), item.item.get().to_owned()));
            self.got.lock().unwrap().push((first, texts.collect()));
            Ok(Written::all(items, None))
        }
    }

    fn told(n: u32, change: Change, fields: &[&str], old: &str) -> ItemRecord {
        ItemRecord {
            change: Some(Box::new(ToldChange {
                change,
                number: u64::from(n),
                key: format!("isbn-{n}"),
                fields: fields.iter().map(ToString::to_string).collect(),
                old: old.to_owned(),
            })),
            ..record(n, r#"{"price": 2}"#)
        }
    }

    /// Returns an item of each change, behind one that is as it was.
    fn items() -> [ItemRecord; 4] {
        [
            record(0, r#"{"price": 2}"#),
            told(1, Change::Added, &[], ""),
            told(2, Change::Changed, &["price"], r#"{"price":1}"#),
            told(3, Change::Removed, &[], ""),
        ]
    }

    async fn written(feed: Feed, items: &[ItemRecord]) -> Writes {
        let kept = Kept::default();
        let shard = ShardId::only(ResourceId(7));
        let mut sink = feed.apply(shard, Box::new(kept.clone()));
        let written = sink.write(10, items).await.unwrap();
        assert_eq!(written.n_items, items.len() as u64);
        kept.got.lock().unwrap().clone()
    }

    #[tokio::test]
    async fn a_sink_of_items_gets_no_removals() {
        for (feed, n_items) in [(Feed::Items, 3), (Feed::History, 4)] {
            let writes = written(feed, &items()).await;
            assert_eq!((writes.len(), writes[0].0), (1, 10));
            assert_eq!(writes[0].1.len(), n_items, "{feed:?}");
        }
        assert!(written(Feed::Items, &items()[3..]).await.is_empty());
    }

    #[tokio::test]
    async fn a_sink_of_changes_gets_a_record_for_each_change() {
        let writes = written(Feed::Changes, &items()).await;
        let [(first, records)] = &writes[..] else {
            panic!("{writes:?}");
        };
        let texts: Vec<&str> = records.iter().map(|(_, text)| text.as_str()).collect();
        let expected = [
            r#"{"change":"added","number":1,"key":"isbn-1","fields":[],"item":{"price": 2}}"#,
            r#"{"change":"changed","number":2,"key":"isbn-2","fields":["price"],"old":{"price":1},"item":{"price": 2}}"#,
            r#"{"change":"removed","number":3,"key":"isbn-3","fields":[],"old":{"price": 2}}"#,
        ];
        assert_eq!((*first, &texts[..]), (11, &expected[..]));
        assert!(written(Feed::Changes, &items()[..1]).await.is_empty());
    }

    #[tokio::test]
    async fn a_change_has_the_same_key_whenever_it_is_told() {
        let keys = async |items: &[ItemRecord]| {
            let writes = written(Feed::Changes, items).await;
            let records = writes.into_iter().flat_map(|(_, records)| records);
            records.map(|(key, _)| key).collect::<Vec<_>>()
        };
        let all = keys(&items()).await;
        assert_eq!(keys(&items()[2..]).await, all[1..]);
        assert!(all[0] != all[1] && all[1] != all[2], "{all:?}");
    }

    #[test]
    fn records_of_changes_have_one_schema_for_all_kinds() {
        let declared = ["book", "shop"].map(|name| Schema {
            name: name.to_owned(),
            json_schema: format!(r#"{{"title": "{name}"}}"#),
        });
        assert_eq!(Feed::Items.schemas(&declared), declared);
        let schemas = Feed::Changes.schemas(&declared);
        assert_eq!(schemas[0].json_schema, schemas[1].json_schema);
        let mut fields: Vec<String> = schemas[1]
            .read()
            .unwrap()
            .unwrap()
            .properties()
            .map(|(name, _, _)| name.to_owned())
            .collect();
        fields.sort();
        assert_eq!(fields, ["change", "fields", "item", "key", "number", "old"]);
    }
}
