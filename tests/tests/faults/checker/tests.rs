//! A good history, and for each promise a history that breaks it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::history::{Answered, Call, Change, Convergence, Crawl, Life, LogEvent, Request, Shown};

const TERMS: Terms = Terms {
    delay: Duration::from_millis(100),
    after_delete: Duration::from_secs(5),
};

fn put(revision: u64, key: &str, created: u64, value: Value) -> Change {
    Change {
        revision,
        key: key.to_owned(),
        created,
        value: Some(value),
    }
}

fn removed(revision: u64, key: &str) -> Change {
    Change {
        revision,
        key: key.to_owned(),
        created: 0,
        value: None,
    }
}

fn shard(epoch: u64, storage_epoch: u64, owner: &str) -> Value {
    json!({"epoch": epoch, "storage_epoch": storage_epoch, "owner": {"node": owner}})
}

fn life(id: &str) -> Life {
    (id.to_owned(), 1)
}

fn opened(epoch: u64, storage_epoch: u64) -> LogEvent {
    let shard = "7/0".to_owned();
    LogEvent::Opened {
        shard,
        epoch,
        storage_epoch,
    }
}

fn durable(storage_epoch: u64, sequence: u64) -> LogEvent {
    let shard = "7/0".to_owned();
    LogEvent::Durable {
        shard,
        storage_epoch,
        sequence,
    }
}

fn wrote(term: u64, revision: u64) -> LogEvent {
    LogEvent::Wrote { term, revision }
}

fn call(at: u64, what: Answered) -> Call {
    Call {
        name: "a".to_owned(),
        begun: Duration::from_secs(at),
        ended: Duration::from_secs(at),
        what,
    }
}

fn added(life: &str) -> Answered {
    let life = life.to_owned();
    Answered::Added { life }
}

fn updated(concurrency: u64, generation: u64) -> Answered {
    Answered::Updated {
        concurrency,
        generation,
    }
}

fn read(id: u64, generation: u64, concurrency: Option<u64>) -> Answered {
    let shown = Some(Shown {
        id,
        generation,
        concurrency,
    });
    Answered::Read { shown }
}

fn request(start_ms: u64) -> Request {
    Request {
        life: "a-1".to_owned(),
        start: Duration::from_millis(start_ms),
        end: Some(Duration::from_millis(start_ms + 10)),
    }
}

fn set(words: &[&str]) -> BTreeSet<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns a history with a change of leader, a move of a shard, a name that is added twice, and a crawl.
fn good() -> History {
    let start = json!({"id": "7", "params": {"start": "http://127.0.1.1:80/a-1/0"}});
    let again = json!({"id": "9", "params": {"start": "http://127.0.1.1:80/a-2/0"}});
    let item = |n: u32| format!("item {n}");
    History {
        store: vec![
            put(2, "election/1", 2, json!({})),
            put(3, "election/2", 3, json!({})),
            put(4, "resources/a", 4, start),
            put(4, "shards/7/0", 4, shard(1, 0, "worker-1")),
            put(5, "shards/7/0", 4, shard(1, 0, "worker-1")),
            removed(6, "election/1"),
            put(7, "shards/7/0", 4, shard(2, 0, "worker-2")),
            put(8, "shards/7/0", 4, shard(2, 1, "worker-2")),
            removed(9, "resources/a"),
            removed(9, "shards/7/0"),
            put(9, "deleting/7", 9, json!({})),
            put(10, "resources/a", 10, again),
        ],
        told: vec![
            (life("master-1"), wrote(2, 4)),
            (life("worker-1"), opened(1, 1)),
            (life("worker-1"), durable(1, 1)),
            (life("worker-2"), opened(2, 2)),
            (life("worker-2"), durable(2, 6)),
            // The batch was durable before, and is told late.
            (life("worker-1"), durable(1, 5)),
            (life("master-2"), wrote(3, 7)),
        ],
        calls: vec![
            call(1, added("a-1")),
            call(2, read(7, 1, None)),
            call(3, updated(5, 2)),
            call(3, read(7, 2, Some(5))),
            call(
                3,
                Answered::Items {
                    lives: set(&["a-1"]),
                },
            ),
            call(4, Answered::Deleted),
            call(5, Answered::Read { shown: None }),
            call(6, added("a-2")),
            call(6, Answered::Items { lives: set(&[]) }),
            call(7, read(9, 1, None)),
        ],
        // The fourth request is early, which is allowed for one that came with a move.
        requests: [0, 150, 300, 320, 450].map(request).to_vec(),
        crawls: vec![Crawl {
            name: "closure".to_owned(),
            pages: set(&["/", "/1"]),
            asked: set(&["/", "/1", "/trap"]),
            known_items: set(&["item 1", "item 2"]),
            items: vec![item(2), item(1)],
            n_due: 0,
            n_dead: 0,
        }],
        convergences: vec![Convergence {
            bound: Duration::from_secs(7),
            took: Ok(Duration::from_secs(3)),
        }],
    }
}

/// Checks that a good history with this change breaks one promise, and only this one.
#[track_caller]
fn finds(invariant: u8, what: &str, change: impl FnOnce(&mut History)) {
    let mut history = good();
    change(&mut history);
    let found = check(&history, TERMS);
    let shown: Vec<String> = found.iter().map(Violation::to_string).collect();
    assert!(
        matches!(&found[..], [one] if one.invariant == invariant && one.what.contains(what)),
        "{shown:?}"
    );
}

