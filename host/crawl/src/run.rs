//! One run of one shard, from `root` to nothing left.
//!
//! The loop takes URLs and gives each to a task of its own; `page` describes that task. Items flow beside it,
//! from the outbox into the sink. This module knows no store and no master: the caller of [`run`] decides
//! what its end means.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use url::Url;

use super::at_rest::{is_all_delivered, may_rest};
use super::end::CrawlEnd;
use super::links;
use super::parts::CrawlParts;
use super::roots::roots_or_put_back;
use super::shared::Shared;
use super::slot::{Places, n_preparing};
use super::{drain, page, spans};
use crawler_fetch::cookies::CookieJar;
use crawler_fetch::gate::Asker;
use crawler_frontier::{Take, TakeFrom};
use crawler_model::resource::Robots;
use crawler_model::scope::RootHosts;
use crawler_process::task::TaskScope;
use crawler_sink::Sink;

/// Time that pages in flight may take to notice that the crawl ends; they only put back what they hold.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Time for which the log is silent about a slow sink after one line.
const TELL_AGAIN: Duration = Duration::from_secs(60);
/// Time for which a page waits at the gate for the turn of its host, because the clocks of the frontier and
/// of the gate may differ by this much. For a later turn the page is put back.
const PATIENCE: Duration = Duration::from_millis(50);
/// Number of root requests by which the connections per host are judged.
const JUDGED_ROOTS: usize = 8;

/// Crawls until nothing is left, the crawl fails, or `stop` is cancelled.
///
/// This call is not cancel-safe: pages in flight and undelivered items would be left behind. Use `stop`.
pub async fn run(parts: CrawlParts, sink: Box<dyn Sink>, stop: CancellationToken) -> CrawlEnd {
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
    parts.seat.also(held);
    let counts = parts.frontier.counts();
    let seeds = parts.config.borrow().settings.cookie_seeds.clone();
    let kept = parts.frontier.cookies();
    let progress = Arc::new(Notify::new());
    let shared = Arc::new(Shared {
        cookies: Arc::new(CookieJar::open(kept.as_ref(), &seeds)),
        n_ended: AtomicU64::new(counts.pages()),
        n_bytes: AtomicU64::new(counts.bytes),
        parts,
        root_hosts: RootHosts::of(&root_urls),
        pages: Places::new(&progress),
        preparing: Places::new(&progress),
        progress,
        items: Notify::new(),
        told_of_pattern: Once::new(),
        told_of_hosts: Once::new(),
        told_of_disk: Once::new(),
        early_end: Mutex::new(None),
        asker: Asker {
            crawl: Asker::new_crawl(),
            patience: Some(PATIENCE),
        },
    });
    let no_more_items = CancellationToken::new();
    // A crawl that cannot go on says so, even if links wait for a shard without an owner.
    let gives_up = CancellationToken::new();
    // A crawl that is put back does not wait for a failing sink, because its frontier takes memory until it
    // is closed.
    let cut = stop.child_token();
    let pages = async {
        let end = run_pages(&shared, &root_urls, &stop).await;
        if let CrawlEnd::PutBack(_) = end {
            cut.cancel();
        }
        if !matches!(end, CrawlEnd::Finished | CrawlEnd::Resting { .. }) {
            gives_up.cancel();
        }
        no_more_items.cancel();
        end
    };
    let (end, is_drained, is_handed_over) = tokio::join!(
        pages,
        drain::drain(&shared, sink, &no_more_items, &cut),
        links::deliver(&shared, &no_more_items, &gives_up, &cut),
    );
    let is_delivered = is_drained && is_handed_over;
    match (end, shared.early_end()) {
        (CrawlEnd::Finished | CrawlEnd::Resting { .. }, Some(early)) => early,
        // The crawl was told to stop while the sink failed: the items wait for the next opening.
        (CrawlEnd::Finished | CrawlEnd::Resting { .. }, None) if !is_delivered => CrawlEnd::Stopped,
        (CrawlEnd::Finished, None) if shared.parts.frontier.counts().due == 0 => {
            match shared.parts.frontier.check_empty().await {
                Ok(()) => CrawlEnd::Finished,
                Err(error) => CrawlEnd::Frontier(error),
            }
        }
        (end, _) => end,
    }
}

