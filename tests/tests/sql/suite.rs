//! Behaviour that all servers have in common.

use crawler_model::crawl::ItemRecord;
use crawler_sink::Sink as _;
use futures::future::join_all;

use super::server::{Engine, Server, all_written, item, open, wait_for, write};

const BOOK: &str = r#"{
    "required": ["title"],
    "properties": {
        "title": {"type": "string"}, "price": {"type": "number"}, "n_pages": {"type": "integer"},
        "is_new": {"type": "boolean"}, "tags": {"type": "array"}
    }
}"#;

fn book(n: u64, title: &str) -> ItemRecord {
    let title = serde_json::to_string(title).expect("a text is JSON");
    item(n, &format!(r#"{{"title":{title},"n_pages":{n}}}"#))
}

async fn titles(server: &Server) -> Vec<String> {
    server
        .ask("SELECT title FROM books_thing ORDER BY _key")
        .await
}

#[tokio::test]
async fn values_come_back_as_they_were_given() {
    for server in Server::all().await {
        let mut sink = server.sink(BOOK);
        let json = r#"{"title":"a 'b' \"c\" \\ \n ä 😀","price":0.1,"n_pages":-9223372036854775808,"is_new":true,"tags":[{"a":1},"b"],"more":null}"#;
        write(&mut sink, &[item(1, json), item(2, r#"{"title":""}"#)]).await;
        let columns = [
            "title",
            "price",
            "n_pages",
            "is_new",
            "_rest",
            "_run",
            "_url",
            "_resource",
            "_kind",
            "_item",
        ];
        let columns = columns.map(|column| server.text(column)).join(", ");
        let rows = server
            .ask(&format!("SELECT {columns} FROM books_thing ORDER BY _key"))
            .await;
        let is_new = if matches!(server.engine, Engine::Postgres(_)) {
            "true"
        } else {
            "1"
        };
        let first = rows[0].replace("\": null", "\":null");
        assert_eq!(
            first,
            format!(
                "a 'b' \"c\" \\ \n ä 😀|0.1|-9223372036854775808|{is_new}|{{\"more\":null}}|1|http://a.test/1|books|thing|key-000001"
            ),
            "{}",
            server.name()
        );
        assert!(
            rows[1].starts_with("|NULL|NULL|NULL|NULL|1|"),
            "{}: {}",
            server.name(),
            rows[1]
        );
        let tags = server
            .ask(&format!(
                "SELECT {} FROM books_thing ORDER BY _key",
                server.text("tags")
            ))
            .await;
        assert_eq!(tags[0].replace(' ', ""), r#"[{"a":1},"b"]"#);
        for column in ["_at", "_first_seen", "_last_seen"] {
            let at = server
                .ask(&format!(
                    "SELECT {} FROM books_thing ORDER BY _key",
                    server.text(column)
                ))
                .await;
            assert!(at[0].starts_with("1970-01-01"), "{}: {at:?}", server.name());
            assert!(at[0].contains("00:00:00.001"), "{}: {at:?}", server.name());
        }
    }
}

#[tokio::test]
async fn repeated_items_are_there_once() {
    for server in Server::all().await {
        let items: Vec<ItemRecord> = (1..=900).map(|n| book(n, &format!("title {n}"))).collect();
        for part in [&items[..500], &items[..], &items[300..700]] {
            // Each owner has a sink of its own.
            write(&mut server.sink(BOOK), part).await;
        }
        let expected: Vec<String> = (1..=900).map(|n| format!("title {n}")).collect();
        assert_eq!(titles(&server).await, expected, "{}", server.name());
    }
}

#[tokio::test]
async fn the_newest_version_wins_in_any_order() {
    for mut server in Server::all().await {
        server
            .settings
            .keys
            .insert("thing".to_owned(), vec!["title".to_owned()]);
        let version = |run, at, price: u32| {
            let mut record = item(at, &format!(r#"{{"title":"a","price":{price}}}"#));
            record.run.0 = run;
            record
        };
        let versions = [
            version(1, 10, 1),
            version(2, 5, 2),
            version(2, 20, 3),
            version(1, 30, 4),
        ];
        let columns = ["_run", "_item", "price"]
            .map(|column| server.text(column))
            .join(", ");
        for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1], [1, 3, 0, 2]] {
            for place in order {
                write(
                    &mut server.sink(BOOK),
                    std::slice::from_ref(&versions[place]),
                )
                .await;
            }
            let rows = server
                .ask(&format!("SELECT {columns} FROM books_thing"))
                .await;
            assert_eq!(rows.len(), 1, "{}", server.name());
            assert!(
                rows[0].starts_with("2|key-000020|3"),
                "{}: {order:?}: {rows:?}",
                server.name()
            );
            let columns = ["_first_seen", "_last_seen"]
                .map(|column| server.text(column))
                .join(", ");
            let seen = server
                .ask(&format!("SELECT {columns} FROM books_thing"))
                .await;
            let (first, last) = seen[0].split_once('|').expect("there are two");
            assert!(
                first.contains("00:00:00.005"),
                "{}: {seen:?}",
                server.name()
            );
            // PostgreSQL writes no zeros at the end.
            assert!(last.contains("00:00:00.03"), "{}: {seen:?}", server.name());
            server.run("DROP TABLE books_thing").await;
        }
    }
}

#[tokio::test]
async fn items_that_do_not_fit_are_kept_with_the_reason() {
    for server in Server::all().await {
        let mut sink = server.sink(BOOK);
        let mut items: Vec<ItemRecord> = (1..=50).map(|n| book(n, &format!("title {n}"))).collect();
        // The item of a JSON column that PostgreSQL takes for none.
        items.push(item(51, r#"{"title":"nul","tags":["\u0000"]}"#));
        items.push(item(52, r#"{"title":"a\u0000b"}"#));
        items.push(item(
            53,
            r#"{"title":"many","n_pages":12345678901234567890}"#,
        ));
        items.push(item(54, r#"{"title":7}"#));
        write(&mut sink, &items).await;
        write(&mut sink, &items[48..]).await;
        let rejects = server
            .ask("SELECT _item, _table, _json FROM crawler_rejects ORDER BY _item")
            .await;
        let expected: Vec<String> = items[50..]
            .iter()
            .filter(|record| {
                let is_nul = record.item.get().contains("u0000");
                !is_nul || matches!(server.engine, Engine::Postgres(_))
            })
            .map(|record| format!("{}|books_thing|{}", record.key.0, record.item.get()))
            .collect();
        assert_eq!(rejects, expected, "{}", server.name());
        let reasons = server.ask("SELECT _reason FROM crawler_rejects").await;
        assert!(
            reasons.iter().all(|reason| !reason.is_empty()),
            "{reasons:?}"
        );
        assert_eq!(titles(&server).await.len(), items.len() - rejects.len());
    }
}

#[tokio::test]
async fn rows_against_a_constraint_do_not_hold_up_others() {
    for server in Server::all().await {
        // SQLite adds no constraint to a table; its unit tests have a unique index.
        if matches!(server.engine, Engine::Sqlite) {
            continue;
        }
        let mut sink = server.sink(BOOK);
        write(&mut sink, &[book(0, "first")]).await;
        server
            .run("ALTER TABLE books_thing ADD CONSTRAINT good CHECK (title <> 'bad')")
            .await;
        let title = |n: u64| if n.is_multiple_of(37) { "bad" } else { "good" };
        let items: Vec<ItemRecord> = (1..=300).map(|n| book(n, title(n))).collect();
        write(&mut sink, &items).await;
        assert_eq!(titles(&server).await.len(), 301 - 8, "{}", server.name());
        let rejects = server.ask("SELECT _reason FROM crawler_rejects").await;
        assert_eq!(rejects.len(), 8);
        assert!(
            rejects[0].contains("good"),
            "{}: {rejects:?}",
            server.name()
        );
    }
}

#[tokio::test]
async fn a_unique_index_of_somebody_else_rejects_rows() {
    for server in Server::all().await {
        let mut sink = server.sink(BOOK);
        write(&mut sink, &[book(7, "taken")]).await;
        // The sink has looked at the table before.
        server
            .run("CREATE UNIQUE INDEX mine ON books_thing (n_pages)")
            .await;
        let second = item(8, r#"{"title":"second","n_pages":7}"#);
        write(&mut sink, &[book(6, "a"), second, book(9, "b")]).await;
        assert_eq!(
            titles(&server).await,
            ["a", "taken", "b"],
            "{}",
            server.name()
        );
        let rejects = server
            .ask("SELECT _item, _reason FROM crawler_rejects")
            .await;
        assert_eq!(rejects.len(), 1, "{}: {rejects:?}", server.name());
        let (key, reason) = rejects[0].split_once('|').expect("there are two");
        assert_eq!(key, "key-000008", "{}", server.name());
        let reason = reason.to_lowercase();
        assert!(reason.contains("unique"), "{}: {reason}", server.name());
    }
}

#[tokio::test]
async fn a_constraint_that_is_deferred_rejects_one_row() {
    for server in Server::all().await {
        // Unit tests have one of SQLite.
        if !matches!(server.engine, Engine::Postgres(_)) {
            continue;
        }
        let mut sink = server.sink(BOOK);
        write(&mut sink, &[book(1, "a")]).await;
        let late = "ALTER TABLE books_thing ADD CONSTRAINT late UNIQUE (n_pages) DEFERRABLE INITIALLY DEFERRED";
        server.run(late).await;
        let second = item(2, r#"{"title":"second","n_pages":1}"#);
        write(&mut sink, &[second, book(3, "c"), book(4, "d")]).await;
        assert_eq!(titles(&server).await, ["a", "c", "d"]);
        let rejects = server.ask("SELECT _item FROM crawler_rejects").await;
        assert_eq!(rejects, ["key-000002"]);
    }
}

#[tokio::test]
async fn a_commit_of_postgresql_waits_for_the_disk() {
    for server in Server::all().await {
        if !matches!(server.engine, Engine::Postgres(_)) {
            continue;
        }
        write(&mut server.sink(BOOK), &[book(1, "a")]).await;
        server
            .run(
                "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$; \
                 ALTER TABLE books_thing ADD CHECK (current_setting('synchronous_commit') = 'on') NOT VALID",
            )
            .await;
        write(&mut server.sink(BOOK), &[book(2, "b")]).await;
        assert_eq!(titles(&server).await, ["a", "b"]);
    }
}

#[tokio::test]
async fn the_key_needs_a_unique_index_of_its_own() {
    for server in Server::all().await {
        let change = match server.engine {
            // Unit tests have indices of SQLite.
            Engine::Sqlite => continue,
            Engine::Postgres(_) => {
                "ALTER TABLE books_thing DROP CONSTRAINT books_thing_pkey; \
                 CREATE UNIQUE INDEX mine ON books_thing (_key, lower(title))"
            }
            Engine::MariaDb(_) => {
                "ALTER TABLE books_thing DROP PRIMARY KEY, ADD UNIQUE INDEX mine (_key, n_pages)"
            }
        };
        write(&mut server.sink(BOOK), &[book(1, "a")]).await;
        server.run(change).await;
        let mut sink = server.sink(BOOK);
        let why = "no unique index on the key of its rows";
        let text = wait_for(&mut sink, &[book(2, "b")], why).await;
        let (_, statement) = text.split_once("run: ").expect("it names a statement");
        server.run(statement).await;
        write(&mut sink, &[book(2, "b")]).await;
        assert_eq!(titles(&server).await, ["a", "b"], "{}", server.name());
    }
}

#[tokio::test]
async fn items_without_a_required_field_are_rows() {
    for server in Server::all().await {
        let mut sink = server.sink(BOOK);
        write(&mut sink, &[book(1, "a")]).await;
        // An item of an earlier version of the plugin still waited.
        write(&mut sink, &[book(2, "b"), item(3, r#"{"n_pages":3}"#)]).await;
        assert_eq!(
            titles(&server).await,
            ["a", "b", "NULL"],
            "{}",
            server.name()
        );
        write(&mut server.sink(BOOK), &[book(4, "d")]).await;
    }
}

#[tokio::test]
async fn tables_follow_the_schema() {
    for server in Server::all().await {
        write(&mut server.sink(BOOK), &[book(1, "a")]).await;
        // A field more, one less, and one that is not required any more.
        let changed = r#"{"required":["isbn"],"properties":{"isbn":{"type":"string"},"title":{"type":"string"}}}"#;
        write(&mut server.sink(changed), &[item(2, r#"{"isbn":"i"}"#)]).await;
        let without_title = r#"{"properties":{"isbn":{"type":"string"}}}"#;
        write(
            &mut server.sink(without_title),
            &[item(3, r#"{"isbn":"j"}"#)],
        )
        .await;
        write(&mut server.sink(BOOK), &[book(4, "d")]).await;
        let rows = server
            .ask("SELECT title, isbn FROM books_thing ORDER BY _key")
            .await;
        assert_eq!(
            rows,
            ["a|NULL", "NULL|i", "NULL|j", "d|NULL"],
            "{}",
            server.name()
        );
    }
}

#[tokio::test]
async fn a_field_that_goes_leaves_a_column_that_takes_null() {
    for server in Server::all().await {
        write(&mut server.sink(BOOK), &[book(1, "a")]).await;
        let shrunk = r#"{"properties":{"price":{"type":"number"}}}"#;
        write(&mut server.sink(shrunk), &[item(2, r#"{"price":1}"#)]).await;
        assert_eq!(titles(&server).await, ["a", "NULL"], "{}", server.name());
    }
}

#[tokio::test]
async fn a_change_of_type_waits_for_the_statement_that_mends_it() {
    let changed = |kind: &str| format!(r#"{{"properties":{{"title":{{"type":"{kind}"}}}}}}"#);
    for server in Server::all().await {
        write(
            &mut server.sink(&changed("integer")),
            &[item(1, r#"{"title":1}"#)],
        )
        .await;
        for (n, kind, json) in [
            (2, "string", r#"{"title":"two"}"#),
            (3, "integer", r#"{"title":3}"#),
        ] {
            let mut sink = server.sink(&changed(kind));
            let record = item(n, json);
            let text = wait_for(&mut sink, std::slice::from_ref(&record), "another type").await;
            let (_, statement) = text.split_once("run: ").expect("it names a statement");
            if kind == "integer" {
                // The texts are no numbers.
                server.run("UPDATE books_thing SET title = NULL").await;
            }
            server.run(statement).await;
            // SQLite keeps the column under another name, which is taken the second time.
            if matches!(server.engine, Engine::Sqlite) {
                server
                    .run("ALTER TABLE books_thing DROP COLUMN title_old")
                    .await;
            }
            write(&mut sink, &[record]).await;
        }
        let rows = server
            .ask(&format!(
                "SELECT {} FROM books_thing ORDER BY _key",
                server.text("title")
            ))
            .await;
        assert_eq!(
            rows.last().map(String::as_str),
            Some("3"),
            "{}",
            server.name()
        );
    }
}

#[tokio::test]
async fn a_table_of_somebody_else_is_left_alone() {
    for server in Server::all().await {
        let table = |columns: &str| format!("CREATE TABLE books_thing ({columns})");
        if matches!(server.engine, Engine::Sqlite) {
            // There is no file before somebody writes to it.
            write(&mut server.sink(BOOK), &[book(1, "a")]).await;
            server.run("DROP TABLE books_thing").await;
        }
        server
            .run(&table("id INTEGER PRIMARY KEY, title VARCHAR(20) NOT NULL"))
            .await;
        let mut sink = server.sink(BOOK);
        wait_for(&mut sink, &[book(1, "a")], "is not one of this sink").await;
        server.run("DROP TABLE books_thing").await;
        write(&mut sink, &[book(1, "a")]).await;
        assert_eq!(titles(&server).await, ["a"], "{}", server.name());
    }
}

#[tokio::test]
async fn a_table_that_was_renamed_is_made_again() {
    for server in Server::all().await {
        write(&mut server.sink(BOOK), &[book(1, "a")]).await;
        server.run("ALTER TABLE books_thing RENAME TO mine").await;
        write(&mut server.sink(BOOK), &[book(2, "b")]).await;
        assert_eq!(titles(&server).await, ["b"], "{}", server.name());
    }
}

#[tokio::test]
async fn f34_hostile_names_are_names_like_others() {
    let long = "n".repeat(200);
    let names = [
        "select",
        "a\"b`c'd",
        "x`\"); DROP TABLE books_thing; --",
        "_key",
        "ctid",
        "A",
        "a",
        "😀 ",
        long.as_str(),
        "",
    ];
    let fields = |value: &dyn Fn(usize) -> String| {
        let fields = names.iter().enumerate();
        let fields = fields.map(|(n, name)| format!("{}:{}", serde_json::json!(name), value(n)));
        fields.collect::<Vec<_>>().join(",")
    };
    let schema = format!(
        r#"{{"properties":{{{}}}}}"#,
        fields(&|_| r#"{"type":"integer"}"#.to_owned())
    );
    let json = format!("{{{}}}", fields(&|n| n.to_string()));
    for server in Server::all().await {
        let mut sink = server.sink(&schema);
        let mut record = item(1, &json);
        // No part of a long address is left out.
        record.url = format!("https://shop.test/{}", "long/".repeat(1_000));
        write(&mut sink, std::slice::from_ref(&record)).await;
        let urls = server.ask("SELECT _url FROM books_thing").await;
        assert_eq!(urls, [record.url.as_str()], "{}", server.name());
        let all = match server.engine {
            Engine::Sqlite => "SELECT name FROM pragma_table_info('books_thing')",
            Engine::Postgres(_) => {
                "SELECT column_name::text FROM information_schema.columns WHERE table_name = 'books_thing' ORDER BY ordinal_position"
            }
            Engine::MariaDb(_) => {
                "SELECT CAST(column_name AS CHAR) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'books_thing' ORDER BY ordinal_position"
            }
        };
        let own = [
            "_key",
            "_resource",
            "_resource_id",
            "_kind",
            "_url",
            "_run",
            "_at",
            "_item",
            "_first_seen",
            "_last_seen",
            "_rest",
        ];
        let columns = server.ask(all).await.into_iter();
        let columns: Vec<String> = columns
            .filter(|name| !own.contains(&name.as_str()))
            .collect();
        assert_eq!(columns.len(), names.len(), "{}: {columns:?}", server.name());
        let values = columns
            .iter()
            .map(|name| server.text(name))
            .collect::<Vec<_>>()
            .join(", ");
        let values = server
            .ask(&format!("SELECT {values} FROM books_thing"))
            .await;
        let mut values: Vec<usize> = values[0]
            .split('|')
            .map(|n| n.parse().expect("it is a number"))
            .collect();
        values.sort_unstable();
        assert_eq!(
            values,
            (0..names.len()).collect::<Vec<_>>(),
            "{}",
            server.name()
        );
        // A kind with a name that is a keyword and more, which the plugin does not declare.
        record.schema = "order\"`; DROP TABLE books_thing; --".to_owned();
        write(&mut sink, &[record]).await;
        let tables = match server.engine {
            Engine::Sqlite => {
                "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'books_order%'"
            }
            Engine::Postgres(_) => {
                "SELECT table_name::text FROM information_schema.tables WHERE table_name LIKE 'books_order%'"
            }
            Engine::MariaDb(_) => {
                "SELECT CAST(table_name AS CHAR) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE 'books_order%'"
            }
        };
        let tables = server.ask(tables).await;
        assert_eq!(tables.len(), 1, "{}: {tables:?}", server.name());
        let rest = server
            .ask(&format!("SELECT _kind FROM {}", tables[0]))
            .await;
        assert_eq!(
            rest,
            ["order\"`; DROP TABLE books_thing; --"],
            "{}",
            server.name()
        );
    }
}

#[tokio::test]
async fn f32_resources_and_kinds_may_share_a_table() {
    for mut server in Server::all().await {
        server.settings.table = "all_items".parse().expect("it is a template");
        let mut sink = server.sink(BOOK);
        let mut other = book(2, "b");
        other.schema = "other".to_owned();
        write(&mut sink, &[book(1, "a"), other]).await;
        let rows = server
            .ask("SELECT _kind, title FROM all_items ORDER BY _key")
            .await;
        assert_eq!(rows, ["thing|a", "other|NULL"], "{}", server.name());
        let sink = &mut server.sink(r#"{"properties":{"title":{"type":"boolean"}}}"#);
        wait_for(
            sink,
            &[item(3, r#"{"title":true}"#)],
            "column title of table all_items",
        )
        .await;
    }
}

#[tokio::test]
async fn an_item_of_4_mib_is_stored() {
    for server in Server::all().await {
        let text = "x".repeat(4 << 20);
        write(
            &mut server.sink(BOOK),
            &[book(1, "a"), book(2, &text), book(3, "c")],
        )
        .await;
        let found = titles(&server).await;
        let lengths: Vec<usize> = found.iter().map(String::len).collect();
        assert_eq!(lengths, [1, text.len(), 1], "{}", server.name());
    }
}

#[tokio::test]
async fn writers_of_the_same_rows_do_not_stop_each_other() {
    for mut server in Server::all().await {
        server
            .settings
            .keys
            .insert("thing".to_owned(), vec!["title".to_owned()]);
        let sinks = server.sinks();
        // The first of them makes the table, and the others come at the same time.
        let writers = (0..6_u64).map(|writer| {
            let mut sink = open(&sinks, BOOK);
            async move {
                for round in 0..10 {
                    // Each takes the rows in another order.
                    let rows = (0..40_u64).map(|n| (n * 7 + writer * 13) % 40);
                    let items: Vec<ItemRecord> = rows
                        .map(|row| {
                            let json = format!(r#"{{"title":"row {row}","n_pages":{row}}}"#);
                            item(1 + round * 6 + writer, &json)
                        })
                        .collect();
                    all_written(sink.write(0, &items).await, items.len());
                }
            }
        });
        join_all(writers).await;
        let columns = [server.text("n_pages"), server.text("_item")].join(", ");
        let rows = server
            .ask(&format!("SELECT {columns} FROM books_thing ORDER BY title"))
            .await;
        assert_eq!(rows.len(), 40, "{}", server.name());
        assert!(
            rows.iter().all(|row| row.ends_with("|key-000060")),
            "{}: {rows:?}",
            server.name()
        );
    }
}
