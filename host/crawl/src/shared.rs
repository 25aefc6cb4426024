//! State that the tasks of one crawl share, and its reports about the crawl as a whole.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::backlog;
use super::drift::Drift;
use super::end::CrawlEnd;
use super::parts::{CrawlConfig, CrawlParts};
use super::robots::RobotsInFrontier;
use super::slot::SlotPool;
use super::traced::Undelivered;
use crawler_fetch::cookies::CookieJar;
use crawler_fetch::throttle::Requester;
use crawler_frontier::FrontierError;
use crawler_model::crawl::UnixMillis;
use crawler_model::number;
use crawler_model::parsed_by::{ParsedBy, Parser};
use crawler_model::plugin::Limits;
use crawler_model::resource::{Cookies, CrawlSettings};
use crawler_model::scope::{Bounds, GrowthBounds, RootHosts};
use crawler_model::statistics::{Matched, PlanNames, PlanRead};
use crawler_plugin::CallConfig;

/// State that the tasks of one crawl share.
pub(super) struct Shared {
    pub(super) parts: CrawlParts,
    /// Hosts of the root requests, as the scope needs them.
    pub(super) root_hosts: RootHosts,
    pub(super) cookies: Arc<CookieJar>,
    /// The frontier, as the store of the robots.txt of its hosts.
    pub(super) robots_store: Arc<RobotsInFrontier>,
    /// Plugin and params by which pages are parsed. `None` if it is not known which plugin it is.
    pub(super) parser: Option<Parser>,
    /// Names of the plans of the rules, in the order of their numbers.
    pub(super) plans: Vec<Arc<PlanNames>>,
    /// Signals that a page has ended, or the outbox has room, so that the loop looks again.
    pub(super) progress: Arc<Notify>,
    /// Signals that the outbox has items, or that the crawl waits for their delivery.
    pub(super) items: Notify,
    /// True while the crawl can do nothing until its items are delivered.
    pub(super) waits_for_delivery: AtomicBool,
    /// Number of pages that came to an end in this run, without those that were not due.
    pub(super) n_ended: AtomicU64,
    /// Size in bytes of all bodies in this run.
    pub(super) n_bytes: AtomicU64,
    /// Size in bytes of all bodies that were kept as files in this run.
    pub(super) n_kept_bytes: AtomicU64,
    /// Guard for logging once that a file has no room in the quota.
    pub(super) logged_kept: Once,
    /// Guard for logging once that a pattern has as many URLs as it may.
    pub(super) logged_pattern: Once,
    /// Guard for logging once that there are as many hosts as there may be.
    pub(super) logged_hosts: Once,
    /// Guard for logging once that the frontier has as many bytes on disk as it may.
    pub(super) logged_disk: Once,
    pub(super) early_end: Mutex<Option<CrawlEnd>>,
    /// Identity and patience of the crawl when it asks for the turns of hosts.
    pub(super) requester: Requester,
    /// Slots of pages that are fetched, parsed or committed.
    pub(super) pages: Arc<SlotPool>,
    /// Slots of claims whose hosts are being prepared.
    pub(super) preparing: Arc<SlotPool>,
    /// Judgement of items. `None` if there is no earlier run to judge by.
    pub(super) drift: Option<Drift>,
    /// Recorded pages whose items not all sinks have.
    pub(super) undelivered: Undelivered,
}

impl Shared {
    /// Ends the crawl as failed; the first end stays.
    pub(super) fn fail(&self, reason: String) {
        self.end(CrawlEnd::Failed(reason));
    }

    /// Ends the crawl because its frontier cannot be used; completed work is stored or is repeated.
    pub(super) fn lost_frontier(&self, error: FrontierError) {
        self.end(CrawlEnd::Frontier(error));
    }

    /// Ends the crawl early; the first end stays.
    pub(super) fn end(&self, end: CrawlEnd) {
        self.early_end
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(end);
        self.progress.notify_one();
    }

