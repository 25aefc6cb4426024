//! Choice of the items that a sink gets, and of their fields.
//!
//! A sink that sees a choice still answers for all items that it was given: those that were left out count as written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::picked::write_picked;
use super::{Gathering, Sink, SinkError, Written};
use crawler_model::crawl::ItemRecord;
use crawler_model::plugin::Schema;

/// Items that a sink gets, and the fields that they have there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// Conditions, of which an item has to meet one. Without any, all items are taken.
    only: Vec<Condition>,
    /// Fields in the order in which they are written. Without any, items are as the rule wrote them.
    fields: Vec<FieldChoice>,
}

/// Condition on an item, written as `kind=book`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The item is of this kind.
    Kind(String),
}

/// Field of an item, written as `title`, or as `price=preis` if it has another name at the sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChoice {
    from: String,
    to: String,
}

/// Reason why a selection makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// A condition is of no known form.
    #[error("a condition is kind=NAME, not {0:?}")]
    Condition(String),
    /// A field is of no known form.
    #[error("a field is NAME, or NAME=OTHER to give it another name, not {0:?}")]
    Field(String),
    /// Two fields would have one name at the sink.
    #[error("two fields would have the name {0:?}")]
    Twice(String),
}

impl FromStr for Condition {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, SelectionError> {
        match text.split_once('=') {
            Some(("kind", kind)) if !kind.is_empty() => Ok(Self::Kind(kind.to_owned())),
            _ => Err(SelectionError::Condition(text.to_owned())),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Kind(kind) = self;
        write!(f, "kind={kind}")
    }
}

impl FromStr for FieldChoice {
    type Err = SelectionError;

    fn from_str(text: &str) -> Result<Self, SelectionError> {
        let (from, to) = text.split_once('=').unwrap_or((text, text));
        if from.is_empty() || to.is_empty() || to.contains('=') {
            return Err(SelectionError::Field(text.to_owned()));
        }
        Ok(Self {
            from: from.to_owned(),
            to: to.to_owned(),
        })
    }
}

impl FieldChoice {
    /// Returns the name of the field at the sink.
    pub fn target(&self) -> &str {
        &self.to
    }
}

impl fmt::Display for FieldChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from == self.to {
            true => f.write_str(&self.from),
            false => write!(f, "{}={}", self.from, self.to),
        }
    }
}

impl Selection {
    /// Creates a selection. Refuses fields of which two would have one name.
    pub fn new(only: Vec<Condition>, fields: Vec<FieldChoice>) -> Result<Self, SelectionError> {
        let mut names = BTreeSet::new();
        let mut targets = fields.iter().map(|field| field.to.clone());
        let twice = targets.find(|name| !names.insert(name.clone()));
        match twice {
            Some(name) => Err(SelectionError::Twice(name)),
            None => Ok(Self { only, fields }),
        }
    }

    /// Returns the conditions, of which an item has to meet one.
    pub fn only(&self) -> &[Condition] {
        &self.only
    }

    /// Returns the fields in their order.
    pub fn fields(&self) -> &[FieldChoice] {
        &self.fields
    }

    /// Returns the fields that no chosen kind of items of a plugin declares. A kind whose schema allows any field has
    /// all of them.
    pub fn unknown_fields(&self, schemas: &[Schema]) -> Vec<String> {
        let chosen = schemas.iter().filter(|schema| self.takes(&schema.name));
        let declared: Option<Vec<BTreeSet<String>>> = chosen.map(declared_fields).collect();
        let Some(declared) = declared.filter(|declared| !declared.is_empty()) else {
            return Vec::new();
        };
        let is_unknown = |name: &&String| !declared.iter().any(|fields| fields.contains(*name));
        let names = self.fields.iter().map(|field| &field.from);
        names.filter(is_unknown).cloned().collect()
    }

    /// Returns the kinds of items that conditions name and a plugin does not have.
    pub fn unknown_kinds(&self, schemas: &[Schema]) -> Vec<String> {
        if schemas.is_empty() {
            return Vec::new();
        }
        let is_unknown = |kind: &&String| !schemas.iter().any(|schema| schema.name == **kind);
        let kinds = self.only.iter().map(|Condition::Kind(kind)| kind);
        kinds.filter(is_unknown).cloned().collect()
    }

