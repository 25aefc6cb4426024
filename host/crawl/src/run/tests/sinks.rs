//! Tests of crawls with several sinks, of which some are slow or fail.

use super::*;
use crate::drain::NamedSink;
use crate::run::run_to;
use crawler_model::settings::{SinkName, SinkNames};

fn name(text: &str) -> SinkName {
    text.parse().unwrap()
}

/// Clock that goes with the paused one of the runtime.
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn unix_nanos(&self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap()
    }
}

/// A crawl of the site to several sinks.
struct Crawl {
    frontier: Arc<MemoryFrontier>,
    log: CrawlLog,
    site: Arc<Site>,
    parts: CrawlParts,
    sinks: Vec<NamedSink>,
}

impl Crawl {
    fn new(sinks: &[(&str, &Kept)], settings: CrawlSettings) -> Self {
        let names = SinkNames::of(sinks.iter().map(|(text, _)| name(text)));
        let frontier = Arc::new(MemoryFrontier::new(MemorySettings {
            sinks: names.clone(),
            ..MemorySettings::default()
        }));
        let rules = Arc::new(Links {
            description: description(),
            roots: vec!["/"],
        });
        let settings = CrawlSettings {
            sinks: names.iter().cloned().collect(),
            ..settings
        };
        let site = Arc::new(Site::default());
        let clock = Arc::new(RuntimeClock(Instant::now()));
        let parts = parts(frontier.clone(), rules, site.clone(), clock, settings);
        let named = |(text, sink): &(&str, &Kept)| NamedSink {
            name: name(text),
            sink: Box::new((*sink).clone()),
        };
        Self {
            frontier,
            log: parts.log.clone(),
            site,
            parts,
            sinks: sinks.iter().map(named).collect(),
        }
    }

    async fn run(self, stop: CancellationToken) -> CrawlEnd {
        let run = run_to(self.parts, self.sinks, stop);
        let deadline = Duration::from_secs(24 * 60 * 60);
        let ended = tokio::time::timeout(deadline, run).await;
        ended.expect("the crawl ends")
    }
}

fn items(sink: &Kept) -> BTreeSet<String> {
    let items = sink.items.lock().unwrap();
    let texts = items.iter().map(|record| record.item.get().to_owned());
    let found: BTreeSet<String> = texts.collect();
    assert_eq!(found.len(), items.len(), "each item once");
    found
}

fn is_told(log: &CrawlLog, text: &str) -> bool {
    let lines = log.last_errors(100);
    lines.iter().any(|line| line.message.contains(text))
}

