//! Tests of crawls that know what an earlier run saw; every page has the body `body` and the etag `v1`.

use super::*;
use crawler_model::frontier::ContentHash;
use crawler_model::parsed_by::{ParsedBy, Parser};
use crawler_model::resource::Unchanged;
use crawler_model::visit::Visit;

fn known(etag: Option<&str>, body: &[u8]) -> Validators {
    Validators {
        etag: etag.map(str::to_owned),
        last_modified: None,
        content: Some(ContentHash::of(body)),
        parsed_by: Some(parsed_by()),
        visit: None,
    }
}

/// Returns what the pages of these crawls are parsed by.
fn parsed_by() -> ParsedBy {
    let parser = Parser::of(plugin(), &BTreeMap::new());
    parser.under(&CrawlSettings::default(), Limits::default().body)
}

struct Recrawl {
    ended: Ended,
    suspects: Vec<String>,
    left: Vec<(String, Option<Validators>)>,
}

async fn recrawl(root: &'static str, unchanged: Unchanged, known: Option<Validators>) -> Recrawl {
    let frontier = Arc::new(FaultyFrontier {
        known,
        suspect_after: Some(Duration::ZERO),
        ..FaultyFrontier::default()
    });
    let settings = CrawlSettings {
        unchanged: Some(unchanged),
        ..CrawlSettings::default()
    };
    let stop = CancellationToken::new();
    let ended = crawl_on(frontier.clone(), &[root], settings, Kept::default(), stop).await;
    assert_eq!(ended.end, CrawlEnd::Finished);
    let mut left = frontier.left.lock().unwrap().clone();
    for validators in left.iter_mut().filter_map(|(_, left)| left.as_mut()) {
        let visit = validators.visit.take();
        assert!(visit.is_some_and(|visit| visit.interval_ms == 0));
    }
    Recrawl {
        ended,
        suspects: frontier.suspects.lock().unwrap().clone(),
        left,
    }
}

