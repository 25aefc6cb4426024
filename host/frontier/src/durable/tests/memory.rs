//! Tests that URLs for which memory has no room are read in when they are due, and that none is lost.

use std::collections::BTreeSet;

use slatedb::db_cache::DbCache as _;

use super::*;

#[tokio::test]
async fn a_host_with_more_urls_than_memory_holds_gives_them_all_in_order() {
    let objects = Arc::new(InMemory::new());
    let settings = DurableSettings {
        max_buffered: 16,
        ..settings()
    };
    let frontiers = frontiers_in(&objects, settings.clone());
    let open_options = open_options(&frontiers, 1).await;
    let frontier: Arc<dyn Frontier> = Arc::new(frontiers.open(open_options).await.unwrap());
    let all: Vec<String> = (0..200).map(|n| format!("{n}")).collect();
    let names: Vec<&str> = all.iter().map(String::as_str).collect();
    frontier.seed(urls(&names)).await.unwrap();
    let mut paths = Vec::new();
    while frontier.counts().due > 0 {
        match take(&frontier, 0, 1).await {
            Take::Ready(claim) => {
                paths.push(claim.request.url.path()[1..].to_owned());
                frontier.commit(parsed(claim)).await.unwrap();
            }
            Take::Blocked => frontier.take_changed().await,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(paths, all);
}

#[tokio::test]
async fn frontiers_of_one_process_share_the_memory_for_urls() {
    const LEAST: usize = 1_024;
    let objects = Arc::new(InMemory::new());
    let settings = DurableSettings {
        all_buffered: 2 * LEAST,
        ..settings()
    };
    let frontiers = frontiers_in(&objects, settings);
    let mut open = Vec::new();
    for n in 0..4 {
        let shard = ShardId::only(ResourceId(n));
        let open_options = OpenOptions {
            shard,
            ..open_options(&frontiers, 1).await
        };
        let frontier = Arc::new(frontiers.open(open_options).await.unwrap());
        let hosts = (0..1_500).map(|n| new(&format!("http://h{n}.test/")));
        frontier.seed(hosts.collect()).await.unwrap();
        open.push(frontier);
    }
    let kept = |f: &Arc<DurableFrontier>| f.inner.state().bench.n_buffered();
    let all_kept = || open.iter().map(kept).sum::<usize>();
    // Each frontier looks again when URLs are to be read in.
    let sharing = async {
        while all_kept() > 4 * LEAST {
            open.iter().for_each(|f| f.inner.refill_wanted.notify_one());
            tokio::task::yield_now().await;
        }
    };
    let shared = tokio::time::timeout(Duration::from_secs(30), sharing).await;
    assert!(shared.is_ok(), "{} are kept", all_kept());
    // No URL is lost by it.
    let frontier: Arc<dyn Frontier> = open[0].clone();
    for n_left in (0..1_500).rev() {
        let claim = loop {
            match take(&frontier, 0, 1).await {
                Take::Ready(claim) => break claim,
                Take::Blocked => frontier.take_changed().await,
                other => panic!("{other:?} with {n_left} left"),
            }
        };
        frontier.commit(parsed(claim)).await.unwrap();
    }
    assert_eq!(take(&frontier, 0, 1).await, Take::Empty);
}

#[tokio::test]
async fn a_frontier_gives_memory_back_where_it_is_short_and_loses_nothing() {
    const LEAST: usize = 1_024;
    const ALL: usize = 3_000;
    let objects = Arc::new(InMemory::new());
    let frontiers = frontiers_in(&objects, settings());
    let open_options = open_options(&frontiers, 1).await;
    let frontier = Arc::new(frontiers.open(open_options).await.unwrap());
    let hosts = (0..ALL).map(|n| new(&format!("http://h{n}.test/")));
    frontier.seed(hosts.collect()).await.unwrap();
    frontier.settle().await.unwrap();
    let kept = || frontier.inner.state().bench.n_buffered();
    assert_eq!(kept(), ALL);
    let before = frontier.held_bytes();
    let shrinking = async {
        while kept() > LEAST {
            frontiers.shrink(true);
            tokio::task::yield_now().await;
        }
    };
    let shrunk = tokio::time::timeout(Duration::from_secs(30), shrinking).await;
    assert!(shrunk.is_ok(), "{} are kept", kept());
    assert!(frontier.held_bytes() < before / 2);
    assert_eq!(frontiers.blocks.entry_count(), 0);
    frontiers.shrink(false);
    let open: Arc<dyn Frontier> = frontier.clone();
    for n_left in (0..ALL).rev() {
        let claim = loop {
            match take(&open, 0, 1).await {
                Take::Ready(claim) => break claim,
                Take::Blocked => open.take_changed().await,
                other => panic!("{other:?} with {n_left} left"),
            }
        };
        open.commit(parsed(claim)).await.unwrap();
    }
    assert_eq!(take(&open, 0, 1).await, Take::Empty);
}

#[tokio::test]
async fn hosts_that_are_read_in_together_give_each_of_their_urls_once() {
    let objects = Arc::new(InMemory::new());
    let settings = DurableSettings {
        max_buffered: 1_024,
        ..settings()
    };
    let frontiers = frontiers_in(&objects, settings.clone());
    let opened = frontiers
        .open(open_options(&frontiers, 1).await)
        .await
        .unwrap();
    let mut all = BTreeSet::new();
    let mut urls = Vec::new();
    for n in 0..1_000 {
        // Some hosts have URLs of several priorities, and some have more of one than are read in at once.
        for page in 0..=n % 7 {
            let url = format!("http://h{n}.test/{page}");
            let mut request = new(&url);
            request.request.priority = page % 3;
            all.insert(url);
            urls.push(request);
        }
    }
    opened.seed(urls).await.unwrap();
    opened.close().await.unwrap();
    let frontiers = frontiers_in(&objects, settings);
    let opened = frontiers
        .open(open_options(&frontiers, 1).await)
        .await
        .unwrap();
    let frontier: Arc<dyn Frontier> = Arc::new(opened);
    while frontier.counts().due > 0 {
        match take(&frontier, 0, 1).await {
            Take::Ready(claim) => {
                let url = claim.request.url.to_string();
                assert!(all.remove(&url), "{claim:?}");
                let mut commit = parsed(claim);
                if !url.ends_with("/more") {
                    // Others of its host may be read in at the moment.
                    let url = format!("{url}/more");
                    commit.result.requests = vec![new(&url)];
                    all.insert(url);
                }
                frontier.commit(commit).await.unwrap();
            }
            Take::Blocked => frontier.take_changed().await,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(all, BTreeSet::new());
    assert_eq!(take(&frontier, 0, 1).await, Take::Empty);
}
