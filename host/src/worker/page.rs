//! One attempt at one page: fetch, parse, commit. Whatever happens in it ends in one commit, or
//! with the page put back when the crawl stops or its frontier fails.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt as _;
use tokio_util::sync::CancellationToken;

use super::harvest::{Harvest, Unended, harvest};
use super::shared::Shared;
use crate::frontier::{Claim, Commit, Ended, FrontierError};
use crate::model::scope::Refusal;
use crate::model::settings::CrawlSettings;

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
    let mut harvest = match harvest {
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
            // Whether its host was asked before, nobody knows.
            answered_at.store(0, Ordering::Relaxed);
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
    if shared.is_disk_full(&config.settings) {
        refuse_links(&shared, &config.settings, &mut harvest);
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
        cookies: shared.cookies.unsaved(),
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

/// Counts the links of a page as refused: its frontier has as many bytes on disk as it may.
fn refuse_links(shared: &Shared, settings: &CrawlSettings, harvest: &mut Harvest) {
    let n_links = harvest.requests.len() + harvest.for_others.len();
    if n_links == 0 {
        return;
    }
    harvest.requests.clear();
    harvest.for_others.clear();
    let max = settings.max_disk();
    let refusal = Refusal::Disk { max };
    harvest.refused.push((refusal.as_str(), n_links as u64));
    shared.told_of_disk.call_once(|| {
        let message = format!("links are not followed from here on: {refusal}");
        shared.parts.log.note("warn", message);
    });
}