/// Crawls some root requests that are known from a visit a second ago, one page in a run at most.
async fn revisit(roots: &[&'static str], revisit_ms: u64) -> (Ended, Vec<Option<Validators>>) {
    let seen = Validators {
        visit: Some(Visit {
            at: SystemClock.unix_millis() - 1_000,
            interval_ms: 0,
        }),
        ..known(Some("v1"), b"body")
    };
    let frontier = Arc::new(FaultyFrontier {
        known: Some(seen),
        ..FaultyFrontier::default()
    });
    let settings = CrawlSettings {
        unchanged: Some(Unchanged::Skip),
        revisit_ms: Some(revisit_ms),
        max_pages: Some(1),
        rate: Some("1/h".parse().unwrap()),
        ..CrawlSettings::default()
    };
    let stop = CancellationToken::new();
    let ended = crawl_on(frontier.clone(), roots, settings, Kept::default(), stop).await;
    assert_eq!(ended.end, CrawlEnd::Finished);
    let left = frontier.left.lock().unwrap().clone();
    (ended, left.into_iter().map(|(_, left)| left).collect())
}

#[tokio::test]
async fn pages_that_are_not_due_are_passed_over_without_a_request() {
    let (ended, left) = revisit(&["/etag", "/a", "/b"], 3_600_000).await;
    assert_eq!(ended.asked, Vec::<String>::new());
    assert_eq!(ended.counts.outcomes["not-due"], 3);
    let is_limited = ended.log.iter().any(|line| line.contains("--max-pages"));
    assert!(!is_limited, "{:?}", ended.log);
    // They keep the time of their last visit.
    assert!(left.iter().all(|kept| kept == &left[0] && kept.is_some()));
}

#[tokio::test]
async fn a_page_that_was_redirected_is_due_in_every_run() {
    let frontier = Arc::new(FaultyFrontier::default());
    let settings = CrawlSettings {
        unchanged: Some(Unchanged::Skip),
        revisit_ms: Some(3_600_000),
        ..CrawlSettings::default()
    };
    let stop = CancellationToken::new();
    let roots = ["/moved", "/b"];
    let ended = crawl_on(frontier.clone(), &roots, settings, Kept::default(), stop).await;
    assert_eq!(ended.end, CrawlEnd::Finished);
    let left = frontier.left.lock().unwrap().clone();
    let visits = left.into_iter().map(|(path, left)| {
        let has_visit = left.map(|validators| validators.visit.is_some());
        (path, has_visit)
    });
    let expected = [
        ("/moved".to_owned(), Some(false)),
        ("/b".to_owned(), Some(true)),
    ];
    assert_eq!(BTreeMap::from_iter(visits), BTreeMap::from(expected));
}

#[tokio::test]
async fn a_page_that_is_due_is_asked_for_and_visited() {
    let (ended, left) = revisit(&["/etag"], 500).await;
    assert_eq!(ended.asked, ["/etag"]);
    assert_eq!(ended.counts.outcomes["not-modified"], 1);
    let visit = left[0].as_ref().and_then(|left| left.visit).unwrap();
    assert!(visit.at > SystemClock.unix_millis() - 60_000 && visit.interval_ms == 500);
}

#[tokio::test]
async fn f25_a_page_that_the_server_calls_unchanged_is_not_parsed_again() {
    let seen = known(Some("v1"), b"other");
    let recrawl = recrawl("/etag", Unchanged::Skip, Some(seen.clone())).await;
    assert_eq!(recrawl.ended.conditions, [Some(seen.clone())]);
    assert_eq!(
        (recrawl.ended.n_items, recrawl.ended.counts.other_done),
        (0, 1)
    );
    assert!(recrawl.suspects.is_empty(), "{:?}", recrawl.suspects);
    assert_eq!(recrawl.left, [("/etag".to_owned(), Some(seen))]);
}

#[tokio::test]
async fn f25_a_page_with_the_same_content_is_not_parsed_again() {
    let seen = known(None, b"body");
    let recrawl = recrawl("/b", Unchanged::Skip, Some(seen)).await;
    assert_eq!(recrawl.ended.conditions, [None]);
    assert_eq!(
        (recrawl.ended.n_items, recrawl.ended.counts.other_done),
        (0, 1)
    );
    let left = known(Some("v1"), b"body");
    assert_eq!(recrawl.left, [("/b".to_owned(), Some(left))]);
}

#[tokio::test]
async fn a_page_that_has_changed_is_parsed_and_known_by_what_it_is_now() {
    let seen = known(Some("v0"), b"other");
    let recrawl = recrawl("/etag", Unchanged::Skip, Some(seen)).await;
    assert_eq!((recrawl.ended.n_items, recrawl.ended.counts.parsed), (1, 1));
    assert_eq!(recrawl.suspects, ["/etag"]);
    let left = known(Some("v1"), b"body");
    assert_eq!(recrawl.left, [("/etag".to_owned(), Some(left))]);
}

#[tokio::test]
async fn a_page_that_another_plugin_has_parsed_is_parsed_anew() {
    let now = known(Some("v1"), b"body");
    for parsed_by in [None, Some(ParsedBy([7; 16]))] {
        let before = Validators {
            parsed_by,
            ..now.clone()
        };
        let recrawl = recrawl("/etag", Unchanged::Skip, Some(before)).await;
        assert_eq!(recrawl.ended.conditions, [None]);
        assert_eq!((recrawl.ended.n_items, recrawl.ended.counts.parsed), (1, 1));
        assert_eq!(recrawl.left, [("/etag".to_owned(), Some(now.clone()))]);
    }
}

#[tokio::test]
async fn unless_asked_to_skip_a_crawl_parses_every_page_and_keeps_what_tells_for_later() {
    let seen = known(Some("v1"), b"body");
    let recrawl = recrawl("/etag", Unchanged::Parse, Some(seen.clone())).await;
    assert_eq!(recrawl.ended.conditions, [None]);
    assert_eq!((recrawl.ended.n_items, recrawl.ended.counts.parsed), (1, 1));
    assert_eq!(recrawl.left, [("/etag".to_owned(), Some(seen))]);
}

#[tokio::test]
async fn a_page_that_a_rule_has_skipped_is_known_and_one_that_failed_is_not() {
    for (path, left) in [
        ("/skip", Some(known(Some("v1"), b"body"))),
        ("/fuel", None),
        ("/gone", None),
    ] {
        let recrawl = recrawl(path, Unchanged::Skip, None).await;
        assert_eq!(recrawl.left, [(path.to_owned(), left)]);
    }
}

#[tokio::test]
async fn an_accepted_failure_leaves_no_validators() {
    let recrawl = recrawl("/checked", Unchanged::Parse, None).await;
    assert_eq!(recrawl.ended.counts.parsed, 2);
    assert_eq!(recrawl.left[1], ("/broken".to_owned(), None));
}

#[tokio::test]
async fn an_answer_that_nothing_has_changed_where_nothing_was_known_is_an_error_of_the_site() {
    for seen in [None, Some(known(None, b"x"))] {
        let recrawl = recrawl("/rude", Unchanged::Skip, seen).await;
        let dead = BTreeMap::from([("status-304".to_owned(), 1)]);
        assert_eq!(recrawl.ended.counts.dead_by_reason, dead);
    }
    // The target of a redirect is requested without a condition.
    let seen = known(Some("v1"), b"body");
    let recrawl = recrawl("/moved-rude", Unchanged::Skip, Some(seen)).await;
    assert_eq!(recrawl.ended.counts.dead_by_reason["status-304"], 1);
}
