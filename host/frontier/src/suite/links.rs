//! Suite for links between shards.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::sync::Arc;

use futures::future::BoxFuture;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::{new, parsed, ready, take};
use crate::{Frontier, FrontierError, LinkBatch, LinkBounds, LinkPolicy, NewRequest, Take};
use crawler_model::id::Shard;
use crawler_model::links::shard_of;
use crawler_model::resource::LinkTotals;
use crawler_model::scope::{DISK, GrowthBounds, PATTERN_URLS};

/// Policy that refuses no new link.
pub const ALL: LinkPolicy<'_> = LinkPolicy {
    growth: GrowthBounds::NONE,
    refusal: &|_| None,
};

pub fn bounds(n: usize) -> LinkBounds {
    let bytes = 1 << 20;
    LinkBounds { n, bytes }
}

pub fn reload(url: &str) -> NewRequest {
    let mut link = new(url);
    link.request.reload = true;
    link
}

fn paths(batch: &LinkBatch) -> Vec<&str> {
    let urls = batch.links.iter().map(|link| link.request.url.as_str());
    urls.map(|url| url.trim_start_matches("http://")).collect()
}

fn batch(first: u64, links: &[NewRequest]) -> LinkBatch {
    let links = links.to_vec();
    LinkBatch { first, links }
}

async fn commit_links(frontier: &Arc<dyn Frontier>, links: &[(u32, NewRequest)]) -> u64 {
    let mut commit = parsed(ready(take(frontier, 0, 9).await));
    let links = links.iter().map(|(to, link)| (Shard(*to), link.clone()));
    commit.result.for_peers = links.collect();
    let committed = frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
    assert_eq!(committed.n_new, 0);
    committed.n_sent
}

pub async fn links_of_other_shards_are_kept_once_in_order_until_they_are_there(
    frontier: Arc<dyn Frontier>,
) {
    let pages = (0..3).map(|n| new(&format!("http://a/{n}"))).collect();
    frontier.seed(pages).await.unwrap();
    assert_eq!(frontier.peers(), []);
    let twice = [1, 2, 1].map(|n| (1, new(&format!("http://b/{n}"))));
    assert_eq!(commit_links(&frontier, &twice).await, 2);
    let more = [
        (1, new("http://b/2")),
        (2, new("http://c/1")),
        (1, new("http://b/3")),
    ];
    assert_eq!(commit_links(&frontier, &more).await, 2);
    assert_eq!(frontier.peers(), [Shard(1), Shard(2)]);
    let none = frontier.links_for(Shard(7), bounds(9)).await.unwrap();
    assert_eq!(none.links, []);
    // The links stay until they are delivered.
    for _ in 0..2 {
        let found = frontier.links_for(Shard(1), bounds(2)).await.unwrap();
        assert_eq!((found.first, paths(&found)), (1, vec!["b/1", "b/2"]));
    }
    let small = LinkBounds { n: 9, bytes: 1 };
    let found = frontier.links_for(Shard(1), small).await.unwrap();
    assert_eq!(paths(&found), ["b/1"], "one at least");
    frontier.delivered(Shard(1), 3).await.unwrap();
    frontier.delivered(Shard(1), 2).await.unwrap();
    let found = frontier.links_for(Shard(1), bounds(9)).await.unwrap();
    assert_eq!(
        (found.first, found.end(), paths(&found)),
        (3, 4, vec!["b/3"])
    );
    frontier.delivered(Shard(1), 4).await.unwrap();
    frontier.delivered(Shard(2), 2).await.unwrap();
    assert_eq!(frontier.peers(), []);
    let expected = LinkTotals {
        sent: BTreeMap::from([(1, 3), (2, 1)]),
        applied: BTreeMap::new(),
    };
    assert_eq!(frontier.link_totals(), expected);
    // A link that was sent is known, and is not fetched here.
    assert!(frontier.knows(&new("http://b/1").request).await.unwrap());
    assert_eq!(ready(take(&frontier, 0, 9).await).request.url.path(), "/2");
    assert_eq!(take(&frontier, 0, 9).await, Take::Blocked);
}

