//! A fake web of several hosts whose pages are known before any crawl: the addresses, the item that each page
//! gives, and the number of requests that each needs.
//!
//! The web has loops, redirects within a host and across hosts, pages that answer 503 or break the connection
//! first, slow pages, lists whose parts are asked for by POST, pages that are gone, pages without end, and
//! addresses written in many ways. The guest `puppet` reads it. Every request is kept, with the life of the
//! crawler it belongs to.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::Deserialize;
use serde_json::json;

use crate::web::{IntoResponse as _, Site, StatusCode, Web};
use answers::Known;
pub use pages::Plan;
use pages::{Answer, N_HOSTS};

mod answers;
mod pages;

/// An open closure. Dropping it closes its hosts.
pub struct Closure {
    known: Arc<Known>,
    plan: Plan,
    outside: Web,
    _hosts: Vec<Web>,
}

/// An item that the guest `puppet` makes of a page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Visit {
    /// Address that the answer came from.
    pub url: String,
    /// Number of links between the first page and this one.
    pub depth: u32,
    /// Number of the page.
    pub state: String,
}

/// Totals of a crawl of the whole closure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Pages that a rule has read.
    pub parsed: u64,
    /// Pages that are gone, redirected, or duplicates.
    pub other_done: u64,
}

/// Summary of the log.
#[derive(Debug, Default)]
pub struct Account {
    /// Method, address and body of all that was asked for.
    pub asked: BTreeSet<String>,
    /// Requests for pages whose final answer had been sent, by the life of the crawler that had the answer and was
    /// killed.
    pub refetches: BTreeMap<u32, u64>,
    /// Repeated requests after a final answer in the same life, which nothing explains.
    pub again_in_one_life: Vec<String>,
    /// Number of all requests.
    pub n_asks: usize,
}

impl Visit {
    /// Reads the items of a crawl, one JSON object a line, in their order.
    #[track_caller]
    pub fn read(lines: &str) -> Vec<Self> {
        let read = |line: &str| {
            let visit: Self =
                serde_json::from_str(line).unwrap_or_else(|e| panic!("{e} in {line:?}"));
            let url = answers::plain(&visit.url);
            Self { url, ..visit }
        };
        lines.lines().map(read).collect()
    }
}

impl Closure {
    /// Makes the pages and opens their hosts, 127.0.0.1 and the next.
    pub fn open(plan: Plan) -> Self {
        let known: Arc<OnceLock<Arc<Known>>> = Arc::default();
        let host = |n: usize| {
            let known = Arc::clone(&known);
            let site = Site::new().handle("*", move |asked| {
                let known = known.get().map(Arc::clone);
                async move {
                    match known {
                        _ if asked.path == "/robots.txt" => StatusCode::NOT_FOUND.into_response(),
                        Some(known) => known.answer(n, asked).await,
                        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
                    }
                }
            });
            site.open_apart(loopback(n))
        };
        let hosts: Vec<Web> = (0..N_HOSTS).map(host).collect();
        let outside = Site::new().open_apart(loopback(N_HOSTS));
        let addresses = hosts.iter().map(Web::address).collect();
        let pages = pages::make(&plan);
        let pages = Known::new(pages, addresses, outside.address(), plan.pace);
        let pages = Arc::new(pages);
        assert!(
            known.set(Arc::clone(&pages)).is_ok(),
            "it is set here alone"
        );
        Self {
            known: pages,
            plan,
            outside,
            _hosts: hosts,
        }
    }

    /// Param `root` for a crawl of it.
    pub fn root(&self) -> String {
        json!([{"url": self.known.url(0), "state": "0"}]).to_string()
    }

    /// Arguments of the command line that make a crawl see all of it, and nothing else.
    pub fn arguments(&self) -> Vec<String> {
        let hosts: Vec<String> = (1..N_HOSTS).map(|n| loopback(n).to_string()).collect();
        vec![
            format!("--param=root={}", self.root()),
            format!("--scope={}", hosts.join(",")),
            format!("--max-depth={}", self.plan.max_depth),
            "--limit=cpu=2s".to_owned(),
            "--limit=timeout=20s".to_owned(),
        ]
    }

    /// Method, address and body of every page.
    pub fn pages(&self) -> BTreeSet<String> {
        let pages = 0..self.known.pages.len();
        pages.map(|page| self.known.address(page)).collect()
    }

