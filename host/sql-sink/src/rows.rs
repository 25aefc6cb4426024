//! Rows: items as values of columns.

use std::collections::{BTreeMap, HashMap};

use serde_json::value::RawValue;

use crawler_model::crawl::ItemRecord;
use crawler_model::id::ResourceId;
use crawler_sink::digest::digest;
use crawler_sink::fields::integer;

use crate::columns::{ColumnType, Kind};
use crate::connection::Value;
use crate::dialect::Dialect;
use crate::history::Version;
use crate::names::Identifier;

/// Resource whose items are written.
#[derive(Debug, Clone)]
pub(crate) struct Resource {
    pub(crate) id: ResourceId,
    pub(crate) name: String,
}

/// Row on its way to a table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// Values of all columns of the table. There are none for an item that was removed: its row stays.
    pub(crate) values: Vec<Value>,
    pub(crate) key: String,
    /// Place of the item in its batch.
    pub(crate) item: usize,
    /// Version of the item that begins or ends with this row, if the sink keeps the history.
    pub(crate) version: Option<Version>,
}

impl Row {
    /// Returns the row of an item, or the reason why it is none.
    pub(crate) fn new(
        dialect: Dialect,
        resource: &Resource,
        kind: &Kind,
        record: &ItemRecord,
        item: usize,
    ) -> Result<Self, String> {
        let told = record.change.as_deref();
        if let Some(told) = told.filter(|_| record.is_removal()) {
            let end = Version::end(dialect, resource, record, told);
            return Ok(Self {
                values: Vec::new(),
                key: end.key().to_owned(),
                item,
                version: Some(end),
            });
        }
        let mut given: BTreeMap<String, &RawValue> = serde_json::from_str(record.item.get())
            .map_err(|error| format!("it cannot be read as a JSON object: {error}"))?;
        let key = match kind.key.is_empty() {
            true => record.key.0.clone(),
            false => key_of(resource, record, &kind.key, &given)?,
        };
        let mut cells = Vec::with_capacity(kind.fields.len());
        let columns = &kind.table.columns[kind.table.n_own..];
        for (field, column) in kind.fields.iter().zip(columns) {
            let value = given.remove(field).filter(|value| value.get() != "null");
            cells.push(cell(dialect, column.kind, field, value)?);
        }
        let rest = match given.is_empty() {
            true => None,
            false => Some(serde_json::to_string(&given).map_err(|error| error.to_string())?),
        };
        let rest = Value::Text(rest);
        let told = told.filter(|_| kind.history.is_some());
        let version = told.map(|told| {
            let filled = (&rest, &cells[..]);
            Version::of(dialect, resource, record, told, filled, item)
        });
        let at = dialect.time(record.fetched_at);
        let mut values = beginning(&key, resource, record, &at);
        values.extend([text(record.key.0.clone()), text(at.clone()), text(at), rest]);
        values.append(&mut cells);
        Ok(Self {
            values,
            key,
            item,
            version,
        })
    }

    /// Returns the row that keeps an item which does not fit its table.
    pub(crate) fn reject(
        dialect: Dialect,
        resource: &Resource,
        table: &Identifier,
        record: &ItemRecord,
        reason: &str,
    ) -> Self {
        let at = dialect.time(record.fetched_at);
        // Two sinks in one database may reject the same item, each from a table of its own.
        let key = digest([table.as_str(), record.key.0.as_str()]);
        let mut values = beginning(&key, resource, record, &at);
        values.extend([
            text(record.key.0.clone()),
            text(table.as_str().to_owned()),
            text(without_nul(reason)),
            // Inside of JSON, a NUL byte is written with other characters.
            text(record.item.get().to_owned()),
        ]);
        Self {
            values,
            key,
            item: 0,
            version: None,
        }
    }

    /// Number of bytes of the values in the statement that writes the row.
    pub(crate) fn n_bytes(&self) -> u64 {
        self.values.iter().map(Value::n_bytes).sum()
    }
}

