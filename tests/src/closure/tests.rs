//! Walk over a closure that shares no code with the crawler, and only the answers with the closure.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::answers::plain;
use super::*;

fn plan(seed: u64) -> Plan {
    Plan {
        n_pages: 900,
        seed,
        max_depth: 40,
        pace: Duration::ZERO,
    }
}

/// A request, as pages ask for it.
struct QueuedRequest {
    url: url::Url,
    method: String,
    body: String,
    depth: u32,
}

/// Findings of a walk; an address counts as found when something leads to it.
#[derive(Default)]
struct Walk {
    waiting: VecDeque<QueuedRequest>,
    depths: BTreeMap<String, u32>,
}

impl Walk {
    fn find(&mut self, request: &Value, depth: u32, max_depth: u32) {
        let mut url: url::Url = request["url"].as_str().unwrap().parse().unwrap();
        url.set_fragment(None);
        let host = url
            .host_str()
            .and_then(|host| host.parse::<Ipv4Addr>().ok());
        let is_inside = host.is_some_and(|ip| (1..=4).contains(&ip.octets()[3]));
        let body = request["body"].as_str().unwrap_or_default().to_owned();
        let method = request["method"].as_str().unwrap_or("GET").to_owned();
        let address = format!("{method} {} {body}", plain(url.as_str()));
        let address = address.trim_end().to_owned();
        if is_inside && depth <= max_depth && !self.depths.contains_key(&address) {
            self.depths.insert(address, depth);
            self.waiting.push_back(QueuedRequest {
                url,
                method,
                body,
                depth,
            });
        }
    }
}

/// Follows everything, breadth first or depth first, and returns the depth of each address.
async fn walk(closure: &Closure, depth_first: bool) -> BTreeMap<String, u32> {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _installed = rustls::crypto::ring::default_provider().install_default();
    }
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]);
    let client = client.redirect(reqwest::redirect::Policy::none());
    let client = client.build().unwrap();
    let mut walk = Walk::default();
    let max_depth = closure.plan.max_depth;
    let root: Vec<Value> = serde_json::from_str(&closure.root()).unwrap();
    walk.find(&root[0], 0, max_depth);
    while let Some(queued) = match depth_first {
        true => walk.waiting.pop_back(),
        false => walk.waiting.pop_front(),
    } {
        let answer = loop {
            let request = client.request(queued.method.parse().unwrap(), queued.url.clone());
            let Ok(answer) = request.body(queued.body.clone()).send().await else {
                continue;
            };
            let status = answer.status().as_u16();
            if let Some(to) = answer.headers().get("location") {
                let to = json!({"url": to.to_str().unwrap()});
                walk.find(&to, queued.depth, max_depth);
                break Vec::new();
            }
            match (status, answer.text().await) {
                (404 | 410, _) => break Vec::new(),
                (200, Ok(text)) => break serde_json::from_str(&text).unwrap(),
                (503, _) | (200, Err(_)) => {}
                (other, _) => panic!("{}: {other}", queued.url),
            }
        };
        for found in &answer {
            walk.find(found, queued.depth + 1, max_depth);
        }
    }
    walk.depths
}

#[tokio::test]
async fn a_walk_finds_the_known_pages_in_whatever_order_it_goes() {
    for seed in [1, 2] {
        let closure = Closure::open(plan(seed));
        let known = closure.pages();
        assert_eq!(known.len(), 900);
        let in_width = walk(&closure, false).await;
        assert_eq!(in_width.keys().cloned().collect::<BTreeSet<_>>(), known);
        let n_failures: usize = closure.known.pages.iter().map(|p| p.failures.len()).sum();
        assert_eq!(closure.n_asked(), known.len() + n_failures);
        assert!(closure.account().again_in_one_life.is_empty());
        closure.begin_life();
        let in_depth = walk(&closure, true).await;
        assert_eq!(in_depth, in_width, "depths depend on the order");
        let account = closure.account();
        assert_eq!(account.asked, known);
        assert!(account.again_in_one_life.is_empty());
        assert!(account.refetches[&0] > 800, "{:?}", account.refetches);
    }
}

#[test]
fn a_closure_has_some_of_everything() {
    let closure = Closure::open(plan(7));
    let pages = &closure.known.pages;
    let count = |is: &dyn Fn(&pages::Page) -> bool| pages.iter().filter(|p| is(p)).count();
    assert!(count(&|p| !p.failures.is_empty()) > 20);
    assert!(count(&|p| matches!(p.answer, Answer::Gone(_))) > 10);
    for status in [301, 302, 308] {
        let redirects = |p: &pages::Page| matches!(p.answer, Answer::Redirect(s, _) if s == status);
        assert!(count(&redirects) > 10, "{status}");
    }
    assert!(count(&|p| p.body.is_some()) > 20);
    assert!(count(&|p| p.is_slow) > 3);
    let deepest = pages.iter().map(|p| p.depth).max();
    assert_eq!(deepest, Some(40));
    let totals = closure.totals();
    assert_eq!(totals.parsed as usize, closure.items().len());
}
