//! `crawler run`: one crawl in this terminal, without a server or a store. Items go to stdout or a file.

#![expect(
    clippy::print_stderr,
    reason = "a command that reports to its terminal"
)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use futures::StreamExt as _;
use indicatif::ProgressBar;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::archives::{self, ArchivedSites};
use super::stop::{Interrupted, unless_stopped};
use super::{parts, stats_file};
use crate::cli::block::{self, Block};
use crate::cli::items_file::{ItemsFile, ItemsFormat};
use crate::cli::pace::{Pace, RecentPages};
use crate::cli::{self, Failure, RunOptions, fail_on, progress};
use crawler_archive::{RecordedPages, RunInfo};
use crawler_crawl::incidents::CrawlIncidents;
use crawler_crawl::limit_uses::LimitUses;
use crawler_crawl::log::{CrawlLog, LogBounds};
use crawler_crawl::pacing::Pacing;
use crawler_crawl::permit::Always;
use crawler_crawl::put_back;
use crawler_crawl::{CrawlConfig, CrawlEnd, CrawlParts};
use crawler_data::KeptFiles;
use crawler_devtools::watch::ChangeWatcher;
use crawler_fetch::http::HttpFetcher;
use crawler_frontier::Frontier;
use crawler_frontier::memory::{MemoryFrontier, MemorySettings};
use crawler_model::crawl::Counts;
use crawler_model::id::{ResourceId, Run, Shard};
use crawler_model::plugin::{LimitOverrides, Limits, Schema};
use crawler_model::resource::Phase;
use crawler_model::statistics::{self, RunStatistics};
use crawler_process::clock::{Clock, SystemClock};
use crawler_process::task::TaskScope;
use crawler_sink::Sink;
use crawler_sink::document::{Columns, DocumentSink, Format};
use crawler_sink::shared::SharedSink;
use crawler_sink::stream::{FileSink, StreamSink};

/// Interval at which progress is shown.
const PROGRESS: Duration = Duration::from_millis(100);
/// Time that memory may stay short while nothing is in flight.
const MEMORY_PATIENCE: Duration = Duration::from_secs(60);
/// Time that the last lines of the log may take to be printed.
const LOG_GRACE: Duration = Duration::from_secs(2);

/// Crawls once, or again after each change of the plugin until the command is told to end.
pub(super) async fn run(options: RunOptions, stop: CancellationToken) -> anyhow::Result<()> {
    if !options.is_watching {
        return run_once(&options, stop).await.map(drop);
    }
    let mut changes = ChangeWatcher::of(&options.plugin, None)?;
    loop {
        let this = stop.child_token();
        let mut crawl = Box::pin(run_once(&options, this.clone()));
        let ended = tokio::select! {
            result = &mut crawl => Some(result),
            () = changes.next() => None,
        };
        match ended {
            Some(Err(error)) if error.is::<Interrupted>() => return Err(error),
            Some(Ok(Read::No)) => return Ok(()),
            Some(result) => {
                if let Err(error) = result {
                    cli::print_error(&error);
                }
                cli::print_waiting(&options.plugin);
                tokio::select! {
                    () = changes.next() => {}
                    () = stop.cancelled() => return Err(Interrupted.into()),
                }
            }
            None => {
                this.cancel();
                // The crawl was ended because something changed: its result belongs to the version before.
                let _of_before = crawl.await;
                if stop.is_cancelled() {
                    return Err(Interrupted.into());
                }
            }
        }
    }
}

/// Outcome of a crawl: whether its items were read to their end.
#[derive(Debug, PartialEq, Eq)]
enum Read {
    Yes,
    No,
}

/// Returns the limits of calls; refuses invalid settings.
pub(super) fn checked(options: &RunOptions) -> anyhow::Result<Limits> {
    let limits = Limits::default().with(&options.limits, &LimitOverrides::unlimited())?;
    options.crawl.check()?;
    if !options.crawl.sink_names().is_only_lines() {
        return Err(Failure::new(
            "--sink has no meaning for `crawler run`, whose items go to stdout or to --output",
            "leave it out, or crawl with `crawler up`",
        )
        .into());
    }
    if options.crawl.changes() > 0 {
        return Err(Failure::new(
            "--changes has no meaning for `crawler run`, which knows no items of earlier runs",
            "leave it out, or crawl with `crawler up`",
        )
        .into());
    }
    if !options.crawl.revisit().is_zero() || !options.crawl.revisit_max().is_zero() {
        return Err(Failure::new(
            "--revisit has no meaning for `crawler run`, which knows no pages of earlier runs",
            "leave it out, or crawl with `crawler up`",
        )
        .into());
    }
    Ok(limits)
}

