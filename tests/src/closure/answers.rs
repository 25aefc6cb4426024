//! Answers of the hosts of a closure, and their log.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use serde_json::{Value, json};

use super::pages::{Answer, Failure, Link, Page, SLOW, Spelling, To};
use crate::web::{Asked, IntoResponse as _, Method, Response, StatusCode, header};

/// A request for a page, as the log of a closure keeps it.
#[derive(Debug, Clone)]
pub(super) struct Ask {
    /// Number of the page. `None` if there is no such page.
    pub(super) page: Option<usize>,
    /// Address, as [`Known::address`] writes it.
    pub(super) address: String,
    /// Number of the life of the crawler that it belongs to.
    pub(super) life: u32,
}

/// Knowledge that the hosts share.
pub(super) struct Known {
    pub(super) pages: Vec<Page>,
    hosts: Vec<SocketAddr>,
    outside: SocketAddr,
    pace: Duration,
    by_address: HashMap<String, usize>,
    pub(super) life: AtomicU32,
    log: Mutex<Log>,
    changed: Condvar,
}

#[derive(Default)]
pub(super) struct Log {
    pub(super) asks: Vec<Ask>,
    n_by_page: HashMap<usize, usize>,
}

impl Known {
    pub(super) fn new(
        pages: Vec<Page>,
        hosts: Vec<SocketAddr>,
        outside: SocketAddr,
        pace: Duration,
    ) -> Self {
        let mut known = Self {
            pages,
            hosts,
            outside,
            pace,
            by_address: HashMap::new(),
            life: AtomicU32::new(0),
            log: Mutex::default(),
            changed: Condvar::new(),
        };
        let addresses = (0..known.pages.len()).map(|n| (known.address(n), n));
        known.by_address = addresses.collect();
        assert_eq!(
            known.by_address.len(),
            known.pages.len(),
            "two pages share an address"
        );
        known
    }

    pub(super) fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until this number of requests has come; false if the deadline comes first.
    pub(super) fn wait_for(&self, n_asks: usize, deadline: Duration) -> bool {
        let waited = self
            .changed
            .wait_timeout_while(self.log(), deadline, |log| log.asks.len() < n_asks);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Address of a page.
    pub(super) fn url(&self, page: usize) -> String {
        let page = &self.pages[page];
        format!("http://{}{}", self.hosts[page.host], page.path)
    }

    /// Method, address and body of a page.
    pub(super) fn address(&self, page: usize) -> String {
        let method = match self.pages[page].body {
            Some(_) => "POST",
            None => "GET",
        };
        let body = self.pages[page].body.as_deref().unwrap_or_default();
        address(method, &self.url(page), body)
    }

    /// Returns a request for a page, as the guest `puppet` reads it.
    pub(super) fn request(&self, from: usize, link: Link) -> Value {
        match link.to {
            To::Page(page) => {
                let url = spelled(&self.url(page), link.spelling);
                let state = page.to_string();
                match &self.pages[page].body {
                    Some(body) => {
                        json!({"url": url, "state": state, "method": "POST", "body": body})
                    }
                    None => json!({"url": url, "state": state}),
                }
            }
            To::Beyond => json!({"url": following(&self.url(from)), "state": "beyond"}),
            To::Outside => json!({"url": format!("http://{}/", self.outside)}),
            To::Mail => json!({"url": "mailto:somebody@example.org"}),
        }
    }

    /// Records a request and answers it.
    pub(super) async fn answer(&self, host: usize, asked: Asked) -> Response {
        let mut url = format!("http://{}{}", self.hosts[host], asked.path);
        if !asked.query.is_empty() {
            url = format!("{url}?{}", asked.query);
        }
        let url = plain(&url);
        let body = String::from_utf8_lossy(&asked.body).into_owned();
        let address = address(asked.method.as_str(), &url, &body);
        let page = self.by_address.get(&address).copied();
        let nth = {
            let mut log = self.log();
            log.asks.push(Ask {
                page,
                address,
                life: self.life.load(Ordering::SeqCst),
            });
            let nth = page.map(|page| log.n_by_page.entry(page).or_default());
            let nth = nth.map(|n| std::mem::replace(n, *n + 1));
            self.changed.notify_all();
            nth.unwrap_or_default()
        };
        let Some(n) = page else {
            tokio::time::sleep(self.pace).await;
            return match asked.method {
                Method::GET if is_trap(&asked.path) => {
                    links(vec![json!({"url": following(&url), "state": "beyond"})])
                }
                _ => StatusCode::NOT_FOUND.into_response(),
            };
        };
        let page = &self.pages[n];
        let times = if page.is_slow { SLOW } else { 1 };
        tokio::time::sleep(self.pace * times).await;
        match page.failures.get(nth) {
            Some(Failure::Busy) => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
            Some(Failure::Reset) => return broken(),
            None => {}
        }
        match &page.answer {
            Answer::Links(to) => links(to.iter().map(|link| self.request(n, *link)).collect()),
            Answer::Gone(status) => status_of(*status).into_response(),
            Answer::Redirect(status, to) => {
                (status_of(*status), [(header::LOCATION, self.url(*to))]).into_response()
            }
        }
    }
}

fn address(method: &str, url: &str, body: &str) -> String {
    match body {
        "" => format!("{method} {url}"),
        body => format!("{method} {url} {body}"),
    }
}

fn links(wishes: Vec<Value>) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (kind, Value::Array(wishes).to_string()).into_response()
}