    /// Returns the schemas of the items as the sink gets them: those of the chosen kinds, with the chosen fields.
    pub fn schemas(&self, schemas: &[Schema]) -> Vec<Schema> {
        let chosen = schemas.iter().filter(|schema| self.takes(&schema.name));
        chosen.map(|schema| self.projected(schema)).collect()
    }

    /// Returns the schema of an item with the chosen fields.
    pub fn projected(&self, schema: &Schema) -> Schema {
        Schema {
            name: schema.name.clone(),
            json_schema: match self.fields.is_empty() {
                true => schema.json_schema.clone(),
                false => self.project_schema(schema),
            },
        }
    }

    /// Returns the schema of an item of which only the chosen fields are left, with the shapes of their values. References
    /// have no meaning outside of the whole schema, so the result has none.
    fn project_schema(&self, schema: &Schema) -> String {
        let read = match schema.read() {
            Ok(read) => read,
            Err(error) => {
                // It is older than the check of schemas.
                let kind = &schema.name;
                tracing::warn!(
                    kind,
                    %error,
                    "the schema of a kind of items cannot be read; it counts as one without fields"
                );
                None
            }
        };
        let mut properties = Map::new();
        let mut required = Vec::new();
        for choice in &self.fields {
            let mut declared = read.iter().flat_map(|schema| schema.shapes());
            let Some(property) = declared.find(|property| property.name == choice.from) else {
                continue;
            };
            let kind = property.shape.type_name();
            properties.insert(
                choice.to.clone(),
                kind.map_or_else(|| json!({}), |kind| json!({ "type": kind })),
            );
            if !property.is_optional {
                required.push(choice.to.clone());
            }
        }
        json!({ "properties": properties, "required": required }).to_string()
    }

    /// Returns the sink behind this selection.
    pub fn apply(&self, sink: Box<dyn Sink>) -> Box<dyn Sink> {
        if *self == Self::default() {
            return sink;
        }
        Box::new(SelectingSink {
            sink,
            selection: self.clone(),
            has_warned: false,
        })
    }

    fn takes(&self, kind: &str) -> bool {
        let is_met = |Condition::Kind(wanted): &Condition| wanted == kind;
        self.only.is_empty() || self.only.iter().any(is_met)
    }

    /// Returns an item as the sink gets it, or `None` if it is no object, so that it has no fields to choose. Fields that the
    /// item does not have are left out.
    fn project(&self, record: &ItemRecord) -> Option<ItemRecord> {
        if self.fields.is_empty() {
            return Some(record.clone());
        }
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(record.item.get()).ok()?;
        let mut json = String::from("{");
        for choice in &self.fields {
            if let Some(value) = fields.get(&choice.from) {
                let comma = if json.len() > 1 { "," } else { "" };
                let name = Value::from(choice.to.as_str());
                json.push_str(&format!("{comma}{name}:{}", value.get()));
            }
        }
        json.push('}');
        Some(ItemRecord {
            item: RawValue::from_string(json).ok()?,
            ..record.clone()
        })
    }
}

/// Returns the fields that a schema declares, or `None` if an item may have any.
fn declared_fields(schema: &Schema) -> Option<BTreeSet<String>> {
    let schema: Value = serde_json::from_str(&schema.json_schema).ok()?;
    let fields = schema.get("properties")?.as_object()?;
    Some(fields.keys().cloned().collect())
}

/// Sink that gets a part of the items, with a part of their fields.
struct SelectingSink {
    sink: Box<dyn Sink>,
    selection: Selection,
    /// True if the log was told that an item is no object.
    has_warned: bool,
}

#[async_trait]
impl Sink for SelectingSink {
    async fn write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
        let Self {
            sink,
            selection,
            has_warned,
        } = self;
        let pick = |record: &ItemRecord| {
            let is_taken = selection.takes(&record.schema);
            is_taken.then(|| projected(selection, has_warned, record))
        };
        write_picked(&mut **sink, first, items, pick).await
    }

    fn is_cancel_safe(&self) -> bool {
        self.sink.is_cancel_safe()
    }

    fn gathering(&self) -> Gathering {
        self.sink.gathering()
    }
}

