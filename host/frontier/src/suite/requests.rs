//! Suite for what a frontier keeps with a request beside its address.

use std::sync::Arc;

use super::links::{ALL, bounds};
use super::{new, parsed, ready, retry, take};
use crate::{Frontier, LinkBatch, NewRequest, Take};
use crawler_model::id::Shard;

/// Returns a link of a page whose request accepts more than success.
pub fn linked(url: &str, referrer: &str) -> NewRequest {
    let mut link = new(url);
    link.request.referrer = Some(referrer.into());
    link.request.accept_status = "any,301".parse().expect("good statuses");
    link.request.keep_body = true;
    link
}

pub async fn a_request_keeps_its_first_referrer_and_its_statuses(frontier: Arc<dyn Frontier>) {
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    assert_eq!(commit.claim.request, new("http://a/").request);
    let first = linked("http://a/x", "http://a/first");
    let second = linked("http://a/x", "http://a/second");
    commit.result.requests = vec![first.clone(), second];
    frontier.commit(commit).await.unwrap();
    let claim = ready(take(&frontier, 0, 1).await);
    assert_eq!(claim.request, first.request);
    // A failed attempt is followed by one for the same request.
    let mut commit = parsed(claim);
    commit.result.ended = retry(0);
    frontier.commit(commit).await.unwrap();
    let claim = ready(take(&frontier, 0, 1).await);
    assert_eq!((claim.attempt, claim.request), (2, first.request));
}

pub async fn links_between_shards_keep_their_referrers_and_statuses(frontier: Arc<dyn Frontier>) {
    let away = linked("http://b/x", "http://a/");
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let mut commit = parsed(ready(take(&frontier, 0, 1).await));
    commit.result.for_peers = vec![(Shard(1), away.clone())];
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
    let sent = frontier.links_for(Shard(1), bounds(9)).await.unwrap();
    assert_eq!(sent.links, [away]);
    frontier.delivered(Shard(1), sent.end()).await.unwrap();
    let here = linked("http://c/x", "http://b/");
    let came = LinkBatch {
        first: 1,
        links: vec![here.clone()],
    };
    frontier.apply(Shard(1), came, ALL).await.unwrap();
    assert_eq!(ready(take(&frontier, 0, 1).await).request, here.request);
    assert_eq!(take(&frontier, 0, 1).await, Take::Blocked);
}