    /// Items of a whole crawl.
    pub fn items(&self) -> BTreeSet<Visit> {
        let pages = &self.known.pages;
        let mut states: Vec<usize> = (0..pages.len()).collect();
        // The target of a redirect is asked for with the state of the page that redirects.
        for (n, page) in pages.iter().enumerate() {
            if let Answer::Redirect(_, to) = page.answer
                && to > n
            {
                states[to] = n;
            }
        }
        let visit = |(n, state): (usize, usize)| Visit {
            url: self.known.url(n),
            depth: pages[n].depth,
            state: state.to_string(),
        };
        let read = (0..pages.len()).zip(states);
        let read = read.filter(|(n, _)| matches!(pages[*n].answer, Answer::Links(_)));
        read.map(visit).collect()
    }

    /// Totals of a whole crawl.
    pub fn totals(&self) -> Totals {
        let pages = &self.known.pages;
        let n_read = pages
            .iter()
            .filter(|p| matches!(p.answer, Answer::Links(_)));
        let n_other = pages.iter().filter(|page| match page.answer {
            Answer::Links(_) => false,
            Answer::Gone(_) => true,
            // A redirect to a page that only it leads to is counted as that page.
            Answer::Redirect(301, _) => false,
            Answer::Redirect(..) => true,
        });
        Totals {
            parsed: n_read.count() as u64,
            other_done: n_other.count() as u64,
        }
    }

    /// Number of requests that an undisturbed crawl makes.
    pub fn n_needed(&self) -> usize {
        let pages = self.known.pages.iter();
        let needed = |page: &pages::Page| {
            let again = match page.answer {
                // The page is asked for once more when the late page leads to it.
                Answer::Redirect(308, _) => 1,
                _ => 0,
            };
            1 + page.failures.len() + again
        };
        pages.map(needed).sum()
    }

    /// Number of requests so far.
    pub fn n_asked(&self) -> usize {
        self.known.log().asks.len()
    }

    /// Number of pages that were asked for often enough to get their final answer.
    pub fn n_answered(&self) -> usize {
        let mut n_asked: BTreeMap<usize, usize> = BTreeMap::new();
        for ask in &self.known.log().asks {
            *n_asked.entry(ask.page.unwrap_or(usize::MAX)).or_default() += 1;
        }
        let pages = self.known.pages.iter().enumerate();
        let answered = |(n, page): &(usize, &pages::Page)| {
            n_asked
                .get(n)
                .is_some_and(|asked| *asked > page.failures.len())
        };
        pages.filter(answered).count()
    }

    /// Waits until this number of requests has come; false if the deadline comes first.
    pub fn wait_for(&self, n_asks: usize, deadline: Duration) -> bool {
        self.known.wait_for(n_asks, deadline)
    }

    /// Begins the next life of a crawler that was killed: later requests belong to it.
    pub fn begin_life(&self) {
        self.known.life.fetch_add(1, Ordering::SeqCst);
    }

    /// Summarises the requests, and those that came again. Panics if the host that is out of scope was asked.
    #[track_caller]
    pub fn account(&self) -> Account {
        assert!(self.outside.log().is_empty(), "out of scope");
        let log = self.known.log();
        let mut account = Account {
            n_asks: log.asks.len(),
            ..Account::default()
        };
        // Number of requests and life of the last one, for each page.
        let mut seen: BTreeMap<usize, (usize, u32)> = BTreeMap::new();
        for ask in &log.asks {
            account.asked.insert(ask.address.clone());
            let Some(n) = ask.page else { continue };
            let page = &self.known.pages[n];
            // A target is asked for with every request for the pages that redirect to it.
            if page.is_target() {
                continue;
            }
            let (n_asked, life) = seen.entry(n).or_insert((0, ask.life));
            if *n_asked > page.failures.len() {
                *account.refetches.entry(*life).or_default() += 1;
                if *life == ask.life {
                    account.again_in_one_life.push(ask.address.clone());
                }
            }
            (*n_asked, *life) = (*n_asked + 1, ask.life);
        }
        account
    }
}

fn loopback(n: usize) -> Ipv4Addr {
    let last = u8::try_from(n + 1).expect("there are few hosts");
    Ipv4Addr::new(127, 0, 0, last)
}

#[cfg(test)]
mod tests;
