//! Processes of the run: a fake web of many hosts, a master, and workers that know the addresses of the hosts and
//! send their own names.

use std::time::{Duration, Instant};

use crawler_tests::cluster::{Cluster, Node};
use crawler_tests::web::{Asked, HeaderMap, Hit, Method, Site, Web};
use crawler_tests::{PATIENCE, until};
use serde_json::json;

use crate::check::Request;

/// Resources; all of them ask all hosts.
pub(crate) const RESOURCES: [&str; 3] = ["a", "b", "c"];
/// Prefix of paths that may not be asked for.
const FORBIDDEN: &str = "/never/";
/// Longest duration of an answer, which is no part of the delay.
const SLOWEST: u64 = 150;

/// Size of the run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) n_hosts: usize,
    /// Delay of all resources.
    pub(crate) delay: Duration,
}

pub(crate) struct Stage {
    pub(crate) scale: Scale,
    master: Node,
    pub(crate) cluster: Cluster,
    web: Web,
    begun: Instant,
}

fn host(n: usize) -> String {
    format!("h{n}.test")
}

/// Opens hosts whose pages `/a/0`, `/a/1` and so on lead to each other without an end: each to the next of its
/// host, to the same of the next host, and to one that the robots.txt forbids. Answers are slow.
fn hosts(n_hosts: usize) -> Web {
    let page = move |asked: Asked| async move {
        let number = |text: &str| text.parse::<usize>().expect("hosts and pages are numbers");
        let (name, port) = name_and_port(&asked.headers);
        let n = number(&name[1..name.len() - ".test".len()]);
        let (chain, page) = asked.path.rsplit_once('/').expect("paths have two parts");
        let next = number(page) + 1;
        let millis = (n as u64 * 37 + next as u64 * 61) % SLOWEST;
        tokio::time::sleep(Duration::from_millis(millis)).await;
        let beside = host((n + 1) % n_hosts);
        let links = [
            format!("{chain}/{next}"),
            format!("http://{beside}:{port}{chain}/{next}"),
            format!("{FORBIDDEN}{}/{next}", &chain[1..]),
        ];
        let links: Vec<_> = links.iter().map(|url| json!({ "url": url })).collect();
        json!(links).to_string()
    };
    let robots = |_| async { format!("User-agent: *\nDisallow: {FORBIDDEN}\n") };
    Site::new()
        .handle("/robots.txt", robots)
        .handle("/*", page)
        .open()
}

/// Name and port of the server that was asked for.
fn name_and_port(headers: &HeaderMap) -> (&str, &str) {
    let asked = headers.get("host").and_then(|host| host.to_str().ok());
    let asked = asked.and_then(|host| host.split_once(':'));
    asked.expect("hosts are asked by name and port")
}

/// Returns the worker that sent a request.
fn agent(hit: &Hit) -> &str {
    let agent = hit.headers.get("user-agent");
    let agent = agent.and_then(|agent| agent.to_str().ok());
    agent.expect("workers say who they are")
}

impl Stage {
    /// Starts a master, and the first worker with all resources. If etcd is not installed, it says so and returns
    /// `None`.
    pub(crate) fn new(scale: Scale) -> Option<(Self, Node)> {
        let cluster = Cluster::new()?;
        // Loads are rebalanced soon after a worker comes or goes.
        let master = cluster.master("1", &["--rebalance-cooldown=2s"]);
        cluster.leader_beside(&[]);
        master.push(&cluster, "puppet");
        let stage = Self {
            scale,
            master,
            cluster,
            web: hosts(scale.n_hosts),
            begun: Instant::now(),
        };
        let worker = stage.worker("1");
        stage.cluster.registered("worker", 1);
        for name in RESOURCES {
            stage.add(name);
        }
        Some((stage, worker))
    }