fn status_of(status: u16) -> StatusCode {
    StatusCode::from_u16(status).expect("pages have statuses that there are")
}

/// Returns an answer that never becomes whole.
fn broken() -> Response {
    let parts = [
        Ok(Bytes::from_static(b"[{\"url\": ")),
        Err(std::io::Error::other("broken on purpose")),
    ];
    Body::from_stream(futures::stream::iter(parts)).into_response()
}

fn is_trap(path: &str) -> bool {
    path.starts_with("/calendar/") || path == "/search"
}

/// Returns the address whose last number is one more.
fn following(url: &str) -> String {
    let start = url.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let (before, number) = url.split_at(start);
    let number: u64 = number
        .parse()
        .expect("addresses of traps end with a number");
    format!("{before}{}", number + 1)
}

/// Returns an address in the form that pages are known by: without encoded letters and `~`, or an empty query.
/// Requests are sent as links were written, so the same page is asked for by several names.
pub(super) fn plain(url: &str) -> String {
    let url = url.strip_suffix('?').unwrap_or(url);
    url.replace("%7e", "~").replace("%70", "p")
}

/// Returns another way to write an address.
fn spelled(url: &str, spelling: Spelling) -> String {
    match spelling {
        Spelling::Plain => url.to_owned(),
        Spelling::Fragment => format!("{url}#part-2"),
        Spelling::Dots => {
            let path = url.match_indices('/').nth(2).expect("it has a path").0;
            format!("{}/a/./b/../..{}", &url[..path], &url[path..])
        }
        Spelling::Capitals => url.replacen("http://", "HTTP://", 1),
        Spelling::Number => url.replacen("http://127.", "http://0x7f.", 1),
        Spelling::Encoded => url.replace('~', "%7e").replace("/p/", "/%70/"),
        Spelling::Question if url.contains('?') => url.to_owned(),
        Spelling::Question => format!("{url}?"),
        Spelling::Spaces => format!(" {}\n", url.replace("%20", " ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_is_the_same_address_to_a_parser() {
        for url in [
            "http://127.0.0.3:81/~7/a%20b",
            "http://127.0.0.3:81/list?n=1",
        ] {
            check_spellings(url);
        }
    }

    #[track_caller]
    fn check_spellings(known: &str) {
        let parsed = |url: &str| {
            let mut url: url::Url = url.parse().unwrap();
            url.set_fragment(None);
            plain(url.as_str())
        };
        for spelling in [
            Spelling::Plain,
            Spelling::Fragment,
            Spelling::Dots,
            Spelling::Capitals,
            Spelling::Number,
            Spelling::Spaces,
            Spelling::Encoded,
            Spelling::Question,
        ] {
            let other = spelled(known, spelling);
            assert_eq!(parsed(&other), known, "{other:?}");
        }
    }

    #[test]
    fn a_trap_goes_on() {
        assert_eq!(
            following("http://a/search?page=9"),
            "http://a/search?page=10"
        );
    }
}
