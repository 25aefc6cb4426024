//! Lines of the log: changed by their numbers, and there for the next opening.

use std::sync::Arc;

use super::Two;
use super::fencing::{open, open_run};
use crate::Frontier;
use crawler_model::id::{Run, Shard};
use crawler_model::status::LogLine;

pub fn line(number: u64, message: &str) -> Arc<LogLine> {
    Arc::new(LogLine {
        at: 1_000 + number,
        level: "warn",
        url: "http://a/".to_owned(),
        rule: "page".to_owned(),
        message: message.to_owned(),
        run: Run(1),
        shard: Shard(0),
        number,
        more: 3,
    })
}

pub async fn lines_of_the_log_are_stored_by_their_numbers(frontier: Arc<dyn Frontier>) {
    let stored = async || frontier.stored_lines().await.unwrap();
    assert_eq!(stored().await, []);
    for n in 1..=3 {
        frontier.store_line(line(n, "first"));
    }
    frontier.remove_line(2);
    frontier.remove_line(7);
    frontier.store_line(line(3, "changed"));
    assert_eq!(stored().await, [line(1, "first"), line(3, "changed")]);
    frontier.settle().await.unwrap();
    frontier.remove_line(1);
    frontier.store_line(line(4, "last"));
    assert_eq!(stored().await, [line(3, "changed"), line(4, "last")]);
}

pub async fn the_log_survives_its_opening_and_its_run([first, second]: Two) {
    let opened = open(&first).await;
    for n in 1..=4 {
        opened.store_line(line(n, "first"));
    }
    opened.settle().await.unwrap();
    opened.remove_line(2);
    opened.store_line(line(3, "changed"));
    opened.close().await.unwrap();
    let expected = vec![line(1, "first"), line(3, "changed"), line(4, "first")];
    let again = open(&second).await;
    assert_eq!(again.stored_lines().await.unwrap(), expected);
    again.remove_line(3);
    again.close().await.unwrap();
    let next = open_run(&first, Run(2)).await;
    let expected = vec![line(1, "first"), line(4, "first")];
    assert_eq!(next.stored_lines().await.unwrap(), expected);
}
