//! Store of robots.txt that outlives the process.

use async_trait::async_trait;
use url::Url;

use crawler_model::robots::KeptRobots;

/// Store of robots.txt. It has one file for each host; a later one replaces it, also if it is that of another origin.
#[async_trait]
pub trait RobotsStore: std::fmt::Debug + Send + Sync {
    /// Returns the file of the host of a URL. `None` if there is none, or it cannot be read.
    async fn kept(&self, url: &Url) -> Option<KeptRobots>;

    /// Keeps a file for the host of a URL. It may be lost: then the site is asked anew.
    fn keep(&self, url: &Url, robots: KeptRobots);
}
