//! Requests per second of the fetcher, compared with a bare loop of its HTTP client on the same server with
//! as many connections. It also shows the cost that each layer adds: processor time and allocations for a
//! request.
//!
//! ```text
//! cargo bench -p crawler --bench fetch
//! ```
//!
//! The layers take turns in one process, so that a busy machine slows all of them equally; ratios are medians
//! over the rounds. The server is a process of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crawler_fetch::address_policy::AddressPolicy;
use crawler_fetch::cookies::CookieJar;
use crawler_fetch::http::{FetchSettings, HttpFetcher};
use crawler_fetch::throttle::{Requester, Throttle, ThrottleSettings};
use crawler_fetch::{Fetch as _, FetchRequest};
use crawler_model::settings::{CrawlSettings, Robots};
use crawler_process::clock::SystemClock;
use crawler_process::memory::Account;
use tokio::runtime::Runtime;
use url::Url;

#[path = "fetch/counted.rs"]
mod counted;
#[path = "common/loopback.rs"]
mod loopback;
#[path = "fetch/pages.rs"]
mod pages;

const N_CONNECTIONS: u64 = 64;
const N_REQUESTS: u64 = 10_000;
const N_ROUNDS: usize = 15;

/// Layer that sends the requests.
#[derive(Clone, Copy)]
enum Layer {
    /// The client alone: it sends a request and reads the whole answer.
    Bare,
    /// The fetcher, with address policy, throttle, limits and charset.
    Fetcher,
    /// The fetcher with everything that a crawl has by default: robots.txt and cookies too.
    Whole,
}

const LAYERS: [(Layer, &str); 3] = [
    (Layer::Bare, "bare client"),
    (Layer::Fetcher, "fetcher"),
    (Layer::Whole, "fetcher, robots.txt and cookies"),
];

/// Cost of all requests of a round.
struct Took {
    wall: Duration,
    processors: Duration,
    n_allocations: u64,
}

#[expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]
fn main() {
    if std::env::args().nth(1).as_deref() == Some(loopback::SERVE) {
        return loopback::serve(pages::router());
    }
    let server = loopback::Server::start(&[]);
    let runtime = Runtime::new().expect("a runtime starts");
    let mut rounds: [Vec<Took>; 3] = Default::default();
    let asked = Arc::new(runtime.block_on(Asked::new(&server.base)));
    for round in 0..=N_ROUNDS {
        for n in 0..LAYERS.len() {
            // The order rotates: each layer finds the machine as the others left it.
            let n = (n + round) % LAYERS.len();
            let took = measured(&runtime, &asked, LAYERS[n].0);
            // The first round warms up.
            if round > 0 {
                rounds[n].push(took);
            }
        }
    }
    println!(
        "{N_REQUESTS} requests over {N_CONNECTIONS} connections, medians of {N_ROUNDS} rounds"
    );
    for ((_, name), rounds) in LAYERS.iter().zip(&rounds) {
        let of = |what: fn(&Took) -> f64| median(rounds.iter().map(what));
        let n = N_REQUESTS as f64;
        println!(
            "{name:32} {:8.0} requests/s  {:6.1} us of processor  {:5.0} allocations a request",
            n / of(|took| took.wall.as_secs_f64()),
            1e6 * of(|took| took.processors.as_secs_f64()) / n,
            of(|took| took.n_allocations as f64) / n,
        );
    }
    let [bare, others @ ..] = &rounds;
    for ((_, name), rounds) in LAYERS.iter().skip(1).zip(others) {
        let pairs = bare.iter().zip(rounds);
        let ratio = median(pairs.map(|(bare, own)| bare.wall.div_duration_f64(own.wall)));
        println!("{name}: {ratio:.2} times the requests/s of the bare client (goal 0.80)");
    }
}

/// Clients of the server, for all layers.
struct Asked {
    url: Url,
    client: reqwest::Client,
    fetcher: HttpFetcher,
    cookies: Arc<CookieJar>,
    usual: CrawlSettings,
}

impl Asked {
    async fn new(base: &Url) -> Self {
        let loopback = "127.0.0.0/8".parse().expect("it is a network");
        let address_policy = Arc::new(AddressPolicy::new(vec![loopback]));
        let throttle = Arc::new(Throttle::new(ThrottleSettings::default()));
        let settings = FetchSettings::default();
        let fetcher = HttpFetcher::new(settings, address_policy, throttle, Arc::new(SystemClock));
        Self {
            url: base.join("/page").expect("it is a path"),
            client: reqwest::Client::new(),
            fetcher: fetcher.expect("there is nothing odd about it"),
            cookies: Arc::new(CookieJar::open(None, &[])),
            usual: CrawlSettings::default(),
        }
    }

    async fn ask(&self, layer: Layer) {
        let n_bytes = match layer {
            Layer::Bare => {
                let answer = self.client.get(self.url.clone()).send().await;
                let body = answer.expect("it is served").bytes().await;
                body.expect("it is sent to its end").len()
            }
            Layer::Fetcher => self.fetch(Robots::Ignore, None).await,
            Layer::Whole => {
                self.fetch(Robots::Obey, Some(Arc::clone(&self.cookies)))
                    .await
            }
        };
        assert_eq!(n_bytes, pages::PAGE_BYTES);
    }

    async fn fetch(&self, robots: Robots, cookies: Option<Arc<CookieJar>>) -> usize {
        let usual = &self.usual;
        let fetched = self.fetcher.fetch(FetchRequest {
            url: self.url.clone(),
            names_port: true,
            method: "GET".into(),
            headers: Vec::new(),
            identity: None,
            cookies,
            body: None,
            max_url_length: usual.max_url_length(),
            proxy: None,
            credentials: Default::default(),
            accept_status: Default::default(),
            content_types: Default::default(),
            max_body: 8 << 20,
            max_file: None,
            delay: usual.delay(),
            random_delay: usual.random_delay(),
            host_rate: Default::default(),
            validators: None,
            asks_site: false,
            tape: None,
            robots,
            robots_store: None,
            max_crawl_delay: usual.max_crawl_delay(),
            account: Account::default(),
            requester: Requester::waiting(),
            slot: None,
        });
        match fetched.await.expect("it is served").answer {
            crawler_fetch::Answer::Page(page) => page.body.len(),
            crawler_fetch::Answer::Redirect { to } => panic!("led to {to}"),
        }
    }
}

fn measured(runtime: &Runtime, asked: &Arc<Asked>, layer: Layer) -> Took {
    let n_left = Arc::new(AtomicU64::new(N_REQUESTS));
    let one = |_| {
        let (asked, n_left) = (Arc::clone(asked), Arc::clone(&n_left));
        // Each page is a task, as in a crawl.
        runtime.spawn(async move {
            while n_left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
                .is_ok()
            {
                asked.ask(layer).await;
            }
        })
    };
    let n_before = counted::n_allocations();
    let (began, used) = (Instant::now(), processor_time());
    let all: Vec<_> = (0..N_CONNECTIONS).map(one).collect();
    let done = runtime.block_on(futures::future::try_join_all(all));
    done.expect("all are served");
    Took {
        wall: began.elapsed(),
        processors: processor_time() - used,
        n_allocations: counted::n_allocations() - n_before,
    }
}

/// Returns the processor time of all threads of this process.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).expect("it grows from zero")
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
