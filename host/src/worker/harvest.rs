//! What an attempt at a page brings: fetched, judged by its status, parsed by its rule.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::value::RawValue;

use super::crawl::CrawlConfig;
use super::report::note_logs;
use super::shared::Shared;
use super::unchanged;
use super::verdict::{self, Attempt, Verdict};
use crate::fetch::agents::identity;
use crate::fetch::{Answer, Failure, FetchError, FetchRequest};
use crate::frontier::{Claim, Ended, FrontierError, NewRequest};
use crate::model::crawl::{
    Done, Item, ItemKey, ItemRecord, NO_RULE, Page, PageContext, Request, RuleError, UnixMillis,
};
use crate::model::frontier::Validators;
use crate::model::id::Shard;
use crate::plugin::CallFailure;

/// How long a host waits for what its worker does not have.
const NOT_SET_UP_WAIT_MS: u64 = 30_000;

/// What an attempt came to, before it is committed.
pub(super) struct Harvest {
    pub(super) ended: Ended,
    pub(super) detail: String,
    pub(super) bytes: u64,
    pub(super) requests: Vec<NewRequest>,
    pub(super) for_others: Vec<(Shard, NewRequest)>,
    pub(super) refused: Vec<(&'static str, u64)>,
    pub(super) items: Vec<ItemRecord>,
    pub(super) host_ready_at: UnixMillis,
    pub(super) final_url: Option<Request>,
    pub(super) validators: Option<Validators>,
}

impl Harvest {
    pub(super) fn nothing(ended: Ended, host_ready_at: UnixMillis) -> Self {
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

/// Why an attempt came to nothing, and its page is put back.
pub(super) enum Unended {
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
pub(super) async fn harvest(
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
        identity: identity(&config.settings.user_agents, &request.url, claim.attempt),
        cookies: shared.cookies(&config.settings),
        proxy: config.settings.proxy.clone(),
        credentials: config.settings.credentials.clone().unwrap_or_default(),
        body: request.body.clone(),
        max_url_length: config.settings.max_url_length(),
        content_types: config.settings.content_types.clone().unwrap_or_default(),
        max_body: config.limits.body,
        delay: config.settings.delay(),
        random_delay: config.settings.random_delay(),
        host_rate: config.settings.host_rate.clone().unwrap_or_default(),
        unless: unless.cloned(),
        robots: config.settings.robots(),
        max_crawl_delay: config.settings.max_crawl_delay(),
        account: shared.parts.seat.account().clone(),
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
            error,
            host_ready_at,
        })) if error.is_held() => return Err(Unended::NotNow { host_ready_at }),
        // Whoever sets the worker up mends it, or another worker has it: no page is lost by that.
        Some(Err(Failure {
            error: error @ FetchError::NotSetUp { .. },
            ..
        })) => {
            let log = &shared.parts.log;
            log.on_page(
                "error",
                request.url.as_str(),
                &request.rule,
                error.to_string(),
            );
            let host_ready_at = now().saturating_add(NOT_SET_UP_WAIT_MS);
            return Err(Unended::NotNow { host_ready_at });
        }
        Some(Err(failure)) => {
            let message = format!("attempt {} failed: {}", claim.attempt, failure.error);
            shared
                .parts
                .log
                .on_page("warn", request.url.as_str(), &request.rule, message);
            let ended = verdict::of_fetch_error(&failure.error, attempt());
            let left_out =
                (ended == Ended::Done(Done::Denied)).then(|| (failure.error.reason(), 1));
            return Ok(Harvest {
                detail: failure.error.detail(),
                refused: left_out.into_iter().collect(),
                ..Harvest::nothing(ended, failure.host_ready_at)
            });
        }
    };
    let page = match fetched.answer {
        Answer::Page(page) => Arc::new(*page),
        Answer::Elsewhere { to } => {
            // One that reloads would lead to itself without end.
            let depth = claim.depth + u32::from(request.is_same_host(&to));
            let target = request.redirected(to);
            let bounds = shared.bounds(&config.settings);
            let part = shared.parts.part.as_ref();
            let sorted = verdict::of_links(bounds, part, vec![target], depth);
            let ended = Ended::Done(Done::Redirected);
            return Ok(Harvest {
                requests: sorted.requests,
                for_others: sorted.for_others,
                refused: sorted.refused.into_iter().collect(),
                ..Harvest::nothing(ended, fetched.host_ready_at)
            });
        }
    };
    let _held = shared.parts.seat.account().hold(page.body.len() as u64);
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
            rule: rule.to_string(),
            schema: item.schema,
            run: parts.run,
            fetched_at: page.fetched_at,
            item: RawValue::from_string(item.json)?,
        })
    };
    (0..).zip(items).map(record).collect()
}