/// Logs that the crawl ignores robots.txt, so that this does not go unnoticed.
fn tell_of_robots(parts: &CrawlParts, robots: Robots) {
    match robots {
        Robots::Ignore => {
            tracing::warn!("what robots.txt forbids is fetched too");
            let message = "what robots.txt forbids is fetched too, as set by --robots";
            parts.log.note("warn", message);
        }
        Robots::Obey => parts.log.note("info", "robots.txt is obeyed from here on"),
    }
}

/// Takes URLs and starts a task for each, until there is a reason to end.
async fn run_pages(shared: &Arc<Shared>, root_urls: &[Url], stop: &CancellationToken) -> CrawlEnd {
    let frontier = &shared.parts.frontier;
    let tasks = TaskScope::under(stop);
    let (told_of_bound, told_of_memory) = (Once::new(), Once::new());
    let mut told_of_sink: Option<Instant> = None;
    let mut robots = Robots::Obey;
    let starts = &shared.parts.starts;
    let end = loop {
        if let Some(end) = shared.early_end() {
            break end;
        }
        // Otherwise the loop would wait for the page without end.
        if tasks.failed().is_cancelled() {
            break CrawlEnd::Failed("a page's task failed; the log above tells why".to_owned());
        }
        if stop.is_cancelled() {
            break CrawlEnd::Stopped;
        }
        if let Some(why) = shared.parts.seat.put_back() {
            break CrawlEnd::PutBack(why);
        }
        if let Some(part) = &shared.parts.part
            && part.quiet.is_on()
        {
            tokio::select! {
                biased;
                () = part.quiet.ended() => {}
                () = wait(shared, None, &tasks) => {}
            }
            continue;
        }
        // The count is read before the frontier is looked at, so that nothing that comes meanwhile is missed.
        let n_ends = shared.parts.part.as_ref().map(|part| part.quiet.n_ends());
        if !shared.parts.permit.is_given() {
            tokio::select! {
                biased;
                () = shared.parts.permit.given() => {}
                () = wait(shared, None, &tasks) => {}
            }
            continue;
        }
        let settings = shared.config().settings;
        if std::mem::replace(&mut robots, settings.robots()) != settings.robots() {
            tell_of_robots(&shared.parts, robots);
        }
        // Pages count until their tasks are over, because a page is out of flight before its batch is written.
        let in_flight = shared.pages.n_tasks() + shared.preparing.n_tasks();
        let may_fly = u64::from(shared.parts.seat.share(settings.concurrency()));
        shared.pages.set_max(may_fly);
        let n_ready_hosts = frontier.n_ready_hosts();
        shared
            .preparing
            .set_max(n_preparing(n_ready_hosts, may_fly));
        let (has_slot, may_prepare) = (shared.pages.is_free(), shared.preparing.is_free());
        // A crawl with nothing left ends, however short memory is.
        let has_more = || in_flight > 0 || frontier.counts().due > 0;
        if !has_slot && !may_prepare && has_more() {
            if let Some(why) = shared.parts.seat.short() {
                told_of_memory.call_once(|| shared.parts.log.note("warn", why));
            }
            wait(shared, None, &tasks).await;
            continue;
        }
        if let Some(why) = shared.spent(&settings, shared.pages.n_tasks()) {
            if in_flight > 0 {
                wait(shared, None, &tasks).await;
                continue;
            }
            told_of_bound.call_once(|| shared.parts.log.note("warn", why));
            match nothing_left(shared, &tasks, n_ends).await {
                Some(end) => break end,
                None => continue,
            }
        }
        // With nothing left to take, the end waits for the sink.
        if frontier.counts().due > 0
            && let Some(why) = shared.is_behind(&settings)
        {
            if told_of_sink.is_none_or(|told| told.elapsed() >= TELL_AGAIN) {
                told_of_sink = Some(Instant::now());
                shared.parts.log.note("warn", why);
            }
            wait(shared, None, &tasks).await;
            continue;
        }
        if frontier.counts().due > 0
            && let Some(until) = shared.next_start_at(&settings)
        {
            match may_rest(shared, in_flight, until).await {
                Ok(true) => break CrawlEnd::Resting { until },
                Ok(false) => wait(shared, Some(until), &tasks).await,
                Err(error) => break CrawlEnd::Frontier(error),
            }
            continue;
        }
        let delay = settings.delay();
        let per_host = root_urls
            .iter()
            .take(JUDGED_ROOTS)
            .map(|url| shared.parts.fetch.per_host(url, delay))
            .max()
            .unwrap_or(1);
        let may = TakeFrom {
            ready: has_slot.then_some(per_host),
            unready: may_prepare.then_some(1),
        };
        let take = match frontier.take_from(shared.parts.clock.unix_millis(), may) {
            Ok(take) => take,
            Err(error) => break CrawlEnd::Frontier(error),
        };
        let stop_signal = tasks.stop_signal();
        match take {
            // A page that is tried alone has all places to itself.
            Take::Ready(claim) if claim.host.is_ready || claim.alone => {
                let span = spans::of_page(&claim);
                let start = starts.count();
                let slot = shared.pages.hold();
                let attempt = page::attempt(shared.clone(), slot, start, claim, stop_signal);
                tasks.spawn("page", attempt.instrument(span));
            }
            Take::Ready(claim) => {
                let span = spans::of_host(&claim);
                let slot = shared.preparing.hold();
                let prepare = page::prepare(shared.clone(), slot, claim, stop_signal);
                tasks.spawn("host", prepare.instrument(span));
            }
            Take::WaitUntil(until) => match may_rest(shared, in_flight, until).await {
                Ok(true) => break CrawlEnd::Resting { until },
                Ok(false) => wait(shared, Some(until), &tasks).await,
                Err(error) => break CrawlEnd::Frontier(error),
            },
            Take::Blocked => wait(shared, None, &tasks).await,
            Take::Empty => {
                if let Some(end) = nothing_left(shared, &tasks, n_ends).await {
                    break end;
                }
            }
        }
    };
    tasks.stop(STOP_GRACE).await;
    end
}

