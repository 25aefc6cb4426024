//! Tests of the statements, as texts.

use super::*;
use crate::columns::Kind;
use crate::columns::tests::schema;
use crate::history::Version;
use crate::rows::tests::{record, resource};
use crawler_model::changes::{Change, ToldChange};

const ALL: [Dialect; 3] = [Dialect::Sqlite, Dialect::Postgres, Dialect::MySql];

fn table(dialect: Dialect, json_schema: &str) -> Table {
    let template = "{resource}_{kind}".parse().unwrap();
    let schema = schema(json_schema);
    Kind::new(dialect, &template, "books", "book", Some(&schema), vec![]).table
}

#[test]
fn quotes_within_names_are_doubled() {
    let name = "a\"b`c";
    assert_eq!(Dialect::Sqlite.quote(name), "\"a\"\"b`c\"");
    assert_eq!(Dialect::Postgres.quote(name), "\"a\"\"b`c\"");
    assert_eq!(Dialect::MySql.quote(name), "`a\"b``c`");
    for dialect in ALL {
        let hostile = dialect.quote("x\"`; DROP TABLE y; --");
        let mark = &hostile[..1];
        let inside = &hostile[1..hostile.len() - 1];
        assert!(hostile.ends_with(mark));
        assert!(
            !inside.replace(&mark.repeat(2), "").contains(mark),
            "{hostile}"
        );
    }
}

#[test]
fn times_are_texts_that_the_server_takes() {
    let at = 1_795_881_600_123;
    assert_eq!(Dialect::Sqlite.time(at), "2026-11-28T16:00:00.123Z");
    assert_eq!(Dialect::Postgres.time(at), "2026-11-28T16:00:00.123Z");
    assert_eq!(Dialect::MySql.time(at), "2026-11-28 16:00:00.123");
    assert_eq!(Dialect::MySql.time(u64::MAX), "9999-12-31 23:59:59.999");
}

#[test]
fn a_statement_has_a_parameter_for_each_value() {
    let properties = r#"{"properties":{"tags":{"type":"array"},"title":{"type":"string"}}}"#;
    for dialect in ALL {
        let table = table(dialect, properties);
        let sql = dialect.insert(&table, &[], 3);
        let n = 3 * table.columns.len();
        match dialect {
            Dialect::Postgres => {
                assert!(sql.contains(&format!("${n})")), "{sql}");
                assert!(!sql.contains(&format!("${}", n + 1)), "{sql}");
                assert!(sql.contains("AS jsonb)"), "{sql}");
            }
            Dialect::Sqlite | Dialect::MySql => assert_eq!(sql.matches('?').count(), n, "{sql}"),
        }
    }
}

#[test]
fn the_end_of_versions_has_a_parameter_for_each_value() {
    for dialect in ALL {
        let template = "{kind}".parse().unwrap();
        let kind = Kind::new(dialect, &template, "books", "thing", None, vec![]);
        let history = kind.with_history().history.unwrap();
        let end = |number: u64| {
            let told = ToldChange {
                change: Change::Removed,
                number,
                key: format!("isbn-{number}"),
                fields: Vec::new(),
                old: String::new(),
            };
            Version::end(dialect, &resource(), &record("k", 1, 7, "{}"), &told)
        };
        let versions = [1, 2, 3].map(end);
        let (sql, values) = dialect.end_versions(&history, &versions.each_ref());
        assert_eq!(values.len(), 15);
        match dialect {
            Dialect::Postgres => {
                assert!(sql.ends_with("IN ($13, $14, $15)"), "{sql}");
                assert!(
                    sql.contains("WHEN $1 THEN CAST($2 AS timestamptz)"),
                    "{sql}"
                );
            }
            Dialect::Sqlite | Dialect::MySql => assert_eq!(sql.matches('?').count(), 15, "{sql}"),
        }
        assert_eq!(
            values[12..],
            [&versions[0].key, &versions[1].key, &versions[2].key]
        );
        // Versions are told apart by their numbers, and found by their items.
        let statements = dialect.create(&history, &[]).join("; ");
        let key = format!("PRIMARY KEY ({})", dialect.quote("_version"));
        assert!(statements.contains(&key), "{statements}");
        assert!(!statements.contains("(255)"), "{statements}");
    }
}

