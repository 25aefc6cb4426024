//! The spans of a crawl of one page, with the worker, the fetcher and the engine as they are.

use std::sync::{Arc, Mutex, MutexGuard, Once};

use crawler_crawl::incidents::CrawlIncidents;
use crawler_crawl::limit_uses::LimitUses;
use crawler_crawl::log::CrawlLog;
use crawler_crawl::pacing::Pacing;
use crawler_crawl::permit::Always;
use crawler_crawl::spans;
use crawler_crawl::{CrawlConfig, CrawlEnd, CrawlParts};
use crawler_fetch::address_policy::AddressPolicy;
use crawler_fetch::http::{FetchSettings, HttpFetcher};
use crawler_fetch::throttle::{Throttle, ThrottleSettings};
use crawler_frontier::memory::{MemoryFrontier, MemorySettings};
use crawler_model::id::{Epoch, ResourceId, Run};
use crawler_model::resource::ShardId;
use crawler_model::settings::CrawlSettings;
use crawler_process::clock::{Clock, SystemClock};
use crawler_process::memory::CrawlMemory;
use crawler_process::task::TaskScope;
use crawler_sink::stream::StreamSink;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::subscriber::DefaultGuard;
use tracing::{Instrument as _, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

use super::guests::{config, plugin};

/// Spans of this crate in the order of their births, each as its path of names with its own fields.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

impl Spans {
    /// Takes down what is born on this thread at this level until the guard is dropped.
    fn of_this_thread(level: Level) -> (Self, DefaultGuard) {
        // Otherwise a callsite that another thread reaches first would be disabled in all threads.
        static EVERYWHERE: Once = Once::new();
        EVERYWHERE.call_once(|| {
            let all = tracing_subscriber::registry();
            tracing::subscriber::set_global_default(all).expect("no other test sets one");
        });
        let spans = Self::default();
        let own = Targets::new()
            .with_target("crawler", level)
            .with_target("spans", Level::ERROR);
        let all = tracing_subscriber::registry().with(own).with(spans.clone());
        (spans, tracing::subscriber::set_default(all))
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines())
    }

    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().expect("no holder panics")
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let scope = context.span_scope(id).expect("it was just born");
        let path: Vec<&str> = scope.from_root().map(|span| span.name()).collect();
        let mut line = Line(path.join(" > "));
        attributes.record(&mut line);
        self.lines().push(line.0);
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!(" {field}={value:?}");
    }
}

/// Answers each request with an empty page, and has no robots.txt.
async fn answer(mut stream: TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let Ok(byte) = stream.read_u8().await else {
            return;
        };
        head.push(byte);
    }
    let status = match head.starts_with(b"GET /robots.txt ") {
        true => "404 Not Found",
        false => "200 OK",
    };
    let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.expect("it reads");
}

/// Crawls one page of a site and returns its URL.
async fn crawl_one_page() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let site = format!("http://{}/", listener.local_addr().expect("it is bound"));
    let tasks = TaskScope::new();
    let serve = async move {
        while let Ok((stream, _)) = listener.accept().await {
            answer(stream).await;
        }
    };
    tasks.spawn("site", serve);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let loopback = "127.0.0.0/8".parse().expect("it is a network");
    let address_policy = Arc::new(AddressPolicy::new(vec![loopback]));
    let throttle = Arc::new(Throttle::new(ThrottleSettings::default()));
    let fetcher = HttpFetcher::new(
        FetchSettings::default(),
        address_policy,
        throttle,
        clock.clone(),
    );
    let call = config(|_| (), &[("root", &site)]);
    let settings = CrawlSettings {
        max_pages: Some(1),
        ..CrawlSettings::default()
    };
    let config = CrawlConfig {
        limits: call.limits,
        settings,
    };
    let (_config, receiver) = watch::channel(config);
    let parts = CrawlParts {
        resource: ResourceId(7),
        run: Run(3),
        run_started_at: 0,
        plugin: None,
        params: call.params,
        config: receiver,
        rules: plugin().await,
        frontier: Arc::new(MemoryFrontier::new(MemorySettings::default())),
        fetch: Arc::new(fetcher.expect("it has no odd settings")),
        files: None,
        archive: None,
        log: CrawlLog::new(clock.clone()),
        clock,
        permit: Arc::new(Always),
        pacing: Pacing::default(),
        incidents: CrawlIncidents::default(),
        limit_uses: LimitUses::default(),
        peers: None,
        rest_after: None,
        crawl_memory: CrawlMemory::default(),
        tracer: Default::default(),
    };
    let shard = ShardId::only(parts.resource);
    let name = "books".parse().expect("it is a name");
    let span = spans::of_crawl(&name, shard, Epoch(2), parts.run);
    let sink = Box::new(StreamSink::new(tokio::io::sink(), "nowhere"));
    let crawl = crawler_crawl::run(parts, sink, CancellationToken::new());
    assert_eq!(crawl.instrument(span).await, CrawlEnd::Finished);
    site
}

#[tokio::test]
async fn a_page_its_request_and_its_call_have_spans() {
    let (spans, _guard) = Spans::of_this_thread(Level::DEBUG);
    let url = crawl_one_page().await;
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    let plugin = "plugin=hostile@0.1.0";
    let expected = [
        "crawl resource=books shard=7/0 epoch=2 run=3".to_owned(),
        format!("crawl > call rule=root {plugin}"),
        format!("crawl > host host={host}"),
        format!("crawl > host > request url={url}robots.txt"),
        format!("crawl > page url={url} attempt=1"),
        format!("crawl > page > request url={url}"),
        format!("crawl > page > call rule=ok {plugin}"),
    ];
    assert_eq!(spans.take(), expected);
}

#[tokio::test]
async fn at_the_usual_level_a_crawl_has_one_span_however_many_pages() {
    let (spans, _guard) = Spans::of_this_thread(Level::INFO);
    crawl_one_page().await;
    assert_eq!(
        spans.take(),
        ["crawl resource=books shard=7/0 epoch=2 run=3"]
    );
}
