//! Counts of pages by their outcomes, and what becomes of them when pages are tried again.

use std::sync::Arc;

use super::fencing::open;
use super::{Two, commit_of, new, parsed, ready, take};
use crate::{Ended, Frontier};
use crawler_model::crawl::Done;
use crawler_model::resource::Redrive;

/// Takes a page, and commits how it ended.
async fn end(frontier: &Arc<dyn Frontier>, ended: Ended) {
    let claim = ready(take(frontier, 1_000, 8).await);
    let mut commit = commit_of(claim, ended);
    commit.answered_at = 3_000;
    frontier.commit(commit).await.unwrap();
}

pub async fn pages_are_counted_by_their_outcomes(frontier: Arc<dyn Frontier>) {
    let seeds = (0..5).map(|n| new(&format!("http://a{n}/")));
    frontier.seed(seeds.collect()).await.unwrap();
    let dead = Ended::Dead {
        reason: "timeout".to_owned(),
    };
    end(&frontier, Ended::Done(Done::Gone)).await;
    end(&frontier, dead).await;
    end(&frontier, Ended::Done(Done::Redirected)).await;
    assert!(frontier.counts().has_no_page());
    end(&frontier, Ended::Done(Done::NotModified)).await;
    assert!(!frontier.counts().has_no_page());
    let mut links = parsed(ready(take(&frontier, 1_000, 8).await));
    let mut link = new("http://a0/link");
    link.depth = 1;
    links.result.requests = vec![link];
    frontier.commit(links).await.unwrap();
    // Only the link is left. A page without one that is not a root request is no lost one.
    end(&frontier, Ended::Done(Done::Gone)).await;
    let lost = frontier.statistics().lost_roots;
    let lost: Vec<_> = lost.iter().map(|root| root.end.as_str()).collect();
    assert_eq!(lost, ["gone", "timeout"]);
    let counts = frontier.counts();
    let outcomes = [("gone", 2), ("not-modified", 1), ("redirected", 1)];
    let outcomes = outcomes.map(|(word, n)| (word.to_owned(), n));
    assert_eq!(counts.outcomes, outcomes.into());
    assert_eq!((counts.parsed, counts.other_done, counts.dead), (1, 4, 1));
    assert_eq!((counts.began_at, counts.ended_at), (1_000, 3_000));
}

pub async fn a_root_request_that_is_redriven_is_counted_anew([first, _]: Two) {
    let opened = open(&first).await;
    let frontier: Arc<dyn Frontier> = opened.clone();
    let seeds = vec![new("http://a/"), new("http://b/")];
    frontier.seed(seeds).await.unwrap();
    for reason in ["timeout", "resolve"] {
        let reason = reason.to_owned();
        end(&frontier, Ended::Dead { reason }).await;
    }
    assert!(frontier.counts().lost_roots().is_some());
    assert_eq!(frontier.statistics().dead_examples.len(), 2);
    let order = Redrive::of(Some("timeout"));
    assert_eq!(opened.redrive(&order).await.unwrap(), 1);
    let counts = frontier.counts();
    assert_eq!((counts.dead, counts.lost_roots()), (1, None));
    assert_eq!(counts.dead_by_reason, [("resolve".to_owned(), 1)].into());
    let examples = frontier.statistics().dead_examples;
    assert_eq!(examples.keys().collect::<Vec<_>>(), ["resolve"]);
    end(&frontier, Ended::Done(Done::Parsed)).await;
    let counts = frontier.counts();
    assert_eq!((counts.parsed, counts.lost_roots()), (1, None));
}
