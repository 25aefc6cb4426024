//! Tests of crawls whose items drift: what has changed reaches no sink, and what has not is never held.

use object_store::memory::InMemory;

use super::*;
use crate::doubles::{Kept as Delivered, in_time, parts, settings};
use crawler_frontier::durable::{DurableSettings, Frontiers};
use crawler_frontier::{ItemComparison, KeptBack, OpenFrontier, OpenFrontiers, OpenOptions};
use crawler_model::drift::{Action, Decision, Sensitivity};
use crawler_model::resource::ShardId;

const N_PAGES: usize = 300;
/// Number of pages after the first bad one by which it has to be found.
const FOUND_WITHIN: u64 = 50;

/// Change of the shop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Broken {
    No,
    /// The class of the titles was renamed.
    TitleGone,
    /// The price is that of a monthly instalment.
    Instalment,
}

/// A plugin for a shop with one item per page.
struct Shop {
    description: Description,
    broken: Broken,
    /// Number of pages that are parsed as before.
    broken_from: usize,
    /// Number of pages that are parsed at all; the others take without end.
    n_pages: usize,
    n_parsed: AtomicUsize,
}

impl Shop {
    fn new(broken: Broken, broken_from: usize) -> Self {
        Self {
            description: crate::doubles::Graph::default().description().clone(),
            broken,
            broken_from,
            n_pages: usize::MAX,
            n_parsed: AtomicUsize::new(0),
        }
    }
}

fn url_of(n: usize) -> Url {
    format!("http://shop.test/{}0", n + 1).parse().unwrap()
}

#[async_trait]
impl Rules for Shop {
    fn description(&self) -> &Description {
        &self.description
    }

    async fn root(&self, _config: CallConfig, _now: u64) -> CallReport {
        let roots = (0..N_PAGES).map(|n| Request::get(url_of(n), "page"));
        report(Ok(CallOutput {
            requests: roots.collect(),
            ..CallOutput::default()
        }))
    }

