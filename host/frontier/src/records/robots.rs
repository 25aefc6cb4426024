//! Record of a robots.txt.

use bytes::Bytes;
use prost::Message;

use crawler_model::robots::KeptRobots;

/// robots.txt of a host.
#[derive(Clone, PartialEq, Message)]
pub(in super::super) struct Robots {
    /// Scheme, host and port of the site, and the proxies that it was asked through.
    #[prost(string, tag = "1")]
    pub(in super::super) origin: String,
    /// Time of the site's answer, by the wall clock.
    #[prost(uint64, tag = "2")]
    pub(in super::super) at: u64,
    /// The file; absent if the site has none.
    #[prost(bytes = "bytes", optional, tag = "3")]
    pub(in super::super) file: Option<Bytes>,
    /// Product token that it was read for.
    #[prost(string, tag = "4")]
    pub(in super::super) agent: String,
}

impl From<KeptRobots> for Robots {
    fn from(robots: KeptRobots) -> Self {
        Self {
            origin: robots.origin,
            agent: robots.agent,
            at: robots.at,
            file: robots.file,
        }
    }
}

impl From<Robots> for KeptRobots {
    fn from(robots: Robots) -> Self {
        Self {
            origin: robots.origin,
            agent: robots.agent,
            at: robots.at,
            file: robots.file,
        }
    }
}