pub async fn links_that_ask_for_a_reload_are_sent_each_time(frontier: Arc<dyn Frontier>) {
    let pages = (0..3).map(|n| new(&format!("http://a/{n}"))).collect();
    frontier.seed(pages).await.unwrap();
    let again = [reload("http://b/"), reload("http://b/"), new("http://b/")].map(|link| (1, link));
    for _ in 0..2 {
        assert_eq!(commit_links(&frontier, &again).await, 1);
    }
    assert_eq!(commit_links(&frontier, &again[2..]).await, 0);
    let found = frontier.links_for(Shard(1), bounds(9)).await.unwrap();
    assert!(found.links.len() == 2 && found.links.iter().all(|link| link.request.reload));
}

pub async fn a_run_is_not_over_while_links_wait_or_come(frontier: Arc<dyn Frontier>) {
    let early = frontier.apply(Shard(1), batch(1, &[new("http://a/1")]), ALL);
    let early = early.await.unwrap_err();
    assert!(matches!(early, FrontierError::Unseeded { .. }), "{early}");
    let roots = ["http://a/", "http://b/"].map(|url| url.parse().unwrap());
    let seeded = frontier.seed_shard(roots.to_vec(), vec![new("http://a/")]);
    assert_eq!(seeded.await.unwrap().n_new, 1);
    assert_eq!(frontier.roots(), Some(roots.to_vec()));
    commit_links(&frontier, &[(1, new("http://b/x"))]).await;
    assert_eq!(take(&frontier, 0, 9).await, Take::Blocked);
    frontier.delivered(Shard(1), 2).await.unwrap();
    assert_eq!(take(&frontier, 0, 9).await, Take::Empty);
    frontier.check_empty().await.unwrap();
    let link = batch(1, &[new("http://a/1")]);
    assert_eq!(frontier.apply(Shard(1), link.clone(), ALL).await, Ok(1));
    frontier.settle().await.unwrap();
    frontier
        .commit(parsed(ready(take(&frontier, 0, 9).await)))
        .await
        .unwrap();
    assert_eq!(take(&frontier, 0, 9).await, Take::Empty);
    assert_eq!(frontier.apply(Shard(1), link, ALL).await, Ok(1));
    assert_eq!(take(&frontier, 0, 9).await, Take::Empty);
}

pub async fn a_shard_without_root_requests_of_its_own_is_over_until_links_come(
    frontier: Arc<dyn Frontier>,
) {
    let roots = vec!["http://b/".parse().unwrap()];
    frontier
        .seed_shard(roots.clone(), Vec::new())
        .await
        .unwrap();
    assert_eq!(frontier.roots(), Some(roots));
    assert_eq!(take(&frontier, 0, 9).await, Take::Empty);
    let link = batch(1, &[new("http://a/1")]);
    assert_eq!(frontier.apply(Shard(1), link, ALL).await, Ok(1));
    ready(take(&frontier, 0, 9).await);
}

