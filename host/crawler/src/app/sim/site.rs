//! Pages of known links and items.
//!
//! Each life of a name has hosts of its own, so that a request and an item tell which life they belong to.
//! The content of a page follows from its number alone.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::time::Duration;

use url::Url;

use crawler_model::id::Shard;
use crawler_model::links;

/// Delay between two requests to a host, for all resources.
pub(super) const DELAY: Duration = Duration::from_millis(500);

/// Site of one life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) life: u64,
    pub(super) n_hosts: u64,
    pub(super) n_pages: u64,
    pub(super) n_shards: u32,
}

impl Site {
    pub(super) fn params(&self) -> BTreeMap<String, String> {
        let pairs = [
            ("life", self.life),
            ("hosts", self.n_hosts),
            ("pages", self.n_pages),
            ("shards", u64::from(self.n_shards)),
        ];
        let pairs = pairs.map(|(name, n)| (name.to_owned(), n.to_string()));
        pairs.into()
    }

    pub(super) fn of_params(params: &BTreeMap<String, String>) -> Option<Self> {
        let n = |name| params.get(name)?.parse().ok();
        Some(Self {
            life: n("life")?,
            n_hosts: n("hosts")?,
            n_pages: n("pages")?,
            n_shards: u32::try_from(n("shards")?).ok()?,
        })
    }

    pub(super) fn host(&self, page: u64) -> String {
        format!("h{}.l{}.test", page % self.n_hosts, self.life)
    }

    pub(super) fn url(&self, page: u64) -> Url {
        let url = format!("http://{}/{page}", self.host(page));
        url.parse().expect("a URL")
    }

    /// Returns the shard of a host's pages.
    pub(super) fn shard_of(&self, host: &str) -> Shard {
        let url = format!("http://{host}/").parse().expect("a URL");
        let n_shards = NonZeroU32::new(self.n_shards).unwrap_or(NonZeroU32::MIN);
        links::shard_of(&url, n_shards)
    }

    /// Returns the pages that root asks for: one of each host.
    pub(super) fn roots(&self) -> Vec<u64> {
        (0..self.n_hosts).collect()
    }

    pub(super) fn links(&self, page: u64) -> Vec<u64> {
        let links = [2 * page + 1, 2 * page + 2, mix(page) % self.n_pages];
        links
            .into_iter()
            .filter(|page| *page < self.n_pages)
            .collect()
    }

    pub(super) fn n_items(page: u64) -> u64 {
        mix(page + 1_000) % 3
    }

    /// Returns true if a page never answers: it is given up after its attempts.
    pub(super) fn is_broken(&self, page: u64) -> bool {
        page >= self.n_hosts && mix(page + 7 * self.life).is_multiple_of(19)
    }

    /// Returns all pages that are reached from the roots if these dead pages are given up.
    pub(super) fn closure(&self, dead: &BTreeSet<u64>) -> BTreeSet<u64> {
        let mut reached = BTreeSet::new();
        let mut open = self.roots();
        while let Some(page) = open.pop() {
            if reached.insert(page) && !dead.contains(&page) {
                open.extend(self.links(page));
            }
        }
        reached
    }

    pub(super) fn items(&self, page: u64) -> Vec<String> {
        let item = |n| format!(r#"{{"life":{},"page":{page},"n":{n}}}"#, self.life);
        (0..Self::n_items(page)).map(item).collect()
    }
}

fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (n ^ (n >> 29)) >> 8
}

/// Parses host, life and page of a URL.
pub(super) fn parse(url: &Url) -> Option<(String, u64, u64)> {
    let host = url.host_str()?;
    let life = host.split('.').nth(1)?.strip_prefix('l')?;
    Some((
        host.to_owned(),
        life.parse().ok()?,
        url.path()[1..].parse().ok()?,
    ))
}
