//! Counts of pages by their outcomes, and of what became of root requests.

use std::sync::Arc;

use super::fencing::open;
use super::{Two, commit_of, new, parsed, ready, take};
use crate::{Commit, Ended, Frontier};
use crawler_model::crawl::{Counts, Done};
use crawler_model::resource::Redrive;

/// Takes a page, and commits how it ended, with refused links for these reasons.
async fn end(frontier: &Arc<dyn Frontier>, ended: Ended, refused: Vec<(&'static str, u64)>) {
    let claim = ready(take(frontier, 1_000, 8).await);
    let mut commit: Commit = commit_of(claim, ended);
    (commit.result.refused, commit.answered_at) = (refused, 3_000);
    frontier.commit(commit).await.unwrap();
}

fn roots(counts: &Counts) -> (u64, u64, u64) {
    (counts.root_pages, counts.roots_dead, counts.roots_other)
}

pub async fn pages_are_counted_by_outcome_and_roots_by_what_became_of_them(
    frontier: Arc<dyn Frontier>,
) {
    let seeds = (0..8).map(|n| new(&format!("http://a{n}/")));
    frontier.seed(seeds.collect()).await.unwrap();
    let dead = Ended::Dead {
        reason: "timeout".to_owned(),
    };
    end(&frontier, Ended::Done(Done::Gone), Vec::new()).await;
    end(&frontier, dead, Vec::new()).await;
    assert_eq!(roots(&frontier.counts()), (0, 1, 1));
    end(&frontier, Ended::Done(Done::Redirected), Vec::new()).await;
    assert_eq!(roots(&frontier.counts()), (0, 1, 1));
    let refused = vec![("out-of-scope", 1)];
    end(&frontier, Ended::Done(Done::Redirected), refused).await;
    assert_eq!(roots(&frontier.counts()), (0, 1, 2));
    // Its target is on one host more than there may be.
    let claim = ready(take(&frontier, 1_000, 8).await);
    let mut commit = commit_of(claim, Ended::Done(Done::Redirected));
    (commit.growth.hosts, commit.result.requests) = (1, vec![new("http://b/")]);
    assert_eq!(frontier.commit(commit).await.unwrap().n_over_hosts, 1);
    assert_eq!(roots(&frontier.counts()), (0, 1, 3));
    assert!(frontier.counts().has_no_root_page());
    end(&frontier, Ended::Done(Done::NotModified), Vec::new()).await;
    end(&frontier, Ended::Done(Done::Parsed), Vec::new()).await;
    let mut links = parsed(ready(take(&frontier, 1_000, 8).await));
    let mut link = new("http://a0/link");
    link.depth = 1;
    links.result.requests = vec![link];
    frontier.commit(links).await.unwrap();
    // Only the link is left.
    end(&frontier, Ended::Done(Done::Gone), Vec::new()).await;
    assert_eq!(frontier.statistics().lost_roots.len(), 2);
    let counts = frontier.counts();
    assert_eq!(roots(&counts), (3, 1, 3));
    let outcomes = [("gone", 2), ("not-modified", 1), ("redirected", 3)];
    let outcomes = outcomes.map(|(word, n)| (word.to_owned(), n));
    assert_eq!(counts.outcomes, outcomes.into());
    assert_eq!((counts.parsed, counts.other_done, counts.dead), (2, 6, 1));
    assert_eq!((counts.began_at, counts.ended_at), (1_000, 3_000));
}

pub async fn a_root_request_that_is_redriven_is_counted_anew([first, _]: Two) {
    let opened = open(&first).await;
    let frontier: Arc<dyn Frontier> = opened.clone();
    let seeds = vec![new("http://a/"), new("http://b/")];
    frontier.seed(seeds).await.unwrap();
    for reason in ["timeout", "resolve"] {
        let reason = reason.to_owned();
        end(&frontier, Ended::Dead { reason }, Vec::new()).await;
    }
    assert_eq!(roots(&frontier.counts()), (0, 2, 0));
    assert_eq!(frontier.statistics().dead_examples.len(), 2);
    let order = Redrive::of(Some("timeout"));
    assert_eq!(opened.redrive(&order).await.unwrap(), 1);
    let counts = frontier.counts();
    assert_eq!(roots(&counts), (0, 1, 0));
    assert_eq!(counts.dead_by_reason, [("resolve".to_owned(), 1)].into());
    let examples = frontier.statistics().dead_examples;
    assert_eq!(examples.keys().collect::<Vec<_>>(), ["resolve"]);
    end(&frontier, Ended::Done(Done::Parsed), Vec::new()).await;
    assert_eq!(roots(&frontier.counts()), (1, 1, 0));
}
