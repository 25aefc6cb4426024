//! Random schemas and items, which change as crawls and plugins do: the tables have the newest version of each row.

use std::collections::BTreeMap;

use crawler_model::crawl::ItemRecord;
use crawler_tests::random::Random;
use crawler_tests::soak;
use serde_json::{Value, json};

use super::server::{Engine, Server, item, write};

/// Names of fields, each with its type in JSON Schema: a type that changes is another test.
const FIELDS: [(&str, &str); 8] = [
    ("a", "string"),
    ("b c", "integer"),
    ("d\"e", "number"),
    ("f`g", "boolean"),
    ("select", "array"),
    ("größe", "object"),
    ("it's", "string"),
    ("%s ?", "integer"),
];

/// Returns a schema with some of the fields, some of which are required.
fn schema(random: &mut Random) -> (String, Vec<usize>) {
    let fields: Vec<usize> = (0..FIELDS.len()).filter(|_| random.below(3) > 0).collect();
    let properties = fields.iter().map(|n| {
        let (name, kind) = FIELDS[*n];
        (name.to_owned(), json!({ "type": kind }))
    });
    let properties: serde_json::Map<String, Value> = properties.collect();
    let required: Vec<&str> = fields
        .iter()
        .filter(|_| random.below(2) == 0)
        .map(|n| FIELDS[*n].0)
        .collect();
    let text = json!({ "properties": properties, "required": required }).to_string();
    (text, fields)
}

fn value(random: &mut Random, kind: &str) -> Value {
    let text = [
        "",
        "ä 😀",
        "'; DROP TABLE books_thing; --",
        "a\\b\"c\n",
        "NULL",
        "12",
    ];
    let text = text[random.below(6) as usize];
    match kind {
        "string" => json!(text),
        "integer" => json!(random.below(u64::MAX) as i64),
        "number" => json!(random.below(1_000_000) as f64 / 64.0),
        "boolean" => json!(random.below(2) == 0),
        "array" => json!([text, random.below(100), null]),
        _ => json!({ "k": text, "n": random.below(100) }),
    }
}

/// Returns what a cell has, as the value that was written.
fn read(cell: &str, kind: &str) -> Value {
    match (cell, kind) {
        ("NULL", "integer" | "number" | "boolean" | "array" | "object") => Value::Null,
        (text, "string") => json!(text),
        ("1" | "true", "boolean") => json!(true),
        ("0" | "false", "boolean") => json!(false),
        (number, "number") => json!(number.parse::<f64>().expect("it is a number")),
        (other, _) => serde_json::from_str(other).unwrap_or_else(|e| panic!("{other}: {e}")),
    }
}

#[tokio::test]
async fn tables_have_the_newest_version_of_each_row() {
    let mut random = Random::new("sql");
    let n_rounds = if soak() { 200 } else { 12 };
    for server in Server::all().await {
        // Newest version of each row, and when it was fetched.
        let mut rows: BTreeMap<String, (u64, BTreeMap<usize, Value>)> = BTreeMap::new();
        let mut known: Vec<usize> = Vec::new();
        for _ in 0..n_rounds {
            let (text, fields) = schema(&mut random);
            let mut items: Vec<ItemRecord> = Vec::new();
            for _ in 0..random.below(300) {
                let (key, at) = (random.below(200), 1 + random.below(1 << 40));
                let values: BTreeMap<usize, Value> = fields
                    .iter()
                    .map(|n| (*n, value(&mut random, FIELDS[*n].1)))
                    .collect();
                let object = values
                    .iter()
                    .map(|(n, value)| (FIELDS[*n].0.to_owned(), value.clone()));
                let object: serde_json::Map<String, Value> = object.collect();
                let mut record = item(key, &Value::Object(object).to_string());
                record.fetched_at = at;
                let (newest, row) = rows.entry(record.key.0.clone()).or_default();
                if at > *newest {
                    *newest = at;
                    // Columns that the schema has lost are empty in the newer version.
                    *row = values;
                }
                items.push(record);
            }
            // Items make the columns.
            for n in fields {
                if !items.is_empty() && !known.contains(&n) {
                    known.push(n);
                }
            }
            let mut sink = server.sink(&text);
            write(&mut sink, &items).await;
            // A part of them comes again, from an owner that did not know.
            let start = random.below(items.len() as u64 + 1) as usize;
            write(&mut server.sink(&text), &items[start..]).await;
        }
        check(&server, &rows, &known).await;
    }
}

async fn check(
    server: &Server,
    rows: &BTreeMap<String, (u64, BTreeMap<usize, Value>)>,
    known: &[usize],
) {
    let keys = server
        .ask("SELECT _key FROM books_thing ORDER BY _key")
        .await;
    assert_eq!(
        keys,
        rows.keys().cloned().collect::<Vec<_>>(),
        "{}",
        server.name()
    );
    for n in known {
        let (name, kind) = FIELDS[*n];
        let column = server.text(name);
        // PostgreSQL has a type of its own for JSON, which keeps no white space.
        let found = server
            .ask(&format!("SELECT {column} FROM books_thing ORDER BY _key"))
            .await;
        let missing = format!(
            "SELECT _key FROM books_thing WHERE {} IS NULL",
            server.quote(name)
        );
        let missing = server.ask(&missing).await;
        for ((key, (_, row)), cell) in rows.iter().zip(found) {
            let place = format!("{}: {name} of {key}", server.name());
            assert_eq!(missing.contains(key), !row.contains_key(n), "{place}");
            if let Some(expected) = row.get(n) {
                assert_eq!(&read(&cell, kind), expected, "{place}");
            }
        }
    }
    if matches!(server.engine, Engine::Sqlite) {
        assert_eq!(server.ask("PRAGMA integrity_check").await, ["ok"]);
    }
}
