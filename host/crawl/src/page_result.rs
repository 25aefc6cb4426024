//! Result of an attempt at a page: fetched, judged by its status, parsed by its rule.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::archived;
use super::called::called;
use super::kept;
use super::log::note_logs;
use super::parts::CrawlConfig;
use super::permit::while_given;
use super::request::fetch_request;
use super::revisit;
use super::shared::Shared;
use super::slot::SlotGuard;
use super::suspect::call_recorded;
use super::traced;
use super::unchanged;
use super::verdict::{self, Attempt, Verdict};
use crawler_fetch::tape::Tape;
use crawler_fetch::{Answer, Failure, FetchError, FetchRequest, Fetched, Prepared};
use crawler_frontier::{Claim, Ended, FrontierError, HostFailure, HostUpdate, PageResult};
use crawler_model::crawl::{Done, NO_RULE, Page, PageContext, Request, UnixMillis};
use crawler_model::frontier::{ContentHash, DelaySource, Validators};
use crawler_model::plugin::Description;
use crawler_model::statistics::Observed;

/// Time for which a host waits for something that its worker has not set up.
const NOT_SET_UP_WAIT_MS: u64 = 30_000;

/// Number of failures in a row after which events tell that a host cannot be reached.
const UNREACHABLE_AFTER: u32 = 3;

/// Reason why an attempt does not count: its page goes back to the frontier.
pub(super) enum NotCounted {
    Frontier(FrontierError),
    /// The page is to be taken again; this is known of its host.
    NotNow(HostUpdate),
    /// The host could not be reached.
    PutOff(HostFailure),
}

impl NotCounted {
    /// Puts the page back, with its host left alone until this moment; 0 leaves the host's clock unchanged.
    fn not_before(moment: UnixMillis) -> Self {
        Self::NotNow(match moment {
            0 => HostUpdate::None,
            moment => HostUpdate::NotBefore(moment),
        })
    }
}

impl From<FrontierError> for NotCounted {
    fn from(error: FrontierError) -> Self {
        Self::Frontier(error)
    }
}

/// Finds out what must be known before the pages of a claim's host are fetched.
pub(super) async fn prepare(
    shared: &Shared,
    slot: &SlotGuard,
    claim: &Claim,
    config: &CrawlConfig,
    answered_at: &AtomicU64,
) -> Result<PageResult, NotCounted> {
    let prepare = shared
        .parts
        .fetch
        .prepare(fetch_request(shared, slot, claim, config));
    let prepared = while_given(&*shared.parts.permit, prepare).await;
    answered_at.store(shared.parts.clock.unix_millis(), Ordering::Relaxed);
    match prepared {
        None => Err(NotCounted::NotNow(HostUpdate::None)),
        Some(Ok(Prepared {
            host_ready_at,
            delay_by,
            has_answered,
        })) => {
            if has_answered {
                note_answer(shared, claim, delay_by);
            }
            Err(NotCounted::NotNow(HostUpdate::Ready {
                not_before: host_ready_at,
                delay_by,
                has_answered,
            }))
        }
        Some(Err(failure)) => failed(shared, claim, config, failure),
    }
}

/// Fetches the page, records when that was over, and parses it.
pub(super) async fn fetch_and_parse(
    shared: &Shared,
    slot: &SlotGuard,
    claim: &Claim,
    config: &CrawlConfig,
    answered_at: &AtomicU64,
) -> Result<PageResult, NotCounted> {
    let plugin = shared.parts.rules.description();
    if !plugin.rules.contains(&claim.request.rule) {
        let ended = Ended::Dead {
            reason: NO_RULE.to_owned(),
        };
        return Ok(PageResult::new(ended, 0));
    }
    if let Some(not_due) = not_due(shared, claim, config, answered_at) {
        return Ok(not_due);
    }
    if let Some(refused) = kept::refused(shared, claim, &config.settings) {
        answered_at.store(shared.parts.clock.unix_millis(), Ordering::Relaxed);
        return Ok(refused);
    }
    let archive = shared.parts.archive.as_ref();
    let tape: Option<Arc<Tape>> = archive.map(|_| Arc::default());
    let request = FetchRequest {
        tape: tape.clone(),
        ..fetch_request(shared, slot, claim, config)
    };
    // The knowledge from when the host became ready may have been forgotten since.
    if !claim.alone && !shared.parts.fetch.is_prepared(&request) {
        return Err(NotCounted::NotNow(HostUpdate::Unready));
    }
    let fetch = shared.parts.fetch.fetch(request);
    let fetched = while_given(&*shared.parts.permit, fetch).await;
    answered_at.store(shared.parts.clock.unix_millis(), Ordering::Relaxed);
    match fetched {
        None => Err(NotCounted::NotNow(HostUpdate::None)),
        Some(Ok(fetched)) => {
            let n_bytes = match &fetched.answer {
                Answer::Page(page) => page.body.len() as u64,
                Answer::Redirect { .. } => 0,
            };
            // It counts while the page waits for the archive, too.
            let _held = shared.parts.crawl_memory.account().reserve(n_bytes);
            if let (Some(archive), Some(tape)) = (archive, tape) {
                Box::pin(archived::store(shared, archive, claim, tape)).await;
            }
            // An answer of a cache says nothing of the host.
            let host_answered = fetched.host_ready_at > 0;
            if host_answered {
                note_answer(shared, claim, fetched.delay_by);
            }
            Ok(PageResult {
                host_answered,
                delay_by: fetched.delay_by,
                ..answered(shared, claim, config, fetched).await?
            })
        }
        Some(Err(failure)) => failed(shared, claim, config, failure),
    }
}

