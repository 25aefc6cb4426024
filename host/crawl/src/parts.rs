//! Parts and settings that a crawl gets when it begins.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::incidents::CrawlIncidents;
use super::limit_uses::LimitUses;
use super::log::CrawlLog;
use super::pacing::Pacing;
use super::peers::PeerShards;
use super::permit::FetchPermit;
use crawler_archive::Archive;
use crawler_data::KeptFiles;
use crawler_fetch::Fetch;
use crawler_frontier::Frontier;
use crawler_model::crawl::UnixMillis;
use crawler_model::id::{Digest, ResourceId, Run};
use crawler_model::plugin::Limits;
use crawler_model::resource::CrawlSettings;
use crawler_plugin::Rules;
use crawler_process::clock::Clock;
use crawler_process::memory::CrawlMemory;
use crawler_process::traces::Tracer;

/// Dependencies and settings of a crawl.
#[derive(Clone)]
pub struct CrawlParts {
    /// Id of the resource; part of every item key.
    pub resource: ResourceId,
    /// Number of the run.
    pub run: Run,
    /// Time when the run began, the same for all shards: `root` sees it as the present moment.
    pub run_started_at: UnixMillis,
    /// Digest of the plugin, by which pages are told apart that another one has parsed. If `None`, all pages are: none is
    /// skipped because it is unchanged.
    pub plugin: Option<Digest>,
    /// Parameters that are passed to the rules.
    pub params: Arc<BTreeMap<String, String>>,
    /// Settings that may change while the crawl runs.
    pub config: watch::Receiver<CrawlConfig>,
    /// The plugin.
    pub rules: Arc<dyn Rules>,
    /// Frontier of the crawl. No other task writes to it.
    pub frontier: Arc<dyn Frontier>,
    /// Fetcher, shared with all crawls of the process.
    pub fetch: Arc<dyn Fetch>,
    /// Kept files of the resource. If `None`, bodies are hashed and counted for rules that want them kept, and stored
    /// nowhere.
    pub files: Option<KeptFiles>,
    /// Archive of requests and answers. If `None`, nothing is recorded.
    pub archive: Option<Archive>,
    /// Wall clock.
    pub clock: Arc<dyn Clock>,
    /// Log for messages of rules and for killed calls.
    pub log: CrawlLog,
    /// Incidents that become events of the resource.
    pub incidents: CrawlIncidents,
    /// Largest use of each limit by a call.
    pub limit_uses: LimitUses,
    /// Permit to fetch. Without it nothing is fetched; everything else goes on.
    pub permit: Arc<dyn FetchPermit>,
    /// Pages that the crawl has begun before, which count for its rate.
    pub pacing: Pacing,
    /// Other shards of the resource. `None` if the resource has one shard.
    pub peers: Option<PeerShards>,
    /// Time without work after which the crawl ends as resting. If `None`, it waits.
    pub rest_after: Option<Duration>,
    /// Memory of the crawl, which shares that of the process.
    pub crawl_memory: CrawlMemory,
    /// Beginning of the traces of pages.
    pub tracer: Tracer,
}

/// Settings that may change while a crawl runs; they apply to pages taken from then on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CrawlConfig {
    /// Limits of each call of a rule.
    pub limits: Limits,
    /// Settings of how far and how fast to crawl.
    pub settings: CrawlSettings,
}
