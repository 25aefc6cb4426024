//! Tests of crawls that reach the quotas of their resources.

use super::*;

#[tokio::test]
async fn links_are_refused_and_counted_while_the_frontier_fills_its_disk() {
    let settings = CrawlSettings {
        max_disk: Some(1_000),
        ..CrawlSettings::default()
    };
    for (disk_bytes, n_told) in [(999, 0), (1_000, 1)] {
        let frontier = Arc::new(FaultyFrontier {
            disk_bytes,
            ..FaultyFrontier::default()
        });
        let stop = CancellationToken::new();
        let roots = ["/numbers", "/"];
        let crawl = crawl_on(
            frontier.clone(),
            &roots,
            settings.clone(),
            Kept::default(),
            stop,
        );
        let ended = crawl.await;
        // The URLs that are stored are crawled to the end.
        assert_eq!(ended.end, CrawlEnd::Finished);
        let refused = ended.counts.refused_links.get("max-disk").copied();
        assert_eq!(refused.is_some_and(|n| n > 3), n_told == 1);
        assert_eq!(ended.asked.len() == 2, n_told == 1);
        let told = ended.log.iter().filter(|line| line.contains("max-disk"));
        assert_eq!(told.count(), n_told, "{:?}", ended.log);
        // The next run has to find the refused links.
        let left = frontier.left.lock().unwrap().clone();
        let known = left.iter().filter(|(_, validators)| validators.is_some());
        assert_eq!(known.count() == 0, n_told == 1, "{left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_page_is_taken_until_the_sink_has_caught_up() {
    let sink = Kept {
        n_failures: Arc::new(AtomicU32::new(3)),
        ..Default::default()
    };
    let settings = CrawlSettings {
        max_undelivered: Some(1),
        concurrency: Some(1),
        ..CrawlSettings::default()
    };
    let ended = crawl(&["/", "/b"], settings, sink).await;
    assert_eq!((ended.end, ended.n_items), (CrawlEnd::Finished, 5));
    let log = ended.log;
    let is_paused = |line: &&String| line.contains("--max-undelivered allows 1 here");
    let paused = log.iter().filter(is_paused);
    assert_eq!(paused.count(), 1, "{log:?}");
}
