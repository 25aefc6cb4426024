//! Checks of databases before any resource uses them.

use crawler_sink::CheckSink as _;

use super::server::{Engine, Server};

#[tokio::test]
async fn a_check_makes_no_table() {
    for server in Server::all().await {
        let checked = server.sinks().check().await;
        let checked = checked.unwrap_or_else(|e| panic!("{}: {e}", server.name()));
        let created = checked.would_create.join("; ");
        let tables = "a table for each kind of items, {resource}_{kind}; a table for items that do not fit, crawler_rejects";
        assert!(created.ends_with(tables), "{created}");
        if matches!(server.engine, Engine::Sqlite) {
            continue;
        }
        let name = server.text("table_name");
        let tables = server
            .ask(&format!(
                "SELECT {name} FROM information_schema.tables WHERE table_name LIKE 'crawler%'"
            ))
            .await;
        assert_eq!(tables, [""; 0], "{}", server.name());
    }
}

#[tokio::test]
async fn a_check_tells_that_a_right_is_missing() {
    for server in Server::all().await {
        for sinks in server.sinks_with_few_rights().await {
            let error = sinks.check().await.expect_err("a right is missing");
            let text = error.to_string();
            assert!(
                text.contains("refuses the user"),
                "{}: {text}",
                server.name()
            );
        }
    }
}
