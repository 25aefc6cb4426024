//! Statistics on disk: read beside the owner, known after a reopening, and gone with the run.

use super::*;
use crate::reader::FrontierReader;
use crawler_model::crawl::Done;
use crawler_model::statistics::Statistics;

#[tokio::test]
async fn statistics_are_on_disk_with_the_last_page_and_after_a_close() {
    let objects = Arc::new(InMemory::new());
    let durable = open(&objects, 1).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    let seeds = vec![new("http://a/1"), new("http://b/1"), new("http://c/1")];
    frontier.seed(seeds).await.unwrap();
    let end = async |status| {
        let claim = ready(take(&frontier, 1_000, 1).await);
        let mut commit = commit_of(claim, Ended::Done(Done::Gone));
        commit.result.observed.status = status;
        frontier.commit(commit).await.unwrap();
    };
    end(404).await;
    end(404).await;
    assert_eq!(frontier.statistics().statuses, [(404, 2)].into());
    // Nothing is in flight, so settling writes the statistics.
    end(410).await;
    frontier.settle().await.unwrap();
    let reader = FrontierReader::open(objects.clone(), shard()).await;
    let reader = reader.unwrap().unwrap();
    let (run, counts, statistics) = reader.statistics().await.unwrap();
    assert_eq!((run, counts.outcomes["gone"]), (Run(1), 3));
    assert_eq!(statistics, frontier.statistics());
    reader.close().await;
    let before = frontier.statistics();
    assert_eq!(before.statuses, [(404, 2), (410, 1)].into());
    frontier.close().await.unwrap();
    let again = open(&objects, 1).await;
    assert_eq!(again.statistics(), before);
    assert_eq!(again.counts().outcomes["gone"], 3);
    again.close().await.unwrap();
    let next = open(&objects, 2).await;
    assert_eq!(next.statistics(), Default::default());
}

/// Opens a frontier, and ends two pages of three at once: only the batch of the first has the statistics.
async fn opened_with_two_ends(objects: &Arc<InMemory>) -> Arc<DurableFrontier> {
    let durable = open(objects, 1).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    let seeds = vec![new("http://a/1"), new("http://b/1"), new("http://c/1")];
    frontier.seed(seeds).await.unwrap();
    for _ in 0..2 {
        let claim = ready(frontier.take(1_000, 1).unwrap());
        let mut commit = commit_of(claim, Ended::Done(Done::Gone));
        commit.result.observed.status = 404;
        frontier.commit(commit).await.unwrap();
    }
    durable
}

async fn stored(objects: &Arc<InMemory>) -> Statistics {
    let reader = FrontierReader::open(objects.clone(), shard()).await;
    let reader = reader.unwrap().unwrap();
    let (_, _, statistics) = reader.statistics().await.unwrap();
    reader.close().await;
    statistics
}

#[tokio::test]
async fn statistics_are_on_disk_once_the_crawl_settles_with_urls_left() {
    let objects = Arc::new(InMemory::new());
    let durable = opened_with_two_ends(&objects).await;
    let frontier: Arc<dyn Frontier> = durable.clone();
    frontier.settle().await.unwrap();
    assert_eq!(frontier.counts().due, 1);
    assert_eq!(stored(&objects).await.statuses, [(404, 2)].into());
}

#[tokio::test]
async fn statistics_are_written_while_nothing_else_is() {
    let objects = Arc::new(InMemory::new());
    let durable = opened_with_two_ends(&objects).await;
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while stored(&objects).await.statuses != [(404, 2)].into() {
        assert!(tokio::time::Instant::now() < deadline, "nothing is written");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    drop(durable);
}

#[tokio::test]
async fn statistics_of_a_process_that_ends_are_those_of_a_record() {
    let objects = Arc::new(InMemory::new());
    let durable = opened_with_two_ends(&objects).await;
    // The batch of the second page is durable; its statistics may not be.
    durable.inner.db.flush().await.unwrap();
    drop(durable);
    let again = open(&objects, 1).await;
    assert_eq!(again.counts().outcomes["gone"], 2);
    let statuses = again.statistics().statuses;
    assert!(statuses == [(404, 1)].into() || statuses == [(404, 2)].into());
    again.close().await.unwrap();
}

#[tokio::test]
async fn statistics_that_do_not_decode_do_not_stop_a_crawl() {
    let objects = Arc::new(InMemory::new());
    let durable = opened_with_two_ends(&objects).await;
    let mut batch = slatedb::WriteBatch::new();
    batch.put(crate::keys::statistics(Run(1)), b"{\"statuses\":7}");
    durable.inner.db.write(batch).await.unwrap();
    durable.inner.db.flush().await.unwrap();
    drop(durable);
    let again = open(&objects, 1).await;
    assert_eq!(again.statistics(), Statistics::default());
    assert_eq!(again.counts().outcomes["gone"], 2);
    again.close().await.unwrap();
}