    pub(super) fn early_end(&self) -> Option<CrawlEnd> {
        self.early_end
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(super) fn may_rest(&self, until: UnixMillis) -> bool {
        let now = self.parts.clock.unix_millis();
        let wait = Duration::from_millis(until.saturating_sub(now));
        self.parts.rest_after.is_some_and(|after| wait > after)
    }

    /// Returns the moment before which no page is begun, or `None` if one may be begun now.
    pub(super) fn next_start_at(&self, settings: &CrawlSettings) -> Option<UnixMillis> {
        let n_shards = self.parts.peers.as_ref();
        let n_shards = n_shards.map_or(1, |peers| peers.n_shards.get());
        let now = self.parts.clock.unix_millis();
        self.parts.pacing.next_at(settings, n_shards, now)
    }

    pub(super) fn config(&self) -> CrawlConfig {
        self.parts.config.borrow().clone()
    }

    pub(super) fn cookies(&self, settings: &CrawlSettings) -> Option<Arc<CookieJar>> {
        match settings.cookies() {
            Cookies::Keep => Some(Arc::clone(&self.cookies)),
            Cookies::Ignore => None,
        }
    }

    pub(super) fn bounds<'a>(&'a self, settings: &'a CrawlSettings) -> Bounds<'a> {
        Bounds {
            root_hosts: &self.root_hosts,
            settings,
        }
    }

    /// Returns this shard's share of a limit of the whole resource.
    fn share(&self, max: u64) -> u64 {
        match &self.parts.peers {
            Some(peers) => peers.share(max),
            None => max,
        }
    }

    pub(super) fn growth(&self, settings: &CrawlSettings) -> GrowthBounds {
        GrowthBounds {
            pattern_urls: settings.max_pattern_urls(),
            hosts: self.share(settings.max_hosts()),
        }
    }

    /// Returns true if no more links are to be stored: setting `max-disk`.
    pub(super) fn is_disk_full(&self, settings: &CrawlSettings) -> bool {
        self.parts.frontier.disk_bytes() >= self.share(settings.max_disk())
    }

    /// Returns the number of bytes that this shard may keep as files in one run: its share of setting `max-kept`.
    pub(super) fn max_kept(&self, settings: &CrawlSettings) -> u64 {
        self.share(settings.max_kept())
    }

    /// Returns the number of bytes that may still be kept as files.
    pub(super) fn n_kept_left(&self, settings: &CrawlSettings) -> u64 {
        let n_bytes = self.n_kept_bytes.load(Ordering::Relaxed);
        self.max_kept(settings).saturating_sub(n_bytes)
    }

    /// Counts bytes as kept, unless fewer are left.
    pub(super) fn reserve_kept(&self, n_bytes: u64, settings: &CrawlSettings) -> bool {
        let max = self.max_kept(settings);
        let more = |n: u64| n.checked_add(n_bytes).filter(|sum| *sum <= max);
        let (relaxed, kept) = (Ordering::Relaxed, &self.n_kept_bytes);
        kept.fetch_update(relaxed, relaxed, more).is_ok()
    }

    /// Returns the size in bytes of waiting items at which no page is taken: this shard's share of setting
    /// `max-undelivered`.
    pub(super) fn max_undelivered(&self, settings: &CrawlSettings) -> u64 {
        self.share(settings.max_undelivered())
    }

    /// Sets whether the crawl waits until its items are delivered. While it does, they do not gather.
    pub(super) fn wait_for_delivery(&self, waits: bool) {
        self.waits_for_delivery.store(waits, Ordering::Relaxed);
        self.items.notify_one();
        if waits && let Some(drift) = &self.drift {
            drift.changed.notify_one();
        }
    }

    /// Returns true while the crawl waits until its items are delivered.
    pub(super) fn is_waiting_for_delivery(&self) -> bool {
        self.waits_for_delivery.load(Ordering::Relaxed)
    }

    /// Returns the log message about why no page is taken until a sink has caught up, or held items are decided about, if
    /// that is so.
    pub(super) fn is_behind(&self, settings: &CrawlSettings) -> Option<String> {
        let max = self.max_undelivered(settings);
        let frontier = &*self.parts.frontier;
        backlog::why_paused(frontier, max).or_else(|| backlog::why_undecided(frontier, max))
    }

    /// Returns the log message about the limit of the run that leaves no room for another page, if one is reached.
    pub(super) fn spent(&self, settings: &CrawlSettings, in_flight: u64) -> Option<String> {
        let max_pages = self.share(settings.max_pages());
        let max_bytes = self.share(settings.max_bytes());
        if self.n_ended.load(Ordering::Relaxed) + in_flight >= max_pages {
            let pages = number(max_pages, "page");
            return Some(format!("stopped at {pages}, the limit set by --max-pages"));
        }
        let n_bytes = self.n_bytes.load(Ordering::Relaxed);
        (n_bytes >= max_bytes).then(|| {
            let bytes = number(n_bytes, "byte");
            format!("stopped at {bytes}, the limit of {max_bytes} set by --max-bytes is reached")
        })
    }

    /// Names the plans that a page was read by.
    pub(super) fn plan_reads(&self, reads: &[(u32, Matched)]) -> Vec<PlanRead> {
        let named = |(plan, matched): &(u32, Matched)| {
            let names = self.plans.get(*plan as usize)?;
            Some(PlanRead {
                names: names.clone(),
                matched: *matched,
            })
        };
        reads.iter().filter_map(named).collect()
    }

    /// Returns what pages are parsed by.
    pub(super) fn parsed_by(&self, config: &CrawlConfig) -> Option<ParsedBy> {
        let parser = self.parser.as_ref()?;
        Some(parser.under(&config.settings, config.limits.body))
    }

    pub(super) fn call_config(&self, limits: Limits) -> CallConfig {
        CallConfig {
            params: self.parts.params.clone(),
            limits,
            account: self.parts.crawl_memory.account().clone(),
        }
    }
}
