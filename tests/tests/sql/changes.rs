//! Changes of items in tables: each is a row, whoever tells it and however often.

use crawler_model::changes::{Change, ToldChange};
use crawler_model::crawl::ItemRecord;
use crawler_model::id::ResourceId;
use crawler_model::plugin::Schema;
use crawler_model::resource::ShardId;
use crawler_sink::feed::Feed;
use crawler_sql_sink::SqlSettings;

use super::server::{Server, all_written, item, open};

fn told(number: u64, change: Change, key: &str, fields: &[&str], old: &str) -> ItemRecord {
    ItemRecord {
        change: Some(Box::new(ToldChange {
            change,
            number,
            key: key.to_owned(),
            fields: fields.iter().map(ToString::to_string).collect(),
            old: old.to_owned(),
        })),
        ..item(number, &format!(r#"{{"n":{number}}}"#))
    }
}

#[tokio::test]
async fn each_change_is_a_row() {
    let schemas = Feed::Changes.schemas(&[Schema {
        name: "thing".to_owned(),
        json_schema: r#"{"properties":{"n":{"type":"integer"}}}"#.to_owned(),
    }]);
    let items = [
        told(0, Change::Added, "a", &[], ""),
        // It is as it was.
        item(9, r#"{"n":9}"#),
        told(1, Change::Changed, "b 'c\"", &["n", "m"], r#"{"n":7}"#),
        told(2, Change::Removed, "d", &[], ""),
    ];
    let expected = [
        r#"added|0|a|[]|NULL|{"n":0}"#,
        r#"changed|1|b 'c"|["n","m"]|{"n":7}|{"n":1}"#,
        r#"removed|2|d|[]|{"n":2}|NULL"#,
    ];
    for mut server in Server::all().await {
        server.settings.table = SqlSettings::change_table();
        for part in [0..3, 1..4, 0..4] {
            // Each owner has a sink of its own.
            let sink = open(&server.sinks(), &schemas[0].json_schema);
            let shard = ShardId::only(ResourceId(7));
            let mut sink = Feed::Changes.apply(shard, Box::new(sink));
            let part = &items[part];
            all_written(sink.write(0, part).await, part.len());
        }
        let columns = ["change", "number", "key", "fields", "old", "item"];
        let columns = columns.map(|column| server.text(column)).join(", ");
        let number = server.quote("number");
        let sql = format!("SELECT {columns} FROM books_thing_changes ORDER BY _run, {number}");
        let rows = server.ask(&sql).await;
        let rows = rows.into_iter().map(|row| row.replace("\": ", "\":"));
        let rows: Vec<String> = rows.map(|row| row.replace("\", ", "\",")).collect();
        assert_eq!(rows, expected, "{}", server.name());
    }
}