/// Takes note of an answer of the host, which may have said that it is in trouble.
fn note_answer(shared: &Shared, claim: &Claim, delay_by: DelaySource) {
    let incidents = &shared.parts.incidents;
    match delay_by == DelaySource::Trouble {
        true => incidents.host_in_trouble(&claim.request.host()),
        false => incidents.host_answers(|| claim.request.host()),
    }
}

/// Returns the end of a page that is not due yet. It is known by then that its host is not asked.
pub(super) fn not_due(
    shared: &Shared,
    claim: &Claim,
    config: &CrawlConfig,
    answered_at: &AtomicU64,
) -> Option<PageResult> {
    let now = shared.parts.clock.unix_millis();
    let parsed_by = || shared.parsed_by(config);
    let not_due = revisit::not_due(claim, &config.settings, parsed_by, now);
    if not_due.is_some() {
        answered_at.store(now, Ordering::Relaxed);
    }
    not_due
}

/// Returns the result of a request without an answer.
fn failed(
    shared: &Shared,
    claim: &Claim,
    config: &CrawlConfig,
    failure: Failure,
) -> Result<PageResult, NotCounted> {
    let (request, now) = (&claim.request, shared.parts.clock.unix_millis());
    let tell = |level, message| {
        let (log, url) = (&shared.parts.log, request.url.as_str());
        log.on_page(level, url, &request.rule, message);
    };
    let error = &failure.error;
    if error.is_held() {
        return Err(NotCounted::not_before(failure.host_ready_at));
    }
    // The operator can set it up, or another worker may have it: no page is lost by that.
    if let FetchError::NotSetUp { .. } = error {
        tell("error", error.to_string());
        return Err(NotCounted::not_before(
            now.saturating_add(NOT_SET_UP_WAIT_MS),
        ));
    }
    let n_failures = claim.host.n_failures.saturating_add(1);
    let is_unreachable = failure.is_of_host && n_failures >= UNREACHABLE_AFTER;
    if is_unreachable || failure.delay_by == DelaySource::Trouble {
        (shared.parts.incidents).host_in_trouble(&request.host());
    }
    // A page that is tried alone keeps all others waiting, so it ends by its own attempts.
    if failure.is_of_host && !claim.alone {
        let host = &claim.host;
        let put_off = verdict::of_host(error, host, &config.settings, now, failure.host_ready_at);
        let name = request.host();
        tell(
            "warn",
            format!("{name} could not be reached, attempt {n_failures}: {error}"),
        );
        return Err(NotCounted::PutOff(put_off));
    }
    let message = format!("attempt {} failed: {error}", claim.attempt);
    tell("warn", message);
    let attempt = Attempt::ended(claim.attempt, &config.settings, now);
    let ended = verdict::of_fetch_error(error, attempt);
    let left_out = (ended == Ended::Done(Done::Denied)).then(|| (error.reason(), 1));
    Ok(PageResult {
        detail: error.detail(),
        delay_by: failure.delay_by,
        refused: left_out.into_iter().collect(),
        ..PageResult::new(ended, failure.host_ready_at)
    })
}