/// Returns the end of a crawl that has nothing left to fetch. One of several shards becomes quiet instead,
/// once all links and items are delivered, because another shard may have links for it.
async fn nothing_left(shared: &Shared, tasks: &TaskScope, n_ends: Option<u64>) -> Option<CrawlEnd> {
    let (Some(part), Some(n_ends)) = (&shared.parts.part, n_ends) else {
        return Some(CrawlEnd::Finished);
    };
    match is_all_delivered(&*shared.parts.frontier).await {
        Ok(true) => part.quiet.begin_after(n_ends),
        Ok(false) => wait(shared, None, tasks).await,
        Err(error) => return Some(CrawlEnd::Frontier(error)),
    }
    None
}

/// Waits for the next event: a page has ended, a moment has come, memory is short or free, the crawl stops,
/// or a task has failed.
async fn wait(shared: &Shared, until: Option<u64>, tasks: &TaskScope) {
    let (stop, failed) = (tasks.stop_signal(), tasks.failed());
    let moment = async {
        match until {
            Some(at) => {
                let now = shared.parts.clock.unix_millis();
                tokio::time::sleep(Duration::from_millis(at.saturating_sub(now).max(1))).await;
            }
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        () = shared.progress.notified() => {}
        () = shared.parts.frontier.take_changed() => {}
        () = shared.parts.seat.changed() => {}
        () = moment => {}
        () = stop.cancelled() => {}
        () = failed.cancelled() => {}
    }
}

#[cfg(test)]
mod tests;
