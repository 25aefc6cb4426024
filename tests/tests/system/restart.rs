//! `up` started again on the same folder: what was finished stays, what was cut off begins again.

use std::collections::BTreeSet;

use crawler_tests::PATIENCE;
use serde_json::json;

use crate::server::{Server, text};
use crate::sites::{self, Gate};

#[test]
fn plugins_resources_and_items_are_there_after_a_restart() {
    let web = sites::chain(5).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &["--limit=memory=8MiB"]);
    let before = server.finished("books");
    let (items, plugins) = (server.records("books"), server.get("/crawler/plugin").text);
    assert_eq!(items.len(), 5);

    let server = Server::start_in(server.stop(), &[]);
    assert_eq!(server.get("/crawler/plugin").text, plugins);
    assert_eq!(server.resource("books"), before);
    assert_eq!(server.records("books"), items);
    // The plugin's bytes too: what is added now runs them.
    server.add("again", &web.url("/0"), &[]);
    server.finished("again");
    assert_eq!(web.log().len(), 10);
}

#[test]
fn a_crawl_that_was_cut_off_begins_again_as_its_next_run_and_its_items_appear_once() {
    let gate = Gate::closed();
    let web = sites::gated_chain(6, 3, &gate).open();
    let server = Server::with_puppet();
    server.add("books", &web.url("/0"), &[]);
    web.wait_for("page that is held back", PATIENCE, |log| log.len() == 4);
    let before = server.resource("books");
    assert_eq!(
        (&before["phase"], &before["run"]),
        (&json!("Running"), &json!(1))
    );

    let home = server.stop();
    gate.open();
    let server = Server::start_in(home, &[]);
    let after = server.finished("books");
    assert_eq!(
        (&after["run"], &after["generation"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(after["spec"]["id"], before["spec"]["id"]);
    assert_eq!(after["counts"]["items"], 6);
    let records = server.records("books");
    let urls: BTreeSet<&str> = records.iter().map(|record| text(&record["url"])).collect();
    assert_eq!((records.len(), urls.len()), (6, 6));
    assert!(records.iter().all(|record| record["run"] == 2));
    assert_eq!(web.count("/0"), 2);
}