/// Returns the result of an answer.
async fn answered(
    shared: &Shared,
    claim: &Claim,
    config: &CrawlConfig,
    fetched: Fetched,
) -> Result<PageResult, NotCounted> {
    let request = &claim.request;
    let page = match fetched.answer {
        Answer::Page(page) => Arc::new(*page),
        Answer::Redirect { to } => {
            // A reload would be redirected to itself without end.
            let depth = claim.depth + u32::from(request.is_same_host(&to));
            let target = request.redirected(to.clone());
            let bounds = shared.bounds(&config.settings);
            let peers = shared.parts.peers.as_ref();
            let sorted = verdict::of_links(bounds, peers, vec![target], depth);
            let refusal = sorted.refused.keys().next().copied();
            let ended = Ended::Done(Done::Redirected);
            return Ok(PageResult {
                observed: Observed {
                    refused_target: refusal.map(|refusal| (to, refusal)),
                    refused_hosts: sorted.refused_hosts,
                    ..Observed::default()
                },
                requests: sorted.requests,
                for_peers: sorted.for_peers,
                refused: sorted.refused.into_iter().collect(),
                ..PageResult::new(ended, fetched.host_ready_at)
            });
        }
    };
    if page.status == 304
        && let Some(known) =
            unchanged::condition(claim, &config.settings, || shared.parsed_by(config))
        && page.redirects.is_empty()
    {
        let ended = Ended::Done(Done::NotModified);
        let mut result = PageResult::new(ended, fetched.host_ready_at);
        let now = shared.parts.clock.unix_millis();
        let known = revisit::visited(claim, &config.settings, known.clone(), now);
        result.validators = Some(known);
        result.observed.status = page.status;
        return Ok(result);
    }
    let now = shared.parts.clock.unix_millis();
    let attempt = Attempt::ended(claim.attempt, &config.settings, now);
    let mut result = match verdict::of_status(&page, &request.accept_status, attempt) {
        Verdict::End(ended) => PageResult::new(ended, fetched.host_ready_at),
        Verdict::Parse => parse(shared, claim, config, &page, fetched.host_ready_at).await?,
    };
    result.bytes = page.body.len() as u64;
    result.observed.status = page.status;
    Ok(result)
}

async fn parse(
    shared: &Shared,
    claim: &Claim,
    config: &CrawlConfig,
    page: &Arc<Page>,
    host_ready_at: UnixMillis,
) -> Result<PageResult, FrontierError> {
    let (request, frontier) = (&claim.request, &shared.parts.frontier);
    // Many URLs may lead to one page that tells of a failure; the rule asked for each.
    let is_success = matches!(page.status, 200..=299);
    let led_to = (is_success && page.url != request.url).then(|| Request {
        url: page.url.clone(),
        ..request.clone()
    });
    if let Some(led_to) = &led_to
        && led_to.fingerprint() != claim.fingerprint
        && !request.reload
        && frontier.knows(led_to).await?
    {
        let ended = Ended::Done(Done::Duplicate);
        return Ok(PageResult::new(ended, host_ready_at));
    }
    let is_page = request.method == "GET" && is_success;
    let kept = match request.keeps(page.status) {
        true => Some(kept::digest_of(&page.body).await),
        false => None,
    };
    let content = || kept.map_or_else(|| ContentHash::of(&page.body), ContentHash::from);
    let parsed_by = shared.parsed_by(config);
    let validators = is_page.then(|| {
        let validators = Validators::of(page, content(), parsed_by);
        match &led_to {
            // Such a page is due in every run: only its answer tells the run that the target is this page.
            Some(_) => validators,
            None => {
                let now = shared.parts.clock.unix_millis();
                revisit::visited(claim, &config.settings, validators, now)
            }
        }
    });
    if let Some(validators) = &validators
        && unchanged::is_as_known(claim, &config.settings, validators)
    {
        return Ok(PageResult {
            final_url: led_to,
            validators: Some(validators.clone()),
            ..PageResult::new(Ended::Done(Done::NotModified), host_ready_at)
        });
    }
    let (settings, body) = (&config.settings, &page.body);
    if let Some(digest) = kept
        && !kept::store(shared, claim, settings, digest, body).await
    {
        let n_bytes = body.len();
        return Ok(kept::over_quota(shared, settings, n_bytes, host_ready_at));
    }
    let context = PageContext {
        depth: claim.depth,
        attempt: claim.attempt,
        state: request.state.clone(),
        referrer: request.referrer.clone(),
        kept,
    };
    let rules = &shared.parts.rules;
    let limits = config.limits.of_plugin(rules.description());
    let call_config = shared.call_config(limits);
    let call = rules.parse(call_config, &request.rule, page.clone(), context);
    let call = pin!(traced::noted(call));
    let trace = traced::of_call(&request.rule, || {
        let Description { name, version, .. } = rules.description();
        format!("{name}@{version}")
    });
    let report = call_recorded(&**frontier, claim, trace.around(call)).await?;
    shared.parts.limit_uses.note(&report, &limits);
    note_logs(
        &shared.parts.log,
        request.url.as_str(),
        &request.rule,
        &report,
    );
    let plans = shared.plan_reads(&report.reads);
    let mut result = called(shared, claim, config, page, report, host_ready_at);
    result.observed.plans = plans;
    result.kept_bytes = kept.map_or(0, |_| page.body.len() as u64);
    if let Ended::Done(Done::Parsed) = result.ended {
        result.final_url = led_to;
        result.validators = validators;
    } else if let Ended::Done(Done::Skipped) = result.ended {
        result.validators = validators;
    }
    Ok(result)
}
