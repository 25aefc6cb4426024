//! Growth per pattern.

use std::sync::Arc;

use super::{new, parsed, ready, take};
use crate::frontier::Frontier;
use crate::model::scope::PATTERN_URLS;

pub(crate) async fn f25_links_of_one_pattern_are_stored_up_to_their_bound(
    frontier: Arc<dyn Frontier>,
) {
    let all = |urls: &[&str]| urls.iter().map(|url| new(url)).collect::<Vec<_>>();
    let roots = all(&["http://a/", "http://a/1", "http://a/2"]);
    frontier.seed(roots).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 9).await));
    commit.max_pattern_urls = 2;
    commit.requests = all(&["http://a/2", "http://a/3", "http://a/4", "http://a/5"]);
    commit
        .requests
        .extend(all(&["http://a/name", "http://b/3"]));
    let committed = frontier.commit(commit).await.unwrap();
    assert_eq!((committed.n_new, committed.n_over_pattern), (4, 1));
    assert!(!frontier.knows(&new("http://a/5").request).await.unwrap());
    let mut commit = parsed(ready(take(&frontier, 0, 9).await));
    commit.max_pattern_urls = 3;
    commit.requests = all(&["http://a/3", "http://a/5", "http://a/6"]);
    let committed = frontier.commit(commit).await.unwrap();
    assert_eq!((committed.n_new, committed.n_over_pattern), (1, 1));
    let counts = frontier.counts();
    assert_eq!(counts.refused_links[PATTERN_URLS], 2);
    assert_eq!(counts.due, 6);
}
