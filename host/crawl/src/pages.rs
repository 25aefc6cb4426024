//! The loop of a crawl: it takes URLs and gives each to a task of its own, until there is a reason to end.
//!
//! Each turn looks at the whole state anew: whether the crawl ends, what may be taken, and what has to change
//! first if that is nothing. Events only wake the loop.

use std::sync::{Arc, Once};
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use url::Url;

use super::end::CrawlEnd;
use super::peers::Idle;
use super::shared::Shared;
use super::slot::{max_unreached, n_preparing};
use super::termination::{is_all_delivered, may_rest};
use super::{page, spans, traced};
use crawler_frontier::{Claim, Take, TakeLimits};
use crawler_model::crawl::UnixMillis;
use crawler_model::resource::{CrawlSettings, Robots};
use crawler_process::task::TaskScope;
use crawler_process::traces::Span;

/// Time that pages in flight may take to notice that the crawl ends; they only put back what they hold.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Time for which the log is silent about a slow sink after one line.
const LOG_AGAIN_AFTER: Duration = Duration::from_secs(60);
/// Number of root requests by which the connections per host are judged.
const JUDGED_ROOTS: usize = 8;

/// Takes URLs and starts a task for each, until there is a reason to end.
pub(super) async fn run(
    shared: &Arc<Shared>,
    root_urls: &[Url],
    stop: &CancellationToken,
) -> CrawlEnd {
    let mut pages = Pages {
        shared,
        root_urls,
        tasks: TaskScope::under(stop),
        logged: Logged {
            bound: Once::new(),
            memory: Once::new(),
            sink: None,
            robots: Robots::Obey,
        },
    };
    let end = pages.until_end(stop).await;
    pages.tasks.stop(STOP_GRACE).await;
    end
}

/// The loop, with the tasks that it has started.
struct Pages<'a> {
    shared: &'a Arc<Shared>,
    root_urls: &'a [Url],
    tasks: TaskScope,
    logged: Logged,
}

/// Lines that the log of the crawl has already.
struct Logged {
    /// Guard for logging once that a limit of the run is reached.
    bound: Once,
    /// Guard for logging once that memory is short.
    memory: Once,
    /// Time when the log was told last that the sink is behind.
    sink: Option<Instant>,
    /// Treatment of robots.txt that the log knows of.
    robots: Robots,
}

/// Counts that are read before the frontier is, so that nothing that comes meanwhile is missed.
struct Snapshot {
    /// Number of tasks; it may be too high. Pages count until their tasks are over, because a page is out of
    /// flight before its batch is written.
    in_flight: u64,
    /// Number of times that another shard has announced links. `None` if the resource has one shard.
    n_ends: Option<u64>,
}

/// Reason why no page is taken now.
enum Blocked<'a> {
    /// The shard has nothing to do until another one has links for it.
    Idle(&'a Idle),
    /// The crawl may not fetch.
    NotPermitted,
    /// A task has to end first, or anything else that wakes the loop has to happen.
    Busy,
    /// No page may begin before this moment.
    Until(UnixMillis),
    /// Nothing is left to take in this run.
    NothingLeft,
}

impl<'a> Pages<'a> {
    async fn until_end(&mut self, stop: &CancellationToken) -> CrawlEnd {
        loop {
            if let Some(end) = self.end(stop) {
                return end;
            }
            let snapshot = self.snapshot();
            let blocked = match self.limits(&snapshot) {
                Ok(limits) => {
                    let now = self.shared.parts.clock.unix_millis();
                    let asked = self.shared.parts.tracer.moment();
                    match self.shared.parts.frontier.take_within(now, limits) {
                        Ok(Take::Ready(claim)) => {
                            self.begin(claim, asked);
                            continue;
                        }
                        Ok(Take::WaitUntil(until)) => Blocked::Until(until),
                        Ok(Take::Blocked) => Blocked::Busy,
                        Ok(Take::Empty) => Blocked::NothingLeft,
                        Err(error) => return CrawlEnd::Frontier(error),
                    }
                }
                Err(blocked) => blocked,
            };
            if let Some(end) = self.wait_unblocked(blocked, &snapshot).await {
                return end;
            }
        }
    }

