//! robots.txt of the hosts of a crawl, kept in its frontier.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use url::Url;

use crawler_fetch::robots::RobotsStore;
use crawler_frontier::Frontier;
use crawler_model::robots::KeptRobots;

/// The frontier of a crawl, as a store of robots.txt.
pub(super) struct RobotsInFrontier(pub(super) Arc<dyn Frontier>);

impl fmt::Debug for RobotsInFrontier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RobotsInFrontier").finish_non_exhaustive()
    }
}

#[async_trait]
impl RobotsStore for RobotsInFrontier {
    async fn kept(&self, url: &Url) -> Option<KeptRobots> {
        let kept = self.0.kept_robots(url).await;
        kept.unwrap_or_else(|error| {
            tracing::warn!(%error, %url, "a robots.txt that was kept cannot be read");
            None
        })
    }

    fn keep(&self, url: &Url, robots: KeptRobots) {
        self.0.keep_robots(url, robots);
    }
}