/// Builds the plugin, crawls, and prints a summary to stderr.
async fn run_once(options: &RunOptions, stop: CancellationToken) -> anyhow::Result<Read> {
    let limits = checked(options)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let recorded = archives::recorded(options).await?;
    let fetch = fetcher(options, recorded.clone(), &clock)?;
    let rules = {
        let rules = parts::rules(&options.plugin, &options.sources, &options.engine);
        unless_stopped(&stop, rules).await?
    };
    let plugin = rules.description().clone();
    let sink = open_sink(options.output.as_ref(), &plugin.schemas);
    // A named pipe is open only when it has a reader.
    let mut sink = SharedSink::new(unless_stopped(&stop, sink).await?);
    let scope = TaskScope::new();
    let crawl_memory = parts::memory(&options.engine, &fetch, None, &scope).for_crawl();

    let frontier: Arc<dyn Frontier> = Arc::new(MemoryFrontier::new(MemorySettings {
        max_urls: options.frontier_urls,
        ..MemorySettings::default()
    }));
    let log = CrawlLog::new(clock.clone());
    log.set_bounds(LogBounds::of(&options.crawl));
    let config = CrawlConfig {
        limits,
        settings: archives::settings(options),
    };
    let files = options.files.as_deref().map(KeptFiles::in_folder);
    // `root` gets the same time from an archive as it got from the clock.
    let recorded_at = recorded.and_then(|pages| pages.run_started_at());
    let run_started_at = recorded_at.unwrap_or_else(|| clock.unix_millis());
    let info = RunInfo {
        name: plugin.name.to_string(),
        resource: ResourceId(0),
        run: Run(1),
        shard: Shard(0),
        started_at: run_started_at,
        settings: options.crawl.clone(),
    };
    let archive = archives::archive(options, info, &clock)?;
    // The sender stays here: the config does not change while the crawl runs.
    let (_config, receiver) = watch::channel(config);
    let crawl_parts = CrawlParts {
        resource: ResourceId(0),
        run: Run(1),
        run_started_at,
        plugin: None,
        params: Arc::new(options.params.clone()),
        config: receiver,
        rules,
        frontier: frontier.clone(),
        fetch: fetch.clone(),
        files: files.transpose()?,
        archive,
        clock,
        log: log.clone(),
        permit: Arc::new(Always),
        pacing: Pacing::default(),
        incidents: CrawlIncidents::default(),
        limit_uses: LimitUses::default(),
        peers: None,
        rest_after: None,
        crawl_memory: crawl_memory.clone(),
        tracer: Default::default(),
    };
    let progress = progress::spinner();
    scope.spawn("log", print_log(log.clone(), progress.clone()));
    scope.spawn(
        "progress",
        show_progress(
            frontier.clone(),
            progress.clone(),
            options.crawl.max_pages(),
            scope.stop_signal(),
        ),
    );
    let mut backoff = put_back::new_backoff();
    let end = loop {
        let crawl = crawler_crawl::run(crawl_parts.clone(), Box::new(sink.clone()), stop.clone());
        let end = crawl.await;
        let CrawlEnd::PutBack(why) = &end else {
            break end;
        };
        let free = put_back::until_free(&crawl_memory, &mut backoff, &log, why);
        let free = tokio::time::timeout(MEMORY_PATIENCE, free);
        match stop.run_until_cancelled(free).await {
            Some(Ok(())) => {}
            // Memory stays short without any page in flight: what the crawl keeps is too much by itself.
            Some(Err(_elapsed)) => break end,
            None => break CrawlEnd::Stopped,
        }
    };
    log.close();
    scope.stop(LOG_GRACE).await;
    progress.finish_and_clear();
    let mut found = RunStatistics {
        run: Run(1),
        counts: frontier.counts(),
        statistics: frontier.statistics(),
        end: why_ended(&end, &frontier.counts(), options),
    };
    found.statistics.declare(&plugin);
    let shown_end = match &end {
        // The error has the reason.
        CrawlEnd::Failed(_) | CrawlEnd::Frontier(_) => "the crawl failed",
        _ => &found.end,
    };
    let block = Block {
        found: &found,
        end: shown_end,
    };
    for line in block.lines() {
        eprintln!("{line}");
    }
    if let Some(n) = fetch.n_from_cache() {
        eprintln!("{}", block::from_cache(n));
    }
    if options.files.is_none() && found.counts.kept_bytes > 0 {
        eprintln!("no file was stored: name a folder for them with --files");
    }
    let judged = judge(options, end, &mut sink, &found).await;
    if let Some(path) = &options.stats {
        match (&judged, stats_file::write(path, found).await) {
            (Ok(_), Err(error)) => return Err(error),
            // The crawl's own error says more.
            (Err(_), Err(error)) => tracing::warn!("{error:#}"),
            (_, Ok(())) => {}
        }
    }
    judged
}

