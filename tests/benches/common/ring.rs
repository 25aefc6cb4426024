//! A site of many hosts whose pages lead to each other, so that the workers of a cluster send links to each other too.

use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crawler_model::links::shard_of;
use crawler_tests::web::{Asked, Site, Web};

/// Number of shards of a crawl.
const N_SHARDS: NonZeroU32 = NonZeroU32::new(4).expect("it is not 0");
/// Number of hosts of each shard, so that all shards have as many pages. Each host is another address of loopback.
const HOSTS_OF_A_SHARD: usize = 8;
/// Time that one crawl may take.
const DEADLINE: Duration = Duration::from_secs(300);

/// Crawls a new site as a new resource, and returns its pages per second, from the first to the last request.
/// `call` runs a command of the cluster, which must succeed.
pub(crate) fn crawl(resource: &str, n_pages: u64, call: impl Fn(&[&str])) -> f64 {
    let (web, hosts) = open_site(n_pages);
    let start = format!("start=http://{}:{}/0", hosts[0], web.address().port());
    call(&[
        "resource",
        "add",
        resource,
        "--plugin=puppet",
        "--delay=0s",
        &format!("--shards={N_SHARDS}"),
        "--max-depth=4000000000",
        "--concurrency=64",
        &format!("--scope={}", hosts.join(",")),
        "--param",
        &start,
    ]);
    let log = web.wait_for("all pages", DEADLINE, |log| log.len() as u64 >= n_pages);
    let took = log[n_pages as usize - 1].start - log[0].start;
    call(&["resource", "wait", resource]);
    n_pages as f64 / took.as_secs_f64()
}

/// Opens a site with this number of pages, and returns it with its hosts.
fn open_site(n_pages: u64) -> (Web, Vec<String>) {
    let hosts = Arc::new(OnceLock::<Vec<String>>::new());
    let known = Arc::clone(&hosts);
    let page = move |asked: Asked| {
        let known = Arc::clone(&known);
        async move {
            let n: u64 = asked.path[1..].parse().expect("pages are numbers");
            let links = [n + 1, n * 7 + 3, n * 13 + 5, n * 2 + 1].map(|n| n % n_pages);
            let called = asked
                .headers
                .get("host")
                .and_then(|host| host.to_str().ok());
            let (_, port) = called
                .and_then(|host| host.split_once(':'))
                .expect("it has a port");
            let hosts = known.get().expect("nothing is asked for before");
            let links = links.map(|n| {
                let host = &hosts[n as usize % hosts.len()];
                format!(r#"{{"url": "http://{host}:{port}/{n}"}}"#)
            });
            format!("[{}]", links.join(","))
        }
    };
    let web = Site::new()
        .handle("/*", page)
        .open_at(([0, 0, 0, 0], 0).into());
    let hosts = hosts.get_or_init(|| hosts_of_all_shards(web.address().port()));
    (web, hosts.clone())
}

/// Returns as many hosts of each shard as of any other, one of each in turn, so that most links lead to another shard. The
/// port decides about the shard of a host, too.
fn hosts_of_all_shards(port: u16) -> Vec<String> {
    let n_shards = N_SHARDS.get() as usize;
    let mut shards = vec![Vec::new(); n_shards];
    let addresses = (1..=4).flat_map(|third| (1..255).map(move |last| (third, last)));
    for (third, last) in addresses {
        let host = format!("127.0.{third}.{last}");
        let url = format!("http://{host}:{port}/");
        let shard = shard_of(&url.parse().expect("it is an address"), N_SHARDS);
        let shard = &mut shards[shard.0 as usize];
        if shard.len() < HOSTS_OF_A_SHARD {
            shard.push(host);
        }
    }
    let mut hosts = Vec::new();
    for turn in 0..HOSTS_OF_A_SHARD {
        hosts.extend(shards.iter().map(|shard| shard[turn].clone()));
    }
    hosts
}
