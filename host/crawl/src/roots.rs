//! Root requests of a run: each shard calls `root` of the plugin once and keeps the requests for its hosts.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use url::Url;

use super::end::CrawlEnd;
use super::log::{note_logs, said};
use super::parts::{CrawlConfig, CrawlParts};
use crawler_frontier::NewRequest;
use crawler_model::crawl::{Kill, Request, RuleError};
use crawler_model::event::EventKind;
use crawler_model::number;
use crawler_model::plugin::Description;
use crawler_plugin::{CallConfig, CallFailure, CallOutput, CallReport};
use crawler_process::retry::Backoff;

/// Number of process ends that `root` may cause before its crawl fails; the same as for a page.
const MAX_ROOT_ENDS: u32 = 3;

/// Asks for the root requests. If the crawl is put back meanwhile, it ends as if told to stop: a write that
/// has begun is completed.
pub(super) async fn roots_or_put_back(
    parts: &CrawlParts,
    stop: &CancellationToken,
) -> Result<Vec<Url>, CrawlEnd> {
    let halt = stop.child_token();
    let rooted = roots(parts, &halt);
    tokio::pin!(rooted);
    tokio::select! {
        biased;
        root_urls = &mut rooted => root_urls,
        why = parts.crawl_memory.until_put_back() => {
            halt.cancel();
            match rooted.await {
                Ok(_) | Err(CrawlEnd::Stopped) => Err(CrawlEnd::PutBack(why)),
                failed => failed,
            }
        }
    }
}

/// Returns the URLs of the root requests. A run that goes on after a restart has called `root` already.
///
/// The frontier stays as whole as before if the call is told to stop.
async fn roots(parts: &CrawlParts, stop: &CancellationToken) -> Result<Vec<Url>, CrawlEnd> {
    if let Some(urls) = parts.frontier.roots() {
        return Ok(urls);
    }
    let requests = call_root(parts, stop).await?;
    let urls: Vec<Url> = requests.iter().map(|r| r.url.clone()).collect();
    let is_own = |request: &Request| {
        let peers = parts.peers.as_ref();
        peers.is_none_or(|peers| peers.other(&request.url).is_none())
    };
    let own = requests.into_iter().filter(is_own);
    let own = own.map(|request| NewRequest { request, depth: 0 });
    let seeded = parts.frontier.seed_shard(urls.clone(), own.collect()).await;
    seeded.map_err(CrawlEnd::Frontier)?;
    Ok(urls)
}

/// Calls `root` and returns its requests, all of them acceptable.
async fn call_root(parts: &CrawlParts, stop: &CancellationToken) -> Result<Vec<Request>, CrawlEnd> {
    let failed = |why: String| Err(CrawlEnd::Failed(why));
    // The plugin may have been pushed after its resource was added.
    let plugin = parts.rules.description();
    if let Err(error) = plugin.check_params(&parts.params) {
        let (name, version, hint) = (&plugin.name, &plugin.version, error.hint());
        return failed(format!("plugin {name}@{version} {error}; {hint}"));
    }
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
    let mut attempt = 1;
    loop {
        let CrawlConfig { limits, settings } = parts.config.borrow().clone();
        let config = CallConfig {
            params: parts.params.clone(),
            limits,
            account: parts.crawl_memory.account().clone(),
        };
        let report = noted_root(parts, config, stop).await?;
        note_logs(&parts.log, "", "root", &report);
        let (why, wait) = match report.result {
            Ok(output) => {
                let checked = check_roots(output, parts.rules.description());
                return checked.map_err(CrawlEnd::Failed);
            }
            Err(CallFailure::Rule(RuleError::Retry { after_ms, why })) => (
                why,
                after_ms.map_or_else(
                    || backoff.next_delay(),
                    |ms| Duration::from_millis(ms).min(settings.max_retry_wait()),
                ),
            ),
            Err(CallFailure::Rule(error)) => {
                let (said, _) = said(&error, report.place.as_ref());
                return failed(format!("root gave up: {said}"));
            }
            Err(CallFailure::Killed(kill)) => {
                if kill.kill != Kill::NoRoom {
                    let what = format_args!("{} in root", kill.kill);
                    parts.incidents.add(EventKind::RuleKilled, what);
                }
                match kill.kill {
                    Kill::NoRoom => (kill.message, backoff.next_delay()),
                    Kill::OutOfCpu | Kill::OutOfTime if attempt == 1 => {
                        (kill.message, backoff.next_delay())
                    }
                    Kill::OutOfCpu
                    | Kill::OutOfTime
                    | Kill::Trapped
                    | Kill::StackOverflow
                    | Kill::OutOfFuel
                    | Kill::OutOfMemory
                    | Kill::OverBudget
                    | Kill::Denied => {
                        return failed(format!("root was ended ({}): {}", kill.kill, kill.message));
                    }
                }
            }
        };
        if attempt >= settings.max_attempts() {
            let times = number(u64::from(attempt), "time");
            return failed(format!("root failed {times}, the last time: {why}"));
        }
        parts
            .log
            .note("warn", format!("root will be called again: {why}"));
        attempt += 1;
        let waited = stop.run_until_cancelled(tokio::time::sleep(wait)).await;
        waited.ok_or(CrawlEnd::Stopped)?;
    }
}

/// Calls `root` between two records that survive the process, unless it has ended too many processes already.
async fn noted_root(
    parts: &CrawlParts,
    config: CallConfig,
    stop: &CancellationToken,
) -> Result<CallReport, CrawlEnd> {
    let n_ends = parts.frontier.root_ends();
    if n_ends >= MAX_ROOT_ENDS {
        return Err(CrawlEnd::Failed(format!(
            "root of plugin {}@{} has ended the process {n_ends} times and is not called again in this run; push a mended version, and begin a new run with `crawler resource restart`",
            parts.rules.description().name,
            parts.rules.description().version,
        )));
    }
    let lost = CrawlEnd::Frontier;
    let permitted = stop
        .run_until_cancelled(parts.frontier.acquire_root_permit())
        .await;
    permitted.ok_or(CrawlEnd::Stopped)?;
    parts.frontier.enter_root().await.map_err(lost)?;
    let limits = config.limits.of_plugin(parts.rules.description());
    let root = parts.rules.root(config, parts.run_started_at);
    // If the call is cut off, closing the frontier records that the process has not ended.
    let report = stop.run_until_cancelled(root).await;
    let report = report.ok_or(CrawlEnd::Stopped)?;
    parts.limit_uses.note(&report, &limits);
    parts.frontier.leave_root().await.map_err(lost)?;
    Ok(report)
}

fn check_roots(output: CallOutput, plugin: &Description) -> Result<Vec<Request>, String> {
    if let Some(bad) = output
        .requests
        .iter()
        .find(|r| !matches!(r.url.scheme(), "http" | "https"))
    {
        return Err(format!(
            "root asked for {}; only http and https are fetched",
            bad.url
        ));
    }
    let is_known = |r: &&Request| plugin.rules.contains(&r.rule);
    if let Some(bad) = output.requests.iter().find(|r| !is_known(r)) {
        return Err(format!(
            "root asked for {} with rule {:?}, and plugin {}@{} has {}",
            bad.url,
            bad.rule,
            plugin.name,
            plugin.version,
            plugin.rules.join(", ")
        ));
    }
    if output.requests.is_empty() {
        return Err("root gave no request: check the resource's params".to_owned());
    }
    Ok(output.requests)
}