#[test]
fn a_good_history_has_nothing_wrong() {
    assert_eq!(check(&good(), TERMS), []);
}

#[test]
fn a_write_of_a_deposed_leader_is_found() {
    finds(1, "was over at 6", |history| {
        history.told.push((life("master-1"), wrote(2, 7)));
    });
}

#[test]
fn a_write_before_the_lead_is_found() {
    finds(1, "while 2 led", |history| {
        history.told.push((life("master-2"), wrote(3, 5)));
    });
}

#[test]
fn a_write_of_one_that_never_contended_is_found() {
    finds(1, "no such key", |history| {
        history.told.push((life("master-3"), wrote(1, 5)));
    });
}

#[test]
fn a_term_of_two_processes_is_found() {
    finds(1, "so did master-1", |history| {
        history.told.push((life("master-2"), wrote(2, 5)));
    });
}

#[test]
fn an_epoch_that_falls_is_found() {
    finds(2, "epoch of shards/7/0 falls from 2 to 1", |history| {
        history.store[7] = put(8, "shards/7/0", 4, shard(1, 1, "worker-2"));
    });
    finds(2, "storage_epoch of shards/7/0 falls", |history| {
        history.store[6] = put(7, "shards/7/0", 4, shard(2, 2, "worker-2"));
    });
}

#[test]
fn an_owner_that_changes_within_an_epoch_is_found() {
    finds(2, "within an epoch", |history| {
        history.store[7] = put(8, "shards/7/0", 4, shard(2, 1, "worker-3"));
    });
}

#[test]
fn a_commit_of_a_former_owner_is_found() {
    finds(2, "7 became durable under opening 1", |history| {
        history.told.push((life("worker-1"), durable(1, 7)));
    });
}

#[test]
fn an_opening_by_a_former_owner_is_found() {
    finds(2, "was opened as 3 under epoch 1", |history| {
        history.told.push((life("worker-1"), opened(1, 3)));
    });
}

#[test]
fn an_opening_that_two_have_is_found() {
    finds(2, "was opened as 2 by", |history| {
        history.told.push((life("worker-1"), opened(2, 2)));
    });
}

#[test]
fn a_lost_page_and_one_that_is_not_at_rest_are_found() {
    finds(3, "never asked for: 1", |history| {
        history.crawls[0].asked = set(&["/", "/trap"]);
    });
    finds(3, "1 URLs are due", |history| {
        history.crawls[0].n_due = 1;
    });
}

#[test]
fn a_missing_item_one_that_is_there_twice_and_one_of_no_page_are_found() {
    finds(4, "missing: 1", |history| {
        history.crawls[0].items.pop();
    });
    finds(4, "twice: 1", |history| {
        let again = history.crawls[0].items[0].clone();
        history.crawls[0].items.push(again);
    });
    finds(4, "no page has these: 1", |history| {
        history.crawls[0].items.push("item 3".to_owned());
    });
}

#[test]
fn a_rest_that_comes_late_or_never_is_found() {
    finds(5, "took 8s", |history| {
        history.convergences[0].took = Ok(Duration::from_secs(8));
    });
    finds(5, "never came", |history| {
        history.convergences[0].took = Err(vec!["7/0 has no owner".to_owned()]);
    });
}

#[test]
fn requests_that_come_early_more_often_than_the_shard_moved_are_found() {
    finds(8, "2 requests came early with 2 openings", |history| {
        history.requests.push(request(470));
    });
}

#[test]
fn an_old_id_under_a_name_is_found() {
    finds(11, "shows id 7 as a-2", |history| {
        history.calls[9].what = read(7, 1, None);
    });
    finds(11, "after its deletion", |history| {
        history.calls[6].what = read(7, 2, Some(5));
    });
    finds(11, "is not there", |history| {
        history.calls[3].what = Answered::Read { shown: None };
    });
    finds(11, "has id 7 again at revision 11", |history| {
        history
            .store
            .push(put(11, "resources/a", 10, json!({"id": "7"})));
    });
}

#[test]
fn an_update_that_is_lost_or_carried_out_twice_is_found() {
    finds(11, "shows generation 1 with concurrency None", |history| {
        history.calls[3].what = read(7, 1, None);
    });
    finds(
        11,
        "shows generation 2 with concurrency Some(4)",
        |history| {
            history.calls[3].what = read(7, 2, Some(4));
        },
    );
    finds(11, "is updated to generation 3, not 2", |history| {
        history.calls[2].what = updated(5, 3);
    });
    finds(
        11,
        "shows generation 2 with concurrency Some(5)",
        |history| {
            // The value is that of the life before.
            history.calls[9].what = read(9, 2, Some(5));
        },
    );
}

#[test]
fn items_and_requests_of_an_old_life_are_found() {
    finds(11, "shows items of [\"a-1\"]", |history| {
        history.calls[8].what = Answered::Items {
            lives: set(&["a-1"]),
        };
    });
    finds(11, "after its deletion", |history| {
        history.requests.push(request(9_500));
    });
}

#[test]
fn a_refusal_and_a_shard_that_comes_back_are_found() {
    finds(11, "was refused", |history| {
        let why = "it exists".to_owned();
        history.calls[7].what = Answered::Refused { why };
        history.calls.truncate(8);
    });
    finds(11, "is there again", |history| {
        let back = put(11, "shards/7/0", 11, shard(3, 3, "worker-1"));
        history.store.push(back);
    });
}
