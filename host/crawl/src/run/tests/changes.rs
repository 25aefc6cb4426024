//! Tests of the end of a run whose items are compared with those of earlier runs.

use object_store::memory::InMemory;

use super::*;
use crate::drain::NamedSink;
use crate::run::run_to;
use crawler_frontier::durable::{DurableSettings, Frontiers};
use crawler_frontier::{ItemComparison, OpenFrontier, OpenFrontiers, OpenOptions};
use crawler_model::changes::ChangeTotals;
use crawler_model::resource::ShardId;
use crawler_model::settings::SinkNames;

/// Opens the frontier of a run that is compared with those before.
async fn open(objects: &Arc<InMemory>, run: u64) -> Arc<dyn OpenFrontier> {
    open_for(objects, run, SinkNames::default()).await
}

async fn open_for(objects: &Arc<InMemory>, run: u64, sinks: SinkNames) -> Arc<dyn OpenFrontier> {
    let settings = DurableSettings {
        flush_interval: Duration::from_millis(5),
        ..DurableSettings::default()
    };
    let frontiers = Arc::new(Frontiers::new(objects.clone(), settings));
    let shard = ShardId::only(ResourceId(1));
    let storage_epoch = frontiers.storage_epoch(shard).await.unwrap();
    let open_options = OpenOptions {
        run: Run(run),
        created: storage_epoch > 0,
        storage_epoch,
        sinks,
        changes: ItemComparison {
            n_runs: 9,
            ..ItemComparison::default()
        },
        ..OpenOptions::first(shard)
    };
    OpenFrontiers::open(frontiers, open_options).await.unwrap()
}

/// Crawls one run, and returns the totals of its changes and its log.
async fn changes(
    objects: &Arc<InMemory>,
    run: u64,
    roots: &[&'static str],
    settings: CrawlSettings,
) -> (ChangeTotals, Vec<String>) {
    let frontier = open(objects, run).await;
    let (sink, stop) = (Kept::default(), CancellationToken::new());
    let ended = crawl_on(frontier.clone(), roots, settings, sink, stop).await;
    assert_eq!(ended.end, CrawlEnd::Finished);
    let totals = frontier.change_totals().expect("items are compared");
    frontier.close().await.unwrap();
    (totals, ended.log)
}

#[tokio::test]
async fn a_run_tells_what_is_gone_only_if_it_is_complete() {
    let objects = Arc::new(InMemory::new());
    let (first, log) = changes(&objects, 1, &["/"], CrawlSettings::default()).await;
    assert_eq!((first.added, first.is_complete), (5, true));
    let told = "items: 5 added, 0 changed, 0 unchanged, 0 removed".to_owned();
    assert!(log.contains(&told), "{log:?}");
    let one_page = CrawlSettings {
        max_pages: Some(1),
        ..CrawlSettings::default()
    };
    let cases = [
        (
            &["/b", "/fuel"][..],
            CrawlSettings::default(),
            "1 page was given up",
        ),
        (
            &["/b", "/skip"][..],
            one_page,
            "a limit of the run has left 1 URL unfetched",
        ),
    ];
    for ((roots, settings, why), run) in cases.into_iter().zip(2..) {
        let (totals, log) = changes(&objects, run, roots, settings).await;
        assert_eq!((totals.removed, totals.is_complete), (0, false), "{why}");
        let line = format!("items that this run has not seen are not told as removed: {why}");
        assert!(log.contains(&line), "{log:?}");
    }
    let (last, _) = changes(&objects, 4, &["/b"], CrawlSettings::default()).await;
    let expected = ChangeTotals {
        unchanged: 1,
        removed: 4,
        is_complete: true,
        ..ChangeTotals::default()
    };
    assert_eq!(last, expected);
}

/// Crawls one run to the sink in the data root and to another one.
async fn crawl_to(
    objects: &Arc<InMemory>,
    run: u64,
    roots: &[&'static str],
    feed: &Kept,
) -> CrawlEnd {
    let name: SinkName = "feed".parse().unwrap();
    let names = SinkNames::of([SinkName::lines(), name.clone()]);
    let settings = CrawlSettings {
        sinks: names.iter().cloned().collect(),
        ..CrawlSettings::default()
    };
    let frontier = open_for(objects, run, names).await;
    let rules = Arc::new(Links {
        description: description(),
        roots: roots.to_vec(),
    });
    let (site, clock) = (Arc::new(Site::default()), Arc::new(SystemClock));
    let parts = CrawlParts {
        run: Run(run),
        ..parts(frontier.clone(), rules, site, clock, settings)
    };
    let sinks = [(SinkName::lines(), Kept::default()), (name, feed.clone())];
    let sinks = sinks.map(|(name, sink)| NamedSink {
        name,
        sink: Box::new(sink),
    });
    let crawl = run_to(parts, sinks.into(), CancellationToken::new());
    let end = tokio::time::timeout(Duration::from_secs(60), crawl).await;
    frontier.close().await.unwrap();
    end.expect("the crawl ends")
}

#[tokio::test]
async fn a_run_is_over_once_its_sinks_have_what_is_gone() {
    let objects = Arc::new(InMemory::new());
    let feed = Kept::default();
    assert_eq!(
        crawl_to(&objects, 1, &["/"], &feed).await,
        CrawlEnd::Finished
    );
    let is_removal = |feed: &Kept| -> Vec<bool> {
        let items = feed.items.lock().unwrap();
        items.iter().map(ItemRecord::is_removal).collect()
    };
    assert_eq!(is_removal(&feed), [false; 5]);
    let feed = Kept {
        n_at_once: Some(3),
        ..Kept::default()
    };
    feed.n_failures.store(2, Ordering::Relaxed);
    assert_eq!(
        crawl_to(&objects, 2, &["/b"], &feed).await,
        CrawlEnd::Finished
    );
    assert_eq!(is_removal(&feed), [false, true, true, true, true]);
    // A sink that is gone for good ends the run, although not all is told.
    let feed = Kept {
        is_closed_for_good: true,
        ..Kept::default()
    };
    let end = crawl_to(&objects, 3, &["/"], &feed).await;
    assert!(matches!(end, CrawlEnd::Failed(_)), "{end:?}");
}
