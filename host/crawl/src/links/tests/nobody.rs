//! Tests of links for a shard that has no owner.

use super::*;
use crawler_model::crawl::RuleError;
use crawler_plugin::CallFailure;

/// Transport that never delivers.
struct Nobody;

#[async_trait]
impl LinkTransport for Nobody {
    async fn send_links(&self, to: Shard, _batch: LinkBatch) -> Result<u64, LinkTransportError> {
        let why = "nobody has it".to_owned();
        Err(LinkTransportError { to, why })
    }
}

/// Returns the first of two shards; the second has no owner.
fn peers(idle: &Idle) -> PeerShards {
    PeerShards {
        own: Shard(0),
        n_shards: NonZeroU32::new(2).unwrap(),
        transport: Arc::new(Nobody),
        idle: idle.clone(),
    }
}

#[tokio::test]
async fn links_to_a_shard_without_an_owner_wait_and_the_crawl_is_not_over() {
    let frontier = memory();
    let idle = Idle::default();
    let (kept, stop) = (Kept::default(), CancellationToken::new());
    let parts = parts(frontier.clone(), Some(peers(&idle)), settings());
    let crawl = run(parts, Box::new(kept), stop.clone());
    let all_done = async {
        while frontier.counts().parsed == 0 || frontier.counts().due > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(!idle.is_on());
        assert_eq!(frontier.peers(), [Shard(1)]);
        stop.cancel();
    };
    let (end, ()) = in_time(async { tokio::join!(crawl, all_done) }).await;
    assert_eq!(end, CrawlEnd::Stopped);
    assert_eq!(frontier.peers(), [Shard(1)]);
}

#[tokio::test]
async fn a_crawl_that_rests_goes_on_at_its_time_though_a_link_waits_that_was_not_durable_yet() {
    let slow = Duration::from_millis(300);
    let frontier = open_with(&Arc::new(InMemory::new()), 0, slow).await;
    let settings = CrawlSettings {
        // The rate is one per second for each of the two shards.
        rate: Some("2/s".parse().unwrap()),
        ..settings()
    };
    let stop = CancellationToken::new();
    let parts = CrawlParts {
        rest_after: Some(Duration::from_millis(100)),
        ..parts(frontier.clone(), Some(peers(&Idle::default())), settings)
    };
    let crawl = run(parts, Box::new(Kept::default()), stop.clone());
    let goes_on = async {
        let links_wait = || !frontier.peers().is_empty();
        let mut n_with_links = 0;
        while n_with_links < 3 {
            let n_before = frontier.counts().pages();
            while frontier.counts().pages() == n_before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            n_with_links += usize::from(links_wait());
        }
        stop.cancel();
    };
    let (end, ()) = in_time(async { tokio::join!(crawl, goes_on) }).await;
    assert_eq!(end, CrawlEnd::Stopped);
}

/// Plugin that gives links, and then fails for good.
struct Fatal {
    graph: Graph,
    n_pages: AtomicUsize,
}

#[async_trait]
impl Rules for Fatal {
    fn description(&self) -> &Description {
        self.graph.description()
    }

    async fn root(&self, config: CallConfig, now: u64) -> CallReport {
        self.graph.root(config, now).await
    }

    async fn parse(
        &self,
        config: CallConfig,
        rule: &str,
        page: Arc<Page>,
        context: PageContext,
    ) -> CallReport {
        match self.n_pages.fetch_add(1, Ordering::Relaxed) {
            0..10 => self.graph.parse(config, rule, page, context).await,
            _ => report(Err(CallFailure::Rule(RuleError::Fatal("no sense".into())))),
        }
    }
}

#[tokio::test]
async fn a_crawl_that_fails_ends_though_links_wait_for_a_shard_that_nobody_has() {
    let frontier = memory();
    let parts = CrawlParts {
        rules: Arc::new(Fatal {
            graph: Graph::default(),
            n_pages: AtomicUsize::new(0),
        }),
        ..parts(frontier.clone(), Some(peers(&Idle::default())), settings())
    };
    let crawl = run(parts, Box::new(Kept::default()), CancellationToken::new());
    let end = in_time(crawl).await;
    assert!(matches!(end, CrawlEnd::Failed(_)), "{end:?}");
    assert_eq!(frontier.peers(), [Shard(1)], "they are still there");
}
