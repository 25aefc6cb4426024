//! Politeness of a request towards the hosts on its way: what its resource asks for.

use std::sync::Arc;
use std::time::Duration;

use super::proxy_pools::ProxyPool;
use crate::FetchRequest;
use crate::robots::{ProxyName, RobotsStore};
use crate::throttle::{Pace, Requester};
use crawler_model::frontier::DelaySource;
use crawler_model::settings::{Rates, Robots};

/// Politeness of a request towards the hosts on its way.
#[derive(Debug, Clone)]
pub(super) struct Politeness {
    /// Time between the end of an answer and the next request. If `None`, the throttle's default applies.
    pub(super) delay: Option<Duration>,
    pub(super) random_delay: Duration,
    pub(super) host_rate: Rates,
    /// True if its resource names the port of its host.
    pub(super) names_port: bool,
    pub(super) robots: Robots,
    /// Store of robots.txt that outlives the process, if there is one.
    pub(super) robots_store: Option<Arc<dyn RobotsStore>>,
    pub(super) max_crawl_delay: Duration,
    pub(super) pool: Option<Arc<ProxyPool>>,
    pub(super) requester: Requester,
}

impl Politeness {
    pub(super) fn of(request: &FetchRequest, pool: Option<Arc<ProxyPool>>) -> Self {
        Self {
            delay: request.delay,
            random_delay: request.random_delay,
            host_rate: request.host_rate.clone(),
            names_port: request.names_port,
            robots: request.robots,
            robots_store: request.robots_store.clone(),
            max_crawl_delay: request.max_crawl_delay,
            pool,
            requester: request.requester,
        }
    }

    /// Returns true if the site's robots.txt is ignored.
    pub(super) fn ignores_robots(&self) -> bool {
        self.robots == Robots::Ignore
    }

    pub(super) fn proxy(&self) -> ProxyName<'_> {
        self.pool.as_ref().map(|pool| pool.name())
    }

    pub(super) fn pace(&self, delay: Duration) -> Pace {
        Pace {
            delay,
            delay_by: DelaySource::Setting,
            random: self.random_delay,
            rates: self.host_rate.clone(),
        }
    }
}