pub async fn links_of_another_shard_are_stored_once_as_those_of_a_page_are(
    frontier: Arc<dyn Frontier>,
) {
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    frontier
        .commit(parsed(ready(take(&frontier, 0, 9).await)))
        .await
        .unwrap();
    let mut links = [
        reload("http://a/"),
        new("http://a/1"),
        new("http://a/2"),
        new("http://a/x"),
    ];
    links[3].depth = 7;
    let one_each = LinkPolicy {
        growth: GrowthBounds {
            pattern_urls: 1,
            ..GrowthBounds::NONE
        },
        ..ALL
    };
    let apply = |from, batch| frontier.apply(Shard(from), batch, one_each);
    assert_eq!(apply(1, batch(1, &links[..2])).await, Ok(2));
    // A reload that was applied twice would be one visit more.
    let again = ready(take(&frontier, 0, 9).await);
    assert_eq!((again.request.url.path(), again.visit), ("/", 1));
    frontier.commit(parsed(again)).await.unwrap();
    // The answer was lost, and more links have come meanwhile.
    assert_eq!(apply(1, batch(1, &links)).await, Ok(4));
    assert_eq!(apply(1, batch(2, &links[1..2])).await, Ok(4));
    let gap = apply(1, batch(6, &links)).await;
    let expected = FrontierError::LinkGap {
        from: Shard(1),
        first: 6,
        expected: 5,
    };
    assert_eq!(gap, Err(expected));
    // Each shard has numbers of its own.
    assert_eq!(apply(2, batch(1, &links[1..2])).await, Ok(1));
    let applied = BTreeMap::from([(1, 4), (2, 1)]);
    assert_eq!(frontier.link_totals().applied, applied);
    let counts = frontier.counts();
    assert_eq!((counts.due, counts.refused_links[PATTERN_URLS]), (2, 1));
    let mut found = BTreeSet::new();
    while let Take::Ready(claim) = take(&frontier, 0, 9).await {
        let path = claim.request.url.path().to_owned();
        found.insert((path, claim.visit, claim.depth));
        frontier.commit(parsed(claim)).await.unwrap();
    }
    let expected = [("/1", 0, 0), ("/x", 0, 7)];
    let expected = expected.map(|(path, visit, depth)| (path.to_owned(), visit, depth));
    assert_eq!(found, BTreeSet::from(expected));
}

/// Frontiers of all shards, and a function that opens one after its process was killed.
pub struct Shards<'a> {
    pub frontiers: Vec<Arc<dyn Frontier>>,
    pub reopen: Option<&'a (dyn Fn(u32) -> BoxFuture<'a, Arc<dyn Frontier>> + Sync)>,
}

impl Shards<'_> {
    /// Kills the process of a shard now and then, if the backend allows that.
    async fn maybe_kill(&mut self, rng: &mut StdRng, shard: usize) -> bool {
        let Some(reopen) = self.reopen.filter(|_| rng.random_ratio(1, 12)) else {
            return false;
        };
        self.frontiers[shard] = reopen(shard as u32).await;
        true
    }

    /// Makes one delivery, which may end at each of its steps.
    async fn deliver(&mut self, rng: &mut StdRng, from: usize) {
        let peers = self.frontiers[from].peers();
        let Some(&peer) = peers.get(rng.random_range(0..peers.len().max(1))) else {
            return;
        };
        let to = peer.0 as usize;
        let bounds = bounds(rng.random_range(1..6));
        let sender = self.frontiers[from].clone();
        let batch = sender.links_for(peer, bounds).await.unwrap();
        if self.maybe_kill(rng, from).await || rng.random_ratio(1, 8) {
            return;
        }
        let mut applied = 0;
        for _ in 0..rng.random_range(1..3) {
            let receiver = self.frontiers[to].clone();
            let answer = receiver.apply(Shard(from as u32), batch.clone(), ALL).await;
            applied = answer.unwrap();
            // It is more if the sender was killed before it had removed the links.
            assert!(applied >= batch.end() - 1);
            if self.maybe_kill(rng, to).await {
                return;
            }
            receiver.settle().await.unwrap();
        }
        if self.maybe_kill(rng, to).await || self.maybe_kill(rng, from).await {
            return;
        }
        sender.delivered(peer, applied + 1).await.unwrap();
        self.maybe_kill(rng, from).await;
    }

    async fn is_over(&self) -> bool {
        for frontier in &self.frontiers {
            // A page taken here would be in flight for ever.
            if frontier.counts().due > 0 || take(frontier, 0, 9).await != Take::Empty {
                return false;
            }
        }
        let totals: Vec<_> = self.frontiers.iter().map(|f| f.link_totals()).collect();
        let n_links = |map: &BTreeMap<u32, u64>, peer: usize| map.get(&(peer as u32)).copied();
        for (a, one) in totals.iter().enumerate() {
            for (b, other) in totals.iter().enumerate() {
                assert_eq!(
                    n_links(&one.sent, b),
                    n_links(&other.applied, a),
                    "{a} to {b}"
                );
            }
        }
        true
    }
}

