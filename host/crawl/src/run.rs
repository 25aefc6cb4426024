//! One run of one shard, from `root` to nothing left.
//!
//! `pages` takes URLs and gives each to a task of its own. Items flow beside it, from the outbox into the sink,
//! and links to the other shards. If items are compared, what a complete run has not seen flows into the sinks behind
//! them. The caller of [`run`] decides what its end means.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::drain::NamedSink;
use super::drift::Drift;
use super::end::CrawlEnd;
use super::parts::CrawlParts;
use super::robots::RobotsInFrontier;
use super::roots::roots_or_put_back;
use super::shared::Shared;
use super::slot::SlotPool;
use super::traced::Undelivered;
use super::{archived, changes, drain, drift, links, pages};
use crawler_fetch::cookies::CookieJar;
use crawler_fetch::throttle::Requester;
use crawler_model::parsed_by::Parser;
use crawler_model::scope::RootHosts;
use crawler_model::settings::SinkName;
use crawler_model::statistics::PlanNames;
use crawler_sink::Sink;

/// Time for which a page waits in the throttle for the turn of its host, because the clocks of the frontier and
/// of the throttle may differ by this much. For a later turn the page is put back.
const MAX_WAIT: Duration = Duration::from_millis(50);

/// Calls [`run_to`] with one sink, for a frontier that was opened for the sink in the data root alone.
pub async fn run(parts: CrawlParts, sink: Box<dyn Sink>, stop: CancellationToken) -> CrawlEnd {
    let name = SinkName::lines();
    Box::pin(run_to(parts, vec![NamedSink { name, sink }], stop)).await
}

/// Crawls until nothing is left, the crawl fails, or `stop` is cancelled.
///
/// This call is not cancel-safe: pages in flight and undelivered items would be left behind. Use `stop`.
pub async fn run_to(
    parts: CrawlParts,
    mut sinks: Vec<NamedSink>,
    stop: CancellationToken,
) -> CrawlEnd {
    for host in parts.frontier.take_resting_hosts() {
        parts.fetch.rest(&host.name, host.until);
    }
    let root_urls = match roots_or_put_back(&parts, &stop).await {
        Ok(root_urls) => root_urls,
        Err(end) => return end,
    };
    let frontier = Arc::downgrade(&parts.frontier);
    let held = move || {
        frontier
            .upgrade()
            .map_or(0, |frontier| frontier.held_bytes())
    };
    parts.crawl_memory.count_also(held);
    let counts = parts.frontier.counts();
    let seeds = parts.config.borrow().settings.cookie_seeds.clone();
    let kept = parts.frontier.cookies();
    let progress = Arc::new(Notify::new());
    let shared = Arc::new(Shared {
        drift: Drift::open(&parts),
        cookies: Arc::new(CookieJar::open(kept.as_ref(), &seeds)),
        robots_store: Arc::new(RobotsInFrontier::new(&parts)),
        parser: parts.plugin.map(|plugin| Parser::of(plugin, &parts.params)),
        plans: PlanNames::of(parts.rules.description()),
        n_ended: AtomicU64::new(counts.due_pages()),
        n_bytes: AtomicU64::new(counts.bytes),
        n_kept_bytes: AtomicU64::new(counts.kept_bytes),
        logged_kept: Once::new(),
        parts,
        root_hosts: RootHosts::of(&root_urls),
        pages: SlotPool::new(&progress),
        preparing: SlotPool::new(&progress),
        progress,
        items: Notify::new(),
        waits_for_delivery: AtomicBool::new(false),
        logged_pattern: Once::new(),
        logged_hosts: Once::new(),
        logged_disk: Once::new(),
        early_end: Mutex::new(None),
        undelivered: Undelivered::new(sinks.len()),
        requester: Requester {
            crawl: Requester::new_crawl(),
            max_wait: Some(MAX_WAIT),
        },
    });
    let no_more_items = CancellationToken::new();
    let pages_over = CancellationToken::new();
    // A crawl that cannot go on says so, even if links wait for a shard without an owner.
    let gives_up = CancellationToken::new();
    // A crawl that is put back does not wait for a failing sink, because its frontier takes memory until it
    // is closed.
    let cut = stop.child_token();
    // The files that earlier lives have left wait for the next one if this one ends too early.
    let adopts_no_more = cut.child_token();
    let pages = async {
        let end = pages::run(&shared, &root_urls, &stop).await;
        if let CrawlEnd::PutBack(_) = end {
            cut.cancel();
        }
        if !matches!(end, CrawlEnd::Finished | CrawlEnd::Resting { .. }) {
            gives_up.cancel();
            adopts_no_more.cancel();
        }
        pages_over.cancel();
        end
    };
    // Items that wait for a verdict come to the sinks after the last page.
    let judged = async {
        drift::judge(&shared, &pages_over, &gives_up).await;
        no_more_items.cancel();
    };
    let (end, (), is_drained, is_handed_over, ()) = tokio::join!(
        pages,
        judged,
        drain::drain(&shared, &mut sinks, &no_more_items, &cut),
        links::deliver(&shared, &no_more_items, &gives_up, &cut),
        archived::adopt(&shared, &adopts_no_more),
    );
    let is_delivered = is_drained && is_handed_over;
    let end = match (end, shared.early_end()) {
        (CrawlEnd::Finished | CrawlEnd::Resting { .. }, Some(early)) => early,
        // The crawl was told to stop while the sink failed: the items wait for the next opening.
        (CrawlEnd::Finished | CrawlEnd::Resting { .. }, None) if !is_delivered => CrawlEnd::Stopped,
        (CrawlEnd::Finished, None) => Box::pin(finished(&shared, &mut sinks, &cut)).await,
        (end, _) => end,
    };
    drop(sinks);
    archived::finish(&shared).await;
    end
}

/// Returns the end of a crawl that has nothing left to fetch or to deliver, once it has told what is removed, and the sinks
/// have that too.
async fn finished(shared: &Shared, sinks: &mut [NamedSink], stop: &CancellationToken) -> CrawlEnd {
    let frontier = &shared.parts.frontier;
    if frontier.counts().due == 0
        && let Err(error) = frontier.check_empty().await
    {
        return CrawlEnd::Frontier(error);
    }
    if frontier.change_totals().is_none() {
        return CrawlEnd::Finished;
    }
    let no_more_items = CancellationToken::new();
    // Once no sink takes anything any more, removed items would wait for room in the outbox forever.
    let halt = stop.child_token();
    let tell = async {
        let told = changes::finish(frontier, &shared.parts.log, &halt).await;
        no_more_items.cancel();
        told
    };
    let deliver = async {
        let is_drained = drain::drain(shared, sinks, &no_more_items, stop).await;
        halt.cancel();
        is_drained
    };
    let (told, is_drained) = tokio::join!(tell, deliver);
    if let Some(early) = shared.early_end() {
        return early;
    }
    match told {
        Ok(true) if is_drained => CrawlEnd::Finished,
        // The next opening of the frontier goes on.
        Ok(_) => CrawlEnd::Stopped,
        Err(error) => CrawlEnd::Frontier(error),
    }
}

#[cfg(test)]
mod tests;