#[test]
fn the_version_of_a_row_is_assigned_last() {
    let table = table(Dialect::MySql, r#"{"properties":{"zz":{"type":"string"}}}"#);
    let sql = Dialect::MySql.insert(&table, &[], 1);
    let place = |name: &str| sql.rfind(&format!("`{name}` = CASE")).unwrap();
    assert!(place("zz") < place("_item"));
    assert!(place("_item") < place("_at"));
    assert!(place("_at") < place("_run"));
    assert!(place("_run") < place("_resource_id"));
}

/// Assignment that fails for a row with another key, which MySQL has found by a unique index of somebody else.
const GUARD: &str =
    "ON DUPLICATE KEY UPDATE `_key` = IF(`_key` = VALUES(`_key`), `_key`, REPEAT('x', 70000))";

#[test]
fn mysql_never_writes_to_a_row_of_another_key() {
    let sql = Dialect::MySql.insert(&table(Dialect::MySql, ""), &[], 1);
    assert!(sql.contains(GUARD), "{sql}");
}

#[test]
fn a_newer_version_empties_columns_of_earlier_fields() {
    for dialect in ALL {
        let sql = dialect.insert(&table(dialect, ""), &["a\"`b".to_owned()], 1);
        let name = dialect.quote("a\"`b");
        assert!(sql.contains(&format!("{name} = CASE WHEN")), "{sql}");
        assert!(sql.contains(" THEN NULL ELSE "), "{sql}");
        let (columns, _) = sql.split_once("VALUES").unwrap();
        assert!(!columns.contains(&name), "{sql}");
    }
}

#[test]
fn the_first_reject_of_an_item_stays() {
    for dialect in ALL {
        let table = crate::columns::rejects(
            "rejects"
                .parse::<crate::TableTemplate>()
                .unwrap()
                .name("", ""),
        );
        let sql = dialect.insert(&table, &[], 1);
        match dialect {
            Dialect::MySql => assert!(sql.ends_with(GUARD), "{sql}"),
            Dialect::Sqlite | Dialect::Postgres => assert!(sql.ends_with("DO NOTHING"), "{sql}"),
        }
    }
}

#[test]
fn tables_have_indices_on_key_and_url() {
    for (dialect, index) in [
        (Dialect::Sqlite, "ON \"books_book\" (\"_url\")"),
        (Dialect::Postgres, "ON \"books_book\" USING hash (\"_url\")"),
        (Dialect::MySql, "KEY `books_book-url` (`_url`(255))"),
    ] {
        let statements = dialect.create(&table(dialect, ""), &[]).join("; ");
        assert!(statements.contains(index), "{statements}");
        assert!(statements.contains("PRIMARY KEY ("), "{statements}");
        // The index of a table that was renamed keeps its name.
        let has_name = statements.contains("books_book-url");
        assert_eq!(has_name, dialect != Dialect::Postgres, "{statements}");
        assert!(!statements.contains("CONSTRAINT"), "{statements}");
    }
}

#[test]
fn a_server_takes_the_types_that_it_was_asked_for() {
    let types = [
        ColumnType::Boolean,
        ColumnType::Integer,
        ColumnType::Number,
        ColumnType::Text,
        ColumnType::Json,
        ColumnType::Time,
        ColumnType::Key,
    ];
    for kind in types {
        // The other servers call types by other names, which tests with real ones show.
        assert!(
            Dialect::Sqlite.accepts(kind, Dialect::Sqlite.type_name(kind)),
            "{kind:?}"
        );
    }
    for dialect in ALL {
        assert!(!dialect.accepts(ColumnType::Integer, "text"));
        assert!(!dialect.accepts(ColumnType::Text, "bigint"));
        assert!(!dialect.accepts(ColumnType::Number, "bigint"));
    }
}
