//! A web that is made up from a seed: the same seed, the same web.
//!
//! Pages have numbers, and page `n` is on host `n % hosts`. The pages of a host form a tree whose root is the start of
//! the host, and the starts form a tree of their own. So each page can be reached from page 0. All further links lead
//! to pages with smaller numbers, mostly on the same host, as the links of real pages mostly lead to known ones.
//!
//! | address | answer |
//! |---|---|
//! | `/` | the start of a host |
//! | `/<word>/<n>.html` | page `n` |
//! | `/go/<n>` | a redirect to page `n`; all links to this page lead here |
//! | `/private/<n>.html` | robots.txt forbids it |
//! | `/missing/<n>.html` | status 404; page `n` links there |
//! | `/robots.txt` | rules of the site |

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::html::Html;
use super::{Share, host_name};
use crate::random::SplitMix64;

/// Number of links that lead down a tree from each of its pages.
const BRANCHES: u32 = 8;
/// Smallest and largest number of links of a page.
const LINKS: (u32, u32) = (10, 60);
/// Percentage of further links that stay on the host.
const OWN_HOST: u32 = 85;
/// Beginning of the paths that robots.txt forbids.
pub(super) const FORBIDDEN: &str = "/private/";
/// Number of pages of which one, on average, has a link that robots.txt forbids.
const PRIVATE: u64 = 50;
/// Words in addresses: a site has a few kinds of pages.
const KINDS: [&str; 6] = ["article", "author", "list", "news", "product", "topic"];
/// Sizes of pages in bytes that one, two, … sixteenths of all pages do not exceed. They follow a log-normal
/// distribution with a median of 15 kB, and are written out, so that no other machine computes them otherwise.
#[rustfmt::skip]
const SIZES: [u32; 16] = [
    1_000, 3_235, 4_749, 6_178, 7_644, 9_198, 10_904, 12_820, 15_000, 17_550, 20_635, 24_462, 29_435, 36_420, 47_380,
    69_550,
];
/// Largest size of a page in bytes.
const MAX_SIZE: u32 = 300_000;

/// Reasons for drawing numbers, so that each has numbers of its own.
#[derive(Clone, Copy)]
enum Draw {
    Kind = 1,
    Redirect,
    Failure,
    Missing,
    Private,
    Size,
    Links,
    Text,
}

/// Shape of a web.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebSettings {
    /// Number from which everything follows.
    pub seed: u64,
    /// Number of hosts; not 0.
    pub n_hosts: u32,
    /// Number of pages; not fewer than hosts.
    pub n_pages: u32,
    /// Share of the pages whose first request is answered by status 503, and share of those with a link to a page that
    /// is not there.
    pub errors: Share,
    /// Share of the pages that are reached by a redirect.
    pub redirects: Share,
}

/// A web that is made up.
#[derive(Debug, Clone)]
pub struct Web {
    settings: WebSettings,
}

/// Thing at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The page of this number.
    Page(u32),
    /// A redirect to this path of the same host.
    Redirect(String),
    /// The rules of the site.
    Robots,
    /// A page that the rules forbid.
    Forbidden,
    /// There is no page.
    Nothing,
}

impl Web {
    /// Creates the web of this shape.
    pub fn new(settings: WebSettings) -> Self {
        Self { settings }
    }

    /// Returns the number of hosts.
    pub fn n_hosts(&self) -> u32 {
        self.settings.n_hosts
    }

    /// Returns the number of pages.
    pub fn n_pages(&self) -> u32 {
        self.settings.n_pages
    }

    /// Returns what is at an address.
    pub fn find(&self, host: u32, path: &str) -> Found {
        let is_here = |page: &u32| *page < self.n_pages() && self.host_of(*page) == host;
        if path == "/robots.txt" {
            return Found::Robots;
        }
        if path == "/" {
            return Some(host)
                .filter(is_here)
                .map_or(Found::Nothing, Found::Page);
        }
        if path.starts_with(FORBIDDEN) {
            return Found::Forbidden;
        }
        let (page, is_redirect) = match path.strip_prefix("/go/") {
            Some(page) => (number(page), true),
            None => (number_of_page(path), false),
        };
        match page.filter(is_here) {
            Some(page) if is_redirect && self.is_redirected(page) => {
                Found::Redirect(self.path(page))
            }
            Some(page) if !is_redirect && self.path(page) == path => Found::Page(page),
            Some(_) | None => Found::Nothing,
        }
    }

    /// Returns true if the first request for a page fails.
    pub fn fails_first(&self, page: u32) -> bool {
        // A start that fails would delay all pages of its host.
        !self.is_start(page) && self.is_of(self.settings.errors, page, Draw::Failure)
    }

    /// Returns the text of a page. Links to other hosts have this port.
    pub fn html(&self, page: u32, port: u16) -> String {
        let size = self.size(page);
        let links = self.links(page, port);
        let random = self.random(page, Draw::Text);
        Html::new(random, size as usize).page(&format!("Page {page}"), &links)
    }

