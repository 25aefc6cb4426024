//! Histories of items that two owners write at once: the versions that are valid at any moment are the items of then.

use std::collections::BTreeMap;

use crawler_model::changes::{Change, ToldChange};
use crawler_model::crawl::ItemRecord;
use crawler_model::id::Run;
use crawler_tests::random::Random;

use super::server::{Engine, Server, item, write};

const BOOK: &str = r#"{
    "required": ["title"],
    "properties": {"title": {"type": "string"}, "price": {"type": "integer"}}
}"#;
/// Number of books, of which some are in the shop.
const N_BOOKS: u64 = 40;
const N_RUNS: u64 = 5;
/// Largest number of items of a write.
const BATCH: usize = 16;

/// Prices by keys.
type Shop = BTreeMap<String, u64>;

/// Changes the shop, and returns what a run tells of it. The run has the moments from `1000 * run` on.
fn edited(shop: &mut Shop, run: u64, random: &mut Random) -> Vec<ItemRecord> {
    let mut changes = Vec::new();
    let mut removed = Vec::new();
    for book in 0..N_BOOKS {
        let key = format!("book-{book:02}");
        let price = random.below(1_000);
        match (shop.get(&key).copied(), random.below(4)) {
            (None, 0 | 1) => {
                shop.insert(key.clone(), price);
                changes.push((Change::Added, key, price));
            }
            (Some(before), 0 | 1) if before != price => {
                shop.insert(key.clone(), price);
                changes.push((Change::Changed, key, price));
            }
            (Some(before), 2) => {
                shop.remove(&key);
                removed.push((Change::Removed, key, before));
            }
            _ => {}
        }
    }
    changes.append(&mut removed);
    let told = (0..).zip(changes).map(|(number, (change, key, price))| {
        let at = 1_000 * run + number;
        let json = format!(r#"{{"title":"{key}","price":{price}}}"#);
        ItemRecord {
            run: Run(run),
            change: Some(Box::new(ToldChange {
                change,
                number,
                key,
                fields: Vec::new(),
                old: String::new(),
            })),
            ..item(at, &json)
        }
    });
    told.collect()
}

/// Returns the end of a run as the text of a moment.
fn end_of(server: &Server, run: u64) -> String {
    match server.engine {
        Engine::Sqlite | Engine::Postgres(_) => format!("1970-01-01T00:00:0{run}.999Z"),
        Engine::MariaDb(_) => format!("1970-01-01 00:00:0{run}.999"),
    }
}

#[tokio::test]
async fn versions_are_those_of_one_owner_although_two_write() {
    let mut random = Random::new("history");
    for mut server in Server::all().await {
        server.settings.history = true;
        let (mut shop, mut shops) = (Shop::new(), Vec::new());
        for run in 1..=N_RUNS {
            let items = edited(&mut shop, run, &mut random);
            shops.push((run, shop.clone()));
            let mut start = 0;
            while start < items.len() {
                let end = items
                    .len()
                    .min(start + 1 + random.below(BATCH as u64) as usize);
                let further = items.len().min(end + random.below(BATCH as u64) as usize);
                // The earlier owner is at an earlier place, and does not know that it is one.
                let (mut earlier, mut later) = (server.sink(BOOK), server.sink(BOOK));
                tokio::join!(
                    write(&mut earlier, &items[start..end]),
                    write(&mut later, &items[start..further]),
                );
                start = end;
            }
        }
        for (run, shop) in shops {
            let at = end_of(&server, run);
            let (key, price) = (server.text("_natural_key"), server.text("price"));
            let valid = server
                .ask(&format!(
                    "SELECT {key}, {price} FROM books_thing_history WHERE _valid_from <= '{at}' AND (_valid_to IS NULL OR _valid_to > '{at}') ORDER BY _version"
                ))
                .await;
            let mut valid: Vec<String> = valid;
            valid.sort();
            let expected: Vec<String> = shop
                .iter()
                .map(|(key, price)| format!("{key}|{price}"))
                .collect();
            assert_eq!(valid, expected, "{} at the end of run {run}", server.name());
        }
    }
}

#[tokio::test]
async fn a_column_of_the_history_follows_the_schema() {
    for mut server in Server::all().await {
        server.settings.history = true;
        let mut shop = Shop::new();
        let mut random = Random::new("schema of a history");
        let items = edited(&mut shop, 1, &mut random);
        write(&mut server.sink(r#"{"properties":{}}"#), &items).await;
        let items = edited(&mut shop, 2, &mut random);
        write(&mut server.sink(BOOK), &items).await;
        let with_price = "SELECT CAST(COUNT(*) AS CHAR(9)) FROM books_thing_history WHERE _run = 2 AND price IS NOT NULL";
        let n_told = items.iter().filter(|item| !item.is_removal()).count();
        let found = server.ask(with_price).await;
        assert_eq!(found[0].trim(), n_told.to_string(), "{}", server.name());
    }
}