/// Returns the links of a page of a site of many hosts.
fn links_of(page: u64) -> impl Iterator<Item = u64> {
    (1..6).map(move |n| (page * 31 + n * n * 17) % 120)
}

fn url_of(page: u64) -> String {
    format!("http://{}.test/{page}", page % 9)
}

fn all_pages() -> BTreeSet<u64> {
    let (mut known, mut left) = (BTreeSet::from([0]), vec![0]);
    while let Some(page) = left.pop() {
        left.extend(links_of(page).filter(|link| known.insert(*link)));
    }
    known
}

/// Runs pages, deliveries, lost answers and kills at random, to the end.
pub async fn a_crawl_of_several_shards_gives_each_page_once(mut shards: Shards<'_>, seed: u64) {
    let n_shards = NonZeroU32::new(shards.frontiers.len() as u32).unwrap();
    let mut rng = StdRng::seed_from_u64(seed);
    let root = new(&url_of(0));
    let of = |request: &NewRequest| shard_of(&request.request.url, n_shards);
    for (n, frontier) in shards.frontiers.iter().enumerate() {
        let own = of(&root) == Shard(n as u32);
        let own = own.then(|| root.clone()).into_iter().collect();
        let roots = vec![root.request.url.clone()];
        frontier.seed_shard(roots, own).await.unwrap();
    }
    let mut found = BTreeSet::new();
    while !shards.is_over().await {
        for _ in 0..20 {
            let n = rng.random_range(0..shards.frontiers.len());
            if rng.random() {
                shards.deliver(&mut rng, n).await;
                continue;
            }
            let frontier = shards.frontiers[n].clone();
            let Take::Ready(claim) = take(&frontier, 0, 9).await else {
                continue;
            };
            let mut commit = parsed(claim);
            let page = commit.claim.request.url.path()[1..].parse().unwrap();
            found.insert(page);
            for link in links_of(page).map(|link| new(&url_of(link))) {
                match of(&link) {
                    own if own == Shard(n as u32) => commit.result.requests.push(link),
                    other => commit.result.for_peers.push((other, link)),
                }
            }
            frontier.commit(commit).await.unwrap();
            shards.maybe_kill(&mut rng, n).await;
        }
    }
    let all = all_pages();
    let n_parsed: u64 = shards.frontiers.iter().map(|f| f.counts().parsed).sum();
    assert_eq!((found, n_parsed), (all.clone(), all.len() as u64));
    for frontier in &shards.frontiers {
        frontier.check_empty().await.unwrap();
    }
}

pub async fn r14_links_that_a_policy_refuses_are_counted_and_do_not_come_again(
    frontier: Arc<dyn Frontier>,
) {
    frontier.seed(vec![new("http://a/")]).await.unwrap();
    let links = [new("http://b/1"), new("http://a/2"), new("http://b/3")];
    let policy = LinkPolicy {
        refusal: &|link| (link.request.url.host_str() == Some("b")).then_some(DISK),
        ..ALL
    };
    let apply = |batch, policy| frontier.apply(Shard(1), batch, policy);
    assert_eq!(apply(batch(1, &links), policy).await, Ok(3));
    // The answer was lost: links that have arrived are not counted once more.
    assert_eq!(apply(batch(1, &links), policy).await, Ok(3));
    let counts = frontier.counts();
    assert_eq!((counts.due, counts.refused_links[DISK]), (2, 2));
    assert!(!frontier.knows(&links[0].request).await.unwrap());
    // There is room again.
    assert_eq!(apply(batch(4, &links[..1]), ALL).await, Ok(4));
    assert_eq!(frontier.counts().due, 3);
}
