//! The crawl that is measured: engine, fetcher, frontier and line files, put together as a worker does.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use indicatif::ProgressBar;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::web_process::Site;
use crate::app::parts;
use crate::app::stop::{Interrupted, unless_stopped};
use crate::bench::host_name;
use crate::bench::report::Crawled;
use crate::cli::engine::EngineOptions;
use crate::cli::pace::RecentPages;
use crate::cli::{BenchOptions, Failure, progress};
use crate::config::{FetchConfig, FixedHosts};
use crawler_crawl::incidents::CrawlIncidents;
use crawler_crawl::limit_uses::LimitUses;
use crawler_crawl::log::{CrawlLog, LogBounds};
use crawler_crawl::pacing::Pacing;
use crawler_crawl::permit::Always;
use crawler_crawl::{CrawlConfig, CrawlEnd, CrawlParts};
use crawler_data::DataRoot;
use crawler_frontier::Frontier;
use crawler_frontier::OpenOptions;
use crawler_frontier::durable::{DurableSettings, Frontiers};
use crawler_frontier::memory::{MemoryFrontier, MemorySettings};
use crawler_model::id::{Digest, Epoch, ResourceId, Run, Shard};
use crawler_model::plugin::{LimitOverrides, Limits, Param};
use crawler_model::resource::ShardId;
use crawler_process::clock::{Clock, SystemClock};
use crawler_process::memory::{allocations, resident};
use crawler_process::stage;
use crawler_process::task::TaskScope;
use crawler_sink::lines::{LineFiles, LineSettings};

/// Param with the address of the first page.
const START: &str = "start";
/// The only resource of the data root.
const RESOURCE: ResourceId = ResourceId(1);
const RUN: Run = Run(1);
/// Network of the web.
const LOOPBACK: &str = "127.0.0.0/8";
/// Interval at which progress is shown and memory is measured.
const LOOK: Duration = Duration::from_millis(100);
/// Time that tasks beside the crawl may take to end.
const SCOPE_GRACE: Duration = Duration::from_secs(2);
/// Storage epoch of line files whose frontier has none.
const FIRST_EPOCH: u64 = 1;

/// Frontier and sink of the crawl.
struct Storage {
    frontier: Arc<dyn Frontier>,
    /// The frontiers of the process, if there is one on disk.
    frontiers: Option<Arc<Frontiers>>,
    sink: LineFiles,
}

/// Crawls the web by the rules of a component, and measures until everything is on disk and the frontier is closed. All
/// data are kept in this folder.
pub(super) async fn crawl(
    options: &BenchOptions,
    site: Site,
    wasm: &Path,
    folder: &Path,
    stop: &CancellationToken,
) -> anyhow::Result<Crawled> {
    let limits = Limits::default();
    let limits = limits.with(&options.limits, &LimitOverrides::unlimited())?;
    let engine = EngineOptions::in_folder(folder.join("state"));
    let rules = unless_stopped(stop, parts::rules(wasm, &[], &engine)).await?;
    let params = params(
        &options.params,
        site.port,
        rules.description().params.as_deref(),
    )?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let address_policy = parts::address_policy(&[LOOPBACK.parse()?], &[]);
    let fetch = FetchConfig::default();
    let fetch = parts::fetcher(
        address_policy,
        &fetch,
        &hosts(site.n_hosts),
        None,
        clock.clone(),
    )?;
    let Storage {
        frontier,
        frontiers,
        sink,
    } = storage(options, wasm, folder, clock.clone()).await?;
    let scope = TaskScope::new();
    let memory = parts::memory(&engine, &fetch, frontiers.as_ref(), &scope);
    let log = CrawlLog::new(clock.clone());
    log.set_bounds(LogBounds::of(&options.crawl));
    // The sender stays here: the config does not change while the crawl runs.
    let (_config, config) = watch::channel(CrawlConfig {
        limits,
        settings: options.crawl.clone(),
    });
    let crawl_parts = CrawlParts {
        resource: RESOURCE,
        run: RUN,
        run_started_at: clock.unix_millis(),
        plugin: None,
        params: Arc::new(params),
        config,
        rules,
        frontier: frontier.clone(),
        fetch,
        files: None,
        archive: None,
        clock,
        log,
        permit: Arc::new(Always),
        pacing: Pacing::default(),
        incidents: CrawlIncidents::default(),
        limit_uses: LimitUses::default(),
        peers: None,
        rest_after: None,
        crawl_memory: memory.for_crawl(),
        tracer: Default::default(),
    };
    let crawled = measured(crawl_parts, sink, site.n_pages, stop).await;
    scope.stop(SCOPE_GRACE).await;
    crawled
}

