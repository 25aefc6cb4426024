//! The root requests of a run: asked of the plugin once in each shard, which keeps those of its hosts.

use std::time::Duration;

use url::Url;

use super::crawl::{CrawlConfig, CrawlEnd, CrawlParts};
use super::report::note_logs;
use crate::frontier::NewRequest;
use crate::model::crawl::{Kill, Request, RuleError};
use crate::model::plugin::Description;
use crate::plugin::{CallConfig, CallFailure, CallOutput};
use crate::retry::Backoff;

/// Where this run began. A run that goes on after a restart has asked `root` already.
pub(super) async fn roots(parts: &CrawlParts) -> Result<Vec<Url>, CrawlEnd> {
    if let Some(urls) = parts.frontier.roots() {
        return Ok(urls);
    }
    let requests = call_root(parts).await.map_err(CrawlEnd::Failed)?;
    let urls: Vec<Url> = requests.iter().map(|r| r.url.clone()).collect();
    let is_own = |request: &Request| {
        let part = parts.part.as_ref();
        part.is_none_or(|part| part.other(&request.url).is_none())
    };
    let own = requests.into_iter().filter(is_own);
    let own = own.map(|request| NewRequest { request, depth: 0 });
    let seeded = parts.frontier.seed_part(urls.clone(), own.collect()).await;
    seeded.map_err(CrawlEnd::Frontier)?;
    Ok(urls)
}

/// The root requests, all of them acceptable.
async fn call_root(parts: &CrawlParts) -> Result<Vec<Request>, String> {
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(60));
    let mut attempt = 1;
    loop {
        let CrawlConfig { limits, settings } = parts.config.borrow().clone();
        let config = CallConfig {
            params: parts.params.clone(),
            limits,
        };
        let report = parts.rules.root(config, parts.run_started_at).await;
        note_logs(&parts.log, "", "root", &report);
        let (why, wait) = match report.result {
            Ok(output) => return check_roots(output, parts.rules.description()),
            Err(CallFailure::Rule(RuleError::Retry { after_ms, why })) => (
                why,
                after_ms.map_or_else(
                    || backoff.next_delay(),
                    |ms| Duration::from_millis(ms).min(settings.max_retry_wait()),
                ),
            ),
            Err(CallFailure::Rule(error)) => return Err(format!("root gave up: {error}")),
            Err(CallFailure::Killed(kill)) => match kill.kill {
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
                    return Err(format!("root was ended ({}): {}", kill.kill, kill.message));
                }
            },
        };
        if attempt >= settings.max_attempts() {
            return Err(format!("root failed {attempt} times, the last time: {why}"));
        }
        parts
            .log
            .note("warn", format!("root will be called again: {why}"));
        attempt += 1;
        tokio::time::sleep(wait).await;
    }
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