/// Puts rows into layers. A layer has each key once, because a statement must not name a key twice, and its rows are in the
/// order of their keys, because writers that take keys in one order do not wait for each other in a circle. All versions
/// of a key are written: the newest one may not fit its table, and the database keeps the newest of those that do. The same
/// holds for the versions of an item, whose rows may have other keys.
pub(crate) fn layers(rows: Vec<Row>) -> Vec<Vec<Row>> {
    let mut n_rows: HashMap<String, usize> = HashMap::new();
    let mut n_versions: HashMap<String, usize> = HashMap::new();
    let mut layers: Vec<BTreeMap<String, Row>> = Vec::new();
    for row in rows {
        let by_key = n_rows.entry(row.key.clone()).or_default();
        let mut place = *by_key;
        if let Some(version) = &row.version {
            let by_item = n_versions.entry(version.key().to_owned()).or_default();
            place = place.max(*by_item);
            *by_item = place + 1;
        }
        *by_key = place + 1;
        if place == layers.len() {
            layers.push(BTreeMap::new());
        }
        layers[place].insert(row.key.clone(), row);
    }
    let layers = layers.into_iter();
    layers.map(|rows| rows.into_values().collect()).collect()
}

/// Returns the values of the columns that both kinds of tables begin with.
fn beginning(key: &str, resource: &Resource, record: &ItemRecord, at: &str) -> Vec<Value> {
    vec![
        text(key.to_owned()),
        text(resource.name.clone()),
        integer_of(resource.id.0),
        text(without_nul(&record.schema)),
        text(without_nul(&record.url)),
        integer_of(record.run.0),
        text(at.to_owned()),
    ]
}

pub(crate) fn text(text: String) -> Value {
    Value::Text(Some(text))
}

pub(crate) fn integer_of(number: u64) -> Value {
    Value::Integer(Some(i64::try_from(number).unwrap_or(i64::MAX)))
}

/// Returns a text that PostgreSQL takes, too.
pub(crate) fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Returns the key of a row that fields identify: it is the same in all runs of the resource, and in those of a later
/// resource with its name.
fn key_of(
    resource: &Resource,
    record: &ItemRecord,
    fields: &[String],
    given: &BTreeMap<String, &RawValue>,
) -> Result<String, String> {
    let mut parts = vec![resource.name.clone(), record.schema.clone()];
    for field in fields {
        let value = given.get(field).filter(|value| value.get() != "null");
        let missing = || format!("it has no field {field:?}, which identifies its row");
        let value = value.ok_or_else(missing)?;
        let json = value.get();
        let value: serde_json::Value = serde_json::from_str(json)
            .map_err(|error| format!("field {field:?} cannot be read: {error}"))?;
        parts.push(match (value.is_number(), integer(json)) {
            (true, Some(number)) => number.to_string(),
            // Long numbers would lose digits.
            (true, None) => json.to_owned(),
            (false, _) => value.to_string(),
        });
    }
    Ok(digest(&parts))
}