/// Returns an item as the sink gets it. One that is no object stays as it is, because no later try could do better.
fn projected(selection: &Selection, has_warned: &mut bool, record: &ItemRecord) -> ItemRecord {
    if let Some(projected) = selection.project(record) {
        return projected;
    }
    if !std::mem::replace(has_warned, true) {
        let url = &record.url;
        tracing::warn!(
            url,
            "an item is no object; it goes to the sink without a choice of fields"
        );
    }
    record.clone()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::lines::tests::record;

    fn selection(only: &[&str], fields: &[&str]) -> Result<Selection, SelectionError> {
        let only = only.iter().map(|text| text.parse());
        let fields = fields.iter().map(|text| text.parse());
        let only: Vec<Condition> = only.collect::<Result<_, SelectionError>>()?;
        let fields: Vec<FieldChoice> = fields.collect::<Result<_, SelectionError>>()?;
        Selection::new(only, fields)
    }

    /// Writes that a sink got: the number of the first item, and the texts of all.
    type Writes = Vec<(u64, Vec<String>)>;

    /// Sink that takes at most so many items of a write.
    #[derive(Clone)]
    struct Few {
        max: u64,
        got: Arc<Mutex<Writes>>,
    }

    #[async_trait]
    impl Sink for Few {
        async fn write(&mut self, first: u64, items: &[ItemRecord]) -> Result<Written, SinkError> {
            let texts = items.iter().map(|item| item.item.get().to_owned());
            self.got.lock().unwrap().push((first, texts.collect()));
            let n_items = self.max.min(items.len() as u64);
            Ok(Written {
                n_items,
                ..Written::default()
            })
        }
    }

    fn items(kinds: &[&str]) -> Vec<ItemRecord> {
        let item = |(n, kind): (usize, &&str)| ItemRecord {
            schema: (*kind).to_owned(),
            ..record(n as u32, &format!(r#"{{"n": {n}, "a\"b": [1, 2]}}"#))
        };
        kinds.iter().enumerate().map(item).collect()
    }

    /// Writes items from number 10 on, and returns how many count and what the sink got.
    async fn write(
        selection: &Selection,
        kinds: &[&str],
        max: u64,
    ) -> (u64, Vec<(u64, Vec<String>)>) {
        let few = Few {
            max,
            got: Arc::default(),
        };
        let mut sink = selection.apply(Box::new(few.clone()));
        let written = sink.write(10, &items(kinds)).await.unwrap();
        let got = few.got.lock().unwrap().clone();
        (written.n_items, got)
    }

    #[tokio::test]
    async fn items_that_are_left_out_count_as_written() {
        let books = selection(&["kind=book"], &["n"]).unwrap();
        let got = |first: u64, ns: &[u32]| {
            let texts = ns.iter().map(|n| format!(r#"{{"n":{n}}}"#));
            vec![(first, texts.collect::<Vec<_>>())]
        };
        let kinds = ["page", "book", "page", "book", "page"];
        assert_eq!(write(&books, &kinds, 9).await, (5, got(11, &[1, 3])));
        // The second book is given again, and what stands before it is not.
        assert_eq!(write(&books, &kinds, 1).await, (3, got(11, &[1, 3])));
        assert_eq!(write(&books, &kinds, 0).await, (0, got(11, &[1, 3])));
        assert_eq!(write(&books, &["page"], 9).await, (1, vec![]));
        let both = selection(&["kind=book", "kind=page"], &["n"]).unwrap();
        assert_eq!(
            write(&both, &["page", "book"], 9).await,
            (2, got(10, &[0, 1]))
        );
    }

    #[tokio::test]
    async fn fields_are_chosen_in_order_and_renamed() {
        let chosen = selection(&[], &["a\"b=list", "gone", "n=num\"ber"]).unwrap();
        let (_, got) = write(&chosen, &["page"], 9).await;
        assert_eq!(got[0].1, [r#"{"list":[1, 2],"num\"ber":0}"#]);
        let nothing = selection(&[], &["gone"]).unwrap();
        let (_, got) = write(&nothing, &["page"], 9).await;
        assert_eq!(got[0].1, ["{}"]);
    }

    #[tokio::test]
    async fn an_item_that_is_no_object_passes_as_it_is() {
        let chosen = selection(&[], &["n"]).unwrap();
        let few = Few {
            max: 9,
            got: Arc::default(),
        };
        let mut sink = chosen.apply(Box::new(few.clone()));
        let items = [record(0, "[1]"), record(1, r#"{"n": 2, "m": 3}"#)];
        let written = sink.write(0, &items).await.unwrap();
        assert_eq!(written.n_items, 2);
        assert_eq!(few.got.lock().unwrap()[0].1, ["[1]", r#"{"n":2}"#]);
    }

    #[test]
    fn a_selection_that_makes_no_sense_is_refused() {
        for text in ["", "kind", "kind=", "book", "n>3", "url=x"] {
            let error = selection(&[text], &[]).unwrap_err();
            assert_eq!(error, SelectionError::Condition(text.to_owned()));
        }
        for text in ["", "=a", "a=", "a=b=c"] {
            let error = selection(&[], &[text]).unwrap_err();
            assert_eq!(error, SelectionError::Field(text.to_owned()));
        }
        let error = selection(&[], &["a", "b=a"]).unwrap_err();
        assert_eq!(error, SelectionError::Twice("a".to_owned()));
        for text in ["title", "price=preis"] {
            assert_eq!(text.parse::<FieldChoice>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn schemas_are_those_of_what_the_sink_gets() {
        let schema = |name: &str, json: &str| Schema {
            name: name.to_owned(),
            json_schema: json.to_owned(),
        };
        let book = r##"{
            "$ref": "#/$defs/book",
            "$defs": {
                "book": {
                    "required": ["title", "price"],
                    "properties": {
                        "title": {"type": "string"},
                        "price": {"$ref": "#/$defs/price"},
                        "note": {"type": "string"}
                    },
                    "additionalProperties": false
                },
                "price": {"type": "number"}
            }
        }"##;
        let shop = r##"{
            "properties": {"name": {"type": "string"}, "copy": {"$ref": "#/properties/name"}}
        }"##;
        let declared = [
            schema("book", book),
            schema("shop", shop),
            schema("page", ""),
            schema("any", "7"),
        ];
        let all = Selection::default();
        assert_eq!(all.schemas(&declared), declared);
        let books = selection(&["kind=book"], &[]).unwrap();
        assert_eq!(books.schemas(&declared), declared[..1]);
        let chosen = selection(&[], &["price=preis", "note", "copy", "gone=title"]).unwrap();
        let projected = chosen.schemas(&declared);
        assert_eq!(projected.len(), 4);
        for schema in &projected {
            let read = schema.read().unwrap().unwrap();
            let properties: Vec<(String, String, bool)> = read
                .properties()
                .map(|(name, kinds, is_required)| (name.to_owned(), kinds, is_required))
                .collect();
            let expected: &[(&str, &str, bool)] = match schema.name.as_str() {
                "book" => &[("note", "string", false), ("preis", "number", true)],
                "shop" => &[("copy", "string", false)],
                _ => &[],
            };
            let expected = expected
                .iter()
                .map(|(name, kinds, is)| ((*name).to_owned(), (*kinds).to_owned(), *is));
            assert_eq!(properties, expected.collect::<Vec<_>>(), "{}", schema.name);
        }
    }

    #[test]
    fn fields_and_kinds_that_nothing_declares_are_told() {
        let schema = |name: &str, json: &str| Schema {
            name: name.to_owned(),
            json_schema: json.to_owned(),
        };
        let book = schema("book", r#"{"properties":{"title":{},"price":{}}}"#);
        let page = schema("page", r#"{"properties":{"text":{}}}"#);
        let any = schema("any", "");
        let chosen = selection(&["kind=book"], &["title", "text", "price=preis"]).unwrap();
        let declared = [book.clone(), page.clone(), any];
        assert_eq!(chosen.unknown_fields(&declared), ["text"]);
        let all = selection(&[], &["title", "text", "gone"]).unwrap();
        assert_eq!(all.unknown_fields(&[book, page]), ["gone"]);
        assert!(all.unknown_fields(&declared).is_empty());
        assert!(all.unknown_fields(&[]).is_empty());
        let misspelt = selection(&["kind=bok", "kind=book"], &[]).unwrap();
        assert_eq!(misspelt.unknown_kinds(&declared), ["bok"]);
        assert!(all.unknown_kinds(&declared).is_empty());
        assert!(misspelt.unknown_kinds(&[]).is_empty());
    }
}