    /// Returns the addresses that a page links to, in their order.
    pub fn links(&self, page: u32, port: u16) -> Vec<String> {
        let mut random = self.random(page, Draw::Links);
        let host = self.host_of(page);
        let mut links: Vec<String> = self
            .below(page)
            .map(|below| self.link(host, below, port))
            .collect();
        let (least, most) = LINKS;
        let n_links = least + random.below(most - least + 1);
        let place = page / self.n_hosts();
        while links.len() < n_links as usize {
            let target = match random.below(100) < OWN_HOST {
                true => random.below(place + 1) * self.n_hosts() + host,
                false => random.below(page + 1),
            };
            links.push(self.link(host, target, port));
        }
        if self.is_of(self.settings.errors, page, Draw::Missing) {
            links.push(format!("/missing/{page}.html"));
        }
        if self
            .random(page, Draw::Private)
            .roll()
            .is_multiple_of(PRIVATE)
        {
            links.push(format!("{FORBIDDEN}{page}.html"));
        }
        links
    }

    /// Returns the pages below a page in the trees.
    fn below(&self, page: u32) -> impl Iterator<Item = u32> {
        let (n_hosts, n_pages) = (u64::from(self.n_hosts()), u64::from(self.n_pages()));
        let (host, place) = (u64::from(page) % n_hosts, u64::from(page) / n_hosts);
        let branches = |of: u64| {
            let first = u64::from(BRANCHES) * of + 1;
            first..first + u64::from(BRANCHES)
        };
        let starts = (place == 0).then(|| branches(host)).into_iter().flatten();
        let starts = starts.filter(move |host| *host < n_hosts);
        let own = branches(place).map(move |place| place * n_hosts + host);
        let all = starts.chain(own).filter(move |page| *page < n_pages);
        all.map(|page| u32::try_from(page).expect("it is smaller than the number of pages"))
    }

    /// Returns the address by which a page of a host links to another page.
    fn link(&self, from: u32, to: u32, port: u16) -> String {
        let path = match self.is_redirected(to) {
            true => format!("/go/{to}"),
            false => self.path(to),
        };
        match self.host_of(to) {
            host if host == from => path,
            host => format!("http://{}:{port}{path}", host_name(host)),
        }
    }

    fn path(&self, page: u32) -> String {
        match self.is_start(page) {
            true => "/".to_owned(),
            false => {
                let kind = self.random(page, Draw::Kind).pick(&KINDS);
                format!("/{kind}/{page}.html")
            }
        }
    }

    fn size(&self, page: u32) -> u32 {
        // A place among all sizes, in 65 536 steps from one sixteenth to the next.
        const STEPS: u64 = 1 << 16;
        let place = self.random(page, Draw::Size).roll() % (16 * STEPS);
        let (n, step) = ((place / STEPS) as usize, place % STEPS);
        let smallest = u64::from(SIZES[n]);
        let size = match SIZES.get(n + 1) {
            Some(next) => smallest + (u64::from(*next) - smallest) * step / STEPS,
            // The largest pages are rare.
            None => {
                let cubed = step * step / STEPS * step / STEPS;
                smallest + (u64::from(MAX_SIZE) - smallest) * cubed / STEPS
            }
        };
        u32::try_from(size).expect("it is at most the largest size")
    }

    fn host_of(&self, page: u32) -> u32 {
        page % self.n_hosts()
    }

    fn is_start(&self, page: u32) -> bool {
        page < self.n_hosts()
    }

    fn is_redirected(&self, page: u32) -> bool {
        !self.is_start(page) && self.is_of(self.settings.redirects, page, Draw::Redirect)
    }

    fn is_of(&self, share: Share, page: u32, draw: Draw) -> bool {
        share.has(self.random(page, draw).roll())
    }

    fn random(&self, page: u32, draw: Draw) -> SplitMix64 {
        SplitMix64::of_parts(self.settings.seed, &[page.into(), draw as u64])
    }
}

/// Returns the robots.txt of a site that forbids the paths which begin with this one, or nothing if it is empty.
pub(super) fn robots(forbidden: &str, crawl_delay: Duration) -> String {
    let rules = format!("user-agent: *\ndisallow: {forbidden}\n");
    match crawl_delay.is_zero() {
        true => rules,
        false => format!("{rules}crawl-delay: {}\n", crawl_delay.as_secs_f64()),
    }
}

/// Parses the number in `/<word>/<n>.html`.
fn number_of_page(path: &str) -> Option<u32> {
    let (_word, file) = path.strip_prefix('/')?.split_once('/')?;
    number(file.strip_suffix(".html")?)
}

/// Parses a number that is written as the web writes it: `007` is another address.
fn number(digits: &str) -> Option<u32> {
    let number: u32 = digits.parse().ok()?;
    (number.to_string() == digits).then_some(number)
}

#[cfg(test)]
mod tests;