    async fn parse(
        &self,
        _config: CallConfig,
        _rule: &str,
        page: Arc<Page>,
        _context: PageContext,
    ) -> CallReport {
        let n_parsed = self.n_parsed.fetch_add(1, Ordering::Relaxed);
        if n_parsed >= self.n_pages {
            std::future::pending::<()>().await;
        }
        let broken = match n_parsed < self.broken_from {
            true => Broken::No,
            false => self.broken,
        };
        let n: u64 = page.url.path()[1..].parse().unwrap();
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let cents = 1_000 + mixed % 4_000;
        let (title, cents) = match broken {
            Broken::No => (format!("Book {n} of {mixed}"), cents),
            Broken::TitleGone => (String::new(), cents),
            Broken::Instalment => (format!("Book {n} of {mixed}"), cents / 24),
        };
        let is_bad = broken != Broken::No;
        let price = format!("£{}.{:02}", cents / 100, cents % 100);
        let json = format!(r#"{{"title": "{title}", "price": "{price}", "is_bad": {is_bad}}}"#);
        report(Ok(CallOutput {
            items: vec![Item {
                schema: "book".into(),
                json,
            }],
            ..CallOutput::default()
        }))
    }
}

async fn open(objects: &Arc<InMemory>, run: u64) -> Arc<dyn OpenFrontier> {
    open_with(objects, run, ItemComparison::default()).await
}

async fn open_with(
    objects: &Arc<InMemory>,
    run: u64,
    changes: ItemComparison,
) -> Arc<dyn OpenFrontier> {
    let settings = DurableSettings {
        flush_interval: Duration::from_millis(5),
        ..DurableSettings::default()
    };
    let frontiers = Arc::new(Frontiers::new(objects.clone(), settings));
    let shard = ShardId::only(ResourceId(1));
    let storage_epoch = frontiers.storage_epoch(shard).await.unwrap();
    let open_options = OpenOptions {
        run: Run(run),
        changes,
        created: storage_epoch > 0,
        storage_epoch,
        ..OpenOptions::first(shard)
    };
    OpenFrontiers::open(frontiers, open_options).await.unwrap()
}

/// A run that is over.
struct Over {
    frontier: Arc<dyn OpenFrontier>,
    delivered: Vec<String>,
    log: Vec<String>,
}

/// Crawls a run to its end.
async fn crawl_run(objects: &Arc<InMemory>, run: u64, shop: Shop, drift: Sensitivity) -> Over {
    let frontier = open(objects, run).await;
    crawl_on_frontier(frontier, run, shop, drift).await
}

async fn crawl_on_frontier(
    frontier: Arc<dyn OpenFrontier>,
    run: u64,
    shop: Shop,
    drift: Sensitivity,
) -> Over {
    let settings = CrawlSettings {
        drift: Some(drift),
        ..settings()
    };
    let parts = CrawlParts {
        run: Run(run),
        rules: Arc::new(shop),
        ..parts(frontier.clone(), None, settings)
    };
    let log = parts.log.clone();
    let sink = Delivered::default();
    let crawl = super::run(parts, Box::new(sink.clone()), CancellationToken::new());
    assert_eq!(in_time(crawl).await, CrawlEnd::Finished);
    Over {
        frontier,
        delivered: sink.items().into_values().collect(),
        log: log.read(false).map(|line| line.message).collect().await,
    }
}

/// Crawls until the frontier is in a state, and stops there.
async fn crawl_until(
    frontier: &Arc<dyn OpenFrontier>,
    run: u64,
    shop: Shop,
    is_there: impl Fn(KeptBack) -> bool,
) {
    let settings = CrawlSettings {
        drift: Some(Sensitivity::Normal),
        ..settings()
    };
    let parts = CrawlParts {
        run: Run(run),
        rules: Arc::new(shop),
        ..parts(frontier.clone(), None, settings)
    };
    let stop = CancellationToken::new();
    let crawl = super::run(parts, Box::new(Delivered::default()), stop.clone());
    let reached = async {
        while !is_there(frontier.kept_back()) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
    };
    let (end, ()) = in_time(async { tokio::join!(crawl, reached) }).await;
    assert_eq!(end, CrawlEnd::Stopped);
    frontier.close().await.unwrap();
}

fn n_bad(items: &[String]) -> usize {
    let bad = items
        .iter()
        .filter(|item| item.contains(r#""is_bad": true"#));
    bad.count()
}

#[tokio::test]
async fn a_change_in_the_middle_of_a_crawl_reaches_no_sink() {
    for broken in [Broken::TitleGone, Broken::Instalment] {
        let objects = Arc::new(InMemory::new());
        let good = || Shop::new(Broken::No, 0);
        let first = crawl_run(&objects, 1, good(), Sensitivity::Normal).await;
        assert_eq!(first.delivered.len(), N_PAGES, "nothing is known before");
        first.frontier.close().await.unwrap();
        let broken_from = 140;
        let shop = Shop::new(broken, broken_from);
        let second = crawl_run(&objects, 2, shop, Sensitivity::Normal).await;
        assert_eq!(n_bad(&second.delivered), 0, "{broken:?}");
        let held = second.frontier.kept_back();
        assert_eq!(held.n_held as usize + second.delivered.len(), N_PAGES);
        assert_eq!((held.n_waiting, held.n_holds), (0, 1));
        // What was delivered ends no earlier than the window of the first bad page begins.
        let n_good_held = held.n_held - (N_PAGES - broken_from) as u64;
        assert!(n_good_held <= FOUND_WITHIN, "{n_good_held}");
        let told = second
            .log
            .iter()
            .find(|line| line.starts_with("items are held: book from "));
        assert!(told.is_some(), "{:?}", second.log);
        // A new run of the mended rule goes through, and what is held stays.
        second.frontier.close().await.unwrap();
        let third = crawl_run(&objects, 3, good(), Sensitivity::Normal).await;
        assert_eq!(third.delivered.len(), N_PAGES);
        assert_eq!(third.frontier.kept_back().n_held, held.n_held);
        third.frontier.close().await.unwrap();
    }
}

#[tokio::test]
async fn unchanged_runs_are_delivered_whole() {
    let objects = Arc::new(InMemory::new());
    for run in 1..=21 {
        let shop = Shop::new(Broken::No, 0);
        let over = crawl_run(&objects, run, shop, Sensitivity::Tight).await;
        assert_eq!(over.delivered.len(), N_PAGES, "run {run}");
        assert_eq!(over.frontier.kept_back().n_holds, 0, "run {run}");
        over.frontier.close().await.unwrap();
    }
}

#[tokio::test]
async fn nothing_is_held_if_that_is_off() {
    let objects = Arc::new(InMemory::new());
    for (run, broken) in [(1, Broken::No), (2, Broken::TitleGone)] {
        let over = crawl_run(&objects, run, Shop::new(broken, 0), Sensitivity::Off).await;
        assert_eq!(over.delivered.len(), N_PAGES);
        over.frontier.close().await.unwrap();
    }
    // Runs that were not judged were not learned from either.
    let over = crawl_run(&objects, 3, Shop::new(Broken::No, 0), Sensitivity::Tight).await;
    assert_eq!(over.delivered.len(), N_PAGES);
}

#[tokio::test]
async fn released_items_are_delivered_once_and_are_good_from_then_on() {
    let objects = Arc::new(InMemory::new());
    let normal = Sensitivity::Normal;
    let first = crawl_run(&objects, 1, Shop::new(Broken::No, 0), normal).await;
    first.frontier.close().await.unwrap();
    let gone = || Shop::new(Broken::TitleGone, 0);
    let second = crawl_run(&objects, 2, gone(), normal).await;
    assert_eq!(second.delivered, Vec::<String>::new());
    second.frontier.close().await.unwrap();
    let again = open(&objects, 2).await;
    let release = Decision::of(Action::Release, &again.holds());
    assert_eq!(again.decide(&release).await.unwrap(), N_PAGES as u64);
    let released = crawl_on_frontier(again, 2, gone(), normal).await;
    assert_eq!(n_bad(&released.delivered), N_PAGES);
    released.frontier.close().await.unwrap();
    // Twice: the look is accepted, and then known.
    for run in [3, 4] {
        let next = crawl_run(&objects, run, gone(), normal).await;
        assert_eq!(next.delivered.len(), N_PAGES, "run {run}");
        next.frontier.close().await.unwrap();
    }
    let mended = crawl_run(&objects, 5, Shop::new(Broken::No, 0), normal).await;
    assert_eq!(mended.delivered.len(), N_PAGES, "a field may be added");
}

#[tokio::test]
async fn dropped_items_are_not_told_as_removed() {
    let objects = Arc::new(InMemory::new());
    let normal = Sensitivity::Normal;
    let open = async |run| {
        let changes = ItemComparison {
            n_runs: 3,
            ..ItemComparison::default()
        };
        open_with(&objects, run, changes).await
    };
    let first = crawl_on_frontier(open(1).await, 1, Shop::new(Broken::No, 0), normal).await;
    let added = |over: &Over| over.frontier.change_totals().unwrap().added;
    assert_eq!(added(&first), N_PAGES as u64);
    first.frontier.close().await.unwrap();
    let gone = || Shop::new(Broken::TitleGone, 0);
    let second = crawl_on_frontier(open(2).await, 2, gone(), normal).await;
    assert_eq!(second.frontier.kept_back().n_held, N_PAGES as u64);
    second.frontier.close().await.unwrap();
    let again = open(2).await;
    let drop = Decision::of(Action::Drop, &again.holds());
    assert_eq!(again.decide(&drop).await.unwrap(), N_PAGES as u64);
    again.settle().await.unwrap();
    again.close().await.unwrap();
    let over = crawl_on_frontier(open(2).await, 2, gone(), normal).await;
    assert_eq!(over.frontier.kept_back().n_held, 0);
    assert_eq!(over.frontier.change_totals().unwrap().removed, 0);
    let told = over
        .log
        .iter()
        .find(|line| line.ends_with("items of this run were dropped"));
    assert!(told.is_some(), "{:?}", over.log);
}

#[tokio::test]
async fn items_that_follow_a_decision_are_judged_anew() {
    let objects = Arc::new(InMemory::new());
    let normal = Sensitivity::Normal;
    let good = || Shop::new(Broken::No, 0);
    let first = crawl_run(&objects, 1, good(), normal).await;
    first.frontier.close().await.unwrap();
    let gone = Shop {
        n_pages: 100,
        ..Shop::new(Broken::TitleGone, 0)
    };
    let second = open(&objects, 2).await;
    crawl_until(&second, 2, gone, |kept_back| kept_back.n_held == 100).await;
    // Ten items were held after somebody had looked.
    let again = open(&objects, 2).await;
    let hold = &again.holds()[0];
    let decision = Decision {
        action: Action::Drop,
        holds: [(hold.number, hold.end - 10)].into(),
    };
    assert_eq!(again.decide(&decision).await.unwrap(), 90);
    let over = crawl_on_frontier(again, 2, good(), normal).await;
    assert_eq!(over.delivered.len(), N_PAGES - 100);
    assert_eq!(over.frontier.kept_back().n_held, 10);
}

#[tokio::test]
async fn pages_that_an_earlier_run_left_hold_nothing_of_this_one() {
    let objects = Arc::new(InMemory::new());
    let normal = Sensitivity::Normal;
    let good = || Shop::new(Broken::No, 0);
    let first = crawl_run(&objects, 1, good(), normal).await;
    first.frontier.close().await.unwrap();
    let gone = Shop {
        n_pages: 30,
        ..Shop::new(Broken::TitleGone, 0)
    };
    let second = open(&objects, 2).await;
    crawl_until(&second, 2, gone, |kept_back| kept_back.n_waiting == 30).await;
    let third = crawl_run(&objects, 3, good(), normal).await;
    assert_eq!(third.delivered.len(), N_PAGES);
    let holds = third.frontier.holds();
    assert_eq!(
        (holds.len(), holds[0].run, holds[0].n_items),
        (1, Run(2), 30)
    );
    third.frontier.close().await.unwrap();
}

#[tokio::test]
async fn a_higher_bound_on_held_items_lets_the_crawl_go_on() {
    let objects = Arc::new(InMemory::new());
    let good = Shop::new(Broken::No, 0);
    let first = crawl_run(&objects, 1, good, Sensitivity::Normal).await;
    first.frontier.close().await.unwrap();
    let frontier = open(&objects, 2).await;
    let with_max = |max_undelivered| CrawlConfig {
        limits: Limits::default(),
        settings: CrawlSettings {
            drift: Some(Sensitivity::Normal),
            max_undelivered: Some(max_undelivered),
            concurrency: Some(1),
            ..settings()
        },
    };
    let (sender, config) = watch::channel(with_max(4_000));
    let parts = CrawlParts {
        run: Run(2),
        rules: Arc::new(Shop::new(Broken::TitleGone, 0)),
        config,
        ..parts(frontier.clone(), None, settings())
    };
    let log = parts.log.clone();
    let crawl = run(
        parts,
        Box::new(Delivered::default()),
        CancellationToken::new(),
    );
    let is_told = async || {
        let lines: Vec<String> = log.read(false).map(|line| line.message).collect().await;
        let beginning = "no page is taken until held items are released or dropped";
        lines.iter().any(|line| line.starts_with(beginning))
    };
    let raised = async {
        while !is_told().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        sender.send(with_max(1 << 20)).unwrap();
    };
    let (end, ()) = in_time(async { tokio::join!(crawl, raised) }).await;
    assert_eq!(end, CrawlEnd::Finished);
    assert_eq!(frontier.kept_back().n_held, N_PAGES as u64);
}

#[tokio::test]
async fn what_was_told_is_not_told_by_the_next_opening() {
    let objects = Arc::new(InMemory::new());
    let normal = Sensitivity::Normal;
    let first = crawl_run(&objects, 1, Shop::new(Broken::No, 0), normal).await;
    first.frontier.close().await.unwrap();
    let gone = Shop {
        n_pages: 100,
        ..Shop::new(Broken::TitleGone, 0)
    };
    let second = open(&objects, 2).await;
    crawl_until(&second, 2, gone, |kept_back| kept_back.n_held == 100).await;
    let over = crawl_run(&objects, 2, Shop::new(Broken::TitleGone, 0), normal).await;
    assert_eq!(over.frontier.kept_back().n_held, N_PAGES as u64);
    let is_told = over
        .log
        .iter()
        .any(|line| line.starts_with("items are held"));
    assert!(!is_told, "{:?}", over.log);
}

#[tokio::test]
async fn no_page_is_taken_while_too_many_items_are_held() {
    let objects = Arc::new(InMemory::new());
    let good = Shop::new(Broken::No, 0);
    let first = crawl_run(&objects, 1, good, Sensitivity::Normal).await;
    first.frontier.close().await.unwrap();
    let frontier = open(&objects, 2).await;
    let settings = CrawlSettings {
        drift: Some(Sensitivity::Normal),
        max_undelivered: Some(4_000),
        concurrency: Some(1),
        ..settings()
    };
    let parts = CrawlParts {
        run: Run(2),
        rules: Arc::new(Shop::new(Broken::TitleGone, 0)),
        ..parts(frontier.clone(), None, settings)
    };
    let (log, stop) = (parts.log.clone(), CancellationToken::new());
    let crawl = run(parts, Box::new(Delivered::default()), stop.clone());
    let is_told = async || {
        let lines: Vec<String> = log.read(false).map(|line| line.message).collect().await;
        let beginning = "no page is taken until held items are released or dropped";
        lines.iter().any(|line| line.starts_with(beginning))
    };
    let told = async {
        while !is_told().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
    };
    let (end, ()) = in_time(async { tokio::join!(crawl, told) }).await;
    assert_eq!(end, CrawlEnd::Stopped);
    assert!(frontier.counts().due > 0);
    assert!(frontier.kept_back().held_bytes >= 4_000);
}
