//! One attempt at one page: fetch, parse, commit. Whatever happens in it ends in one commit, or
//! with the page put back when the crawl stops or its frontier fails.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt as _;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::crawl::{CrawlConfig, Shared};
use super::report::CrawlLog;
use super::unchanged;
use super::verdict::{self, Attempt, Verdict};
use crate::fetch::{Answer, Failure, FetchError, FetchRequest};
use crate::frontier::{Claim, Commit, Ended, FrontierError, NewRequest};
use crate::model::crawl::{
    Done, Item, ItemKey, ItemRecord, NO_RULE, Page, PageContext, Request, RuleError, UnixMillis,
};
use crate::model::frontier::Validators;
use crate::model::id::Shard;
use crate::model::scope::Refusal;
use crate::plugin::{CallFailure, CallReport, KillReport};

/// What an attempt came to, before it is committed.
struct Harvest {
    ended: Ended,
    detail: String,
    bytes: u64,
    requests: Vec<NewRequest>,
    for_others: Vec<(Shard, NewRequest)>,
    refused: Vec<(&'static str, u64)>,
    items: Vec<ItemRecord>,
    host_ready_at: UnixMillis,
    final_url: Option<Request>,
    validators: Option<Validators>,
}

impl Harvest {
    fn nothing(ended: Ended, host_ready_at: UnixMillis) -> Self {
        Self {
            ended,
            detail: String::new(),
            bytes: 0,
            requests: Vec::new(),
            for_others: Vec::new(),
            refused: Vec::new(),
            items: Vec::new(),
            host_ready_at,
            final_url: None,
            validators: None,
        }
    }
}

/// Fetches, parses and commits one page; on `stop` puts it back.
pub(super) async fn attempt(shared: Arc<Shared>, claim: Box<Claim>, stop: CancellationToken) {
    let config = shared.config();
    let put_back = |claim, host_ready_at| {
        shared.parts.frontier.give_back(claim, host_ready_at);
        shared.progress.notify_one();
    };
    let answered_at = AtomicU64::new(0);
    let harvested = harvest(&shared, &claim, &config, &answered_at);
    let harvest = tokio::select! {
        biased;
        () = stop.cancelled() => return put_back(claim, 0),
        harvest = AssertUnwindSafe(harvested).catch_unwind() => harvest,
    };
    let harvest = match harvest {
        Ok(Ok(harvest)) => harvest,
        Ok(Err(Unended::NotNow { host_ready_at })) => return put_back(claim, host_ready_at),
        Ok(Err(Unended::Frontier(error))) => {
            shared.lost_frontier(error);
            return put_back(claim, 0);
        }
        // A panic here is a bug of the host. It costs this page and is told; the crawl goes on.
        Err(_panic) => {
            tracing::error!(url = %claim.request.url, "handling a page panicked");
            let ended = Ended::Dead {
                reason: "host-panic".to_owned(),
            };
            Harvest::nothing(ended, 0)
        }
    };
    if let Ended::Dead { reason } = &harvest.ended {
        let request = &claim.request;
        let message = format!("given up after attempt {}: {reason}", claim.attempt);
        shared
            .parts
            .log
            .on_page("warn", request.url.as_str(), &request.rule, message);
    }
    let has_items = !harvest.items.is_empty();
    let is_over = !matches!(harvest.ended, Ended::Retry { .. });
    let commit = Commit {
        claim,
        ended: harvest.ended,
        detail: harvest.detail,
        bytes: harvest.bytes,
        requests: harvest.requests,
        for_others: harvest.for_others,
        max_pattern_urls: config.settings.max_pattern_urls(),
        refused: harvest.refused,
        items: harvest.items,
        host_ready_at: harvest.host_ready_at,
        answered_at: answered_at.into_inner(),
        final_url: harvest.final_url,
        validators: harvest.validators,
    };
    // Before the commit, which takes the page out of flight: between the two it would be counted
    // nowhere, and a page more than --max-pages be taken.
    if is_over {
        shared.n_ended.fetch_add(1, Ordering::Relaxed);
    }
    shared.n_bytes.fetch_add(commit.bytes, Ordering::Relaxed);
    match shared.parts.frontier.commit(commit).await {
        Ok(committed) => {
            if committed.n_over_pattern > 0 {
                shared.told_of_pattern.call_once(|| {
                    let max = config.settings.max_pattern_urls();
                    let refusal = Refusal::PatternUrls { max };
                    let message =
                        format!("a link is not followed, and others may not be: {refusal}");
                    shared.parts.log.note("warn", message);
                });
            }
            if has_items {
                shared.items.notify_one();
            }
        }
        Err(FrontierError::NotInFlight { url }) => {
            shared.fail(format!("a page was committed twice: {url}"));
        }
        Err(error) => shared.lost_frontier(error),
    }
    shared.progress.notify_one();
}

/// Why an attempt came to nothing, and its page is put back.
enum Unended {
    Frontier(FrontierError),
    /// The leave to fetch ended before there was an answer, or the host is left alone until this
    /// moment (0: as before).
    NotNow {
        host_ready_at: UnixMillis,
    },
}

impl From<FrontierError> for Unended {
    fn from(error: FrontierError) -> Self {
        Self::Frontier(error)
    }
}

/// Fetches, takes note of when that was over, and parses.
async fn harvest(
    shared: &Shared,
    claim: &Claim,
    config: &CrawlConfig,
    answered_at: &AtomicU64,
) -> Result<Harvest, Unended> {
    let request = &claim.request;
    let plugin = shared.parts.rules.description();
    if !plugin.rules.contains(&request.rule) {
        let ended = Ended::Dead {
            reason: NO_RULE.to_owned(),
        };
        return Ok(Harvest::nothing(ended, 0));
    }
    let unless = unchanged::condition(claim, &config.settings);
    let fetch_request = FetchRequest {
        url: request.url.clone(),
        names_port: shared.bounds(&config.settings).names_port(&request.url),
        method: request.method.clone(),
        headers: request.headers.clone(),
        body: request.body.clone(),
        max_url_length: config.settings.max_url_length(),
        max_body: config.limits.body,
        delay: config.settings.delay(),
        random_delay: config.settings.random_delay(),
        host_rate: config.settings.host_rate.clone().unwrap_or_default(),
        unless: unless.cloned(),
        robots: config.settings.robots(),
        max_crawl_delay: config.settings.max_crawl_delay(),
    };
    let now = || shared.parts.clock.unix_millis();
    let attempt = || Attempt::ended(claim.attempt, &config.settings, now());
    let fetch = shared.parts.fetch.fetch(fetch_request);
    let fetched = shared.parts.leave.while_given(fetch).await;
    answered_at.store(now(), Ordering::Relaxed);
    let fetched = match fetched {
        None => return Err(Unended::NotNow { host_ready_at: 0 }),
        Some(Ok(fetched)) => fetched,
        Some(Err(Failure {
            error: FetchError::Paused { .. },
            host_ready_at,
        })) => return Err(Unended::NotNow { host_ready_at }),
        Some(Err(failure)) => {
            let message = format!("attempt {} failed: {}", claim.attempt, failure.error);
            shared
                .parts
                .log
                .on_page("warn", request.url.as_str(), &request.rule, message);
            let ended = verdict::of_fetch_error(&failure.error, attempt());
            return Ok(Harvest {
                detail: failure.error.detail(),
                ..Harvest::nothing(ended, failure.host_ready_at)
            });
        }
    };
    let page = match fetched.answer {
        Answer::Page(page) => Arc::new(*page),
        Answer::Elsewhere { to } => {
            let target = request.redirected(to);
            let bounds = shared.bounds(&config.settings);
            let part = shared.parts.part.as_ref();
            let sorted = verdict::of_links(bounds, part, vec![target], claim.depth);
            let ended = Ended::Done(Done::Redirected);
            return Ok(Harvest {
                requests: sorted.requests,
                for_others: sorted.for_others,
                refused: sorted.refused.into_iter().collect(),
                ..Harvest::nothing(ended, fetched.host_ready_at)
            });
        }
    };
    if let Some(known) = unless
        && page.status == 304
        && page.redirects.is_empty()
    {
        let ended = Ended::Done(Done::NotModified);
        return Ok(Harvest {
            validators: Some(known.clone()),
            ..Harvest::nothing(ended, fetched.host_ready_at)
        });
    }
    let mut harvest = match verdict::of_status(&page, attempt()) {
        Verdict::End(ended) => Harvest::nothing(ended, fetched.host_ready_at),
        Verdict::Parse => parse(shared, claim, config, &page, fetched.host_ready_at).await?,
    };
    harvest.bytes = page.body.len() as u64;
    Ok(harvest)
}

async fn parse(
    shared: &Shared,
    claim: &Claim,
    config: &CrawlConfig,
    page: &Arc<Page>,
    host_ready_at: UnixMillis,
) -> Result<Harvest, FrontierError> {
    let (request, frontier) = (&claim.request, &shared.parts.frontier);
    let led_to = (page.url != request.url).then(|| Request {
        url: page.url.clone(),
        ..request.clone()
    });
    if let Some(led_to) = &led_to
        && led_to.fingerprint() != claim.fingerprint
        && !request.reload
        && frontier.knows(led_to).await?
    {
        let ended = Ended::Done(Done::Duplicate);
        return Ok(Harvest::nothing(ended, host_ready_at));
    }
    let validators = (request.method == "GET").then(|| Validators::of(page));
    if let Some(validators) = &validators
        && unchanged::is_as_known(claim, &config.settings, validators)
    {
        return Ok(Harvest {
            final_url: led_to,
            validators: Some(validators.clone()),
            ..Harvest::nothing(Ended::Done(Done::NotModified), host_ready_at)
        });
    }
    frontier.suspect(claim).await?;
    let context = PageContext {
        depth: claim.depth,
        attempt: claim.attempt,
        state: request.state.clone(),
    };
    let call = shared.call_config(config.limits);
    let report = shared
        .parts
        .rules
        .parse(call, &request.rule, page.clone(), context)
        .await;
    note_logs(
        &shared.parts.log,
        request.url.as_str(),
        &request.rule,
        &report,
    );
    let now = shared.parts.clock.unix_millis();
    let attempt = Attempt::ended(claim.attempt, &config.settings, now);
    let output = match report.result {
        Ok(output) => output,
        Err(CallFailure::Rule(error)) => {
            shared.parts.log.on_page(
                "warn",
                request.url.as_str(),
                &request.rule,
                error.to_string(),
            );
            if let RuleError::Fatal(why) = &error {
                shared.fail(format!(
                    "rule {} gave up at {}: {why}",
                    request.rule, request.url
                ));
            }
            let ended = verdict::of_rule_error(&error, attempt);
            return Ok(Harvest {
                validators: validators.filter(|_| ended == Ended::Done(Done::Skipped)),
                ..Harvest::nothing(ended, host_ready_at)
            });
        }
        Err(CallFailure::Killed(kill)) => {
            let ended = verdict::of_kill(kill.kill, attempt);
            return Ok(Harvest::nothing(ended, host_ready_at));
        }
    };
    let bounds = shared.bounds(&config.settings);
    let depth = claim.depth.saturating_add(1);
    let part = shared.parts.part.as_ref();
    let sorted = verdict::of_links(bounds, part, output.requests, depth);
    let mut refused: Vec<(&'static str, u64)> = sorted.refused.into_iter().collect();
    if output.n_bad_urls > 0 {
        refused.push(("bad-url", output.n_bad_urls));
    }
    Ok(match records(shared, claim, page, output.items) {
        Ok(items) => Harvest {
            requests: sorted.requests,
            for_others: sorted.for_others,
            refused,
            items,
            final_url: led_to,
            validators,
            ..Harvest::nothing(Ended::Done(Done::Parsed), host_ready_at)
        },
        Err(e) => {
            let message = format!("an item is not JSON after all: {e}");
            shared
                .parts
                .log
                .on_page("error", request.url.as_str(), &request.rule, message);
            Harvest::nothing(
                Ended::Dead {
                    reason: "bad-item".to_owned(),
                },
                host_ready_at,
            )
        }
    })
}

fn records(
    shared: &Shared,
    claim: &Claim,
    page: &Page,
    items: Vec<Item>,
) -> Result<Vec<ItemRecord>, serde_json::Error> {
    let parts = &shared.parts;
    let rule = &claim.request.rule;
    let record = |(ordinal, item): (u32, Item)| {
        Ok(ItemRecord {
            key: ItemKey::of(
                parts.resource,
                parts.run,
                claim.fingerprint,
                claim.visit,
                rule,
                ordinal,
            ),
            url: page.url.to_string(),
            rule: rule.clone(),
            schema: item.schema,
            run: parts.run,
            fetched_at: page.fetched_at,
            item: RawValue::from_string(item.json)?,
        })
    };
    (0..).zip(items).map(record).collect()
}

/// Writes what a call logged, and why it was ended, into the crawl's log.
pub(super) fn note_logs(log: &CrawlLog, url: &str, rule: &str, report: &CallReport) {
    for line in &report.logs {
        log.on_page(line.level.as_str(), url, rule, line.message.clone());
    }
    if report.n_logs_dropped > 0 {
        let message = format!(
            "{} more lines, beyond the limit set by --limit log-lines",
            report.n_logs_dropped
        );
        log.on_page("warn", url, rule, message);
    }
    if let Err(CallFailure::Killed(kill)) = &report.result {
        log.on_page("error", url, rule, kill_text(kill, report));
    }
}

fn kill_text(kill: &KillReport, report: &CallReport) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "ended by the host ({}): {}; fuel {}, peak memory {} bytes, {} ms",
        kill.kill,
        kill.message,
        report.usage.fuel,
        report.usage.peak_memory,
        report.usage.elapsed.as_millis(),
    );
    if let Some((message, place)) = &kill.panic {
        let _infallible = write!(text, "; panicked at {place}: {message}");
    }
    for frame in &kill.backtrace {
        let _infallible = write!(text, "\n    at {frame}");
    }
    text
}
