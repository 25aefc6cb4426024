//! Suite for limits on what links add to a frontier: by pattern, and by host.

use std::sync::Arc;

use super::{new, parsed, ready, take};
use crate::Frontier;
use crawler_model::scope::{HOSTS, PATTERN_URLS};

pub async fn f25_links_of_one_pattern_are_stored_up_to_their_bound(frontier: Arc<dyn Frontier>) {
    let all = |urls: &[&str]| urls.iter().map(|url| new(url)).collect::<Vec<_>>();
    let roots = all(&["http://a/", "http://a/1", "http://a/2"]);
    frontier.seed(roots).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 9).await));
    commit.growth.pattern_urls = 2;
    commit.result.requests = all(&["http://a/2", "http://a/3", "http://a/4", "http://a/5"]);
    commit
        .result
        .requests
        .extend(all(&["http://a/name", "http://b/3"]));
    let committed = frontier.commit(commit).await.unwrap();
    assert_eq!((committed.n_new, committed.n_over_pattern), (4, 1));
    assert!(!frontier.knows(&new("http://a/5").request).await.unwrap());
    let mut commit = parsed(ready(take(&frontier, 0, 9).await));
    commit.growth.pattern_urls = 3;
    commit.result.requests = all(&["http://a/3", "http://a/5", "http://a/6"]);
    let committed = frontier.commit(commit).await.unwrap();
    assert_eq!((committed.n_new, committed.n_over_pattern), (1, 1));
    let counts = frontier.counts();
    assert_eq!(counts.refused_links[PATTERN_URLS], 2);
    assert_eq!(counts.due, 6);
}

pub async fn links_to_new_hosts_end_at_their_bound(frontier: Arc<dyn Frontier>) {
    let all = |urls: &[&str]| urls.iter().map(|url| new(url)).collect::<Vec<_>>();
    // Root requests count, and are not refused.
    frontier
        .seed(all(&["http://a/", "http://b/"]))
        .await
        .unwrap();
    assert_eq!(frontier.counts().hosts, 2);
    let mut commit = parsed(ready(take(&frontier, 0, 9).await));
    commit.growth.hosts = 3;
    commit.result.requests = all(&["http://c/", "http://c/1", "http://a/1", "http://b:8080/"]);
    let committed = frontier.commit(commit).await.unwrap();
    // The page's links are processed in any order: one of the two hosts is refused with all its links.
    assert_eq!(committed.n_over_hosts + committed.n_new, 4);
    assert!((1..=2).contains(&committed.n_over_hosts), "{committed:?}");
    let counts = frontier.counts();
    assert_eq!(counts.hosts, 3);
    assert_eq!(counts.refused_links[HOSTS], committed.n_over_hosts);
    // Known hosts get further links.
    let mut commit = parsed(ready(take(&frontier, 0, 9).await));
    commit.growth.hosts = 1;
    commit.result.requests = all(&["http://a/2", "http://b/2", "http://d/"]);
    let committed = frontier.commit(commit).await.unwrap();
    assert_eq!((committed.n_new, committed.n_over_hosts), (2, 1));
    assert_eq!(frontier.counts().hosts, 3);
}
