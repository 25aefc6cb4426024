//! Cost of mutual TLS and access tokens: calls and pages of a cluster with both, beside one with neither.
//!
//! ```text
//! tests/run bench access
//! CRAWLER_BIN=PROGRAM cargo bench -p crawler-tests --bench access
//! ```
//!
//! Each cluster has an etcd, a master and two workers. The clusters take turns; the first round warms up and is not
//! counted. Calls are those that read a resource, over gRPC, on connections that stay open. A crawl has four shards and
//! hosts whose pages lead to each other, so that workers send links to each other too; its time ends with the last page
//! that is asked for. Settings, with their defaults:
//!
//! ```text
//! CRAWLER_ACCESS_ROUNDS=5      rounds that are counted
//! CRAWLER_ACCESS_SECONDS=3     seconds of calls in a round
//! CRAWLER_ACCESS_CALLERS=16    calls at once, each on a connection of its own
//! CRAWLER_ACCESS_PAGES=40000   pages of a crawl
//! ```

#![expect(clippy::print_stdout, reason = "a benchmark reports to its terminal")]

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use crawler_api::client::Client;
use crawler_api::tls::{ClientTls, IdentityFiles};
use crawler_model::id::ResourceName;
use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::peers::{median, order};
use crawler_tests::process::Process;
use crawler_tests::web::{Asked, Site};
use crawler_tests::{PATIENCE, certificates, guests, is_benchmark, number, until};
use futures::future::join_all;

#[path = "common/ring.rs"]
mod ring;

/// Name of the resource that calls read.
const READ: &str = "read";

/// A cluster, and how to call it.
struct Side {
    name: &'static str,
    cluster: Cluster,
    master: Node,
    _workers: [Node; 2],
    token: Option<String>,
}

/// Figures of one side in one round.
#[derive(Default)]
struct Rates {
    calls: Vec<f64>,
    pages: Vec<f64>,
}

fn main() -> ExitCode {
    if !is_benchmark("access") {
        return ExitCode::SUCCESS;
    }
    let n_pages = number("CRAWLER_ACCESS_PAGES", 40_000);
    let sides = [Side::start("plain", false), Side::start("guarded", true)];
    let [Some(plain), Some(guarded)] = sides else {
        return ExitCode::SUCCESS;
    };
    let sides = [plain, guarded];
    let mut rates: [Rates; 2] = Default::default();
    for round in 0..=number("CRAWLER_ACCESS_ROUNDS", 5) {
        for at in order(sides.len(), round as usize) {
            let side = &sides[at];
            let calls = side.calls();
            let pages = side.pages(round, n_pages);
            println!(
                "round {round}, {}: {calls:.0} calls/s, {pages:.0} pages/s",
                side.name
            );
            if round > 0 {
                rates[at].calls.push(calls);
                rates[at].pages.push(pages);
            }
        }
    }
    let [plain, guarded] = &rates;
    let ratio = |guarded: &[f64], plain: &[f64]| {
        median(
            guarded
                .iter()
                .zip(plain)
                .map(|(guarded, plain)| guarded / plain),
        )
    };
    println!("medians of the ratios within a round, guarded to plain:");
    println!("  calls {:.3}", ratio(&guarded.calls, &plain.calls));
    println!("  pages {:.3}", ratio(&guarded.pages, &plain.pages));
    ExitCode::SUCCESS
}

impl Side {
    /// Starts a cluster with one resource that is done. If etcd is not installed, it says so and returns `None`.
    fn start(name: &'static str, is_guarded: bool) -> Option<Self> {
        let cluster = Cluster::new()?;
        let mut arguments: &[&str] = &["--api-rate=0"];
        if is_guarded {
            certificates::write(cluster.home.path());
            arguments = &[
                "--api-rate=0",
                "--require-tokens",
                "--first-token=first-token",
            ];
        }
        let master = cluster.master("1", arguments);
        let workers = ["1", "2"].map(|id| cluster.worker(id, &[]));
        cluster.registered("worker", 2);
        cluster.leader_beside(&[]);
        let token = is_guarded.then(|| {
            until("the first token", PATIENCE, || {
                let token = fs::read_to_string(cluster.home.path().join("first-token")).ok()?;
                (!token.is_empty()).then(|| token.trim().to_owned())
            })
        });
        let side = Self {
            name,
            cluster,
            master,
            _workers: workers,
            token,
        };
        until("a master that knows the token", PATIENCE, || {
            (side.cli(&["node", "list"]).wait(PATIENCE).code == Some(0)).then_some(())
        });
        let puppet = guests::guest("puppet").display().to_string();
        side.ok(&["plugin", "push", &puppet]);
        let web = Site::new()
            .handle("/*", |_: Asked| async { "[]".to_owned() })
            .open();
        side.ok(&[
            "resource",
            "add",
            READ,
            "--plugin=puppet",
            "--param",
            &format!("start={}", web.url("/0")),
        ]);
        side.ok(&["resource", "wait", READ]);
        Some(side)
    }

    fn cli(&self, arguments: &[&str]) -> Process {
        let mut command = self.cluster.home.command(arguments);
        command.env("CRAWLER_MASTER", self.url());
        if let Some(token) = &self.token {
            let [ca, certificate, key] = self.files();
            command
                .env("CRAWLER_CA", ca)
                .env("CRAWLER_CERTIFICATE", certificate)
                .env("CRAWLER_KEY", key)
                .env("CRAWLER_TOKEN", token);
        }
        Process::start(&mut command)
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let ended = self.cli(arguments).wait(PATIENCE);
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
        ended.stdout
    }

    fn url(&self) -> String {
        let scheme = if self.token.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}", self.master.grpc)
    }

    fn files(&self) -> [std::path::PathBuf; 3] {
        ["ca.pem", "node.pem", "node.key"].map(|name| self.cluster.home.path().join(name))
    }

    async fn client(&self) -> Client {
        let mut tls = ClientTls::default();
        if self.token.is_some() {
            let [ca, certificate, key] = self.files();
            let identity = IdentityFiles { certificate, key };
            tls = ClientTls::of_command(Some(ca), Some(identity)).expect("the files are good");
        }
        let client = Client::connect_any(&[self.url()], &tls).await;
        let client = client.expect("the master is there");
        match &self.token {
            Some(token) => client.with_token(token),
            None => client,
        }
    }

    /// Returns the calls per second.
    fn calls(&self) -> f64 {
        let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
        let wanted = Duration::from_secs(number("CRAWLER_ACCESS_SECONDS", 3));
        runtime.block_on(async {
            let mut clients = Vec::new();
            for _ in 0..number("CRAWLER_ACCESS_CALLERS", 16) {
                clients.push(self.client().await);
            }
            let name: ResourceName = READ.parse().expect("it is a name");
            let start = Instant::now();
            let callers = clients.iter().map(|client| async {
                let mut n_calls = 0_u64;
                while start.elapsed() < wanted {
                    client.resource(&name).await.expect("the call is answered");
                    n_calls += 1;
                }
                n_calls
            });
            let n_calls: u64 = join_all(callers).await.into_iter().sum();
            n_calls as f64 / start.elapsed().as_secs_f64()
        })
    }

    /// Crawls a site, and returns its pages per second.
    fn pages(&self, round: u64, n_pages: u64) -> f64 {
        ring::crawl(&format!("site-{round}"), n_pages, |arguments| {
            self.ok(arguments);
        })
    }
}