/// Waits until a sink has this number of items.
async fn until(sink: &Kept, n_items: usize) {
    let deadline = Duration::from_secs(60);
    let reached = async {
        while sink.items.lock().unwrap().len() < n_items {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(deadline, reached)
        .await
        .expect("it gets them");
}

#[tokio::test(start_paused = true)]
async fn f33_a_sink_that_fails_holds_back_no_other() {
    let (good, bad) = (Kept::default(), Kept::default());
    bad.n_failures.store(u32::MAX, Ordering::Relaxed);
    let crawl = Crawl::new(&[("lines", &good), ("db", &bad)], CrawlSettings::default());
    let (frontier, log) = (crawl.frontier.clone(), crawl.log.clone());
    let run = crawl.run(CancellationToken::new());
    let repair = async {
        until(&good, 5).await;
        assert_eq!(items(&bad).len(), 0);
        assert_eq!(frontier.undelivered(&name("db")).n_items, 5);
        bad.n_failures.store(0, Ordering::Relaxed);
    };
    let (end, ()) = tokio::join!(run, repair);
    assert_eq!(end, CrawlEnd::Finished);
    assert_eq!(items(&bad), items(&good));
    assert_eq!(frontier.n_undelivered(), 0);
    assert!(is_told(&log, "items wait for sink db: "));
}

#[tokio::test(start_paused = true)]
async fn f33_a_sink_that_is_gone_ends_the_crawl_and_others_get_all() {
    let (good, stuck) = (Kept::default(), Kept::default());
    stuck.n_failures.store(u32::MAX, Ordering::Relaxed);
    let gone = Kept {
        is_closed_for_good: true,
        ..Kept::default()
    };
    let sinks = [("lines", &good), ("db", &gone), ("stuck", &stuck)];
    let crawl = Crawl::new(&sinks, CrawlSettings::default());
    let frontier = crawl.frontier.clone();
    let end = crawl.run(CancellationToken::new()).await;
    let why = "items cannot be delivered to sink db: cannot insert into items: no such table";
    assert_eq!(end, CrawlEnd::Failed(why.to_owned()));
    let waiting = |text: &str| frontier.undelivered(&name(text)).n_items;
    assert_eq!(
        (waiting("lines"), items(&good).len() as u64),
        (0, waiting("db"))
    );
    assert_eq!(waiting("stuck"), waiting("db"), "it keeps them");
}

#[tokio::test(start_paused = true)]
async fn f33_a_slow_sink_pauses_the_crawl_at_its_bound() {
    let good = Kept::default();
    let slow = Kept {
        write_time: Duration::from_secs(600),
        ..Kept::default()
    };
    let settings = CrawlSettings {
        max_undelivered: Some(1),
        concurrency: Some(1),
        ..CrawlSettings::default()
    };
    let mut crawl = Crawl::new(&[("lines", &good), ("slow", &slow)], settings.clone());
    // The resource has lost the slow sink, and the frontier is not opened without it yet.
    let config = CrawlConfig {
        limits: Limits::default(),
        settings,
    };
    crawl.parts.config = watch::channel(config).1;
    let log = crawl.log.clone();
    let run = crawl.run(CancellationToken::new());
    let look = async {
        until(&good, 1).await;
        tokio::time::sleep(Duration::from_secs(300)).await;
        // The other sink has all that there is, and there is no more until the slow one has caught up.
        assert_eq!((items(&good).len(), items(&slow).len()), (1, 0));
        assert!(is_told(
            &log,
            "no page is taken until sink slow has caught up: "
        ));
        assert!(is_told(&log, "--max-undelivered allows 1 here"));
    };
    let (end, ()) = tokio::join!(run, look);
    assert_eq!(end, CrawlEnd::Finished);
    assert_eq!(items(&slow), items(&good));
    assert_eq!(items(&slow).len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_no_sink_that_fails() {
    let (good, bad) = (Kept::default(), Kept::default());
    bad.n_failures.store(u32::MAX, Ordering::Relaxed);
    let crawl = Crawl::new(&[("lines", &good), ("db", &bad)], CrawlSettings::default());
    let frontier = crawl.frontier.clone();
    let stop = CancellationToken::new();
    let run = crawl.run(stop.clone());
    let (end, ()) = tokio::join!(run, async {
        until(&good, 5).await;
        stop.cancel();
    });
    assert_eq!(end, CrawlEnd::Stopped);
    assert_eq!(frontier.undelivered(&name("db")).n_items, 5);
}

#[tokio::test(start_paused = true)]
async fn pages_are_taken_again_while_items_wait_for_a_sink() {
    let (good, bad) = (Kept::default(), Kept::default());
    bad.n_failures.store(u32::MAX, Ordering::Relaxed);
    let settings = CrawlSettings {
        max_retry_wait_ms: Some(2 * 60 * 60_000),
        max_attempts: Some(2),
        ..CrawlSettings::default()
    };
    let mut crawl = Crawl::new(&[("lines", &good), ("db", &bad)], settings);
    crawl.parts.rest_after = Some(Duration::from_secs(60));
    crawl.parts.rules = Arc::new(Links {
        description: description(),
        roots: vec!["/later", "/b"],
    });
    let site = crawl.site.clone();
    let run = crawl.run(CancellationToken::new());
    let look = async {
        until(&good, 1).await;
        // The page that waits for an hour is asked for again, although a sink does not have the item of the other one.
        tokio::time::sleep(Duration::from_secs(3 * 60 * 60)).await;
        let asked = site.asked.lock().unwrap().clone();
        assert_eq!(asked.iter().filter(|path| *path == "/later").count(), 2);
        bad.n_failures.store(0, Ordering::Relaxed);
    };
    let (end, ()) = tokio::join!(run, look);
    assert_eq!(end, CrawlEnd::Finished);
    assert_eq!(items(&bad), items(&good));
}

#[tokio::test(start_paused = true)]
async fn a_stop_does_not_wait_for_a_slow_backlog() {
    let slow = Kept {
        write_time: Duration::from_secs(4),
        n_at_once: Some(1),
        ..Kept::default()
    };
    let crawl = Crawl::new(&[("lines", &slow)], CrawlSettings::default());
    let stop = CancellationToken::new();
    let run = crawl.run(stop.clone());
    let stopped = async {
        until(&slow, 1).await;
        stop.cancel();
        Instant::now()
    };
    let (end, stopped) = tokio::join!(run, stopped);
    assert_eq!(end, CrawlEnd::Stopped);
    assert!(
        stopped.elapsed() < Duration::from_secs(6),
        "{:?}",
        stopped.elapsed()
    );
    assert!(items(&slow).len() < 5);
}

#[tokio::test(start_paused = true)]
async fn items_do_not_gather_while_they_keep_the_crawl_from_resting() {
    let sink = Kept {
        gathering: Gathering {
            max_items: 1_000,
            n_bytes: 1 << 20,
            max_wait: Duration::from_secs(3_600),
        },
        ..Kept::default()
    };
    let settings = CrawlSettings {
        max_retry_wait_ms: Some(2 * 60 * 60_000),
        max_attempts: Some(2),
        ..CrawlSettings::default()
    };
    let frontier = Arc::new(MemoryFrontier::new(MemorySettings::default()));
    let (stop, rest) = (CancellationToken::new(), Rest::after(1));
    let ended = crawl_or_rest(frontier, &["/later", "/b"], settings, sink, stop, rest).await;
    let is_resting = matches!(ended.end, CrawlEnd::Resting { .. });
    assert!(is_resting, "{:?}", ended.end);
    assert_eq!(ended.n_items, 1);
}

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_a_write_that_must_not_be_given_up() {
    let slow = Kept {
        write_time: Duration::from_secs(60),
        is_cut_unsafe: true,
        ..Kept::default()
    };
    let crawl = Crawl::new(&[("lines", &slow)], CrawlSettings::default());
    let (frontier, stop) = (crawl.frontier.clone(), CancellationToken::new());
    let began = slow.began.clone();
    let run = crawl.run(stop.clone());
    let stopped = async {
        began.notified().await;
        stop.cancel();
        Instant::now()
    };
    let (_end, stopped) = tokio::join!(run, stopped);
    // The time after the stop is over by then: no other write begins.
    let took = stopped.elapsed();
    assert!((59..61).contains(&took.as_secs()), "{took:?}");
    let n_items = items(&slow).len() as u64;
    assert!(n_items > 0);
    let waiting = frontier.undelivered(&SinkName::lines());
    assert_eq!(waiting.n_items + n_items, frontier.counts().items);
}

#[tokio::test(start_paused = true)]
async fn a_fault_of_a_sink_is_told_once_until_it_changes() {
    let (good, bad) = (Kept::default(), Kept::default());
    bad.n_failures.store(5, Ordering::Relaxed);
    let crawl = Crawl::new(&[("lines", &good), ("db", &bad)], CrawlSettings::default());
    let log = crawl.log.clone();
    let end = crawl.run(CancellationToken::new()).await;
    assert_eq!(end, CrawlEnd::Finished);
    assert_eq!(bad.n_failures.load(Ordering::Relaxed), 0);
    let lines = log.last_errors(100);
    let told = lines
        .iter()
        .filter(|line| line.message.starts_with("items wait for sink db: "));
    assert_eq!(told.count(), 1, "{lines:?}");
}