/// Runs a crawl, and shows its progress.
async fn measured(
    crawl_parts: CrawlParts,
    sink: LineFiles,
    n_pages: u64,
    stop: &CancellationToken,
) -> anyhow::Result<Crawled> {
    let scope = TaskScope::new();
    let frontier = crawl_parts.frontier.clone();
    let bar = progress::bar(n_pages);
    let peak = Arc::new(AtomicU64::new(0));
    let looks = look(
        frontier.clone(),
        (bar.clone(), n_pages),
        peak.clone(),
        scope.stop_signal(),
    );
    scope.spawn("looks", looks);
    let (began, used) = (Instant::now(), processor_time());
    let allocated = allocations::count();
    stage::start();
    let end = crawler_crawl::run(crawl_parts, Box::new(sink), stop.clone()).await;
    let closed = frontier.close().await;
    let stages = stage::stop();
    let (wall, processor) = (began.elapsed(), processor_time().saturating_sub(used));
    let allocated = allocated.zip(allocations::count());
    note_peak(&peak);
    scope.stop(SCOPE_GRACE).await;
    bar.finish_and_clear();
    judge(end)?;
    closed.context("cannot close the frontier")?;
    let peak = peak.load(Ordering::Relaxed);
    Ok(Crawled {
        counts: frontier.counts(),
        wall,
        processor,
        n_allocations: allocated.map(|(before, after)| after.saturating_sub(before)),
        stages: stages.to_vec(),
        peak_memory: (peak > 0).then_some(peak),
    })
}

/// Returns the params of the rules: those of the user, and the first page if the plugin takes it. The port of the web is
/// chosen when it starts, so the user may give the first page as a path.
fn params(
    given: &BTreeMap<String, String>,
    port: u16,
    declared: Option<&[Param]>,
) -> anyhow::Result<BTreeMap<String, String>> {
    let mut params = given.clone();
    let takes_start =
        declared.is_none_or(|declared| declared.iter().any(|param| param.name == START));
    let path = match given.get(START) {
        None => takes_start.then_some("/"),
        Some(start) => start.starts_with('/').then_some(start.as_str()),
    };
    if let Some(path) = path {
        let web = Url::parse(&format!("http://{}:{port}/", host_name(0)))?;
        let start = web.join(path);
        let start =
            start.with_context(|| format!("--param {START}={path} is no page of the web"))?;
        params.insert(START.to_owned(), start.into());
    }
    Ok(params)
}

/// Returns the addresses of all hosts.
fn hosts(n_hosts: u32) -> FixedHosts {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let at = |host| (host_name(host), vec![address]);
    (0..n_hosts).map(at).collect()
}