/// Returns the value of a column. `value` is `None` if the field is missing or `null`.
fn cell(
    dialect: Dialect,
    kind: ColumnType,
    field: &str,
    value: Option<&RawValue>,
) -> Result<Value, String> {
    let json = value.map(RawValue::get);
    let unfit = |kind: &str| {
        let shown: String = json.unwrap_or_default().chars().take(100).collect();
        format!("field {field:?} is {shown}, and its column takes {kind}")
    };
    Ok(match kind {
        ColumnType::Boolean => Value::Boolean(match json {
            Some(json) => Some(serde_json::from_str(json).map_err(|_| unfit("true or false"))?),
            None => None,
        }),
        ColumnType::Integer => Value::Integer(match json {
            Some(json) => Some(integer(json).ok_or_else(|| unfit("integers of 64 bits"))?),
            None => None,
        }),
        ColumnType::Number => Value::Number(match json {
            Some(json) => Some(serde_json::from_str(json).map_err(|_| unfit("numbers"))?),
            None => None,
        }),
        ColumnType::Text => Value::Text(match json {
            Some(json) => {
                let text: String = serde_json::from_str(json).map_err(|_| unfit("text"))?;
                if dialect == Dialect::Postgres && text.contains('\0') {
                    return Err(format!(
                        "field {field:?} has a NUL byte, which PostgreSQL stores in no text"
                    ));
                }
                Some(text)
            }
            None => None,
        }),
        ColumnType::Json | ColumnType::Time | ColumnType::Key => {
            Value::Text(json.map(str::to_owned))
        }
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::columns::tests::schema;
    use crawler_model::changes::{Change, ToldChange};
    use crawler_model::crawl::ItemKey;
    use crawler_model::id::Run;

    pub(crate) fn record(key: &str, run: u64, at: u64, json: &str) -> ItemRecord {
        ItemRecord {
            key: ItemKey(key.to_owned()),
            url: "http://a.test/".to_owned(),
            rule: "page".to_owned(),
            schema: "thing".to_owned(),
            run: Run(run),
            fetched_at: at,
            item: RawValue::from_string(json.to_owned()).unwrap(),
            change: None,
        }
    }

    pub(crate) fn resource() -> Resource {
        Resource {
            id: ResourceId(7),
            name: "books".to_owned(),
        }
    }

    fn kind(dialect: Dialect, key: &[&str]) -> Kind {
        let properties = r#"{
            "required": ["e"],
            "properties": {
                "a": {"type": "boolean"}, "b": {"type": "integer"}, "c": {"type": "number"},
                "d": {"type": "string"}, "e": {"type": "array"}
            }
        }"#;
        let key = key.iter().map(ToString::to_string).collect();
        let template = "{resource}_{kind}".parse().unwrap();
        Kind::new(
            dialect,
            &template,
            "books",
            "thing",
            Some(&schema(properties)),
            key,
        )
    }

    fn row(dialect: Dialect, key: &[&str], json: &str) -> Result<Row, String> {
        let record = record("k", 1, 7, json);
        Row::new(dialect, &resource(), &kind(dialect, key), &record, 0)
    }

    fn fields(json: &str) -> Result<Vec<Value>, String> {
        let row = row(Dialect::Postgres, &[], json)?;
        // The rest stands before the fields.
        Ok(row.values[10..].to_vec())
    }

    fn some(text: &str) -> Value {
        Value::Text(Some(text.to_owned()))
    }

    #[test]
    fn each_field_has_its_column_and_others_are_the_rest() {
        let json = r#"{"a":true,"b":-3,"c":1.5,"d":"x\u00e9","e":[{"y": 1}],"z":1,"y":null}"#;
        assert_eq!(
            fields(json).unwrap(),
            [
                some(r#"{"y":null,"z":1}"#),
                Value::Boolean(Some(true)),
                Value::Integer(Some(-3)),
                Value::Number(Some(1.5)),
                some("xé"),
                some(r#"[{"y": 1}]"#),
            ]
        );
    }

    #[test]
    fn missing_fields_are_null() {
        // The schema requires the last one, and an item of an earlier version does not have it.
        assert_eq!(
            fields(r#"{"a":null}"#).unwrap(),
            [
                Value::Text(None),
                Value::Boolean(None),
                Value::Integer(None),
                Value::Number(None),
                Value::Text(None),
                Value::Text(None),
            ]
        );
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_field() {
        for (json, why) in [
            (
                r#"{"e":[],"a":1}"#,
                "field \"a\" is 1, and its column takes true or false",
            ),
            (r#"{"e":[],"b":1.5}"#, "takes integers of 64 bits"),
            (r#"{"e":[],"c":"x"}"#, "takes numbers"),
            (r#"{"e":[],"c":1e999}"#, "takes numbers"),
            (r#"{"e":[],"d":1}"#, "takes text"),
            (r#"{"e":[],"d":"\ud800"}"#, "takes text"),
            (r#"{"e":[],"d":"\u0000"}"#, "has a NUL byte"),
            ("[]", "cannot be read as a JSON object"),
        ] {
            let found = fields(json).unwrap_err();
            assert!(found.contains(why), "{json}: {found}");
        }
        assert!(row(Dialect::MySql, &[], r#"{"e":[],"d":"\u0000"}"#).is_ok());
    }

    #[test]
    fn fields_that_identify_a_row_give_the_same_key_in_each_run() {
        let key = |run, item: &str, json: &str| {
            let (kind, record) = (
                kind(Dialect::Sqlite, &["d", "b"]),
                record(item, run, 7, json),
            );
            Row::new(Dialect::Sqlite, &resource(), &kind, &record, 0).map(|row| row.key)
        };
        let first = key(1, "x", r#"{"d":"a","b":1}"#).unwrap();
        assert_eq!(key(2, "y", r#"{"b":1,"d":"\u0061","c":2}"#).unwrap(), first);
        assert_ne!(key(1, "x", r#"{"d":"a1","b":1}"#).unwrap(), first);
        let missing = key(1, "x", r#"{"d":"a","b":null}"#).unwrap_err();
        assert!(
            missing.contains("no field \"b\", which identifies its row"),
            "{missing}"
        );
    }

    #[test]
    fn each_number_of_a_key_is_one_of_its_own() {
        let key = |json: &str| {
            let kind = kind(Dialect::Sqlite, &["e"]);
            let record = record("x", 1, 7, &format!(r#"{{"e":{json}}}"#));
            Row::new(Dialect::Sqlite, &resource(), &kind, &record, 0).map(|row| row.key)
        };
        for (one, other, is_same) in [
            ("1", "1.0", true),
            ("2000", "2e3", true),
            ("1", "2", false),
            ("1", "\"1\"", false),
            ("1.5", "1.25", false),
            ("18446744073709551617", "18446744073709551618", false),
            ("-9223372036854775809", "-9223372036854775810", false),
            ("9007199254740993.0", "9007199254740992.0", false),
        ] {
            let (first, second) = (key(one).unwrap(), key(other).unwrap());
            assert_eq!(first == second, is_same, "{one} and {other}");
        }
    }

    #[test]
    fn the_key_of_fields_outlives_the_resource() {
        let key = |id: u64, name: &str| {
            let resource = Resource {
                id: ResourceId(id),
                name: name.to_owned(),
            };
            let kind = kind(Dialect::Sqlite, &["d"]);
            let record = record("x", 1, 7, r#"{"d":"a"}"#);
            Row::new(Dialect::Sqlite, &resource, &kind, &record, 0).unwrap()
        };
        let (before, after) = (key(7, "books"), key(8, "books"));
        assert_eq!(before.key, after.key);
        // The later resource has the newer version, although its runs begin anew.
        assert_eq!(before.values[2], Value::Integer(Some(7)));
        assert_eq!(after.values[2], Value::Integer(Some(8)));
        assert_ne!(key(7, "others").key, before.key);
    }

    #[test]
    fn all_versions_of_a_key_are_written() {
        let rows = [("b", 1), ("a", 1), ("b", 2), ("c", 1), ("b", 3)];
        let rows = rows.map(|(title, at)| {
            let record = record("x", 1, at, &format!(r#"{{"d":"{title}"}}"#));
            let kind = kind(Dialect::Sqlite, &["d"]);
            Row::new(Dialect::Sqlite, &resource(), &kind, &record, at as usize).unwrap()
        });
        let layers = layers(rows.into());
        let items = |layer: &Vec<Row>| layer.iter().map(|row| row.item).collect::<Vec<_>>();
        let found: Vec<Vec<usize>> = layers.iter().map(items).collect();
        assert_eq!(found, [vec![1; 3], vec![2], vec![3]]);
        for layer in &layers {
            assert!(layer.is_sorted_by(|one, other| one.key < other.key));
        }
    }

    #[test]
    fn versions_of_an_item_are_in_different_layers() {
        let told = |number: u64, key: &str, change: Change| ItemRecord {
            change: Some(Box::new(ToldChange {
                change,
                number,
                key: key.to_owned(),
                fields: Vec::new(),
                old: String::new(),
            })),
            // Without fields that identify a row, each page has rows of its own.
            ..record(&format!("page-{number}"), 1, number, r#"{"e":[]}"#)
        };
        let records = [
            told(0, "a", Change::Added),
            told(1, "b", Change::Added),
            told(2, "a", Change::Changed),
            told(3, "a", Change::Removed),
        ];
        let kind = kind(Dialect::Sqlite, &[]).with_history();
        let rows = records.iter().enumerate().map(|(place, record)| {
            Row::new(Dialect::Sqlite, &resource(), &kind, record, place).unwrap()
        });
        let layers = layers(rows.collect());
        let items = |layer: &Vec<Row>| {
            let mut items: Vec<usize> = layer.iter().map(|row| row.item).collect();
            items.sort_unstable();
            items
        };
        let found: Vec<Vec<usize>> = layers.iter().map(items).collect();
        assert_eq!(found, [vec![0, 1], vec![2], vec![3]]);
        assert!(layers[2][0].values.is_empty());
    }

    #[test]
    fn a_reject_keeps_the_item_as_it_was_written() {
        let json = r#"{"d":"\u0000"}"#;
        let name = Identifier::own("books_thing");
        let record = record("k", 1, 7, json);
        let reject = Row::reject(Dialect::Postgres, &resource(), &name, &record, "a\0b");
        let kept = [
            some("k"),
            some("books_thing"),
            some("a\u{fffd}b"),
            some(json),
        ];
        assert_eq!(reject.values[7..], kept);
        // The table of another sink in the same database has rejected it as well.
        let name = Identifier::own("all_thing");
        let other = Row::reject(Dialect::Postgres, &resource(), &name, &record, "a");
        assert_ne!(other.key, reject.key);
    }
}