    /// Starts a worker that sends its name with each request.
    #[track_caller]
    pub(crate) fn worker(&self, id: &str) -> Node {
        let file = format!("worker-{id}.toml");
        let names = (0..self.scale.n_hosts).map(|n| format!("\"{}\" = \"127.0.0.1\"\n", host(n)));
        let names: String = names.collect();
        let text = format!("[fetch]\nuser-agent = \"worker-{id}\"\n[hosts]\n{names}");
        self.cluster.home.write(&file, &text);
        self.cluster.worker(id, &[&format!("--config={file}")])
    }

    /// Adds an endless crawl that begins on all hosts, and has room for a page of each.
    #[track_caller]
    fn add(&self, name: &str) {
        let port = self.web.address().port();
        let root = (0..self.scale.n_hosts).map(|n| {
            let host = host(n);
            json!({ "url": format!("http://{host}:{port}/{name}/0") })
        });
        let root: Vec<_> = root.collect();
        let body = json!({
            "name": name,
            "plugin": "puppet",
            "params": { "root": json!(root).to_string() },
            "crawl": {
                "delay_ms": self.scale.delay.as_millis(),
                "max_depth": u32::MAX,
                "concurrency": 2 * self.scale.n_hosts,
                "scope": ["*.test"],
            },
        });
        let body = body.to_string();
        let answer = self
            .master
            .http(Method::POST, "/crawler/resource", Some(&body));
        assert_eq!(answer.status, 200, "{answer:?}");
    }

    /// Waits until a worker has asked for `n_each` further pages of each host, on average.
    #[track_caller]
    pub(crate) fn goes_on(&self, worker: &Node, n_each: usize) {
        let n_pages = |log: &[Hit]| log.iter().filter(|hit| agent(hit) == worker.id).count();
        let n_wished = n_pages(&self.web.log()) + n_each * self.scale.n_hosts;
        let n_each = u32::try_from(n_each).unwrap_or(u32::MAX);
        // The robots.txt may come first, and a lease may have to end.
        let deadline = PATIENCE + self.scale.delay * 2 * n_each;
        self.web
            .wait_for(&format!("pages by {}", worker.id), deadline, |log| {
                n_pages(log) >= n_wished
            });
    }

    /// Waits until the workers have these numbers of resources, in any order. Returns the resources of each.
    #[track_caller]
    pub(crate) fn shared_out<const N: usize>(
        &self,
        workers: [&Node; N],
        shares: [usize; N],
    ) -> [Vec<String>; N] {
        until(
            &format!("resources shared out {shares:?}"),
            PATIENCE,
            || {
                let owners = self.cluster.owners();
                let own = workers.map(|worker| {
                    let own = owners.iter().filter(|(_, owner)| *owner == worker.id);
                    own.map(|(resource, _)| resource.clone()).collect()
                });
                let mut found = own.each_ref().map(Vec::<String>::len);
                let mut wished = shares;
                found.sort_unstable();
                wished.sort_unstable();
                (found == wished).then_some(own)
            },
        )
    }

    /// Time since the beginning of the run.
    pub(crate) fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Returns all requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let pages = self.web.log();
        let robots = self.web.robots_log();
        let all = pages.iter().chain(&robots);
        all.map(|hit| self.request(hit)).collect()
    }

    fn request(&self, hit: &Hit) -> Request {
        assert!(!hit.path.starts_with(FORBIDDEN), "{hit:?} is forbidden");
        let name = hit.path.split('/').nth(1).unwrap_or_default();
        let since = |moment: Instant| moment.duration_since(self.begun);
        Request {
            host: name_and_port(&hit.headers).0.to_owned(),
            worker: agent(hit).to_owned(),
            resource: RESOURCES.contains(&name).then(|| name.to_owned()),
            start: since(hit.start),
            end: match hit.status {
                Some(_) => hit.end.map(since),
                // No client waits for it any more, since some moment after it was asked for.
                None => hit.end.map(|_| since(hit.start)),
            },
        }
    }
}