async fn storage(
    options: &BenchOptions,
    wasm: &Path,
    folder: &Path,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<Storage> {
    let data = DataRoot::open(&folder.join("data").display().to_string())?;
    let items = data
        .items_folder(RESOURCE)
        .expect("the data root is a folder");
    let lines = |storage_epoch| {
        let folder = items.join(Shard(0).to_string());
        LineFiles::open(folder, storage_epoch, LineSettings::default())
    };
    if options.is_in_memory {
        // The web itself has a bound.
        let settings = MemorySettings {
            max_urls: u64::MAX,
            ..MemorySettings::default()
        };
        return Ok(Storage {
            frontier: Arc::new(MemoryFrontier::new(settings)),
            frontiers: None,
            sink: lines(FIRST_EPOCH),
        });
    }
    let frontiers = parts::frontiers(&data, DurableSettings::default(), None);
    let open_options = OpenOptions {
        shard: ShardId::only(RESOURCE),
        cluster: "bench".to_owned(),
        epoch: Epoch(1),
        run: RUN,
        plugin: Digest::of(&parts::read(wasm).await?),
        created: false,
        storage_epoch: 0,
        clock,
        // No earlier process has asked a host.
        delay: Duration::ZERO,
        carry: None,
        sinks: Default::default(),
        division: None,
        changes: Default::default(),
    };
    // The futures of the database are large.
    let frontier = Box::pin(frontiers.open(open_options)).await?;
    Ok(Storage {
        sink: lines(frontier.storage_epoch()),
        frontier: Arc::new(frontier),
        frontiers: Some(frontiers),
    })
}

/// Returns an error unless the crawl has ended in order.
fn judge(end: CrawlEnd) -> anyhow::Result<()> {
    match end {
        CrawlEnd::Finished | CrawlEnd::Resting { .. } => Ok(()),
        CrawlEnd::Failed(reason) => Err(anyhow!("the crawl failed: {reason}")),
        CrawlEnd::PutBack(why) => Err(Failure::new(
            format!("the crawl needs more memory than there is: {why}"),
            "give fewer --pages, or a lower --concurrency",
        )
        .into()),
        CrawlEnd::Frontier(error) => Err(error.into()),
        CrawlEnd::Stopped => Err(Interrupted.into()),
        CrawlEnd::Unread => Err(anyhow!("the items were not written")),
    }
}

/// Shows progress, and measures the memory, until `stop`.
async fn look(
    frontier: Arc<dyn Frontier>,
    (bar, n_pages): (ProgressBar, u64),
    peak: Arc<AtomicU64>,
    stop: CancellationToken,
) {
    let mut recent = RecentPages::default();
    let mut tick = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = stop.cancelled() => return,
        }
        note_peak(&peak);
        let counts = frontier.counts();
        let rate = recent.rate(Instant::now(), counts.pages());
        progress::move_bar(&bar, n_pages, &counts, rate);
    }
}

/// Takes note of the memory that the process uses now, if the system tells.
fn note_peak(peak: &AtomicU64) {
    if let Some(bytes) = resident::now() {
        peak.fetch_max(bytes, Ordering::Relaxed);
    }
}

/// Returns the processor time of all threads of this process.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the param `start` that is handed to a plugin with these declared params.
    #[track_caller]
    fn check(declared: Option<&[&str]>, given: Option<&str>, expected: Option<&str>) {
        let param = |name: &&str| Param {
            name: (*name).to_owned(),
            about: "".into(),
            default: None,
            required: true,
        };
        let declared = declared.map(|names| names.iter().map(param).collect::<Vec<_>>());
        let given = given.map(|start| (START.to_owned(), start.to_owned()));
        let params = params(&given.into_iter().collect(), 8_000, declared.as_deref()).unwrap();
        assert_eq!(params.get(START).map(String::as_str), expected);
    }

    #[test]
    fn the_first_page_is_one_of_the_web() {
        let root = Some("http://h0.bench.test:8000/");
        check(None, None, root);
        check(Some(&["below", "start"]), None, root);
        check(Some(&["below"]), None, None);
        let page = Some("http://h0.bench.test:8000/a/b.html?n=1");
        check(Some(&["start"]), Some("/a/b.html?n=1"), page);
        check(None, Some("/a/b.html?n=1"), page);
        // Other texts are handed over as they are.
        check(None, Some("a.html"), Some("a.html"));
        let elsewhere = Some("http://h1.bench.test/");
        check(None, elsewhere, elsewhere);
    }
}