/// Returns the result of a crawl by its end, and by what it has found.
async fn judge(
    options: &RunOptions,
    end: CrawlEnd,
    sink: &mut SharedSink,
    found: &RunStatistics,
) -> anyhow::Result<Read> {
    match end {
        CrawlEnd::Finished | CrawlEnd::Resting { .. } => {
            if found.counts.items == 0 {
                sink.write(0, &[]).await?;
            }
            cli::check_all_roots(found)?;
            fail_on::check(&options.fail_on, found)?;
            Ok(Read::Yes)
        }
        // The reader of the items has closed the output and wants no more.
        CrawlEnd::Unread => Ok(Read::No),
        CrawlEnd::Failed(reason) => anyhow::bail!("the crawl failed: {reason}"),
        CrawlEnd::PutBack(why) => Err(Failure::new(
            format!("the crawl needs more memory than there is: {why}"),
            "raise --memory, or keep fewer URLs: --frontier-urls",
        )
        .into()),
        CrawlEnd::Frontier(error) => Err(error.into()),
        CrawlEnd::Stopped => Err(Interrupted.into()),
    }
}

/// Returns the fetcher: of archives if there are any, and of sites otherwise.
fn fetcher(
    options: &RunOptions,
    recorded: Option<Arc<RecordedPages>>,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Arc<HttpFetcher>> {
    let (config, hosts, clock) = (&options.fetch, &options.hosts, Arc::clone(clock));
    let policy = parts::address_policy(&options.allow_networks, &options.allow_ports);
    match recorded {
        Some(pages) => {
            let fetcher = parts::bare_fetcher(policy, config, hosts, clock)?;
            Ok(Arc::new(fetcher.replaying(Arc::new(ArchivedSites(pages)))))
        }
        None => parts::fetcher(policy, config, hosts, options.cache.as_ref(), clock),
    }
}

async fn open_sink(
    output: Option<&ItemsFile>,
    schemas: &[Schema],
) -> anyhow::Result<Box<dyn Sink>> {
    let Some(ItemsFile { path, format }) = output else {
        return Ok(Box::new(StreamSink::new(tokio::io::stdout(), "stdout")));
    };
    let cannot_create = || format!("cannot create {}", path.display());
    let document = match format {
        ItemsFormat::Lines => {
            let sink = FileSink::open(path).await.with_context(cannot_create)?;
            return Ok(Box::new(sink));
        }
        ItemsFormat::Array => Format::Array,
        ItemsFormat::Table => Format::Table(Columns::of(schemas).map_err(|e| {
            // A confined process has created the file, and may not remove it.
            let path = path.display();
            let hint = format!("nothing was written to {path}; write JSON instead, to a file that ends in .jsonl or .json");
            Failure::new(e.to_string(), hint)
        })?),
    };
    let sink = DocumentSink::open(path, document).await;
    Ok(Box::new(sink.with_context(cannot_create)?))
}

async fn show_progress(
    frontier: Arc<dyn Frontier>,
    spinner: ProgressBar,
    max_pages: u64,
    stop: CancellationToken,
) {
    let mut recent = RecentPages::default();
    let mut tick = tokio::time::interval(PROGRESS);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = stop.cancelled() => return,
        }
        let counts = frontier.counts();
        let rate = recent.rate(Instant::now(), counts.pages());
        let pace = Pace::of(&counts, max_pages, rate);
        progress::turn(&spinner, &counts, &pace);
    }
}

/// Prints log lines of rules and faults of the crawl, above the progress.
async fn print_log(log: CrawlLog, progress: ProgressBar) {
    let mut lines = log.read(true);
    while let Some(line) = lines.next().await {
        let place = match (line.url.as_str(), line.more) {
            ("", _) => String::new(),
            (url, 0) => format!("{url} "),
            (url, more) => format!("{url} (and {more} more) "),
        };
        progress.suspend(|| eprintln!("{}: {place}{}", line.level, line.message));
    }
}

/// Returns why a crawl has ended, in a few words.
fn why_ended(end: &CrawlEnd, counts: &Counts, options: &RunOptions) -> String {
    let of_phase = |phase| statistics::why_ended(&phase, counts, &options.crawl);
    match end {
        CrawlEnd::Finished | CrawlEnd::Resting { .. } => of_phase(Phase::Finished),
        CrawlEnd::Failed(reason) => of_phase(Phase::Failed(reason.clone())),
        CrawlEnd::Frontier(error) => of_phase(Phase::Failed(error.to_string())),
        CrawlEnd::PutBack(_) => "there is too little memory".to_owned(),
        CrawlEnd::Unread => "nobody reads the items any more".to_owned(),
        CrawlEnd::Stopped => "interrupted".to_owned(),
    }
}
