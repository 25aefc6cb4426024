//! One attempt at one page: fetch, parse, commit; and the preparation of a host before its first page. Every
//! attempt ends in one commit, or with the page put back if the crawl stops or its frontier fails.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};

use futures::FutureExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::page_result::{self, NotCounted};
use super::parts::CrawlConfig;
use super::shared::Shared;
use super::slot::SlotGuard;
use super::{drift, traced};
use crawler_frontier::{Claim, Commit, Ended, FrontierError, HostUpdate, PageResult};
use crawler_model::crawl::{Done, UnixMillis};
use crawler_model::scope::Refusal;
use crawler_model::settings::CrawlSettings;
use crawler_process::stage::Stage;

/// Fetches, parses and commits one page that was counted as begun at `start`; on `stop` puts it back.
pub(super) async fn attempt(
    shared: Arc<Shared>,
    slot: SlotGuard,
    start: Instant,
    claim: Box<Claim>,
    stop: CancellationToken,
) {
    let config = shared.config();
    let answered_at = AtomicU64::new(0);
    let attempt = Box::pin(page_result::fetch_and_parse(
        &shared,
        &slot,
        &claim,
        &config,
        &answered_at,
    ));
    let caught = until_stop(attempt, &stop).await;
    let is_asked = match &caught {
        Ok(Err(NotCounted::NotNow(HostUpdate::NotBefore(_) | HostUpdate::Unready))) => false,
        Ok(Ok(result)) => result.ended != Ended::Done(Done::NotDue),
        Ok(Err(_)) | Err(_) => true,
    };
    if !is_asked {
        shared.parts.pacing.take_back(start);
    }
    end(&shared, &config, claim, caught, answered_at.into_inner()).await;
    drop(slot);
}

/// Finds out what must be known before the pages of a claim's host are fetched, and puts the claim back with
/// that. If the host is given up, so is the page, unless it is not due.
pub(super) async fn prepare(
    shared: Arc<Shared>,
    slot: SlotGuard,
    claim: Box<Claim>,
    stop: CancellationToken,
) {
    let config = shared.config();
    let answered_at = AtomicU64::new(0);
    let not_due = page_result::not_due(&shared, &claim, &config, &answered_at);
    let caught = match (not_due, claim.host.given_up.clone()) {
        (Some(not_due), _) => Ok(Ok(not_due)),
        (None, Some(reason)) => {
            answered_at.store(shared.parts.clock.unix_millis(), Ordering::Relaxed);
            Ok(Ok(PageResult {
                detail: format!("{} cannot be reached", claim.request.host()),
                ..PageResult::new(Ended::Dead { reason }, 0)
            }))
        }
        (None, None) => {
            let prepare = Box::pin(page_result::prepare(
                &shared,
                &slot,
                &claim,
                &config,
                &answered_at,
            ));
            until_stop(prepare, &stop).await
        }
    };
    end(&shared, &config, claim, caught, answered_at.into_inner()).await;
    drop(slot);
}

/// Result of an attempt; the outer error is a panic.
type Caught = Result<Result<PageResult, NotCounted>, Box<dyn Any + Send>>;

async fn until_stop(
    attempt: impl Future<Output = Result<PageResult, NotCounted>>,
    stop: &CancellationToken,
) -> Caught {
    tokio::select! {
        biased;
        () = stop.cancelled() => Ok(Err(NotCounted::NotNow(HostUpdate::None))),
        caught = AssertUnwindSafe(attempt).catch_unwind() => caught,
    }
}

