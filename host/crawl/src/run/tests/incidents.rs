//! Tests of what becomes events of a resource.

use super::*;
use crate::incidents::Incidents;
use crawler_model::event::EventKind;

/// Crawls a site from a root. Returns the incidents.
async fn incidents(root: &'static str) -> Vec<(EventKind, String)> {
    let incidents = Incidents::default();
    let rules = Arc::new(Links {
        description: description(),
        roots: vec![root],
    });
    let frontier = Arc::new(MemoryFrontier::new(MemorySettings::default()));
    let parts = CrawlParts {
        incidents: incidents.of_crawl(ResourceId(1), Run(1)),
        ..parts(
            frontier,
            rules,
            Arc::new(Site::default()),
            Arc::new(SystemClock),
            CrawlSettings::default(),
        )
    };
    let run = run(parts, Box::new(Kept::default()), CancellationToken::new());
    let end = tokio::time::timeout(Duration::from_secs(60), run).await;
    assert_eq!(end.expect("the crawl ends"), CrawlEnd::Finished);
    incidents.end_spans(ResourceId(1));
    let mut told = Vec::new();
    incidents.take_each(|folded| {
        told.push((folded.kind, folded.text.text().to_string()));
        true
    });
    told
}

#[tokio::test]
async fn a_rule_that_is_killed_is_told_with_what_ended_it() {
    let told = incidents("/fuel").await;
    let killed = "out-of-fuel in rule page".to_owned();
    assert_eq!(told, [(EventKind::RuleKilled, killed)]);
}

#[tokio::test]
async fn a_host_that_asks_to_be_left_alone_is_told_and_its_return() {
    let told = incidents("/busy").await;
    let kinds: Vec<EventKind> = told.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [EventKind::BreakerOpen, EventKind::BreakerClosed]);
    assert_eq!(told[0].1, "site.test:80");
    assert!(told[1].1.starts_with("site.test:80 after "), "{told:?}");
}

#[tokio::test]
async fn a_crawl_without_trouble_tells_nothing() {
    assert_eq!(incidents("/a").await, []);
}
