//! Tests of the record of a page that may end the process.

use super::*;

/// Crawls a quick and a slow page, and returns those that were recorded.
async fn recorded(frontier: FaultyFrontier) -> Vec<String> {
    let frontier = Arc::new(frontier);
    let settings = CrawlSettings::default();
    let (sink, stop) = (Kept::default(), CancellationToken::new());
    let ended = crawl_on(frontier.clone(), &["/b", "/slow"], settings, sink, stop).await;
    assert_eq!((ended.end, ended.n_items), (CrawlEnd::Finished, 2));
    let mut suspects = frontier.suspects.lock().unwrap().clone();
    suspects.sort();
    suspects
}

#[tokio::test(start_paused = true)]
async fn a_page_is_recorded_as_soon_as_the_frontier_wants_it() {
    for (after, expected) in [
        (None, &[][..]),
        (Some(Duration::from_millis(25)), &["/slow"]),
        (Some(Duration::from_secs(10)), &[]),
        (Some(Duration::ZERO), &["/b", "/slow"]),
    ] {
        let frontier = FaultyFrontier {
            suspect_after: after,
            ..FaultyFrontier::default()
        };
        assert_eq!(recorded(frontier).await, expected, "{after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_tried_alone_is_recorded() {
    let alone = FaultyFrontier {
        is_alone: true,
        suspect_after: Some(Duration::from_secs(10)),
        ..FaultyFrontier::default()
    };
    assert_eq!(recorded(alone).await, ["/b", "/slow"]);
}

#[tokio::test(start_paused = true)]
async fn a_call_goes_on_while_its_page_is_recorded() {
    let slow = FaultyFrontier {
        suspect_after: Some(Duration::from_millis(25)),
        suspect_takes: Duration::from_secs(1),
        ..FaultyFrontier::default()
    };
    let begun = Instant::now();
    assert_eq!(recorded(slow).await, ["/slow"]);
    assert!(begun.elapsed() < Duration::from_millis(1_500));
}

#[tokio::test(start_paused = true)]
async fn a_page_that_cannot_be_recorded_is_not_committed() {
    let frontier = Arc::new(FaultyFrontier {
        suspect_after: Some(Duration::from_millis(25)),
        fails_on_suspect: true,
        ..FaultyFrontier::default()
    });
    let (settings, stop) = (CrawlSettings::default(), CancellationToken::new());
    let ended = crawl_on(frontier, &["/slow"], settings, Kept::default(), stop).await;
    assert_eq!(
        (ended.end, ended.n_items, ended.counts.due),
        (CrawlEnd::Frontier(closed()), 0, 1)
    );
}
