//! robots.txt of the hosts of a crawl, kept in its frontier.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use tokio::sync::watch;
use url::Url;

use super::parts::{CrawlConfig, CrawlParts};
use super::peers::PeerShards;
use crawler_fetch::robots::RobotsStore;
use crawler_frontier::Frontier;
use crawler_model::robots::KeptRobots;

/// Divisor that gives the share of `max-disk` up to which the frontier may be filled when a file is kept: URLs need the rest.
const DISK_SHARE: u64 = 2;

/// The frontier of a crawl, as a store of robots.txt.
pub(super) struct RobotsInFrontier {
    frontier: Arc<dyn Frontier>,
    config: watch::Receiver<CrawlConfig>,
    peers: Option<PeerShards>,
}

impl RobotsInFrontier {
    pub(super) fn new(parts: &CrawlParts) -> Self {
        Self {
            frontier: Arc::clone(&parts.frontier),
            config: parts.config.clone(),
            peers: parts.peers.clone(),
        }
    }
}

impl fmt::Debug for RobotsInFrontier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RobotsInFrontier").finish_non_exhaustive()
    }
}

#[async_trait]
impl RobotsStore for RobotsInFrontier {
    async fn kept(&self, url: &Url) -> Option<KeptRobots> {
        let kept = self.frontier.kept_robots(url).await;
        kept.unwrap_or_else(|error| {
            tracing::warn!(%error, "robots.txt that were kept cannot be read; sites are asked");
            None
        })
    }

    fn keep(&self, url: &Url, robots: KeptRobots) {
        let max = self.config.borrow().settings.max_disk();
        let max = self.peers.as_ref().map_or(max, |peers| peers.share(max));
        if self.frontier.disk_bytes() < max / DISK_SHARE {
            self.frontier.keep_robots(url, robots);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doubles::FaultyFrontier;
    use crawler_model::resource::CrawlSettings;

    #[tokio::test]
    async fn files_are_kept_while_the_frontier_has_room_for_urls() {
        let settings = CrawlSettings {
            max_disk: Some(1_000),
            ..CrawlSettings::default()
        };
        let limits = Default::default();
        let (_sender, config) = watch::channel(CrawlConfig { limits, settings });
        let url = "http://a.test/".parse().unwrap();
        let robots = KeptRobots {
            origin: "http://a.test".to_owned(),
            agent: "crawler".to_owned(),
            at: 1,
            file: None,
        };
        for (disk_bytes, is_kept, fails_on_robots) in
            [(499, true, false), (500, false, false), (0, false, true)]
        {
            let frontier = Arc::new(FaultyFrontier {
                disk_bytes,
                fails_on_robots,
                ..FaultyFrontier::default()
            });
            let store = RobotsInFrontier {
                frontier,
                config: config.clone(),
                peers: None,
            };
            store.keep(&url, robots.clone());
            let expected = is_kept.then(|| robots.clone());
            assert_eq!(store.kept(&url).await, expected, "{disk_bytes}");
        }
    }
}
