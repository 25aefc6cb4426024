//! Statistics on disk: read beside the owner, known after a reopening, and gone with the run.

use super::*;
use crate::reader::FrontierReader;
use crawler_model::crawl::Done;

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
    // Nothing is left to fetch, so the batch of the last page has the statistics.
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
