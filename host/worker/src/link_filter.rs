//! Admission of links: which links from other shards a shard accepts.

use std::num::NonZeroU32;

use super::assigned::Assigned;
use crawler_crawl::peers::share_of;
use crawler_frontier::{Frontier, NewRequest};
use crawler_model::id::Shard;
use crawler_model::links::shard_of;
use crawler_model::resource::CrawlSettings;
use crawler_model::scope::{Bounds, DISK, GrowthBounds, RootHosts};

/// Word by which links are counted that belong to another shard.
const OTHER_SHARD: &str = "other-shard";

/// Admission of links that another shard has judged already, by the settings that apply here and now.
pub(super) struct LinkFilter {
    root_hosts: RootHosts,
    settings: CrawlSettings,
    own: Shard,
    n_shards: NonZeroU32,
    /// True if the frontier uses as much of the disk as it may.
    is_full: bool,
}

impl LinkFilter {
    /// Returns the filter of this run, or `None` before its root requests are stored.
    pub(super) fn of(assigned: &Assigned, frontier: &dyn Frontier) -> Option<Self> {
        let roots = frontier.roots()?;
        let settings = assigned.config.borrow().settings.clone();
        let n_shards = assigned.resource.spec.placement.n_shards();
        let own = assigned.shard.id.shard;
        Some(Self {
            root_hosts: RootHosts::of(&roots),
            is_full: frontier.disk_bytes() >= share_of(settings.max_disk(), own, n_shards),
            settings,
            own,
            n_shards,
        })
    }

    pub(super) fn growth(&self) -> GrowthBounds {
        let hosts = share_of(self.settings.max_hosts(), self.own, self.n_shards);
        GrowthBounds {
            pattern_urls: self.settings.max_pattern_urls(),
            hosts,
        }
    }

    /// Returns the word by which a link is counted that this shard does not follow. The link still counts as
    /// taken: otherwise the run of the sender would never end.
    pub(super) fn refusal(&self, link: &NewRequest) -> Option<&'static str> {
        if self.is_full {
            return Some(DISK);
        }
        if shard_of(&link.request.url, self.n_shards) != self.own {
            return Some(OTHER_SHARD);
        }
        let bounds = Bounds {
            root_hosts: &self.root_hosts,
            settings: &self.settings,
        };
        let refusal = bounds.refusal(&link.request, link.depth);
        refusal.map(|refusal| refusal.as_str())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crawler_model::crawl::Request;

    /// Returns a filter that accepts host `a`, of a resource of one shard.
    fn filter(settings: CrawlSettings) -> LinkFilter {
        LinkFilter {
            root_hosts: RootHosts::of(&["http://a/".parse().unwrap()]),
            settings,
            own: Shard(0),
            n_shards: NonZeroU32::MIN,
            is_full: false,
        }
    }

    #[test]
    fn r14_links_of_other_shards_are_judged_again() {
        let settings = CrawlSettings {
            max_depth: Some(2),
            ..CrawlSettings::default()
        };
        let filter = filter(settings);
        let link = |url: &str, depth| NewRequest {
            request: Request::get(url.parse().unwrap(), "page"),
            depth,
        };
        assert_eq!(filter.refusal(&link("http://a/1", 2)), None);
        assert_eq!(filter.refusal(&link("http://a/1", 3)), Some("max-depth"));
        assert_eq!(filter.refusal(&link("http://b/1", 1)), Some("out-of-scope"));
        assert_eq!(filter.refusal(&link("ftp://a/1", 1)), Some("scheme"));
        let n_shards = NonZeroU32::new(64).unwrap();
        let own = shard_of(&"http://a/".parse().unwrap(), n_shards);
        let of = |own, is_full| LinkFilter {
            own,
            n_shards,
            is_full,
            ..filter_of_one()
        };
        let link = link("http://a/1", 1);
        assert_eq!(of(own, false).refusal(&link), None);
        assert_eq!(of(own, true).refusal(&link), Some(DISK));
        let other = Shard(own.0 ^ 1);
        assert_eq!(of(other, false).refusal(&link), Some(OTHER_SHARD));
    }

    pub(crate) fn filter_of_one() -> LinkFilter {
        filter(CrawlSettings::default())
    }
}