    /// Returns the end of the crawl if it ends now, whatever is left to do.
    fn end(&self, stop: &CancellationToken) -> Option<CrawlEnd> {
        if let Some(end) = self.shared.early_end() {
            return Some(end);
        }
        // Otherwise the loop would wait for the page without end.
        if self.tasks.failed().is_cancelled() {
            let why = "a page's task failed; the log above tells why";
            return Some(CrawlEnd::Failed(why.to_owned()));
        }
        if stop.is_cancelled() {
            return Some(CrawlEnd::Stopped);
        }
        self.shared
            .parts
            .crawl_memory
            .put_back()
            .map(CrawlEnd::PutBack)
    }

    /// Reads the counts.
    fn snapshot(&self) -> Snapshot {
        let peers = self.shared.parts.peers.as_ref();
        Snapshot {
            in_flight: self.shared.pages.n_tasks() + self.shared.preparing.n_tasks(),
            n_ends: peers.map(|peers| peers.idle.n_ends()),
        }
    }

    /// Returns what may be taken from the frontier, or why that is nothing.
    fn limits(&mut self, snapshot: &Snapshot) -> Result<TakeLimits, Blocked<'a>> {
        let shared = self.shared;
        let frontier = &shared.parts.frontier;
        if let Some(peers) = &shared.parts.peers
            && peers.idle.is_on()
        {
            return Err(Blocked::Idle(&peers.idle));
        }
        if !shared.parts.permit.is_given() {
            return Err(Blocked::NotPermitted);
        }
        let settings = shared.config().settings;
        self.log_robots(settings.robots());
        let may_fly = u64::from(shared.parts.crawl_memory.share(settings.concurrency()));
        let n_preparing = n_preparing(frontier.n_ready_hosts(), may_fly);
        shared.pages.set_max(may_fly);
        shared.preparing.set_max(n_preparing);
        let (has_slot, may_prepare) = (shared.pages.is_free(), shared.preparing.is_free());
        let may_reach = shared.preparing.n_unreached() < max_unreached(n_preparing);
        // A crawl with nothing left ends, however short memory is.
        let has_more = || snapshot.in_flight > 0 || frontier.counts().due > 0;
        if !has_slot && !may_prepare && has_more() {
            if let Some(why) = shared.parts.crawl_memory.short() {
                let logged = &self.logged.memory;
                logged.call_once(|| shared.parts.log.note("warn", why));
            }
            return Err(Blocked::Busy);
        }
        if let Some(why) = shared.spent(&settings, shared.pages.n_tasks()) {
            if snapshot.in_flight > 0 {
                return Err(Blocked::Busy);
            }
            let logged = &self.logged.bound;
            logged.call_once(|| shared.parts.log.note("warn", why));
            return Err(Blocked::NothingLeft);
        }
        // With nothing left to take, the end waits for the sink.
        if let Some(why) = shared.is_behind(&settings)
            && frontier.counts().due > 0
        {
            self.log_sink(why);
            return Err(Blocked::Busy);
        }
        if let Some(until) = shared.next_start_at(&settings)
            && frontier.counts().due > 0
        {
            return Err(Blocked::Until(until));
        }
        let per_host = self.per_host(&settings);
        Ok(TakeLimits {
            ready: has_slot.then_some(per_host),
            answered: may_prepare.then_some(1),
            unreached: (may_prepare && may_reach).then_some(1),
        })
    }

    /// Returns the number of pages of one host that may be in flight.
    fn per_host(&self, settings: &CrawlSettings) -> u32 {
        let delay = settings.delay();
        let judged = self.root_urls.iter().take(JUDGED_ROOTS);
        let per_host = judged.map(|url| self.shared.parts.fetch.per_host(url, delay));
        per_host.max().unwrap_or(1)
    }

    /// Starts the task of a claim that was asked for at the moment `asked`.
    fn begin(&self, claim: Box<Claim>, asked: Option<Instant>) {
        let (shared, stop_signal) = (self.shared, self.tasks.stop_signal());
        // A page that is tried alone has all slots to itself.
        if claim.host.is_ready || claim.alone {
            let span = spans::of_page(&claim);
            let trace = traced::of_claim(&shared.parts, "page", &claim, asked);
            let start = shared.parts.pacing.count();
            let slot = shared.pages.hold();
            let attempt = page::attempt(shared.clone(), slot, start, claim, stop_signal);
            self.spawn("page", attempt.instrument(span), trace);
        } else {
            let span = spans::of_host(&claim);
            let trace = traced::of_claim(&shared.parts, "host", &claim, asked);
            let is_unreached = !claim.host.has_answered || claim.host.n_failures > 0;
            let slot = shared.preparing.hold_for(is_unreached);
            let prepare = page::prepare(shared.clone(), slot, claim, stop_signal);
            self.spawn("host", prepare.instrument(span), trace);
        }
    }

    /// Starts a task within its span of a trace. One that is not recorded is not put into a box.
    fn spawn(
        &self,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
        trace: Span,
    ) {
        match trace.is_recorded() {
            true => self.tasks.spawn(name, trace.around(Box::pin(task))),
            false => self.tasks.spawn(name, task),
        }
    }

    /// Waits until there is a reason to look again, or returns the end of a crawl with nothing to wait for.
    async fn wait_unblocked(&self, blocked: Blocked<'_>, snapshot: &Snapshot) -> Option<CrawlEnd> {
        match blocked {
            Blocked::Idle(idle) => tokio::select! {
                biased;
                () = idle.ended() => {}
                () = self.wait(None) => {}
            },
            Blocked::NotPermitted => tokio::select! {
                biased;
                () = self.shared.parts.permit.given() => {}
                () = self.wait(None) => {}
            },
            Blocked::Busy => self.wait(None).await,
            Blocked::Until(until) => match may_rest(self.shared, snapshot.in_flight, until).await {
                Ok(true) => return Some(CrawlEnd::Resting { until }),
                Ok(false) => {
                    // Items do not gather while their delivery is all that keeps the crawl from resting.
                    let would_rest = snapshot.in_flight == 0 && self.shared.may_rest(until);
                    self.shared.wait_for_delivery(would_rest);
                    self.wait(Some(until)).await;
                    self.shared.wait_for_delivery(false);
                }
                Err(error) => return Some(CrawlEnd::Frontier(error)),
            },
            Blocked::NothingLeft => return self.nothing_left(snapshot).await,
        }
        None
    }

    /// Returns the end of a crawl that has nothing left to fetch. One of several shards becomes idle instead,
    /// once all links and items are delivered, because another shard may have links for it.
    async fn nothing_left(&self, snapshot: &Snapshot) -> Option<CrawlEnd> {
        let (Some(peers), Some(n_ends)) = (&self.shared.parts.peers, snapshot.n_ends) else {
            return Some(CrawlEnd::Finished);
        };
        match is_all_delivered(&*self.shared.parts.frontier).await {
            Ok(true) => peers.idle.begin_after(n_ends),
            Ok(false) => {
                self.shared.wait_for_delivery(true);
                self.wait(None).await;
                self.shared.wait_for_delivery(false);
            }
            Err(error) => return Some(CrawlEnd::Frontier(error)),
        }
        None
    }

    /// Waits for the next event: a page has ended, a moment has come, memory is short or free, the crawl stops,
    /// or a task has failed.
    async fn wait(&self, until: Option<UnixMillis>) {
        let shared = self.shared;
        let (stop, failed) = (self.tasks.stop_signal(), self.tasks.failed());
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
            () = shared.parts.crawl_memory.changed() => {}
            () = moment => {}
            () = stop.cancelled() => {}
            () = failed.cancelled() => {}
        }
    }

    /// Logs that the sink is behind, once for a while.
    fn log_sink(&mut self, why: String) {
        let logged = &mut self.logged.sink;
        if logged.is_none_or(|logged| logged.elapsed() >= LOG_AGAIN_AFTER) {
            *logged = Some(Instant::now());
            self.shared.parts.log.note("warn", why);
        }
    }

    /// Logs that the crawl ignores robots.txt, so that this does not go unnoticed.
    fn log_robots(&mut self, robots: Robots) {
        if std::mem::replace(&mut self.logged.robots, robots) == robots {
            return;
        }
        let log = &self.shared.parts.log;
        match robots {
            Robots::Ignore => {
                tracing::warn!("what robots.txt forbids is fetched too");
                let message = "what robots.txt forbids is fetched too, as set by --robots";
                log.note("warn", message);
            }
            Robots::Obey => log.note("info", "robots.txt is obeyed from here on"),
        }
    }
}
