//! Trouble that servers make for those who write: they are away, are killed, take no writes, have a full disk, and keep locks.

use std::time::{Duration, Instant};

use crawler_model::crawl::ItemRecord;
use crawler_sink::{Sink as _, SinkError};
use crawler_tests::PATIENCE;
use crawler_tests::random::Random;

use super::server::{Engine, Server, all_written, item, wait_for, write};

const BOOK: &str = r#"{"properties":{"title":{"type":"string"}}}"#;

fn book(n: u64) -> ItemRecord {
    item(n, &format!(r#"{{"title":"title {n}"}}"#))
}

async fn titles(server: &Server) -> Vec<String> {
    server
        .ask("SELECT title FROM books_thing ORDER BY _key")
        .await
}

fn expected(n_items: u64) -> Vec<String> {
    (1..=n_items).map(|n| format!("title {n}")).collect()
}

#[tokio::test]
async fn a_server_that_is_away_at_the_start_is_waited_for() {
    for server in Server::own().await {
        server.engine.kill();
        let mut sink = server.sink(BOOK);
        wait_for(&mut sink, &[book(1)], "cannot be reached").await;
        server.engine.restart();
        write(&mut sink, &[book(1)]).await;
        assert_eq!(titles(&server).await, expected(1), "{}", server.name());
    }
}

#[tokio::test]
async fn a_restarted_server_is_not_noticed() {
    for server in Server::own().await {
        let mut sink = server.sink(BOOK);
        write(&mut sink, &[book(1)]).await;
        server.engine.kill();
        server.engine.restart();
        // The idle connection is lost, and the write is made on another one.
        write(&mut sink, &[book(2)]).await;
        assert_eq!(titles(&server).await, expected(2), "{}", server.name());
    }
}

#[tokio::test]
async fn kills_in_the_middle_of_batches_lose_and_double_nothing() {
    const N_ITEMS: u64 = 20_000;
    for mut server in Server::own().await {
        server.settings.batch_items = 200;
        let items: Vec<ItemRecord> = (1..=N_ITEMS).map(book).collect();
        let mut sink = server.sink(BOOK);
        let engine = server.engine.clone();
        let kills = std::thread::spawn(move || {
            for _ in 0..4 {
                crawler_tests::pass(Duration::from_millis(300));
                engine.kill();
                crawler_tests::pass(Duration::from_millis(100));
                engine.restart();
            }
        });
        let (mut n_written, mut n_failed) = (0, 0);
        while n_written < items.len() || !kills.is_finished() {
            if n_written == items.len() {
                // They come again while there are kills.
                n_written = 0;
            }
            let end = items.len().min(n_written + 500);
            match sink.write(n_written as u64, &items[n_written..end]).await {
                Ok(written) => n_written += written.n_items as usize,
                Err(SinkError::Retry { .. }) => {
                    n_failed += 1;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                Err(error) => panic!("{}: {error}", server.name()),
            }
        }
        kills.join().expect("the server starts again");
        assert!(n_failed > 0, "{}: nothing has happened", server.name());
        assert_eq!(
            titles(&server).await,
            expected(N_ITEMS),
            "{}",
            server.name()
        );
    }
}

#[tokio::test]
async fn a_database_without_writes_is_waited_for() {
    for server in Server::own().await {
        let mut sink = server.sink(BOOK);
        write(&mut sink, &[book(1)]).await;
        let (close, opens) = match server.engine {
            Engine::MariaDb(_) => (
                "SET GLOBAL read_only = ON",
                ["SET GLOBAL read_only = OFF"; 2],
            ),
            Engine::Sqlite | Engine::Postgres(_) => (
                "ALTER ROLE postgres SET default_transaction_read_only = on",
                [
                    "SET default_transaction_read_only = off",
                    "ALTER ROLE postgres RESET default_transaction_read_only",
                ],
            ),
        };
        server.run(close).await;
        // Sessions of PostgreSQL keep what they began with.
        let mut later = server.sink(BOOK);
        wait_for(&mut later, &[book(2)], "is read-only").await;
        let mut admin = server.connect().await;
        for open in opens {
            admin.run(open).await.expect("the user may do this");
        }
        let mut later = server.sink(BOOK);
        write(&mut later, &[book(2)]).await;
        assert_eq!(titles(&server).await, expected(2), "{}", server.name());
    }
}

#[tokio::test]
async fn a_full_disk_is_waited_for() {
    /// Items of a batch.
    const N_ITEMS: u64 = 8;
    /// Bytes of a title.
    const SIZE: usize = 64 << 10;
    // Random, so that no server makes it much shorter.
    let large = |n: u64| {
        let mut random = Random::seeded(n);
        let words = (0..SIZE / 16).map(|_| format!("{:016x}", random.below(u64::MAX)));
        item(
            n,
            &format!(r#"{{"title":"{}"}}"#, words.collect::<String>()),
        )
    };
    let mut servers = Server::own().await;
    servers.push(Server::new(Engine::Sqlite).await);
    for server in servers {
        let Some(disk) = server.on_disk("16m").await else {
            return;
        };
        let mut sink = server.sink(BOOK);
        let mut n_written = 0;
        let items = loop {
            let items: Vec<_> = (n_written + 1..=n_written + N_ITEMS).map(large).collect();
            match sink.write(0, &items).await {
                Ok(written) => n_written += written.n_items,
                Err(_) => break items,
            }
            assert!(n_written < 1_000, "{} has room for all", server.name());
        };
        assert!(n_written > 0, "{}", server.name());
        wait_for(&mut sink, &items, "no room left").await;
        disk.remount("size=64m");
        write(&mut sink, &items).await;
        let whole =
            format!("SELECT _key FROM books_thing WHERE LENGTH(title) = {SIZE} ORDER BY _key");
        let expected = (1..=n_written + N_ITEMS).map(|n| format!("key-{n:06}"));
        let keys = server.ask(&whole).await;
        assert_eq!(keys, expected.collect::<Vec<_>>(), "{}", server.name());
    }
}

#[tokio::test]
async fn a_lock_of_somebody_else_is_named_and_waited_for() {
    for mut server in Server::all().await {
        server.settings.timeout = Duration::from_secs(2);
        let mut sink = server.sink(BOOK);
        write(&mut sink, &[book(1)]).await;
        let mut other = server.connect().await;
        other.run("BEGIN").await.expect("a transaction begins");
        other
            .run("UPDATE books_thing SET title = 'mine'")
            .await
            .expect("the row is there");
        wait_for(&mut sink, &[book(1)], "in time").await;
        other.run("ROLLBACK").await.expect("the transaction ends");
        write(&mut sink, &[book(1)]).await;
        assert_eq!(titles(&server).await, expected(1), "{}", server.name());
    }
}

#[tokio::test]
async fn a_deadlock_is_tried_again() {
    for server in Server::all().await {
        let waiting = match server.engine {
            // It has one writer at a time, and so no deadlocks.
            Engine::Sqlite => continue,
            Engine::Postgres(_) => {
                "SELECT pid::text FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            }
            Engine::MariaDb(_) => {
                "SELECT CAST(t.trx_id AS CHAR) FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()"
            }
        };
        let items = [book(1), book(2)];
        let mut sink = server.sink(BOOK);
        write(&mut sink, &items).await;
        let update =
            |n: u32| format!("UPDATE books_thing SET title = 'other' WHERE _key = 'key-{n:06}'");
        let mut other = server.connect().await;
        if matches!(server.engine, Engine::Postgres(_)) {
            // So the sink is the one that looks for a deadlock, and is given up.
            let patient = "SET deadlock_timeout = '1h'";
            other.run(patient).await.expect("the user may do this");
        }
        other.run("BEGIN").await.expect("a transaction begins");
        other.run(&update(2)).await.expect("the row is there");
        let writes = async { all_written(sink.write(0, &items).await, items.len()) };
        let takes_the_first = async {
            // The sink has the first row, and waits for the second one.
            let begun = Instant::now();
            while server.ask(waiting).await.is_empty() {
                assert!(begun.elapsed() < PATIENCE, "{}", server.name());
                // MariaDB answers from a copy of its transactions for as long as it is asked more often than each 100 ms.
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            // The server gives up one of the two.
            let given_up = other.run(&update(1)).await.err();
            let may_be_given_up = matches!(server.engine, Engine::MariaDb(_));
            assert!(given_up.is_none() || may_be_given_up, "{given_up:?}");
            other.run("ROLLBACK").await.expect("the transaction ends");
        };
        tokio::join!(writes, takes_the_first);
        assert_eq!(titles(&server).await, expected(2), "{}", server.name());
    }
}

#[tokio::test]
async fn an_item_larger_than_a_statement_is_named() {
    for server in Server::own().await {
        if !matches!(server.engine, Engine::MariaDb(_)) {
            continue;
        }
        server.run("SET GLOBAL max_allowed_packet = 1048576").await;
        let large = item(2, &format!(r#"{{"title":"{}"}}"#, "x".repeat(2 << 20)));
        let mut sink = server.sink(BOOK);
        write(&mut sink, &[book(1)]).await;
        wait_for(
            &mut sink,
            std::slice::from_ref(&large),
            "raise max_allowed_packet",
        )
        .await;
        server.run("SET GLOBAL max_allowed_packet = 16777216").await;
        write(&mut sink, &[large]).await;
        assert_eq!(titles(&server).await.len(), 2);
    }
}
