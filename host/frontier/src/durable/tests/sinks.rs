//! Tests of sinks that lag behind the items that are kept in memory.

use super::*;
use crawler_model::crawl::ItemKey;
use serde_json::value::RawValue;

/// Number of items of 1 MiB each that do not fit into memory together.
const N_ITEMS: u32 = 20;

async fn keys_of(frontier: &Arc<dyn Frontier>, sink: &SinkName) -> Vec<ItemKey> {
    let batch = frontier.outbox(sink, 1_000).await.unwrap();
    batch.items.into_iter().map(|item| item.key).collect()
}

/// Ends a page with one item of 1 MiB.
async fn commit_large(frontier: &Arc<dyn Frontier>, n: u32) {
    let mut commit = parsed(ready(next(frontier, 0).await));
    let mut item = item_of(&commit.claim, n);
    let json = format!("\"{}\"", "x".repeat(1 << 20));
    item.item = RawValue::from_string(json).unwrap();
    commit.result.items = vec![item];
    commit.result.requests = urls(&[&(n + 1).to_string()]);
    frontier.commit(commit).await.unwrap();
    frontier.settle().await.unwrap();
}

#[tokio::test]
async fn a_sink_that_lags_gets_no_fewer_items_than_before() {
    let objects = Arc::new(InMemory::new());
    let frontiers = frontiers_in(&objects, settings());
    let (lines, slow) = (SinkName::lines(), "slow".parse::<SinkName>().unwrap());
    let open_options = OpenOptions {
        sinks: SinkNames::of([lines.clone(), slow.clone()]),
        ..open_options(&frontiers, 1).await
    };
    let frontier: Arc<dyn Frontier> = Arc::new(frontiers.open(open_options).await.unwrap());
    frontier.seed(urls(&["0"])).await.unwrap();
    let mut before = Vec::new();
    for n in 0..N_ITEMS {
        commit_large(&frontier, n).await;
        // The other sink keeps up, so memory is for the latest items.
        let cleared = frontier.clear_outbox(&lines, u64::from(n) + 1, None);
        cleared.await.unwrap();
        let keys = keys_of(&frontier, &slow).await;
        assert!(keys.starts_with(&before), "{} of {n}", keys.len());
        before = keys;
    }
    assert!(before.len() > 7, "{}", before.len());
    assert_eq!(frontier.undelivered(&slow).n_items, u64::from(N_ITEMS));
}

#[tokio::test]
async fn items_that_come_during_a_write_of_files_stay_in_memory() {
    let objects = Arc::new(InMemory::new());
    let frontiers = frontiers_in(&objects, settings());
    let lines = SinkName::lines();
    let opened = frontiers.open(open_options(&frontiers, 1).await).await;
    let durable = Arc::new(opened.unwrap());
    let frontier: Arc<dyn Frontier> = durable.clone();
    frontier.seed(urls(&["0"])).await.unwrap();
    // Files have 8 MiB together at most.
    for n in 0..11 {
        commit_large(&frontier, n).await;
    }
    frontier.clear_outbox(&lines, 8, None).await.unwrap();
    let in_memory = durable.inner.state().outbox.from(8, 1_000);
    assert_eq!(in_memory.map(|items| items.len()), Ok(3));
}