/// Commits the result of an attempt, or puts its page back.
async fn end(
    shared: &Shared,
    config: &CrawlConfig,
    claim: Box<Claim>,
    caught: Caught,
    mut answered_at: UnixMillis,
) {
    let frontier = &shared.parts.frontier;
    let mut result = match caught {
        Ok(Ok(result)) => result,
        Ok(Err(NotCounted::NotNow(update))) => {
            traced::note_put_back();
            return frontier.give_back(claim, update);
        }
        Ok(Err(NotCounted::PutOff(failure))) => {
            traced::note_put_back();
            if let Err(error) = frontier.put_off(claim, failure).await {
                shared.lost_frontier(error);
            }
            return;
        }
        Ok(Err(NotCounted::Frontier(error))) => {
            shared.lost_frontier(error);
            return frontier.give_back(claim, HostUpdate::None);
        }
        // A panic here is a bug of the host. It costs this page and is logged; the crawl goes on.
        Err(_panic) => {
            tracing::error!(url = %claim.request.url, "handling a page panicked");
            let ended = Ended::Dead {
                reason: "host-panic".to_owned(),
            };
            // It is unknown if the host was asked before.
            answered_at = 0;
            PageResult::new(ended, 0)
        }
    };
    if let Ended::Dead { reason } = &result.ended {
        let request = &claim.request;
        let message = format!("given up after attempt {}: {reason}", claim.attempt);
        shared
            .parts
            .log
            .on_page("warn", request.url.as_str(), &request.rule, message);
    }
    if shared.is_disk_full(&config.settings) {
        refuse_links(shared, &config.settings, &mut result);
    }
    drift::set_aside(shared, config.settings.drift(), &mut result);
    traced::note_end(&result.ended);
    // Of a page whose items are all to be judged, those are delivered later, if they pass.
    shared.undelivered.wait(match result.items.is_empty() {
        true => &result.watched,
        false => &result.items,
    });
    let (has_items, has_watched) = (!result.items.is_empty(), !result.watched.is_empty());
    // A page that was given up with its host, or that is not due, was not requested.
    let is_over = !matches!(
        result.ended,
        Ended::Retry { .. } | Ended::Done(Done::NotDue)
    ) && claim.host.given_up.is_none();
    let n_bytes = result.bytes;
    let commit = Commit {
        claim,
        result,
        growth: shared.growth(&config.settings),
        answered_at,
        cookies: shared.cookies.unsaved(),
    };
    // The count rises before the commit, which takes the page out of flight: between the two it would be
    // counted nowhere, and a page more than --max-pages would be taken.
    if is_over {
        shared.n_ended.fetch_add(1, Ordering::Relaxed);
    }
    shared.n_bytes.fetch_add(n_bytes, Ordering::Relaxed);
    let committed = Stage::Commit.timed(shared.parts.frontier.commit(commit));
    match committed.await {
        Ok(committed) => {
            let settings = &config.settings;
            if committed.n_over_pattern > 0 {
                let max = settings.max_pattern_urls();
                log_once(shared, &shared.logged_pattern, Refusal::PatternUrls { max });
            }
            if committed.n_over_hosts > 0 {
                let max = settings.max_hosts();
                log_once(shared, &shared.logged_hosts, Refusal::Hosts { max });
            }
            if has_items {
                shared.items.notify_one();
            }
            if has_watched && let Some(drift) = &shared.drift {
                drift.changed.notify_one();
            }
        }
        Err(FrontierError::NotInFlight { url }) => {
            shared.fail(format!("a page was committed twice: {url}"));
        }
        Err(error) => shared.lost_frontier(error),
    }
}

/// Logs why a link is not followed: once for all such links of the crawl.
fn log_once(shared: &Shared, logged: &Once, refusal: Refusal) {
    logged.call_once(|| {
        let message = format!("a link is not followed, and others may not be: {refusal}");
        shared.parts.log.note("warn", message);
    });
}

/// Counts the links of a page as refused, because its frontier has as many bytes on disk as it may. The page leaves no
/// validators behind: the next run parses it even if it has not changed, and finds the links again.
fn refuse_links(shared: &Shared, settings: &CrawlSettings, result: &mut PageResult) {
    let n_links = result.requests.len() + result.for_peers.len();
    if n_links == 0 {
        return;
    }
    result.requests.clear();
    result.for_peers.clear();
    result.validators = None;
    let max = settings.max_disk();
    let refusal = Refusal::Disk { max };
    result.refused.push((refusal.as_str(), n_links as u64));
    shared.logged_disk.call_once(|| {
        let message = format!("links are not followed from here on: {refusal}");
        shared.parts.log.note("warn", message);
    });
}
